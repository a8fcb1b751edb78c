"""Checks security contexts of containers, and their parts that a pod has, too. Pure.

Upstream: ValidateSecurityContext, validateWindowsSecurityContextOptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubeobjects.causes import (
    MOST_ALIKE,
    Cause,
    Word,
    invalid_value,
    required,
    too_long,
    unsupported_value,
)
from kubeobjects.names import byte_length
from kubeobjects.pods.common.checks import (
    Object,
    descending_path,
    optional_word,
    subdomain,
    user_id,
)
from kubeobjects.schema.internal import internal
from kubeobjects.schema.messages import message

_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_MAX_PROFILE: Final = 4095
_MAX_SPEC_KIB: Final = 64
_MAX_DOMAIN: Final = 256
_MAX_USER: Final = 104
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS: Final = re.compile(r"""[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}""")
_DOMAIN_PART: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN: Final = re.compile(rf"{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*")
_NO_USER: Final = re.compile(r"""["/\\:;|=,+*?<>@\[\]]""")


def container_security_causes(container: Object, path: str, spec: Object) -> Iterator[Cause]:
    """What is wrong with the security context of a container of a pod with this spec."""
    context, context_path = container.get("securityContext"), f"{path}.securityContext"
    if context is None:
        return
    yield from user_id(context.get("runAsUser"), f"{context_path}.runAsUser")
    yield from user_id(context.get("runAsGroup"), f"{context_path}.runAsGroup")
    proc, field = context.get("procMount"), f"{context_path}.procMount"
    yield from optional_word(proc, field, ("Default", "Unmasked"))
    if proc == "Unmasked" and spec.get("hostUsers") is not False:
        yield invalid_value(field, proc, "`hostUsers` must be false to use `Unmasked`")
    yield from seccomp_causes(context.get("seccompProfile"), f"{context_path}.seccompProfile")
    yield from _escalation_causes(context, context_path)
    yield from windows_causes(context.get("windowsOptions"), f"{context_path}.windowsOptions")
    yield from apparmor_causes(context.get("appArmorProfile"), f"{context_path}.appArmorProfile")


def _escalation_causes(context: Object, path: str) -> Iterator[Cause]:
    """What gives a container privileges that it may not gain."""
    if context.get("allowPrivilegeEscalation") is not False:
        return
    cannot = "cannot set `allowPrivilegeEscalation` to false and"
    context_shown = internal(context, message("core.v1.SecurityContext"))
    if context.get("privileged"):
        yield invalid_value(path, context_shown, f"{cannot} `privileged` to true")
    added = (context.get("capabilities") or {}).get("add") or []
    for _ in range(min(added.count("CAP_SYS_ADMIN"), MOST_ALIKE)):
        yield invalid_value(path, context_shown, f"{cannot} `capabilities.Add` CAP_SYS_ADMIN")


def seccomp_causes(profile: Object | None, path: str) -> Iterator[Cause]:
    """What is wrong with a seccomp profile, if there is one."""
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        yield from optional_word(kind, f"{path}.type", _PROFILES)
    field = f"{path}.localhostProfile"
    if kind != "Localhost" and local is not None:
        profile_shown = internal(profile, message("core.v1.SeccompProfile"))
        yield invalid_value(field, profile_shown, "can only be set when seccomp type is Localhost")
    elif kind == "Localhost" and local is None:
        yield required(field, "must be set when seccomp type is Localhost")
    elif local is not None:
        yield from descending_path(local, field)


def apparmor_causes(profile: Object | None, path: str) -> Iterator[Cause]:
    """What is wrong with an AppArmor profile, if there is one."""
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    field = f"{path}.localhostProfile"
    if not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield unsupported_value(f"{path}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if local is not None:
            yield invalid_value(
                field, Word(local), "can only be set when AppArmor type is Localhost"
            )
    elif not local:
        yield required(field, "must be set when AppArmor type is Localhost")
    else:
        if local != local.strip():
            yield invalid_value(field, local, "must not be padded with whitespace")
        if len(local.encode(errors="replace")) > _MAX_PROFILE:
            yield too_long(field, _MAX_PROFILE)


def windows_causes(options: Object | None, path: str) -> Iterator[Cause]:
    """What is wrong with the options for Windows, if there are some."""
    if options is None:
        return
    name, credential = options.get("gmsaCredentialSpecName"), options.get("gmsaCredentialSpec")
    if name is not None:
        yield from subdomain(Word(name), f"{path}.gmsaCredentialSpecName")
    if credential is not None:
        field, size = f"{path}.gmsaCredentialSpec", len(credential.encode(errors="replace"))
        if not size:
            yield invalid_value(field, "", "gmsaCredentialSpec cannot be an empty string")
        elif size > _MAX_SPEC_KIB * 1024:
            text = f"gmsaCredentialSpec size must be under {_MAX_SPEC_KIB} KiB"
            yield invalid_value(field, Word(credential), text)
    user = options.get("runAsUserName")
    if user is not None:
        for problem in _user_name_problems(user):
            yield invalid_value(f"{path}.runAsUserName", Word(user), f"runAsUserName{problem}")


def _user_name_problems(name: str) -> Iterator[str]:
    """What is wrong with a user of Windows, `domain\\user` or `user`."""
    domain, backslash, user = name.rpartition("\\")
    if not name:
        yield " cannot be an empty string"
        return
    if _CONTROL.search(name):
        yield " cannot contain control characters"
        return
    if "\\" in domain:
        yield " cannot contain more than one backslash"
        return
    if byte_length(domain) >= _MAX_DOMAIN:
        yield f"'s Domain length must be under {_MAX_DOMAIN} characters"
    if backslash and not (_NETBIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)):
        yield "'s Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "'s User cannot be empty"
    elif byte_length(user) > _MAX_USER:
        yield f"'s User length must not be longer than {_MAX_USER} characters"
    if user and not user.strip(". "):
        yield "'s User cannot contain only periods or spaces"
    if _NO_USER.search(user):
        yield "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
