"""The addresses of a pod in the order that the node prefers: LIFE-176. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address


def by_family(pod_ips: Sequence[str], node_ips: Sequence[str]) -> tuple[str, ...]:
    """The first address of the family of the node's first, then the first of the other one; at
    most two. Without a node address IPv4 comes first.

    >>> by_family(["fd00::1", "10.0.0.1", "10.0.0.2"], ["192.0.2.1"])
    ('10.0.0.1', 'fd00::1')
    """
    primary = 6 if node_ips and ":" in node_ips[0] else 4
    known = [ip_address(ip) for ip in pod_ips]
    firsts = [
        next((str(ip) for ip in known if ip.version == version), None)
        for version in (primary, 4 if primary == 6 else 6)
    ]
    return tuple(ip for ip in firsts if ip is not None)
