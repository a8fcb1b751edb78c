"""The addresses of a pod in the order that the node prefers: LIFE-176. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address


def by_family(pod_ips: Sequence[str], node_ips: Sequence[str]) -> tuple[str, ...]:
    """The first address of the family of the node's first, then the first of the other one; at
    most two. Without a node address IPv4 comes first.

    >>> by_family(["fd00::1", "10.0.0.1", "10.0.0.2"], ["192.0.2.1"])
    ('10.0.0.1', 'fd00::1')
    """
    primary = 6 if node_ips and ":" in node_ips[0] else 4
    firsts: dict[int, str] = {}
    for ip in pod_ips:
        version, text = version_and_text(ip)
        firsts.setdefault(version, text)
    return tuple(firsts[version] for version in sorted(firsts, reverse=primary == 6))


@lru_cache(maxsize=4096)
def version_and_text(ip: str) -> tuple[int, str]:
    """4 or 6, and the address as it is usually written. Every status asks it of the same few.
    Raises ValueError."""
    address = ip_address(ip)
    return address.version, str(address)
