"""The head of an HTTP request, as far as upgrades need it, and the answers to SPDY upgrades. Pure.

WebSocket requests and everything else go to aiohttp. It does not know SPDY/3.1, so requests for
that are read here.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

PROTOCOL_HEADER: Final = "X-Stream-Protocol-Version"
ACCEPTED_HEADER: Final = "X-Accepted-Stream-Protocol-Versions"
SPDY: Final = "SPDY/3.1"
_REASONS: Final = {400: "Bad Request", 403: "Forbidden", 404: "Not Found"}


class Head(Struct, frozen=True):
    """Method, path without its query, and headers in order, with lower-case names."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]

    def values(self, name: str) -> list[str]:
        """All values of a header: those of several lines, and those in one line with commas."""
        lines = (value for key, value in self.headers if key == name.lower())
        return [item.strip() for line in lines for item in line.split(",") if item.strip()]

    @property
    def wants_spdy(self) -> bool:
        """Whether it asks for an upgrade to SPDY/3.1."""
        upgrade = "upgrade" in (value.lower() for value in self.values("Connection"))
        return upgrade and SPDY.lower() in (value.lower() for value in self.values("Upgrade"))


def parse_head(head: bytes) -> Head | None:
    """The head of a request (without its empty line); None if it is none.

    >>> parse_head(b"GET /exec/x?y HTTP/1.1\\r\\nHost: a").path
    '/exec/x'
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    pairs = [line.partition(":") for line in lines]
    headers = tuple((name.strip().lower(), value.strip()) for name, _, value in pairs)
    return Head(words[0], words[1].partition("?")[0], headers)


def negotiate(asked: list[str], served: tuple[str, ...]) -> str | None:
    """The first of the protocols that the caller asks for which is served; None: there is none."""
    return next((protocol for protocol in asked if protocol in served), None)


def switching(protocol: str) -> bytes:
    """The response that starts SPDY."""
    return (
        "HTTP/1.1 101 Switching Protocols\r\n"
        f"Connection: Upgrade\r\nUpgrade: {SPDY}\r\n{PROTOCOL_HEADER}: {protocol}\r\n\r\n"
    ).encode()


def refusal(status: int, text: str, accepted: tuple[str, ...] = ()) -> bytes:
    """An error response, after which the connection ends."""
    body = f"{text}\n".encode()
    offers = "".join(f"{ACCEPTED_HEADER}: {protocol}\r\n" for protocol in accepted)
    return (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n{offers}Content-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode() + body
