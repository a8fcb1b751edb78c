"""What the node's lease says. Pure.

Rules: NODE-040. Upstream: component-helpers/apimachinery/lease/controller.go: newLease;
pkg/kubelet/util/nodelease.go: SetNodeOwnerFunc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simclock import format_rfc3339

LEASE_NAMESPACE: Final = "kube-node-lease"
_MICROSECONDS: Final = 6


def renewed(
    base: Mapping[str, Any] | None, node_name: str, duration_s: int, now_ns: int
) -> dict[str, Any]:
    """The lease to write: `base` with the duration and the time of now, in microseconds. None: a
    new one, held by this node; the holder of one that is there stays as it is."""
    if base is None:
        base = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node_name, "namespace": LEASE_NAMESPACE},
            "spec": {"holderIdentity": node_name},
        }
    time = format_rfc3339(now_ns, digits=_MICROSECONDS)
    spec = {**(base.get("spec") or {}), "leaseDurationSeconds": duration_s, "renewTime": time}
    return {**base, "spec": spec}


def has_owner(lease: Mapping[str, Any]) -> bool:
    """Whether the lease goes with some object."""
    return bool((lease.get("metadata") or {}).get("ownerReferences"))


def with_owner(lease: Mapping[str, Any], node_name: str, uid: str) -> dict[str, Any]:
    """`lease`, to be removed with the Node that has this UID."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": uid}
    return {**lease, "metadata": {**(lease.get("metadata") or {}), "ownerReferences": [owner]}}
