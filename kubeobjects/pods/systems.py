"""What a pod of an operating system may not have, and processes on a Windows host. Pure.

Upstream: validateOS, validateLinux, validateWindows, validateWindowsHostProcessPod.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubeobjects.causes import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from kubeobjects.pods.common.checks import Object, containers_of

_SYSTEMS: Final = ("linux", "windows")
_NOT_ON_LINUX: Final = "windows options cannot be set for a linux pod"
_NOT_ON_WINDOWS: Final = "cannot be set for a windows pod"
_OF_LINUX_PODS: Final = (  # in the order of the checks
    *("securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID"),
    *("hostIPC", "securityContext.seccompProfile", "securityContext.fsGroup"),
    *("securityContext.fsGroupChangePolicy", "securityContext.sysctls", "shareProcessNamespace"),
    *("securityContext.runAsUser", "securityContext.runAsGroup"),
    *("securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy"),
    "securityContext.seLinuxChangePolicy",
)
_IF_TRUE: Final = ("hostPID", "hostIPC", "securityContext.sysctls")
"""Those of which false and an empty list are as good as none."""
_OF_LINUX_CONTAINERS: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities"),
    *("readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount"),
    *("runAsUser", "runAsGroup"),
)


def system_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with the pod's operating system, or does not go with it."""
    system = spec.get("os")
    if system is None:
        return
    name = system.get("name") or ""
    if not name:
        yield required("spec.os.name")
    elif name not in _SYSTEMS:
        yield unsupported_value("spec.os", name, _SYSTEMS)
    elif name == "linux":
        yield from _on_linux(spec)
    else:
        yield from _on_windows(spec)


def _on_linux(spec: Object) -> Iterator[Cause]:
    contexts = [("spec", spec), *containers_of(spec)]
    for path, owner in contexts:
        if (owner.get("securityContext") or {}).get("windowsOptions") is not None:
            yield forbidden_field(f"{path}.securityContext.windowsOptions", _NOT_ON_LINUX)


def _on_windows(spec: Object) -> Iterator[Cause]:
    context = spec.get("securityContext") or {}
    for field in _OF_LINUX_PODS:
        of_context, point, name = field.partition(".")
        value = context.get(name) if point else spec.get(of_context)
        if value if field in _IF_TRUE else value is not None:
            yield forbidden_field(f"spec.{field}", _NOT_ON_WINDOWS)
    for path, container in containers_of(spec):
        context = container.get("securityContext") or {}
        for field in _OF_LINUX_CONTAINERS:
            if context.get(field) is not None:
                yield forbidden_field(f"{path}.securityContext.{field}", _NOT_ON_WINDOWS)


def host_process_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with containers that are processes on a Windows host: all are, or none."""
    of_pod, containers, on_host = _on_host(spec), 0, 0
    for path, container in containers_of(spec):
        own = _on_host(container)
        if None not in (of_pod, own) and of_pod != own:
            was = "true" if of_pod else "false"
            text = f"pod hostProcess value must be identical if both are specified, was {was}"
            yield invalid_value(f"{path}.securityContext.windowsOptions.hostProcess", own, text)
        containers += 1
        on_host += bool(of_pod if own is None else own)
    if not on_host:
        return
    if on_host != containers:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess"
        yield invalid_value("spec", "", f"{text} containers")
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid_value("spec.hostNetwork", False, text)


def _on_host(owner: Object) -> bool | None:
    """What a pod or container says of it; None: nothing."""
    options = (owner.get("securityContext") or {}).get("windowsOptions") or {}
    on_host: bool | None = options.get("hostProcess")
    return on_host
