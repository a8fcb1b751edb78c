"""IP addresses in fields that have always taken them: what is wrong with one. Pure.

Such fields take every form of an address, but two that programs read in different ways: numbers of
IPv4 with leading zeros, which some take for octal ones, and IPv4 addresses within IPv6 ones.
Upstream: apimachinery pkg/util/validation/ip.go: IsValidIPForLegacyField.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

IP_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def address_problems(text: str) -> list[str]:
    """What is wrong with a text that has to be an IP address.

    >>> address_problems("010.0.0.1"), address_problems("::ffff:1.2.3.4"), address_problems("::1")
    (['must not have leading 0s'], ['must not be an IPv4-mapped IPv6 address'], [])
    """
    plain = _without_zeros(text)
    try:
        address = ip_address(plain)
    except ValueError:
        return [IP_RULE]
    if "%" in text:  # a zone, which Python's addresses may have
        return [IP_RULE]
    if plain != text:
        return ["must not have leading 0s"]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def _without_zeros(text: str) -> str:
    """The text with the numbers of its IPv4 address, if it has or ends with one, as plain ones."""
    begin, colon, end = text.rpartition(":")
    parts = end.split(".")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() for part in parts):
        return text
    return begin + colon + ".".join(part.lstrip("0") or "0" for part in parts)
