"""Security contexts and namespaces of sandboxes and containers (LIFE-134, LIFE-141). Pure."""

from __future__ import annotations

from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import (
    AppArmorProfile,
    Capabilities,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)

from kubeobjects.golang.strconv import quoted
from refkubelet.cri.records import DEFAULT_RUNTIME, ImageRecord, PodRuntime, UserNamespace
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.model.names import UnsafeNameError, safe_path
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import all_containers, pod_ref
from refkubelet.model.pod import annotations as pod_annotations

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
PROFILE_TYPES: Final[dict[str, Any]] = {
    "RuntimeDefault": cri.SecurityProfile.RuntimeDefault,
    "Unconfined": cri.SecurityProfile.Unconfined,
    "Localhost": cri.SecurityProfile.Localhost,
}


APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
APPARMOR_OLD_NAMES: Final = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}
APPARMOR_OLD_LOCALHOST: Final = "localhost/"


class SecurityError(Exception):
    """The container's security context cannot be applied; the container waits with reason
    CreateContainerConfigError."""


def namespace_options(pod: Pod, runtime: PodRuntime, target_id: str = "") -> Any:
    """The NamespaceOption: which namespaces are the node's, the pod's or the container's
    (LIFE-134). `target_id`: the container with which an ephemeral container shares its PID
    namespace."""
    spec = pod.spec
    if spec.hostPID:
        pid = cri.NODE
    elif spec.shareProcessNamespace:
        pid = cri.POD
    else:
        pid = cri.TARGET if target_id else cri.CONTAINER
    return cri.NamespaceOption(
        network=cri.NODE if spec.hostNetwork else cri.POD,
        ipc=cri.NODE if spec.hostIPC else cri.POD,
        pid=pid,
        target_id=target_id if pid == cri.TARGET else "",
        userns_options=_users(runtime.users),
    )


def _users(users: UserNamespace | None) -> Any:
    if users is None:
        return cri.UserNamespace(mode=cri.NODE)
    ids = cri.IDMapping(host_id=users.first, container_id=0, length=users.length)
    return cri.UserNamespace(mode=cri.POD, uids=[ids], gids=[ids])


def sandbox_security(pod: Pod, runtime: PodRuntime) -> Any:
    """The LinuxSandboxSecurityContext: seccomp RuntimeDefault, privileged if any container is
    (LIFE-133)."""
    context = cri.LinuxSandboxSecurityContext(
        namespace_options=namespace_options(pod, runtime),
        privileged=any(_is_privileged(c) for c in all_containers(pod)),
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
    options: RuntimeOptions,
    target_id: str = "",
    runtime: PodRuntime = DEFAULT_RUNTIME,
) -> Any:
    """The LinuxContainerSecurityContext; fields of the container override the pod's (LIFE-141).

    Raises `SecurityError` if runAsNonRoot is violated, or a localhost profile has no name.
    """
    own, shared = container.securityContext or SecurityContext(), _pod_context(pod)
    profile, old_name = _apparmor(apparmor_profile(container, pod))
    context = cri.LinuxContainerSecurityContext(
        namespace_options=namespace_options(pod, runtime, target_id),
        privileged=bool(own.privileged),
        readonly_rootfs=bool(own.readOnlyRootFilesystem),
        no_new_privs=own.allowPrivilegeEscalation is False,
        supplemental_groups=_groups(pod),
        supplemental_groups_policy=_groups_policy(pod),
        seccomp=_seccomp(own.seccompProfile or shared.seccompProfile, options),
        apparmor=profile,
        apparmor_profile=old_name,
    )
    if own.procMount != "Unmasked":
        context.masked_paths.extend(MASKED_PATHS)
        context.readonly_paths.extend(READONLY_PATHS)
    verify_non_root(container, pod, image)
    _user(context, own, shared, image)
    _capabilities(context, own.capabilities)
    _selinux(context, own.seLinuxOptions or shared.seLinuxOptions)
    return context


