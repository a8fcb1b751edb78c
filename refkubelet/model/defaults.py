"""Fills in the defaults of static pods: those of an API server, and UID, name and node. Pure.

Rules: SRC-030..036, PROBE-003. The order matters: API defaults first, then the UID over the
defaulted object, then name, namespace, node (SRC-030). All functions return
changed copies.
Upstream: pkg/kubelet/config/common.go: applyDefaults; pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec
from lightkube.models.core_v1 import EmptyDirVolumeSource, PodSecurityContext

from kubeobjects.quantity import QuantityError
from refkubelet.model.hashes import static_pod_uid
from refkubelet.model.objects import (
    Container,
    Lifecycle,
    LifecycleHandler,
    Pod,
    PodStatus,
    Probe,
    Toleration,
    to_dict,
)
from refkubelet.model.pod import CONFIG_HASH, CONFIG_SOURCE
from refkubelet.model.pod_updates import PodSource
from refkubelet.model.resources import COMPUTE, container_quantities

replace: Final = msgspec.structs.replace


def apply_static_defaults(pod: Pod, *, source: PodSource, origin: str, node_name: str) -> Pod:
    """The pod of a manifest with all defaults, as the kubelet runs it.

    `origin` is the file path or URL; it is part of the UID (SRC-031). An explicit metadata.uid is
    kept (SRC-032). Sets: API defaults, UID, name with the node's suffix, namespace, nodeName,
    annotations config.hash and config.source, the NoExecute toleration for file pods (SRC-035),
    phase Pending (SRC-033).
    """
    pod = apply_api_defaults(pod)
    metadata, spec = pod.metadata, pod.spec
    uid = metadata.uid or static_pod_uid(
        to_dict(pod), node_name=node_name, source=source.value, origin=origin
    )
    marks = {**(metadata.annotations or {}), CONFIG_HASH: uid, CONFIG_SOURCE: source.value}
    metadata = replace(
        metadata,
        uid=uid,
        name=static_pod_name(metadata.name or "", node_name),
        namespace=metadata.namespace or "default",
        annotations=marks,
    )
    tolerations = list(spec.tolerations or [])
    if source is PodSource.FILE:
        tolerations = _with_no_execute(tolerations)
    spec = replace(spec, nodeName=node_name, tolerations=tolerations or None)
    status = replace(pod.status or PodStatus(), phase="Pending")
    return replace(pod, metadata=metadata, spec=spec, status=status)


def _with_no_execute(tolerations: list[Toleration]) -> list[Toleration]:
    """`tolerations` with the one for file pods: appended, or in the place of equal ones
    (SRC-035)."""
    wanted = Toleration(operator="Exists", effect="NoExecute")

    def same(t: Toleration) -> bool:
        plain = not t.key and not t.value
        return plain and t.effect == wanted.effect and t.operator == wanted.operator

    if not any(map(same, tolerations)):
        return [*tolerations, wanted]
    return [wanted if same(t) else t for t in tolerations]


def static_pod_name(name: str, node_name: str) -> str:
    """`<name>-<lowercase node name>` (SRC-033)."""
    return f"{name}-{node_name.lower()}"


def apply_api_defaults(pod: Pod) -> Pod:
    """The defaults every API server sets on a v1 pod (SRC-036, PROBE-003)."""
    spec = pod.spec
    host_network = bool(spec.hostNetwork)
    spec = replace(
        spec,
        restartPolicy=spec.restartPolicy or "Always",
        terminationGracePeriodSeconds=_grace(spec.terminationGracePeriodSeconds),
        dnsPolicy=spec.dnsPolicy or "ClusterFirst",
        enableServiceLinks=_or(spec.enableServiceLinks, True),
        schedulerName=spec.schedulerName or "default-scheduler",
        securityContext=spec.securityContext or PodSecurityContext(),
        containers=[_container(c, host_network) for c in spec.containers or []],
        initContainers=_each(spec.initContainers, host_network),
        volumes=[_volume(v) for v in spec.volumes] if spec.volumes else spec.volumes,
    )
    pod = replace(pod, spec=spec)
    return replace(pod, spec=replace(spec, resources=_pod_level(pod))) if spec.resources else pod


def _pod_level(pod: Pod) -> Any:
    """The pod-level resources with defaults: limits of huge pages from the containers, requests
    from the containers' requests, else from the limits (upstream: defaultHugePagePodLimits,
    defaultPodRequests). Where a container has a text that is no quantity there are none: validation
    refuses the pod."""
    resources: Any = pod.spec.resources
    with suppress(QuantityError):
        if resources.limits or resources.requests:
            return _with_those_of_containers(resources, pod)
    return resources


def _with_those_of_containers(resources: Any, pod: Pod) -> Any:
    """Raises: QuantityError."""
    requests, limits = dict(resources.requests or {}), dict(resources.limits or {})
    for name, amount in container_quantities(pod, "limits").items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, str(amount))
    if limits:
        asked = container_quantities(pod, "requests")
        of_containers = {n: str(asked[n]) for n in COMPUTE if n in asked}
        requests = {**limits, **of_containers, **requests}
    return replace(resources, limits=limits or None, requests=requests or None)


def _grace(grace_s: int | None) -> int:
    """30 s unless set; a negative value, which old objects may have, means 1 s."""
    return 30 if grace_s is None else 1 if grace_s < 0 else grace_s


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _each(containers: list[Container] | None, host_network: bool) -> list[Container] | None:
    return [_container(c, host_network) for c in containers] if containers else containers


def _container(c: Container, host_network: bool) -> Container:
    return replace(
        c,
        imagePullPolicy=c.imagePullPolicy or default_pull_policy(c.image or ""),
        terminationMessagePath=c.terminationMessagePath or "/dev/termination-log",
        terminationMessagePolicy=c.terminationMessagePolicy or "File",
        livenessProbe=_probe(c.livenessProbe),
        readinessProbe=_probe(c.readinessProbe),
        startupProbe=_probe(c.startupProbe),
        lifecycle=_lifecycle(c.lifecycle),
        ports=[_port(p, host_network) for p in c.ports] if c.ports else c.ports,
        env=[_env(e) for e in c.env] if c.env else c.env,
        resources=_resources(c.resources),
    )


def default_pull_policy(image: str) -> str:
    """Always for `:latest` and for images without tag or digest, else IfNotPresent.

    >>> default_pull_policy("busybox"), default_pull_policy("localhost:5000/busybox:1")
    ('Always', 'IfNotPresent')
    """
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _probe(probe: Probe | None) -> Probe | None:
    if probe is None:
        return None
    return replace(
        probe,
        timeoutSeconds=probe.timeoutSeconds or 1,
        periodSeconds=probe.periodSeconds or 10,
        successThreshold=probe.successThreshold or 1,
        failureThreshold=probe.failureThreshold or 3,
        httpGet=_http_get(probe.httpGet),
        grpc=replace(probe.grpc, service=probe.grpc.service or "") if probe.grpc else None,
    )


def _http_get(action: Any) -> Any:
    if action is None:
        return None
    return replace(action, path=action.path or "/", scheme=action.scheme or "HTTP")


def _lifecycle(lifecycle: Lifecycle | None) -> Lifecycle | None:
    if lifecycle is None:
        return None
    return replace(
        lifecycle,
        postStart=_handler(lifecycle.postStart),
        preStop=_handler(lifecycle.preStop),
    )


def _handler(handler: LifecycleHandler | None) -> LifecycleHandler | None:
    return handler and replace(handler, httpGet=_http_get(handler.httpGet))


def _port(port: Any, host_network: bool) -> Any:
    host_port = port.containerPort if host_network and not port.hostPort else port.hostPort
    return replace(port, protocol=port.protocol or "TCP", hostPort=host_port)


def _env(env: Any) -> Any:
    return replace(env, valueFrom=_references(env.valueFrom)) if env.valueFrom else env


def _references(owner: Any) -> Any:
    """The defaults of fieldRef and resourceFieldRef, of a variable or of a file in a volume."""
    field, resource = owner.fieldRef, owner.resourceFieldRef
    if field is not None:
        field = replace(field, apiVersion=field.apiVersion or "v1")
    if resource is not None:
        resource = replace(resource, divisor=resource.divisor or "0")
    return replace(owner, fieldRef=field, resourceFieldRef=resource)


def _resources(resources: Any) -> Any:
    """Requests default to limits, resource by resource."""
    if resources is None:
        return None
    requests = {**(resources.limits or {}), **(resources.requests or {})}
    return replace(resources, requests=requests or None)


_VOLUMES: Final[dict[str, dict[str, Any]]] = {
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "configMap": {"defaultMode": 0o644},
    "downwardAPI": {"defaultMode": 0o644},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "projected": {"defaultMode": 0o644},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "secret": {"defaultMode": 0o644},
}
_TEXTS: Final = frozenset(("iscsiInterface", "pool", "user", "keyring", "storageMode"))


def _volume(volume: Any) -> Any:
    """Defaults of volume sources (NODE-205); a volume without a source is an emptyDir."""
    changes: dict[str, Any] = {}
    for kind, defaults in _VOLUMES.items():
        source = getattr(volume, kind)
        if source is not None:
            missing = {
                name: value
                for name, value in defaults.items()
                if getattr(source, name) is None
                or (getattr(source, name) == "" and (name in _TEXTS or kind == "scaleIO"))
            }
            changes[kind] = replace(source, **missing) if missing else source
    if volume.downwardAPI is not None:
        changes["downwardAPI"] = _files(changes["downwardAPI"])
    if volume.projected is not None:
        parts = [
            replace(part, downwardAPI=_files(part.downwardAPI)) if part.downwardAPI else part
            for part in volume.projected.sources or ()
        ]
        changes["projected"] = replace(changes["projected"], sources=parts or None)
    if volume.image is not None and not volume.image.pullPolicy:
        policy = default_pull_policy(volume.image.reference or "")
        changes["image"] = replace(volume.image, pullPolicy=policy)
    if all(getattr(volume, f) is None for f in volume.__struct_fields__ if f != "name"):
        changes["emptyDir"] = EmptyDirVolumeSource()
    return replace(volume, **changes) if changes else volume


def _files(source: Any) -> Any:
    return replace(source, items=[_references(item) for item in source.items or ()] or None)
