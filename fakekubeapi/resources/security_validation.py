"""What is wrong with the security contexts of pods and containers. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from fakekubeapi.resources.checks import one_of
from kubeobjects.causes import Cause, invalid_value, required

Object = dict[str, Any]
_ID_RULE: Final = "must be between 0 and 2147483647, inclusive"
_SYSCTL: Final = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_GO_NAMES: Final = {
    "Capabilities": "capabilities",
    "Privileged": "privileged",
    "SELinuxOptions": "seLinuxOptions",
    "WindowsOptions": "windowsOptions",
    "RunAsUser": "runAsUser",
    "RunAsGroup": "runAsGroup",
    "RunAsNonRoot": "runAsNonRoot",
    "ReadOnlyRootFilesystem": "readOnlyRootFilesystem",
    "AllowPrivilegeEscalation": "allowPrivilegeEscalation",
    "ProcMount": "procMount",
    "SeccompProfile": "seccompProfile",
    "AppArmorProfile": "appArmorProfile",
}


def container_security_causes(container: Object, path: str) -> list[Cause]:
    """What is wrong with the security context of a container."""
    context = container.get("securityContext")
    if context is None:
        return []
    here = f"{path}.securityContext"
    causes = _id_causes(context, here, ("runAsUser", "runAsGroup"))
    causes += one_of(context, "procMount", here, ("Default", "Unmasked"))
    causes += _seccomp_causes(context, here)
    if context.get("allowPrivilegeEscalation") is False:
        shown = {name: context.get(field) for name, field in _GO_NAMES.items()}
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            causes.append(invalid_value(here, shown, text))
        if "SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = (
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                "CAP_SYS_ADMIN"
            )
            causes.append(invalid_value(here, shown, text))
    return causes


def pod_security_causes(spec: Object) -> list[Cause]:
    """What is wrong with the security context of a pod."""
    context, here = spec.get("securityContext") or {}, "spec.securityContext"
    causes: list[Cause] = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.append(invalid_value(f"{here}.shareProcessNamespace", True, text))
    causes += _id_causes(context, here, ("fsGroup", "runAsUser", "runAsGroup"))
    for i, sysctl in enumerate(context.get("sysctls") or []):
        name, field = sysctl.get("name", ""), f"{here}.sysctls[{i}].name"
        if not name:
            causes.append(required(field))
        elif len(name) > 253 or not re.match(_SYSCTL, name):
            text = f"must have at most 253 characters and match regex {_SYSCTL}"
            causes.append(invalid_value(field, name, text))
    causes += one_of(context, "fsGroupChangePolicy", here, ("Always", "OnRootMismatch"))
    return causes + _seccomp_causes(context, here)


def _id_causes(context: Object, path: str, fields: tuple[str, ...]) -> list[Cause]:
    return [
        invalid_value(f"{path}.{field}", context[field], _ID_RULE)
        for field in fields
        if context.get(field) is not None and not 0 <= context[field] < 1 << 31
    ]


def _seccomp_causes(context: Object, path: str) -> list[Cause]:
    profile = context.get("seccompProfile")
    if not profile:
        return []
    here = f"{path}.seccompProfile"
    local = profile.get("type") == "Localhost"
    if local and not profile.get("localhostProfile"):
        text = "must be set when seccomp type is Localhost"
        return [required(f"{here}.localhostProfile", text)]
    return one_of(profile, "type", here, ("Localhost", "RuntimeDefault", "Unconfined"))
