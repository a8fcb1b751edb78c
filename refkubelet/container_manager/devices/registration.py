"""Decides whether a registration of a plugin is accepted. Pure.

Upstream: pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go: Register;
pkg/apis/core/v1/helper/helpers.go: IsExtendedResourceName.
"""

from __future__ import annotations

import re
from typing import Final

API_VERSION: Final = "v1beta1"
_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUOTA_PREFIX: Final = "requests."
_NATIVE_DOMAIN: Final = "kubernetes.io/"


def refusal(version: str, resource: str) -> str | None:
    """Why a registration is refused, with upstream's text; None: it is accepted."""
    if version != API_VERSION:
        return (
            f'requested API version "{version}" is not supported by kubelet. '
            f'Supported version is ["{API_VERSION}"]'
        )
    if not is_extended_resource(resource):
        return f'the ResourceName "{resource}" is invalid'
    return None


def is_extended_resource(name: str) -> bool:
    """Whether `name` is a resource of a vendor's domain: `<domain>/<name>`, not below
    kubernetes.io, and short enough to have a quota.

    >>> is_extended_resource("vendor.example/gpu"), is_extended_resource("cpu")
    (True, False)
    """
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return _is_qualified(_QUOTA_PREFIX + name)


def _is_qualified(name: str) -> bool:
    domain, slash, last = name.partition("/")
    if not slash or "/" in last:
        return False
    return (
        len(domain) <= 253
        and _DOMAIN.fullmatch(domain) is not None
        and len(last) <= 63
        and _NAME_PART.fullmatch(last) is not None
    )
