"""Security contexts and namespaces of sandboxes and containers: LIFE-134, LIFE-141. Pure."""

from __future__ import annotations

from typing import Any, Final

from criapi.v1 import api_pb2 as cri
from lightkube.models.core_v1 import (
    Capabilities,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)

from refkubelet.model.objects import Container, Pod
from refkubelet.runtime.records import ImageRecord

MASKED_PATHS: Final = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
READONLY_PATHS: Final = (
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
)
SECCOMP_TYPES: Final[dict[str, Any]] = {
    "RuntimeDefault": cri.SecurityProfile.RuntimeDefault,
    "Unconfined": cri.SecurityProfile.Unconfined,
    "Localhost": cri.SecurityProfile.Localhost,
}


class SecurityError(Exception):
    """The container's security context cannot be honoured; reason CreateContainerConfigError."""


def namespace_options(pod: Pod, target_id: str = "") -> Any:
    """Which namespaces are the node's, the pod's or the container's own (LIFE-134). `target_id`:
    the container whose PID namespace an ephemeral container shares."""
    spec = pod.spec
    host_network = bool(spec and spec.hostNetwork)
    host_ipc = bool(spec and spec.hostIPC)
    if spec and spec.hostPID:
        pid = cri.NODE
    elif spec and spec.shareProcessNamespace:
        pid = cri.POD
    else:
        pid = cri.TARGET if target_id else cri.CONTAINER
    return cri.NamespaceOption(
        network=cri.NODE if host_network else cri.POD,
        ipc=cri.NODE if host_ipc else cri.POD,
        pid=pid,
        target_id=target_id if pid == cri.TARGET else "",
        userns_options=cri.UserNamespace(mode=cri.NODE),
    )


def sandbox_security(pod: Pod) -> Any:
    """LinuxSandboxSecurityContext: seccomp RuntimeDefault, privileged if any container is
    (LIFE-133)."""
    context = cri.LinuxSandboxSecurityContext(
        namespace_options=namespace_options(pod),
        privileged=any(_is_privileged(c) for c in _all_containers(pod)),
        seccomp=cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault),
        supplemental_groups=_groups(pod),
        supplemental_groups_policy=_groups_policy(pod),
    )
    own = _pod_context(pod)
    if own.runAsUser is not None:
        context.run_as_user.value = own.runAsUser
    if own.runAsGroup is not None:
        context.run_as_group.value = own.runAsGroup
    _selinux(context, own.seLinuxOptions)
    return context


def container_security(
    container: Container,
    pod: Pod,
    image: ImageRecord,
    *,
    seccomp_default: bool = False,
    target_id: str = "",
) -> Any:
    """LinuxContainerSecurityContext: the container's wishes over the pod's (LIFE-141).

    Raises `SecurityError` when runAsNonRoot cannot be kept.
    """
    own, shared = container.securityContext or SecurityContext(), _pod_context(pod)
    context = cri.LinuxContainerSecurityContext(
        namespace_options=namespace_options(pod, target_id),
        privileged=bool(own.privileged),
        readonly_rootfs=bool(own.readOnlyRootFilesystem),
        no_new_privs=own.allowPrivilegeEscalation is False,
        supplemental_groups=_groups(pod),
        supplemental_groups_policy=_groups_policy(pod),
        seccomp=_seccomp(own.seccompProfile or shared.seccompProfile, seccomp_default),
    )
    if own.procMount != "Unmasked":
        context.masked_paths.extend(MASKED_PATHS)
        context.readonly_paths.extend(READONLY_PATHS)
    _user(context, own, shared, image)
    _capabilities(context, own.capabilities)
    _selinux(context, own.seLinuxOptions or shared.seLinuxOptions)
    return context


def _user(
    context: Any, own: SecurityContext, shared: PodSecurityContext, image: ImageRecord
) -> None:
    """The spec's user, else the image's, else root; refuses root where the spec forbids it."""
    wanted = own.runAsUser if own.runAsUser is not None else shared.runAsUser
    group = own.runAsGroup if own.runAsGroup is not None else shared.runAsGroup
    if group is not None:
        context.run_as_group.value = group
    non_root = own.runAsNonRoot if own.runAsNonRoot is not None else shared.runAsNonRoot
    if wanted is None and image.uid is None and image.username:
        if non_root:
            raise SecurityError(
                f"container has runAsNonRoot and image has non-numeric user ({image.username}), "
                "cannot verify user is non-root"
            )
        context.run_as_username = image.username
        return
    if non_root and wanted is None and not image.uid:
        raise SecurityError("container has runAsNonRoot and image will run as root")
    if non_root and wanted == 0:
        raise SecurityError("container's runAsUser breaks non-root policy")
    context.run_as_user.value = wanted if wanted is not None else image.uid or 0


def _capabilities(context: Any, wanted: Capabilities | None) -> None:
    if wanted is not None:
        context.capabilities.add_capabilities.extend(wanted.add or [])
        context.capabilities.drop_capabilities.extend(wanted.drop or [])


def _selinux(context: Any, options: SELinuxOptions | None) -> None:
    if options is not None:
        context.selinux_options.CopyFrom(
            cri.SELinuxOption(
                user=options.user or "",
                role=options.role or "",
                type=options.type or "",
                level=options.level or "",
            )
        )


def _seccomp(profile: SeccompProfile | None, seccomp_default: bool) -> Any:
    if profile is None:
        kind = "RuntimeDefault" if seccomp_default else "Unconfined"
        return cri.SecurityProfile(profile_type=SECCOMP_TYPES[kind])
    return cri.SecurityProfile(
        profile_type=SECCOMP_TYPES.get(profile.type, SECCOMP_TYPES["Unconfined"]),
        localhost_ref=profile.localhostProfile or "",
    )


def _groups(pod: Pod) -> list[int]:
    """fsGroup, then the pod's supplemental groups."""
    context = _pod_context(pod)
    first = [context.fsGroup] if context.fsGroup is not None else []
    return [*first, *(context.supplementalGroups or [])]


def _groups_policy(pod: Pod) -> Any:
    strict = _pod_context(pod).supplementalGroupsPolicy == "Strict"
    return cri.Strict if strict else cri.Merge


def _pod_context(pod: Pod) -> PodSecurityContext:
    context = pod.spec.securityContext if pod.spec else None
    return context or PodSecurityContext()


def _is_privileged(container: Container) -> bool:
    return bool(container.securityContext and container.securityContext.privileged)


def _all_containers(pod: Pod) -> list[Container]:
    return [*(pod.spec.containers or []), *(pod.spec.initContainers or [])] if pod.spec else []
