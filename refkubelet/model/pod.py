"""One function for each question about pods and their containers. Pure.

Upstream: pkg/api/v1/pod/util.go; pkg/kubelet/types/pod_update.go; pkg/kubelet/container/helpers.go.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from lightkube.models.core_v1 import EphemeralContainer

from kubeobjects.golang.strconv import atoi
from refkubelet.model.by_identity import by_identity
from refkubelet.model.names import name_problem
from refkubelet.model.objects import Container, Pod, PodStatus

CONFIG_SOURCE: Final = "kubernetes.io/config.source"
CONFIG_HASH: Final = "kubernetes.io/config.hash"
CONFIG_SEEN: Final = "kubernetes.io/config.seen"
CONFIG_MIRROR: Final = "kubernetes.io/config.mirror"
SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000
TERMINAL_PHASES: Final = ("Succeeded", "Failed")


class PortError(ValueError):
    """The port is unknown or invalid; the text is upstream's."""


# -- names ---------------------------------------------------------------------------------------


def uid(pod: Pod) -> str:
    """metadata.uid; "" if unset."""
    return pod.metadata.uid or ""


def name_and_namespace(pod: Pod) -> tuple[str, str]:
    """metadata.name and metadata.namespace; "" if unset."""
    return pod.metadata.name or "", pod.metadata.namespace or ""


def full_name(pod: Pod) -> str:
    """`name_namespace`, the key that links a static pod and its mirror (MIRR-020)."""
    return f"{pod.metadata.name}_{pod.metadata.namespace}"


def pod_ref(pod: Pod) -> str:
    """`name_namespace(uid)`, the form of event and waiting messages (BACK-008)."""
    return f"{full_name(pod)}({uid(pod)})"


def log_fields(pod: Pod) -> dict[str, dict[str, str]]:
    """What a line of the log about a pod has beside its text, for logs in JSON."""
    meta = pod.metadata
    name, namespace = meta.name or "", meta.namespace or ""
    return {"pod": {"name": name, "namespace": namespace, "uid": uid(pod)}}


def log_name(pod: Pod) -> str:
    """`namespace/name (uid)`, as logs name pods."""
    return f"{pod.metadata.namespace}/{pod.metadata.name} ({uid(pod)})"


def annotations(pod: Pod) -> dict[str, str]:
    """metadata.annotations, or an empty dict."""
    return pod.metadata.annotations or {}


def labels(pod: Pod) -> dict[str, str]:
    """metadata.labels, or an empty dict."""
    return pod.metadata.labels or {}


def unsafe_name(pod: Pod) -> str | None:
    """The first of the pod's names that cannot be part of a path, with the reason; None: all can
    (SRC-025)."""
    meta = pod.metadata
    names = [("UID", meta.uid), ("name", meta.name), ("namespace", meta.namespace)]
    names += [("container name", c.name) for c in all_containers(pod)]
    names += [("volume name", volume.name) for volume in pod.spec.volumes or ()]
    problems = ((kind, name or "", name_problem(name or "")) for kind, name in names)
    return next((f"{kind} {name[:80]!r}: {why}" for kind, name, why in problems if why), None)


def bare_container_id(api_id: str | None) -> str:
    """The runtime's ID in the `containerd://ID` of a container status; "" for none."""
    return (api_id or "").rpartition("://")[2]


# -- kinds of pods -------------------------------------------------------------------------------


def is_static(pod: Pod) -> bool:
    """Whether the pod comes from a file or a URL (upstream: IsStaticPod)."""
    return annotations(pod).get(CONFIG_SOURCE) in ("file", "http")


def is_mirror(pod: Pod) -> bool:
    """Whether the pod has the mirror annotation, whatever its value (MIRR-020)."""
    return CONFIG_MIRROR in annotations(pod)


def priority(pod: Pod) -> int:
    """spec.priority; 0 when unset."""
    return pod.spec.priority or 0


def is_critical(pod: Pod) -> bool:
    """Whether the pod is static, a mirror, or of a system priority (SRC-039, EVIC-085)."""
    return is_static(pod) or is_mirror(pod) or priority(pod) >= SYSTEM_CRITICAL_PRIORITY


def tolerates(pod: Pod, key: str, value: str, effect: str) -> bool:
    """One of the pod's tolerations is for the taint with this key, value and effect."""
    return any(
        t.effect in (None, "", effect)
        and t.key in (None, "", key)
        and (t.operator == "Exists" or (bool(t.key) and (t.value or "") == value))
        for t in pod.spec.tolerations or ()
    )


