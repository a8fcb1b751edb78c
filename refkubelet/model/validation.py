"""What a pod must say to be run: the checks an API server makes at creation, for static pods.

Each check yields `field: complaint` in the API's words (SRC-037); none of them stops another.
`api_object_reference` is the ban of API objects in static pods (SRC-038). The values were decoded
already, so types are right here. Upstream: pkg/apis/core/validation, pkg/api/pod/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from refkubelet.golang.strconv import quoted
from refkubelet.model.complaints import (
    MAX_INT32,
    at_least,
    between,
    invalid,
    label,
    one_of,
    port_name,
    subdomain,
)
from refkubelet.model.objects import Container, Pod, PodSpec, Probe
from refkubelet.model.pod import is_sidecar
from refkubelet.model.quantity import QuantityError, parse_nano
from refkubelet.model.validation_container import (
    container_problems,
    device_problems,
    hook_problems,
    host_port_problems,
    restart_rules,
)
from refkubelet.model.validation_pod import metadata_problems, pod_level_problems
from refkubelet.model.validation_resources import resource_name_problems
from refkubelet.model.validation_values import env_problems, file_volume_problems
from refkubelet.model.validation_volumes import volume_problems

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")


def pod_problems(pod: Pod) -> list[str]:
    """All complaints about a pod after API defaults; empty when it can run."""
    meta, spec = pod.metadata, pod.spec
    problems: list[str] = []
    if not meta.name:
        problems.append("metadata.name: Required value")
    problems += subdomain("metadata.name", meta.name)
    problems += label("metadata.namespace", meta.namespace)
    problems += metadata_problems(meta)
    return [*problems, *_spec(spec)]


def _spec(spec: PodSpec) -> Iterator[str]:
    yield from one_of("spec.restartPolicy", spec.restartPolicy, ("Always", "OnFailure", "Never"))
    yield from one_of(
        "spec.dnsPolicy",
        spec.dnsPolicy,
        ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    )
    grace = spec.terminationGracePeriodSeconds
    yield from at_least("spec.terminationGracePeriodSeconds", grace, 0)
    deadline = spec.activeDeadlineSeconds
    yield from between("spec.activeDeadlineSeconds", deadline, 1, MAX_INT32)
    volumes: set[str] = set()
    for i, volume in enumerate(spec.volumes or ()):
        yield from _volume(f"spec.volumes[{i}]", volume, volumes)
    if not spec.containers:
        yield "spec.containers: Required value"
    names: set[str] = set()
    for i, container in enumerate(spec.containers or ()):
        place = f"spec.containers[{i}]"
        yield from _container(place, container, names, volumes)
        yield from _more_of_container(place, container, spec)
        yield from _probes_and_hooks(place, container, spec)
        yield from restart_rules(place, container)
    yield from host_port_problems(spec)
    for i, container in enumerate(spec.initContainers or ()):
        place = f"spec.initContainers[{i}]"
        yield from _container(place, container, names, volumes)
        yield from _more_of_container(place, container, spec)
        yield from _init_container(place, container, spec)
        yield from restart_rules(place, container, of_init=True)
    yield from _resources("spec.resources", spec.resources)
    yield from resource_name_problems("spec.resources", spec.resources, of_pod=True)
    yield from pod_level_problems(spec)
    yield from file_volume_problems(spec)


def _more_of_container(place: str, container: Container, spec: PodSpec) -> Iterator[str]:
    yield from container_problems(place, container, spec)
    claims = frozenset(claim.name for claim in spec.resourceClaims or ())
    yield from resource_name_problems(f"{place}.resources", container.resources, claims=claims)
    yield from device_problems(place, container, spec)


def _unique_label(field: str, name: str, seen: set[str]) -> Iterator[str]:
    if not name:
        yield f"{field}: Required value"
    yield from label(field, name)
    if name in seen:
        yield f"{field}: Duplicate value: {quoted(name)}"
    seen.add(name)


def _volume(place: str, volume: Any, seen: set[str]) -> Iterator[str]:
    yield from _unique_label(f"{place}.name", volume.name, seen)
    yield from volume_problems(place, volume)


def _container(place: str, c: Container, names: set[str], volumes: set[str]) -> Iterator[str]:
    yield from _unique_label(f"{place}.name", c.name, names)
    if not c.image:
        yield f"{place}.image: Required value"
    elif c.image != c.image.strip():
        yield invalid(f"{place}.image", c.image, "must not have leading or trailing whitespace")
    pull = f"{place}.imagePullPolicy"
    yield from one_of(pull, c.imagePullPolicy, ("Always", "IfNotPresent", "Never"))
    policy = f"{place}.terminationMessagePolicy"
    yield from one_of(policy, c.terminationMessagePolicy, ("File", "FallbackToLogsOnError"))
    yield from one_of(f"{place}.restartPolicy", c.restartPolicy, ("Always", "OnFailure", "Never"))
    yield from env_problems(place, c)
    yield from _ports(place, c)
    yield from _mounts(place, c, volumes)
    yield from _resources(f"{place}.resources", c.resources)


def _probes_and_hooks(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield from _probe(f"{place}.{name}", getattr(c, name), name)
    if c.lifecycle is not None:
        for name in ("postStart", "preStop"):
            hook = getattr(c.lifecycle, name)
            if hook is not None:
                yield from _handler(f"{place}.lifecycle.{name}", hook, _HOOKS)
    yield from hook_problems(place, c, spec)


def _init_container(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    if is_sidecar(c):
        yield from _probes_and_hooks(place, c, spec)
        return
    for name in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
        if getattr(c, name) is not None:
            why = "may not be set for init containers without restartPolicy=Always"
            yield f"{place}.{name}: Forbidden: {why}"


def _ports(place: str, c: Container) -> Iterator[str]:
    for i, port in enumerate(c.ports or ()):
        field = f"{place}.ports[{i}]"
        for name, value in (("containerPort", port.containerPort), ("hostPort", port.hostPort)):
            number = value or 0
            unset = value is None or (name == "hostPort" and number == 0)
            if not unset and not 1 <= number <= 65535:
                yield invalid(f"{field}.{name}", value, "must be between 1 and 65535, inclusive")
        yield from one_of(f"{field}.protocol", port.protocol, ("TCP", "UDP", "SCTP"))


def _mounts(place: str, c: Container, volumes: set[str]) -> Iterator[str]:
    paths: set[str] = set()
    for i, mount in enumerate(c.volumeMounts or ()):
        field = f"{place}.volumeMounts[{i}]"
        if mount.name not in volumes:
            yield f"{field}.name: Not found: {quoted(mount.name)}"
        if not mount.mountPath:
            yield f"{field}.mountPath: Required value"
        elif mount.mountPath in paths:
            yield invalid(f"{field}.mountPath", mount.mountPath, "must be unique")
        paths.add(mount.mountPath)


def _resources(place: str, resources: Any) -> Iterator[str]:
    if resources is None:
        return
    amounts: dict[str, dict[str, int]] = {"limits": {}, "requests": {}}
    for which, known in amounts.items():
        for name, text in (getattr(resources, which) or {}).items():
            try:
                known[name] = parse_nano(text)
            except QuantityError as e:
                yield f"{place}.{which}[{name}]: Invalid value: {e}"
                continue
            if known[name] < 0:
                field = f"{place}.{which}[{name}]"
                yield invalid(field, text, "must be greater than or equal to 0")
    for name, amount in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is not None and amount > limit:
            why = f"must be less than or equal to {name} limit"
            yield invalid(f"{place}.requests", resources.requests[name], why)


def _probe(place: str, probe: Probe | None, kind: str) -> Iterator[str]:
    """PROBE-003."""
    if probe is None:
        return
    yield from _handler(place, probe, _HANDLERS)
    yield from at_least(f"{place}.initialDelaySeconds", probe.initialDelaySeconds, 0)
    for name in ("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from at_least(f"{place}.{name}", getattr(probe, name), 0)
    if kind != "readinessProbe" and (probe.successThreshold or 1) != 1:
        yield invalid(f"{place}.successThreshold", probe.successThreshold, "must be 1")
    grace = probe.terminationGracePeriodSeconds
    if kind == "readinessProbe" and grace is not None:
        field = f"{place}.terminationGracePeriodSeconds"
        yield f"{field}: Forbidden: must not be set for readinessProbes"
    else:
        yield from at_least(f"{place}.terminationGracePeriodSeconds", grace, 1)


def _handler(place: str, handler: Any, kinds: tuple[str, ...]) -> Iterator[str]:
    given = [kind for kind in kinds if getattr(handler, kind, None) is not None]
    if not given:
        yield f"{place}: Required value: must specify a handler type: {', '.join(kinds)}"
    elif len(given) > 1:
        yield f"{place}.{given[1]}: Forbidden: may not specify more than 1 handler type"
    if "exec" in given and not handler.exec.command:
        yield f"{place}.exec.command: Required value"
    if "httpGet" in given:
        yield from one_of(f"{place}.httpGet.scheme", handler.httpGet.scheme, ("HTTP", "HTTPS"))
    for kind in given:
        if kind in ("httpGet", "tcpSocket", "grpc"):
            yield from _number_or_name(f"{place}.{kind}.port", getattr(handler, kind).port)


def _number_or_name(field: str, port: int | str) -> Iterator[str]:
    """The port of a handler (PROBE-061): digits in a text are no name."""
    if isinstance(port, int):
        if not 1 <= port <= 65535:
            yield invalid(field, port, "must be between 1 and 65535, inclusive")
        return
    yield from port_name(field, port)


def api_object_reference(pod: Pod) -> str | None:
    """The first kind of API object that the pod names, in SRC-038's order; None if none."""
    spec = pod.spec
    if spec.serviceAccountName or spec.serviceAccount:  # the second is the first one's old name
        return "serviceaccounts"
    if any(ref.name for ref in spec.imagePullSecrets or ()) or _names(spec, "secret"):
        return "secrets"
    if _names(spec, "configMap"):
        return "configmaps"
    if spec.resourceClaims:
        return "resourceclaims"
    return next(filter(None, map(_volume_reference, spec.volumes or ())), None)


