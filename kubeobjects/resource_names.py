"""Names of resources that mean the same everywhere. Pure."""

from __future__ import annotations

from typing import Final

from kubeobjects.names import qualified_name_problems

COMPUTE: Final = ("cpu", "memory")
HUGE_PAGES: Final = "hugepages-"
"""What the names of huge pages begin with; their size follows."""
_QUOTA: Final = "requests."


def is_pod_level(name: str) -> bool:
    """Whether a pod may have an amount of its own of it: CPU, memory and huge pages."""
    return name in COMPUTE or name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """Whether the resource is one of Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """Whether it is a resource of a vendor's domain, `<domain>/<name>`, and short enough to have a
    quota. Upstream: IsExtendedResourceName.

    >>> is_extended_resource("vendor.example/gpu"), is_extended_resource("cpu")
    (True, False)
    """
    if is_native(name) or name.startswith(_QUOTA):
        return False
    return not qualified_name_problems(_QUOTA + name)
