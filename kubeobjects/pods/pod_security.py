"""What is wrong with the security context of a pod, and with its users' namespace. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubeobjects.causes import Cause, duplicate, forbidden_field, invalid_value, required
from kubeobjects.names import byte_length
from kubeobjects.pods.common.checks import Object, containers_of, optional_word, user_id
from kubeobjects.pods.common.security import apparmor_causes, seccomp_causes, windows_causes

_MAX_SYSCTL: Final = 253
_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_RULE: Final = f"must have at most {_MAX_SYSCTL} characters and match regex ^{_SYSCTL}$"
_GROUP_CHANGES: Final = ("Always", "OnRootMismatch")
_GROUPS: Final = ("Merge", "Strict")
_LABEL_CHANGES: Final = ("Recursive",)  # the other one is behind a gate that is off
_OF_IPC: Final = frozenset(
    (
        *("kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni"),
        *("kernel.shm_rmid_forced", "kernel.msg", "kernel.msgmax", "kernel.msgmnb"),
        "kernel.msgmni",
    )
)
"""The sysctls that a pod has of its own with its IPC namespace, beside those of `fs.mqueue`."""


def pod_security_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with the pod's security context."""
    context, path = spec.get("securityContext") or {}, "spec.securityContext"
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from user_id(context.get(field), f"{path}.{field}")
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        yield from user_id(group, f"{path}.supplementalGroups[{i}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid_value(f"{path}.shareProcessNamespace", True, text)
    yield from _sysctl_causes(spec, f"{path}.sysctls")
    change = context.get("fsGroupChangePolicy")
    yield from optional_word(change, f"{path}.fsGroupChangePolicy", _GROUP_CHANGES)
    yield from seccomp_causes(context.get("seccompProfile"), f"{path}.seccompProfile")
    yield from windows_causes(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from apparmor_causes(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    groups = context.get("supplementalGroupsPolicy")
    yield from optional_word(groups, f"{path}.supplementalGroupsPolicy", _GROUPS)
    labels = context.get("seLinuxChangePolicy")
    yield from optional_word(labels, f"{path}.seLinuxChangePolicy", _LABEL_CHANGES)


def _sysctl_causes(spec: Object, path: str) -> Iterator[Cause]:
    """Each sysctl has a name, once, and not of a namespace that the pod shares with its host."""
    names: set[str] = set()
    for i, sysctl in enumerate((spec.get("securityContext") or {}).get("sysctls") or ()):
        name, field = sysctl.get("name") or "", f"{path}[{i}].name"
        if not name:
            yield required(field)
        elif byte_length(name) > _MAX_SYSCTL or not re.fullmatch(_SYSCTL, name):
            yield invalid_value(field, name, _SYSCTL_RULE)
        elif name in names:
            yield duplicate(field, name)
        shared = _namespace_of(name)
        if shared and spec.get(shared):
            yield invalid_value(field, name, f"may not be specified when '{shared}' is true")
        names.add(name)


def _namespace_of(sysctl: str) -> str:
    """The field of the spec that gives the pod its host's namespace of a sysctl; empty: none."""
    name = _with_points(sysctl)
    if name.startswith("net."):
        return "hostNetwork"
    return "hostIPC" if name in _OF_IPC or name.startswith("fs.mqueue.") else ""


def _with_points(sysctl: str) -> str:
    """The name with points between its parts. Parts may be parted by slashes, in which case points
    stand for slashes."""
    first = next((character for character in sysctl if character in "./"), ".")
    return sysctl if first == "." else sysctl.translate({ord("."): "/", ord("/"): "."})


def host_user_causes(spec: Object) -> Iterator[Cause]:
    """What a pod with users of its own may not have from its host."""
    if spec.get("hostUsers") is not False:
        return
    text = "when `hostUsers` is false"
    for field, printed_name in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(field):
            yield forbidden_field(f"spec.{printed_name}", text)
    for path, container in containers_of(spec):
        if container.get("volumeDevices"):
            yield forbidden_field(f"{path}.volumeDevices", text)