def _names(spec: PodSpec, kind: str) -> bool:
    """Whether any env, envFrom or volume takes its content from a Secret or ConfigMap."""
    for c in [*(spec.containers or ()), *(spec.initContainers or ())]:
        if any(_named(getattr(source, f"{kind}Ref")) for source in c.envFrom or ()):
            return True
        if any(e.valueFrom and _named(getattr(e.valueFrom, f"{kind}KeyRef")) for e in c.env or ()):
            return True
    for volume in spec.volumes or ():
        if getattr(volume, kind) is not None or (kind == "secret" and _has_secret_ref(volume)):
            return True
        parts = (volume.projected.sources or ()) if volume.projected else ()
        if any(_named(getattr(part, kind)) for part in parts):
            return True
    return False


def _named(ref: Any) -> bool:
    return ref is not None and bool(ref.name)


def _has_secret_ref(volume: Any) -> bool:
    sources = (getattr(volume, f) for f in volume.__struct_fields__ if f not in ("name", "csi"))
    if volume.csi is not None and _named(volume.csi.nodePublishSecretRef):
        return True
    return volume.azureFile is not None or any(
        _named(getattr(source, "secretRef", None)) for source in sources
    )


def _volume_reference(volume: Any) -> str | None:
    for field, what in (
        ("csi", "csidrivers (via CSI volumes)"),
        ("glusterfs", "endpoints (via glusterFS volumes)"),
        ("persistentVolumeClaim", "persistentvolumeclaims"),
        ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ):
        if getattr(volume, field) is not None:
            return what
    for part in (volume.projected.sources or ()) if volume.projected else ():
        for field, what in (
            ("configMap", "configmaps (via projected volumes)"),
            ("secret", "secrets (via projected volumes)"),
            ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
            ("clusterTrustBundle", "clustertrustbundles"),
            ("podCertificate", "podcertificates"),
        ):
            if getattr(part, field) is not None:
                return what
    return None
