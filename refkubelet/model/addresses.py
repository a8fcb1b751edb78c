"""The addresses of a pod, in the order of the node's IP families (LIFE-176). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address


def by_family(pod_ips: Sequence[str], node_ips: Sequence[str]) -> tuple[str, ...]:
    """At most two addresses: the pod's first one of the node's primary family, then its first one
    of the other family. The primary family is that of the node's first address; IPv4 if it has
    none.

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
    """4 or 6, and the address in canonical form. Cached, because every pod status has the same few
    addresses. Raises ValueError for a text that is not an IP address."""
    address = ip_address(ip)
    return address.version, str(address)
