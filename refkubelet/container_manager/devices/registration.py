"""Decides whether a registration of a plugin is accepted. Pure.

Upstream: pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go: Register.
"""

from __future__ import annotations

from typing import Final

from kubeobjects.resource_names import is_extended_resource

API_VERSION: Final = "v1beta1"


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
