"""CRI messages into records, once per answer: messages do not travel through the code.

Also the checks of answers that a kubelet makes before it believes them (CRI-008): a violation is a
`ValueError` that names the missing field, and the client turns it into an error of that call.
Nothing here talks to the runtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from refkubelet.cri import bounds
from refkubelet.cri.labels import (
    CONTAINER_HASH,
    CONTAINER_NAME,
    RESTART_COUNT,
    TERMINATION_MESSAGE_PATH,
    TERMINATION_MESSAGE_POLICY,
)
from refkubelet.cri.records import (
    EMPTY,
    ContainerRecord,
    ContainerState,
    HandlerFeatures,
    ImageRecord,
    ListedContainer,
    ListedSandbox,
    NetworkMode,
    RuntimeConditions,
    RuntimeResources,
    RuntimeUser,
    RuntimeVersion,
    SandboxRecord,
    SandboxState,
)
from refkubelet.model.addresses import version_and_text
from refkubelet.model.cgroups.cpu_shares import SHARES_PER_CPU

# Any message of the contract: which one, the function's name says.
Message = Any

NO_RESOURCES: Final = RuntimeResources()
CONTAINER_STATES: Final[dict[int, ContainerState]] = {
    cri.CONTAINER_CREATED: ContainerState.CREATED,
    cri.CONTAINER_RUNNING: ContainerState.RUNNING,
    cri.CONTAINER_EXITED: ContainerState.EXITED,
    cri.CONTAINER_UNKNOWN: ContainerState.UNKNOWN,
}
SANDBOX_STATES: Final[dict[int, SandboxState]] = {
    cri.SANDBOX_READY: SandboxState.READY,
    cri.SANDBOX_NOTREADY: SandboxState.NOTREADY,
}


def require(fields: Iterable[tuple[str, object]]) -> None:
    """Check that every field has a value (CRI-008). Raises ValueError naming the first one that is
    empty or zero."""
    for name, value in fields:
        if not value:
            raise ValueError(f"the answer has no {name}")


def container_state(value: int) -> ContainerState:
    """The wire's state; numbers from a newer contract count as unknown."""
    return CONTAINER_STATES.get(value, ContainerState.UNKNOWN)


def sandbox_state(value: int) -> SandboxState:
    """A number that CRI does not have counts as not ready."""
    return SANDBOX_STATES.get(value, SandboxState.NOTREADY)


def sandbox_record(status: Message) -> SandboxRecord:
    """A checked PodSandboxStatus. If an IP does not parse, none counts, but the sandbox does not
    count as one without an address either (CRI-035, CRI-034)."""
    meta = status.metadata
    require(
        (
            ("id", bounds.whole(status.id)),
            ("metadata.name", meta.name),
            ("metadata.namespace", meta.namespace),
            ("metadata.uid", meta.uid),
            ("created_at", status.created_at),
        )
    )
    mode = status.linux.namespaces.options.network
    ips = _ips(status.network)
    return SandboxRecord(
        id=status.id,
        state=sandbox_state(status.state),
        attempt=bounds.tries(meta.attempt),
        created_at_ns=bounds.number(status.created_at),
        has_network=status.HasField("network") and bool(ips or not status.network.ip),
        ips=ips,
        network_mode=NetworkMode.NODE if mode == cri.NODE else NetworkMode.POD,
        labels=_frozen(status.labels),
        annotations=_frozen(status.annotations),
    )


def _ips(network: Message) -> tuple[str, ...]:
    """All IPs, or none when one of them does not parse (CRI-035)."""
    ip_texts = bounds.names((network.ip, *(a.ip for a in network.additional_ips)))
    texts = [text for text in ip_texts if text]
    try:
        for text in texts:
            version_and_text(text)
    except ValueError:
        return ()
    return tuple(texts)


def container_record(status: Message, sandbox_id: str = "") -> ContainerRecord:
    """A checked ContainerStatus. `sandbox_id` comes from the listing: the status has none."""
    require(
        (
            ("id", bounds.whole(status.id)),
            ("metadata.name", status.metadata.name),
            ("created_at", status.created_at),
            ("image.image", status.image.image),
            ("image_ref", status.image_ref),
        )
    )
    annotations = _frozen(status.annotations)
    attempt = bounds.tries(status.metadata.attempt)
    message_path = annotations.get(TERMINATION_MESSAGE_PATH, "")
    return ContainerRecord(
        id=status.id,
        name=bounds.name(status.labels.get(CONTAINER_NAME) or status.metadata.name),
        state=container_state(status.state),
        attempt=attempt,
        sandbox_id=sandbox_id,
        created_at_ns=bounds.number(status.created_at),
        started_at_ns=bounds.number(status.started_at),
        finished_at_ns=bounds.number(status.finished_at),
        exit_code=status.exit_code,
        reason=bounds.name(status.reason),
        message=bounds.text(status.message),
        image=bounds.name(status.image.image),
        image_id=bounds.name(status.image_ref),
        hash=annotations.get(CONTAINER_HASH, ""),
        restart_count=bounds.counted(annotations.get(RESTART_COUNT), attempt),
        termination_message_policy=annotations.get(TERMINATION_MESSAGE_POLICY, ""),
        termination_log_host_path=_host_path(status.mounts, message_path),
        log_path=bounds.whole(status.log_path, bounds.PATH_BYTES),
        mounted_images=bounds.names(m.image.image for m in status.mounts),
        annotations=annotations,
        labels=_frozen(status.labels),
        resources=runtime_resources(status.resources.linux),
        user=_user(status.user.linux) if status.user.HasField("linux") else None,
    )


