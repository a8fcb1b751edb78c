"""The API objects the kubelet works with, and the few questions it keeps asking them.

The types are lightkube's msgspec structs. They are mutable by type and frozen by custom: nobody
assigns to a field of an object it did not just make; `msgspec.structs.replace` makes the changed
copy.
"""

from typing import Any, Final

import msgspec
from lightkube.models.core_v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Lifecycle,
    LifecycleHandler,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    Probe,
    Toleration,
)
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.core_v1 import Node, Pod

from refkubelet.model.names import name_problem

__all__ = [
    "Container",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "Lifecycle",
    "LifecycleHandler",
    "Node",
    "ObjectMeta",
    "OwnerReference",
    "Pod",
    "PodCondition",
    "PodIP",
    "PodSpec",
    "PodStatus",
    "Probe",
    "Toleration",
    "annotations",
    "decode_pod",
    "full_name",
    "is_critical",
    "is_mirror",
    "is_sidecar",
    "is_static",
    "labels",
    "pod_ref",
    "to_dict",
    "uid",
    "unsafe_name",
]

CONFIG_SOURCE: Final = "kubernetes.io/config.source"
CONFIG_HASH: Final = "kubernetes.io/config.hash"
CONFIG_SEEN: Final = "kubernetes.io/config.seen"
CONFIG_MIRROR: Final = "kubernetes.io/config.mirror"
SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000


def decode_pod(value: dict[str, Any]) -> Pod:
    """A Pod from its JSON form; unknown fields are ignored (SRC-004).

    Raises `msgspec.ValidationError`, whose text names the field and the wrong type.
    """
    pod: Pod = msgspec.convert(value, Pod)
    return pod


def to_dict(value: Any) -> dict[str, Any]:
    """The JSON form of an API object, without absent fields."""
    result: dict[str, Any] = _without_none(msgspec.to_builtins(value))
    return result


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_none(v) for v in value]
    return value


def _metadata(pod: Pod) -> ObjectMeta:
    if pod.metadata is None:
        raise ValueError("a pod without metadata has no place in the kubelet")
    return pod.metadata


def uid(pod: Pod) -> str:
    """metadata.uid; "" before it has one."""
    meta = pod.metadata or _metadata(pod)
    return meta.uid or ""


def unsafe_name(pod: Pod) -> str | None:
    """Which of the pod's names cannot be part of a path, and why (SRC-025); None: all can."""
    meta, spec = _metadata(pod), pod.spec
    names = [("UID", meta.uid), ("name", meta.name), ("namespace", meta.namespace)]
    if spec is not None:
        everyone = (*spec.containers, *(spec.initContainers or ()))
        names += [("container name", c.name) for c in everyone]
        names += [("container name", c.name) for c in spec.ephemeralContainers or ()]
        names += [("volume name", volume.name) for volume in spec.volumes or ()]
    problems = ((what, name or "", name_problem(name or "")) for what, name in names)
    return next((f"{what} {name[:80]!r}: {why}" for what, name, why in problems if why), None)


def full_name(pod: Pod) -> str:
    """`name_namespace`, the key that links a static pod and its mirror (MIRR-020)."""
    meta = _metadata(pod)
    return f"{meta.name}_{meta.namespace}"


def pod_ref(pod: Pod) -> str:
    """`name_namespace(uid)`, the form of event and waiting messages (BACK-008)."""
    return f"{full_name(pod)}({uid(pod)})"


def log_name(pod: Pod) -> str:
    """`namespace/name (uid)`, as logs name pods."""
    meta = _metadata(pod)
    return f"{meta.namespace}/{meta.name} ({uid(pod)})"


def annotations(pod: Pod) -> dict[str, str]:
    return _metadata(pod).annotations or {}


def labels(pod: Pod) -> dict[str, str]:
    return _metadata(pod).labels or {}


def is_static(pod: Pod) -> bool:
    """From a file or a URL (kubelet: IsStaticPod)."""
    return annotations(pod).get(CONFIG_SOURCE) in ("file", "http")


def is_mirror(pod: Pod) -> bool:
    """Carries the mirror annotation, whatever its value (MIRR-020)."""
    return CONFIG_MIRROR in annotations(pod)


def is_critical(pod: Pod) -> bool:
    """Static, mirror, or of a system priority (SRC-039, EVIC-085)."""
    priority = pod.spec.priority if pod.spec else None
    return is_static(pod) or is_mirror(pod) or (priority or 0) >= SYSTEM_CRITICAL_PRIORITY


def is_sidecar(container: Container) -> bool:
    """An init container with restartPolicy Always; ask this only of init containers."""
    return container.restartPolicy == "Always"
