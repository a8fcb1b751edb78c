"""Fills in the fields of a pod that its manifest leaves out. No I/O.

These are the defaults of the v1 API (SRC-036, PROBE-003, NODE-205), which an API server sets on a
pod that it stores and a kubelet on a pod that it reads from a file or URL. A field that is no
pointer in the API's type has its default also where it is written empty or 0. Amounts of resources
are rounded to thousandths.
What admission plug-ins add is none of these.
Upstream: pkg/apis/core/v1/defaults.go, zz_generated.defaults.go, conversion.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kubeobjects.pods.common.checks import objects_of
from kubeobjects.pods.common.totals import default_pod_level
from kubeobjects.quantity import parse

Fields = dict[str, Any]
_FILE_MODE: Final = 0o644
_POD: Final = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_POD_POINTERS: Final = {"terminationGracePeriodSeconds": 30, "enableServiceLinks": True}
_CONTAINER: Final = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE: Final = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_VOLUMES: Final[dict[str, Fields]] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_VOLUME_POINTERS: Final[dict[str, Fields]] = {
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "hostPath": {"type": ""},
    "projected": {"defaultMode": _FILE_MODE},
    "secret": {"defaultMode": _FILE_MODE},
}
_TOKEN_S: Final = 3600
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?![0-9a-f]{{64}}$)"
    rf"(?P<name>(?:(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?"
    rf"{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>\w+(?:[-_+.]\w+)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
"""The name of an image: registry, path, tag, digest. 64 hexadecimal digits are none, but an ID."""
_LONGEST_REPOSITORY: Final = 255


def default_pod(pod: Fields) -> None:
    """Fill in, in place, the defaults of a v1 pod. Parts of a wrong type are left as they are.

    Raises QuantityError if an amount of resources is none.
    """
    spec = pod.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    host_network = bool(spec.get("hostNetwork"))
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in objects_of(spec.get(group)):
            _default_container(container)
            if group != "ephemeralContainers":
                _default_requests(container)
                _default_host_ports(container, host_network=host_network)
    for owner in (spec.get("resources"), {"limits": spec.get("overhead")}):
        _round(owner)
    default_pod_level(spec)
    _fill(spec, _POD)
    _fill_pointers(spec, _POD_POINTERS)
    if isinstance(spec["terminationGracePeriodSeconds"], int):
        # Old objects may have a negative one.
        grace_s = spec["terminationGracePeriodSeconds"]
        spec["terminationGracePeriodSeconds"] = 1 if grace_s < 0 else grace_s
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # the second is the first one's old name
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in objects_of(spec.get("volumes")):
        _default_volume(volume)


# -- containers ------------------------------------------------------------------------------------


def _default_container(container: Fields) -> None:
    _fill(container, _CONTAINER)
    _fill(container, {"imagePullPolicy": default_pull_policy(str(container.get("image") or ""))})
    _round(container.get("resources"))
    for port in objects_of(container.get("ports")):
        _fill(port, {"protocol": "TCP"})
    for name in _PROBES:
        for probe in _object(container.get(name)):
            _fill(probe, _PROBE)
            _default_action(probe)
    for lifecycle in _object(container.get("lifecycle")):
        for name in ("postStart", "preStop"):
            for hook in _object(lifecycle.get(name)):
                _default_action(hook)
    for variable in objects_of(container.get("env")):
        for source in _object(variable.get("valueFrom")):
            _default_references(source)
            for reference in _object(source.get("fileKeyRef")):
                _fill_pointers(reference, {"optional": False})


def default_pull_policy(image: str) -> str:
    """Always for `:latest` and for names without tag and digest, else IfNotPresent. What is no name
    of an image has no tag.

    >>> default_pull_policy("busybox"), default_pull_policy("localhost:5000/busybox:1")
    ('Always', 'IfNotPresent')
    """
    parts = _IMAGE.fullmatch(image)
    if parts is None or len(_repository(parts["name"])) > _LONGEST_REPOSITORY:
        return "IfNotPresent"
    tag = parts["tag"] or ("" if parts["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _repository(name: str) -> str:
    """The path of an image in its registry."""
    first, slash, rest = name.partition("/")
    if not slash:
        return f"library/{name}"
    is_registry = "." in first or ":" in first or first == "localhost" or first != first.lower()
    return rest if is_registry else name


def _default_requests(container: Fields) -> None:
    """Requests are the limits, resource by resource, unless they are written."""
    for resources in _object(container.get("resources")):
        if isinstance(resources.get("limits"), dict) and resources["limits"]:
            requests = resources.get("requests") or {}
            missing = {k: v for k, v in resources["limits"].items() if k not in requests}
            resources["requests"] = {**requests, **missing}


def _default_host_ports(container: Fields, *, host_network: bool) -> None:
    for port in objects_of(container.get("ports")) if host_network else ():
        if port.get("containerPort"):
            _fill(port, {"hostPort": port["containerPort"]})


def _default_action(handler: Fields) -> None:
    """What a probe or hook does."""
    for action in _object(handler.get("httpGet")):
        _fill(action, {"path": "/", "scheme": "HTTP"})
    for action in _object(handler.get("grpc")):
        _fill_pointers(action, {"service": ""})


def _default_references(owner: Fields) -> None:
    """The references of a variable, or of a file in a volume."""
    for reference in _object(owner.get("fieldRef")):
        _fill(reference, {"apiVersion": "v1"})
    for reference in _object(owner.get("resourceFieldRef")):
        _fill(reference, {"divisor": "0"})


# -- volumes ---------------------------------------------------------------------------------------


def _default_volume(volume: Fields) -> None:
    """Defaults of sources; a volume without a source is an emptyDir (NODE-205)."""
    if all(volume[field] is None for field in volume if field != "name"):
        volume["emptyDir"] = {}
    for kind, defaults in _VOLUMES.items():
        for source in _object(volume.get(kind)):
            _fill(source, defaults)
    for kind, defaults in _VOLUME_POINTERS.items():
        for source in _object(volume.get(kind)):
            _fill_pointers(source, defaults)
    for projected in _object(volume.get("projected")):
        for part in objects_of(projected.get("sources")):
            _default_files(part)
            for token in _object(part.get("serviceAccountToken")):
                _fill_pointers(token, {"expirationSeconds": _TOKEN_S})
    _default_files(volume)
    for image in _object(volume.get("image")):
        policy = default_pull_policy(str(image.get("reference") or ""))
        _fill(image, {"pullPolicy": policy})
    for ephemeral in _object(volume.get("ephemeral")):
        for template in _object(ephemeral.get("volumeClaimTemplate")):
            for claim in _object(template.get("spec")):
                _fill_pointers(claim, {"volumeMode": "Filesystem"})
                _round(claim.get("resources"))


def _default_files(owner: Fields) -> None:
    for source in _object(owner.get("downwardAPI")):
        for item in objects_of(source.get("items")):
            _default_references(item)


# -- values ----------------------------------------------------------------------------------------


def _fill(owner: Fields, defaults: Fields) -> None:
    """Set fields that are absent or empty."""
    for field, value in defaults.items():
        if not owner.get(field):
            owner[field] = value


def _fill_pointers(owner: Fields, defaults: Fields) -> None:
    """Set fields that are absent; empty ones stay."""
    for field, value in defaults.items():
        if owner.get(field) is None:
            owner[field] = value


def _round(resources: Any) -> None:
    """Round the amounts to thousandths."""
    for owner in _object(resources):
        for which in ("limits", "requests"):
            for amounts in _object(owner.get(which)):
                for name, amount in amounts.items():
                    amounts[name] = str(parse(str(amount)).in_thousandths())


def _object(value: Any) -> Iterator[Fields]:
    """The value, if it is an object."""
    if isinstance(value, dict):
        yield value
