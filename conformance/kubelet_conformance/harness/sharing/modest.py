"""Whether a pod leaves to others what its node has: only such pods are of a shared kubelet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubeobjects.quantity import parse_nano

MOST: Final = {"cpu": "100m", "memory": "128Mi"}
"""What a pod of a tenant may request: tenants together must not need more than a node has."""

OF_CLAIMS: Final = "storage"
"""What claims request, of volumes: nothing of the node."""


def why_not_shared(pod: Mapping[str, Any]) -> str:
    """What a pod takes away from other pods of the node; "" when it is nothing."""
    spec = pod.get("spec") or {}
    if not isinstance(spec, Mapping):
        return ""
    if spec.get("hostNetwork"):
        return "the network of the node"
    if spec.get("priority") or spec.get("priorityClassName"):
        return "a pod that may take the place of others"
    for container in _containers(spec):
        if any(port.get("hostPort") for port in container.get("ports") or []):
            return "a port of the node"
    return _too_much(spec)


def _containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or []


def _too_much(spec: Mapping[str, Any]) -> str:
    """What the pod requests more of than a tenant may."""
    sums: Counter[str] = Counter()
    for resources in (spec.get("resources"), *(c.get("resources") for c in _containers(spec))):
        amounts = resources or {}
        wanted = {**(amounts.get("limits") or {}), **(amounts.get("requests") or {})}
        for name, amount in wanted.items():
            sums[name] += parse_nano(str(amount))
    for name, amount in sums.items():
        if name == OF_CLAIMS:
            continue
        if name not in MOST or amount > parse_nano(MOST[name]):
            return f"a request for much {name}"
    return ""
