"""Hosts as pods write them: what makes a URL, what can be connected to. Pure.

The host of a probe or hook is any text (the API does not look at it): `127.0.0.1:99`, `a..b`, a
label of 100 characters, a name in Greek. What must never happen here: an error of another kind than
the two of this module, however odd the text.
Upstream: net/url, net: isDomainName, net/http: idnaASCII, of Go; pkg/probe/http/request.go.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import idna
from msgspec import Struct

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
MAX_NAME: Final = 254
MAX_LABEL: Final = 63

_KEPT_IN_HOSTS: Final = "!$&'()*+,;=:[]<>\"~"
_ESCAPED_ASCII: Final = re.compile(r"%(?!25)[0-7][0-9A-F]")
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
# What a C library takes for an IPv4 address, and Go does not: 127.1, 2130706433, 0x7f000001.
_LOOSE_IPV4: Final = re.compile(
    r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}"
)
_HALVES: Final = re.compile("[\ud800-\udfff]")  # of a character: Go has U+FFFD for each
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class NetworkError(Exception):
    """The other side could not be reached, or did not answer in time."""


class UrlError(ValueError):
    """There is no such URL, so no request is made (PROBE-066); the text is a Go client's."""


class Target(Struct, frozen=True):
    """Where a request goes. `host`: an IP address, without brackets, or a name in ASCII."""

    scheme: str
    host: str
    port: int


def host_port(host: str, port: int) -> str:
    """`host:port`, IPv6 addresses (all that has a colon) in brackets.

    >>> host_port("10.0.0.1", 80), host_port("fd00::1", 80)
    ('10.0.0.1:80', '[fd00::1]:80')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def url_of(scheme: str, host: str, port: int, rest: str = "") -> str:
    """The URL with the path and query `rest`. Raises `UrlError`.

    >>> url_of("http", "fe80::1%lo", 80)
    'http://[fe80::1%25lo]:80'
    """
    text = _HALVES.sub("\ufffd", host)
    start = f"{scheme}://{quote(host_port(text, port), safe=_KEPT_IN_HOSTS)}"
    problem = _url_problem(text, start)
    if problem:
        raise UrlError(f"parse {_quoted(start + rest)}: {problem}")
    return start + rest


def _url_problem(host: str, start: str) -> str:
    if ":" in host:
        if "[" in host or "]" in host:
            return "invalid IP-literal"
        return (
            "" if _is_ip(host) else f"invalid host: ParseAddr({_quoted(host)}): unable to parse IP"
        )
    if host.startswith("["):
        return "invalid IP-literal" if "]" in host else "missing ']' in host"
    escape = _ESCAPED_ASCII.search(start)
    return f"invalid URL escape {_quoted(escape.group())}" if escape else ""


def target_of(url: str) -> Target:
    """Where to connect to for a URL. Raises `NetworkError` when that is nowhere."""
    try:
        parts = urlsplit(url)
        host, scheme = parts.hostname or "", parts.scheme
    except ValueError as error:
        raise NetworkError(str(error)) from None
    if scheme not in DEFAULT_PORTS:
        raise NetworkError(f"unsupported protocol scheme {_quoted(scheme)}")
    name = in_ascii(unquote(host))
    try:
        port = parts.port
    except ValueError:
        raise NetworkError(f"dial tcp: address {parts.netloc}: invalid port") from None
    check_host(name, port or 0)
    return Target(scheme, name, DEFAULT_PORTS[scheme] if port is None else port)


def in_ascii(host: str) -> str:
    """A name as name servers know it; one that cannot be written so stays as it is.

    >>> in_ascii("bücher.example")
    'xn--bcher-kva.example'
    """
    if host.isascii():
        return host
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return host


def check_host(host: str, port: int) -> None:
    """Check a host before it is asked for. Raises `NetworkError` for a text that is neither an
    IP address nor a possible name."""
    if "[" in host or "]" in host:
        raise NetworkError(
            f"dial tcp: address {host_port(host, port)}: unexpected bracket in address"
        )
    if not host or _is_ip(host):
        return
    if not is_possible_name(host) or _LOOSE_IPV4.fullmatch(host):
        raise NetworkError(f"dial tcp: lookup {host}: no such host")


def is_possible_name(host: str) -> bool:
    """Whether DNS may be asked about that name: labels of 1 to 63 letters, digits, `_` and `-`
    (not at the ends), one dot between them, not digits alone."""
    name = host.removesuffix(".")
    labels = name.split(".")
    return (
        len(name) <= MAX_NAME
        and all(_LABEL.fullmatch(label) and len(label) <= MAX_LABEL for label in labels)
        and not any(label.startswith("-") or label.endswith("-") for label in labels)
        and not name.replace(".", "").isdigit()
    )


def bad_header(headers: tuple[tuple[str, str], ...]) -> str:
    """The name of the first header whose value cannot be sent; "" when all can."""
    return next((name for name, value in headers if _CONTROL.search(value)), "")


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
