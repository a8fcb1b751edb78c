"""The addresses of a pod network: how it is written, and which are taken.

`parse_network` reads what a user says; `Addresses` gives one address of each range to a pod, in the
order of CNI's host-local plugin: the first usable one is the gateway's, the next free one after the
last given comes next, and what a pod gave back is given again when its turn comes. What must never
happen here: two pods have one address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from itertools import chain
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address

DEFAULT: Final = "10.88"
_SHORT: Final = re.compile(r"\d+\.\d+(\.\d+)?", re.ASCII)
_FEWEST: Final = 4
"""A range holds its own name, a gateway, one pod and an end."""


class NoAddressLeft(Exception):
    """All are taken; the text is what the plugin says."""


def parse_network(text: str) -> tuple[Network, ...]:
    """One range, or one of IPv4 and one of IPv6 with a comma between; `10.88` is `10.88.0.0/16`,
    `10.88.1` is `10.88.1.0/24`. Raises ValueError.

    >>> parse_network("127.1.2"), parse_network("10.88,fd00:88::/112")
    ((IPv4Network('127.1.2.0/24'),), (IPv4Network('10.88.0.0/16'), IPv6Network('fd00:88::/112')))
    """
    if not isinstance(text, str):
        raise ValueError(_wanted(repr(text)))
    try:
        ranges = tuple(_range(part.strip()) for part in text.split(","))
    except ValueError as error:
        raise ValueError(_wanted(f"{text!r}: {error}")) from None
    if len({network.version for network in ranges}) != len(ranges):
        raise ValueError(_wanted(f"two of one family in {text!r}"))
    return ranges


def _wanted(got: str) -> str:
    return (
        "pod_network: wanted a range such as 10.88, 127.1.2, 10.88.0.0/16 or fd00:88::/112, or one "
        f"of each family with a comma between; got {got}"
    )


def _range(text: str) -> Network:
    if _SHORT.fullmatch(text):
        numbers = text.split(".")
        text = ".".join(numbers + ["0"] * (4 - len(numbers))) + f"/{8 * len(numbers)}"
    if "/" not in text:
        raise ValueError("the length of the prefix is missing")
    network = ip_network(text)
    first = network.network_address
    if network.num_addresses < _FEWEST:
        raise ValueError("there is no room for a gateway and a pod")
    if first.is_multicast or first.is_unspecified:
        raise ValueError("no pod can have such an address")
    return network


class Addresses:
    """Gives addresses of `ranges`, one of each at a time."""

    def __init__(self, text: str = DEFAULT) -> None:
        self.ranges = parse_network(text)
        self._last = [int(_gateway(network)) for network in self.ranges]
        self._ends = [int(_end(network)) for network in self.ranges]
        self._once_around = False

    def next(self, taken: Callable[[], Collection[str]]) -> list[str]:
        """One address of each range that is not `taken`, which is asked only when addresses may
        come back. Raises NoAddressLeft."""
        self._last = [self._free(i, taken) for i in range(len(self.ranges))]
        return [
            str(type(network.network_address)(number))
            for network, number in zip(self.ranges, self._last, strict=True)
        ]

    def _free(self, index: int, taken: Callable[[], Collection[str]]) -> int:
        last, end = self._last[index], self._ends[index]
        if last < end and not self._once_around:
            return last + 1
        self._once_around, in_use = True, taken()
        network = self.ranges[index]
        first, kind = int(_gateway(network)) + 1, type(network.network_address)
        for number in chain(range(last + 1, end + 1), range(first, last + 1)):
            if str(kind(number)) not in in_use:
                return number
        raise NoAddressLeft(
            f"failed to allocate for range {index}: no IP addresses available in range set: "
            f"{_gateway(network)}-{_end(network)}"
        )


def _gateway(one: Network) -> Address:
    return one.network_address + 1


def _end(one: Network) -> Address:
    """The last address of a pod: IPv4 keeps one for broadcasts."""
    return one.broadcast_address - (one.version == 4)


def reachable_here(text: str) -> bool:
    """Whether sockets of this machine can be bound at all of them: loopback addresses of IPv4."""
    return all(network.version == 4 and network.is_loopback for network in parse_network(text))
