"""What the security context of a container means for its processes (CRI-088)."""

from __future__ import annotations

import json
from typing import Any, Final

from kubecri.v1 import api_pb2 as pb

from fakecri.core.identities import user_of
from fakecri.core.objects import Container
from fakecri.process.security import CAPABILITIES, Security

_DEFAULT: Final = frozenset(
    [
        *("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID"),
        *("SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"),
    ]
)
"""What a container has that asks for nothing."""
_DISABLED, _FILTER = 0, 2
_NONE: Final = frozenset[str]()


def security_of(container: Container) -> Security:
    """Of every process in it."""
    security = container.config.linux.security_context
    bounding = _bounding(security)
    return Security(
        bounding=bounding,
        capabilities=bounding if user_of(container).uid == 0 else _NONE,
        refused_calls=_refused_calls(container),
        masked=_NONE if security.privileged else frozenset(security.masked_paths),
    )


def _bounding(security: pb.LinuxContainerSecurityContext) -> frozenset[str]:
    """ALL counts first, then the single names; what is dropped counts after what is added."""
    if security.privileged:
        return frozenset(CAPABILITIES)
    added, dropped = (
        {name.upper().removeprefix("CAP_") for name in names}
        for names in (
            security.capabilities.add_capabilities,
            security.capabilities.drop_capabilities,
        )
    )
    capabilities = frozenset(CAPABILITIES) if "ALL" in added else _DEFAULT
    if "ALL" in dropped:
        capabilities = _NONE
    return (capabilities | (added & set(CAPABILITIES))) - dropped


def seccomp_mode(container: Container) -> int:
    """What /proc/self/status says: 0 without a profile, else 2. Privileged containers have none."""
    security = container.config.linux.security_context
    if security.privileged or not security.HasField("seccomp"):
        return _DISABLED
    unconfined = security.seccomp.profile_type == pb.SecurityProfile.Unconfined
    return _DISABLED if unconfined else _FILTER


def _refused_calls(container: Container) -> frozenset[str]:
    """What a profile on this machine refuses; it is read where mounts of host paths are."""
    profile = container.config.linux.security_context.seccomp
    local = profile.profile_type == pb.SecurityProfile.Localhost
    if not (local and container.inside.host_mounts and seccomp_mode(container)):
        return _NONE
    try:
        with open(profile.localhost_ref, encoding="utf-8") as file:
            return _refused_by(json.load(file))
    except (OSError, ValueError, TypeError, AttributeError):
        return _NONE


def _refused_by(profile: dict[str, Any]) -> frozenset[str]:
    rules = [rule for rule in profile.get("syscalls", ()) if not rule.get("args")]
    refused = (rule for rule in rules if rule.get("action") == "SCMP_ACT_ERRNO")
    return frozenset(str(name) for rule in refused for name in rule.get("names", ()))