def uses_host_network(pod: Pod) -> bool:
    """Whether the pod is in the host network (upstream: IsHostNetworkPod)."""
    return bool(pod.spec.hostNetwork)


def has_user_namespace(pod: Pod) -> bool:
    """Whether the pod's users are not the host's."""
    return pod.spec.hostUsers is False


def first_seen_ns(pod: Pod) -> int | None:
    """When this kubelet first saw the pod, in ns since 1970 (to a microsecond); None: that is not
    known (SRC-065)."""
    try:
        seen_at = datetime.fromisoformat(annotations(pod)[CONFIG_SEEN])
    except (KeyError, ValueError):
        return None
    return int(seen_at.timestamp() * 1_000_000) * 1000


# -- phases of its life --------------------------------------------------------------------------


def is_being_deleted(pod: Pod) -> bool:
    """Whether the pod has a deletionTimestamp: it was deleted at the API server and must end."""
    return pod.metadata.deletionTimestamp is not None


def is_terminal_phase(phase: str | None) -> bool:
    """Whether the phase is Succeeded or Failed: the pod never runs again (upstream:
    IsPodPhaseTerminal)."""
    return phase in TERMINAL_PHASES


def is_terminal(status: PodStatus | None) -> bool:
    """Whether the status has a terminal phase."""
    return status is not None and status.phase in TERMINAL_PHASES


def has_terminal_phase(pod: Pod) -> bool:
    """Whether the object's own status has a terminal phase."""
    return is_terminal(pod.status)


def generation_of(pod: Pod) -> int | None:
    """metadata.generation; None for pods without one (MIRR-037)."""
    return pod.metadata.generation or None


# -- containers ----------------------------------------------------------------------------------


def containers(pod: Pod) -> tuple[Container, ...]:
    """The init containers, then the regular ones, in spec order; not the ephemeral ones."""
    return (*(pod.spec.initContainers or ()), *pod.spec.containers)


def all_containers(pod: Pod) -> tuple[Container | EphemeralContainer, ...]:
    """The init, regular and ephemeral containers (upstream: VisitContainers with AllContainers)."""
    return (*containers(pod), *(pod.spec.ephemeralContainers or ()))


def is_sidecar(container: Container) -> bool:
    """Whether an init container is a sidecar: its restartPolicy is Always. Call it only with init
    containers (upstream: IsRestartableInitContainer)."""
    return container.restartPolicy == "Always"


def sidecars(pod: Pod) -> list[Container]:
    """The init containers with restartPolicy Always, in spec order."""
    return [c for c in pod.spec.initContainers or () if is_sidecar(c)]


def is_plain_init(pod: Pod, name: str) -> bool:
    """Whether `name` is an init container that is not a sidecar."""
    return any(c.name == name and not is_sidecar(c) for c in pod.spec.initContainers or ())


@by_identity
def _types(pod: Pod) -> Mapping[str, str]:
    """By name, what metrics call the kinds of the init and the regular containers."""
    inits = {container.name: "init_container" for container in pod.spec.initContainers or ()}
    return {**inits, **{container.name: "container" for container in pod.spec.containers}}


def container_type(pod: Pod, container: Container | EphemeralContainer) -> str:
    """What metrics call the kind of a container of the pod."""
    return _types(pod).get(container.name or "", "ephemeral_container")


def resolve_port(port: int | str, container: Container) -> int:
    """The number of a probe's or hook's port, given as a number, as the name of a port of the
    container, or as digits; 1 to 65535 (PROBE-061; upstream: pkg/probe/util.go:
    ResolveContainerPort). Raises `PortError`."""
    number = port
    if isinstance(port, str):
        number = next((p.containerPort for p in container.ports or () if p.name == port), port)
    if isinstance(number, str):
        try:
            number = atoi(number)
        except ValueError as error:
            raise PortError(str(error)) from None
    if not 0 < number < 65536:
        raise PortError(f"invalid port number: {number}")
    return number


def fs_user(pod: Pod) -> int | None:
    """The user who shall own the pod's secret files: the one that all containers run as; None if
    one of them names none, or two differ (upstream: FsUserFrom)."""
    of_pod = pod.spec.securityContext.runAsUser if pod.spec.securityContext else None
    users: set[int | None] = set()
    for container in all_containers(pod):
        own = container.securityContext.runAsUser if container.securityContext else None
        users.add(own if own is not None else of_pod)
    return next(iter(users)) if len(users) == 1 else None
