"""What a service loses when an update changes its type: what the server gave it for the old type,
unless the update changes that, too. No I/O.

Upstream: pkg/registry/core/service/strategy.go: dropTypeDependentFields.
"""

from __future__ import annotations

from typing import Any, Final

WITH_PORTS: Final = ("NodePort", "LoadBalancer")
OF_ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_OF_BALANCERS: Final = ("allocateLoadBalancerNodePorts", "loadBalancerClass")
Spec = dict[str, Any]


def drop_of_old_type(spec: Spec, was: Spec) -> None:
    """Remove from the new spec what only its old type had a use for; `was`: the old spec."""
    kind, before = spec["type"], was["type"]
    if kind == "ExternalName" != before:
        _drop_same(spec, was, OF_ADDRESSES)
    if before in WITH_PORTS and kind not in WITH_PORTS and _ports(spec) <= _ports(was):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if before == "LoadBalancer" != kind:
        _drop_same(spec, was, _OF_BALANCERS)
    if has_health_port(was) and not has_health_port(spec):
        _drop_same(spec, was, ("healthCheckNodePort",))
    if is_external(was) and not is_external(spec):
        _drop_same(spec, was, ("externalTrafficPolicy",))


def is_external(spec: Spec) -> bool:
    """Whether the service is reached from outside the cluster."""
    has_addresses = spec["type"] == "ClusterIP" and bool(spec.get("externalIPs"))
    return spec["type"] in WITH_PORTS or has_addresses


def _drop_same(spec: Spec, was: Spec, fields: tuple[str, ...]) -> None:
    for field in fields:
        if spec.get(field) == was.get(field):
            spec.pop(field, None)


def _ports(spec: Spec) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def has_health_port(spec: Spec) -> bool:
    """Whether the service has a port at which load balancers ask for its health."""
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