def _user(linux: Message) -> RuntimeUser:
    groups = tuple(map(bounds.number, linux.supplemental_groups[: bounds.MOST_NAMES]))
    return RuntimeUser(bounds.number(linux.uid), bounds.number(linux.gid), groups)


def runtime_resources(linux: Message) -> RuntimeResources | None:
    """None when nothing is told, or nothing is limited (upstream: toKubeContainerResources)."""
    period, shares = linux.cpu_period, linux.cpu_shares
    quota = bounds.number(linux.cpu_quota * 1000 // period) if period > 0 else 0
    resources = RuntimeResources(
        cpu_request_millicores=(
            bounds.number(-(-shares * 1000 // SHARES_PER_CPU)) if shares >= 2 else None
        ),
        cpu_limit_millicores=quota if quota > 0 else None,
        memory_limit_bytes=bounds.number(linux.memory_limit_in_bytes) or None,
    )
    return None if resources == NO_RESOURCES else resources


def _host_path(mounts: Iterable[Message], container_path: str) -> str:
    if not container_path:
        return ""
    path = next((m.host_path for m in mounts if m.container_path == container_path), "")
    return bounds.whole(path, bounds.PATH_BYTES)


def listed_container(item: Message) -> ListedContainer:
    return ListedContainer(
        id=item.id,
        name=bounds.name(item.labels.get(CONTAINER_NAME) or item.metadata.name),
        state=container_state(item.state),
        attempt=bounds.tries(item.metadata.attempt),
        sandbox_id=bounds.whole(item.pod_sandbox_id),
        created_at_ns=bounds.number(item.created_at),
        image=bounds.name(item.image.image),
        image_id=bounds.name(item.image_id or item.image_ref),
        hash=item.annotations.get(CONTAINER_HASH, ""),
        labels=_frozen(item.labels),
        annotations=_frozen(item.annotations),
    )


def listed_sandbox(item: Message) -> ListedSandbox:
    return ListedSandbox(
        id=item.id,
        state=sandbox_state(item.state),
        attempt=bounds.tries(item.metadata.attempt),
        created_at_ns=bounds.number(item.created_at),
        labels=_frozen(item.labels),
        annotations=_frozen(item.annotations),
    )


def image_record(image: Message) -> ImageRecord:
    """A checked Image: id and size must be there (BACK-203)."""
    require((("id", bounds.whole(image.id)), ("size", image.size)))
    return ImageRecord(
        id=image.id,
        size_bytes=bounds.number(image.size),
        repo_tags=bounds.names(image.repo_tags),
        repo_digests=bounds.names(image.repo_digests),
        uid=image.uid.value if image.HasField("uid") else None,
        username=bounds.name(image.username),
        pinned=image.pinned,
    )


def runtime_version(answer: Message) -> RuntimeVersion:
    """All four fields must be there (CRI-002)."""
    names = ("version", "runtime_name", "runtime_version", "runtime_api_version")
    require((name, getattr(answer, name)) for name in names)
    return RuntimeVersion(*(bounds.name(getattr(answer, name)) for name in names))


def runtime_conditions(answer: Message) -> RuntimeConditions:
    """The two conditions the kubelet knows; at least two must be there (CRI-008, CRI-130). And
    what the handlers can do."""
    status = answer.status
    if len(status.conditions) < 2:
        raise ValueError(
            f"the answer has {len(status.conditions)} conditions, and RuntimeReady and "
            "NetworkReady are required"
        )
    by_type = {condition.type: condition for condition in status.conditions}
    absent = cri.RuntimeCondition()
    runtime = by_type.get("RuntimeReady", absent)
    network = by_type.get("NetworkReady", absent)
    return RuntimeConditions(
        runtime_ready=runtime.status,
        network_ready=network.status,
        runtime_reason=bounds.name(runtime.reason),
        runtime_message=bounds.text(runtime.message),
        network_reason=bounds.name(network.reason),
        network_message=bounds.text(network.message),
        untold=frozenset({"RuntimeReady", "NetworkReady"} - by_type.keys()),
        strict_groups=answer.features.supplemental_groups_policy,
        handlers={
            handler.name: HandlerFeatures(
                handler.features.recursive_read_only_mounts, handler.features.user_namespaces
            )
            for handler in answer.runtime_handlers[: bounds.MOST_NAMES]
            if bounds.whole(handler.name) == handler.name
        },
    )


def _frozen(values: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(values)) if values else EMPTY
