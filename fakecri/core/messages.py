"""CRI messages from the fake's objects. One direction only: objects in, messages out.

Rows of lists are kept with their object, because lists are asked for all the time: as bytes, of
which a whole list is made at once. That is five times faster than copying messages, and a kept
message would take several times its bytes of memory. Statuses are kept in the same way, with all
that may change in them. What must never happen here: a kept answer tells what is not so any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri.core.identities import groups_of, user_of
from fakecri.core.image_store.images import Image, ImageStore
from fakecri.core.objects import Container, Sandbox, State
from fakecri.words.curves import area
from fakecri.words.stop_signals import wire_value

# CRI-070: the reason follows from the exit code unless something else is known.
COMPLETED: Final = "Completed"
ERROR: Final = "Error"
OOM_KILLED: Final = "OOMKilled"
START_ERROR: Final = "StartError"
# What a container uses in statistics if no behaviour says anything: a process that sleeps.
_IDLE_BYTES: Final = 311_296
_IDLE_CACHE_BYTES: Final = 262_144
_IDLE_CPU_NS: Final = 25_000_000


def sandbox_row(sandbox: Sandbox) -> bytes:
    """The bytes of a ListPodSandboxResponse with this row alone (CRI-041), made once per state."""
    if sandbox.row is None or sandbox.row[0] != sandbox.ready:
        item = pb.PodSandbox(
            id=sandbox.id,
            metadata=sandbox.config.metadata,
            state=_sandbox_state(sandbox),
            created_at=sandbox.created_at_ns,
            labels=sandbox.config.labels,
            annotations=sandbox.config.annotations,
            runtime_handler=sandbox.runtime_handler,
        )
        data = pb.ListPodSandboxResponse(items=[item]).SerializeToString()
        sandbox.row = (sandbox.ready, data)
    return sandbox.row[1]


def sandbox_status(sandbox: Sandbox) -> pb.PodSandboxStatusResponse:
    """PodSandboxStatus (CRI-033..035), a new message: `network` is always there, its ip empty on
    the host's."""
    now = (sandbox.ready, sandbox.ips)
    if sandbox.status is None or sandbox.status[0] != now:
        response = pb.PodSandboxStatusResponse(status=_sandbox_status(sandbox))
        sandbox.status = (now, response.SerializeToString())
    return pb.PodSandboxStatusResponse.FromString(sandbox.status[1])


def _sandbox_status(sandbox: Sandbox) -> pb.PodSandboxStatus:
    options = sandbox.config.linux.security_context.namespace_options
    status = pb.PodSandboxStatus(
        id=sandbox.id,
        metadata=sandbox.config.metadata,
        state=_sandbox_state(sandbox),
        created_at=sandbox.created_at_ns,
        network=pb.PodSandboxNetworkStatus(
            ip=sandbox.ip, additional_ips=[pb.PodIP(ip=ip) for ip in sandbox.ips[1:]]
        ),
        labels=sandbox.config.labels,
        annotations=sandbox.config.annotations,
        runtime_handler=sandbox.runtime_handler,
    )
    status.linux.namespaces.options.CopyFrom(options)
    return status


def _sandbox_state(sandbox: Sandbox) -> pb.PodSandboxState:
    return pb.SANDBOX_READY if sandbox.ready else pb.SANDBOX_NOTREADY


def container_row(container: Container) -> bytes:
    """The bytes of a ListContainersResponse with this row alone: the image as the create request
    named it (CRI-083). Made once per state."""
    if container.shown.row is None or container.shown.row[0] is not container.state:
        item = pb.Container(
            id=container.id,
            pod_sandbox_id=container.sandbox.id,
            metadata=container.config.metadata,
            image=container.config.image,
            image_ref=container.image.id,
            state=container.state.value,
            created_at=container.created_at_ns,
            labels=container.config.labels,
            annotations=container.config.annotations,
            image_id=container.image.id,
        )
        data = pb.ListContainersResponse(containers=[item]).SerializeToString()
        container.shown.row = (container.state, data)
    return container.shown.row[1]


def container_status(container: Container, images: ImageStore) -> pb.ContainerStatusResponse:
    """ContainerStatus (CRI-050, CRI-083, CRI-084), a new message."""
    image = images.images.get(container.image.id)
    now = (
        container.state,
        container.run.oom_killed,
        container.outcome,
        image,
        container.resources.SerializeToString(),
    )
    kept = container.shown.status
    if kept is None or kept[0] != now:
        response = pb.ContainerStatusResponse(status=_container_status(container, image))
        kept = container.shown.status = (now, response.SerializeToString())
    return pb.ContainerStatusResponse.FromString(kept[1])