def verify_non_root(container: Container, pod: Pod, image: ImageRecord) -> None:
    """Raise `SecurityError` if runAsNonRoot is set and the container runs, or may run, as root. An
    image without a user runs as root."""
    own, shared = container.securityContext or SecurityContext(), _pod_context(pod)
    if not (own.runAsNonRoot if own.runAsNonRoot is not None else shared.runAsNonRoot):
        return
    user = own.runAsUser if own.runAsUser is not None else shared.runAsUser
    if user is not None:
        problem = "container's runAsUser breaks non-root policy" if user == 0 else ""
    elif image.uid is None and image.username:
        problem = (
            f"container has runAsNonRoot and image has non-numeric user ({image.username}), "
            "cannot verify user is non-root"
        )
    else:
        root = "container has runAsNonRoot and image will run as root"
        problem = "" if image.uid else root
    if problem:
        raise SecurityError(f"{problem} (pod: {quoted(pod_ref(pod))}, container: {container.name})")


def _user(
    context: Any, own: SecurityContext, shared: PodSecurityContext, image: ImageRecord
) -> None:
    """Set the user: the spec's, else the image's, else root."""
    user = own.runAsUser if own.runAsUser is not None else shared.runAsUser
    group = own.runAsGroup if own.runAsGroup is not None else shared.runAsGroup
    if group is not None:
        context.run_as_group.value = group
    if user is None and image.uid is None and image.username:
        context.run_as_username = image.username
    else:
        context.run_as_user.value = user if user is not None else image.uid or 0


def _capabilities(context: Any, wanted: Capabilities | None) -> None:
    if wanted is not None:
        context.capabilities.SetInParent()
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


def _seccomp(profile: SeccompProfile | None, options: RuntimeOptions) -> Any:
    """The seccomp profile; a localhost profile is a file in the kubelet's directory `seccomp`.
    Raises `SecurityError`."""
    if profile is None:
        kind = "RuntimeDefault" if options.seccomp_default else "Unconfined"
        return cri.SecurityProfile(profile_type=PROFILE_TYPES[kind])
    if profile.type != "Localhost":
        kind = profile.type if profile.type in PROFILE_TYPES else "Unconfined"
        return cri.SecurityProfile(profile_type=PROFILE_TYPES[kind])
    if not profile.localhostProfile:
        raise SecurityError("localhostProfile must be set if seccompProfile type is Localhost.")
    try:
        path = safe_path(str(options.root_dir / "seccomp"), profile.localhostProfile)
    except UnsafeNameError as error:
        raise SecurityError(f"localhostProfile: {error}") from None
    return cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref=path)


def apparmor_profile(container: Container, pod: Pod) -> AppArmorProfile | None:
    """The container's profile: of its securityContext, else of the old annotation, else the
    pod's."""
    own = container.securityContext.appArmorProfile if container.securityContext else None
    if own is not None:
        return own
    text = pod_annotations(pod).get(APPARMOR_ANNOTATION + container.name, "")
    for kind, old_name in APPARMOR_OLD_NAMES.items():
        if text == old_name:
            return AppArmorProfile(type=kind)
    if text.startswith(APPARMOR_OLD_LOCALHOST):
        name = text.removeprefix(APPARMOR_OLD_LOCALHOST)
        return AppArmorProfile(type="Localhost", localhostProfile=name)
    return _pod_context(pod).appArmorProfile


def _apparmor(profile: AppArmorProfile | None) -> tuple[Any | None, str]:
    """The AppArmor profile as a message, and as the text that older runtimes read. Raises
    `SecurityError`."""
    if profile is None:
        return None, ""
    if profile.type != "Localhost":
        if profile.type not in APPARMOR_OLD_NAMES:
            raise SecurityError(f"unknown apparmor profile type: {quoted(profile.type)}")
        kind = PROFILE_TYPES[profile.type]
        return cri.SecurityProfile(profile_type=kind), APPARMOR_OLD_NAMES[profile.type]
    if profile.localhostProfile is None:
        raise SecurityError("missing localhost apparmor profile name")
    name = profile.localhostProfile
    local = cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref=name)
    return local, APPARMOR_OLD_LOCALHOST + name


def _groups(pod: Pod) -> list[int]:
    """The supplemental groups: fsGroup, then the pod's."""
    context = _pod_context(pod)
    first = [context.fsGroup] if context.fsGroup is not None else []
    return [*first, *(context.supplementalGroups or [])]


def _groups_policy(pod: Pod) -> Any:
    strict = _pod_context(pod).supplementalGroupsPolicy == "Strict"
    return cri.Strict if strict else cri.Merge


def _pod_context(pod: Pod) -> PodSecurityContext:
    context = pod.spec.securityContext
    return context or PodSecurityContext()


def _is_privileged(container: Any) -> bool:
    return bool(container.securityContext and container.securityContext.privileged)