def _container_status(container: Container, image: Image | None) -> pb.ContainerStatus:
    status = pb.ContainerStatus(
        id=container.id,
        metadata=container.config.metadata,
        state=container.state.value,
        created_at=container.created_at_ns,
        image=_shown_image(container, image),
        image_ref=image.digests[0] if image and image.digests else container.image.id,
        image_id=container.image.id,
        labels=container.config.labels,
        annotations=container.config.annotations,
        mounts=container.config.mounts,
        log_path=container.output.path,
    )
    status.resources.linux.CopyFrom(container.resources)
    status.stop_signal = wire_value(container.stop.signal)
    _tell_user(status.user.linux, container)
    if container.run.oom_killed:  # CRI-071: also while it runs
        status.reason = OOM_KILLED
    if container.state is not State.CREATED:
        status.started_at = container.run.started_at_ns
    if container.state is State.EXITED:
        status.finished_at = container.outcome.finished_at_ns
        status.exit_code = container.outcome.exit_code
        status.reason = container.outcome.reason
        status.message = container.outcome.message
    return status


def _tell_user(user: pb.LinuxContainerUser, container: Container) -> None:
    """The user the process runs as (CRI-084)."""
    process_user = user_of(container)
    user.uid, user.gid = process_user.uid, process_user.gid
    user.supplemental_groups.extend(groups_of(container))


def _shown_image(container: Container, image: Image | None) -> pb.ImageSpec:
    if image is not None and image.tags:
        return pb.ImageSpec(image=image.tags[0])
    return container.config.image


def exit_reason(code: int) -> str:
    """The reason a runtime computes for an exit code (CRI-070)."""
    return COMPLETED if code == 0 else ERROR


def image_message(image: Image) -> pb.Image:
    """An Image (CRI-093); `spec` stays unset."""
    message = pb.Image(
        id=image.id,
        repo_tags=image.tags,
        repo_digests=image.digests,
        size=image.size_bytes,
        pinned=image.pinned,
    )
    if image.uid is not None:
        message.uid.value = image.uid
    elif image.username:
        message.username = image.username
    return message


def fill_container_stats(
    stats: pb.ContainerStats, container: Container, now_ns: int, fs_mountpoint: str
) -> None:
    """ContainerStats: cpu and memory only while it runs (CRI-123). Available = limit - used."""
    if not container.shown.attributes:
        attributes = pb.ContainerAttributes(
            id=container.id,
            metadata=container.config.metadata,
            labels=container.config.labels,
            annotations=container.config.annotations,
        )
        container.shown.attributes = pb.ContainerStats(attributes=attributes).SerializeToString()
    stats.MergeFromString(container.shown.attributes)
    age_s = container.age_s(now_ns)
    disk = stats.writable_layer
    disk.timestamp = now_ns
    disk.fs_id.mountpoint = fs_mountpoint
    disk.used_bytes.value = container.run.plan.disk_bytes(age_s)
    disk.inodes_used.value = container.run.plan.inodes(age_s)
    if container.state is not State.RUNNING:
        return
    anon, cache = container.memory_now(age_s)
    cpu_ns = area(container.run.plan.uses.cpu_millicores, age_s)
    if container.run.plan.says_no_use:  # as a container that sleeps
        anon, cache, cpu_ns = max(anon, _IDLE_BYTES), cache + _IDLE_CACHE_BYTES, _IDLE_CPU_NS
    stats.memory.timestamp = now_ns
    stats.memory.working_set_bytes.value = anon  # all page cache is inactive here
    stats.memory.usage_bytes.value = anon + cache
    stats.memory.rss_bytes.value = anon
    limit = container.resources.memory_limit_in_bytes
    if limit > 0:
        stats.memory.available_bytes.value = max(0, limit - anon)
    stats.cpu.timestamp = now_ns
    stats.cpu.usage_core_nano_seconds.value = cpu_ns
    stats.cpu.usage_nano_cores.value = container.run.plan.cpu_millicores(age_s) * 1_000_000


def labels_fit(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether every wanted pair is there (CRI-080)."""
    return all(labels.get(key) == value for key, value in wanted.items())
