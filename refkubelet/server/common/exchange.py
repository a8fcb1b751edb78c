"""Requests and answers of the kubelet's servers, whatever carries them: a socket, or a call in the
same process. Pure.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

NONE: Final[Mapping[str, str]] = MappingProxyType({})
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
NOSNIFF: Final = MappingProxyType({"X-Content-Type-Options": "nosniff"})
WEBSOCKET_PROTOCOLS: Final = "sec-websocket-protocol"


def _none() -> Mapping[str, str]:
    return NONE


class ClientCertificate(Struct, frozen=True):
    """What a verified client certificate says of its owner: common name, organizations, and the
    SHA-256 of the certificate in hexadecimal digits."""

    common_name: str
    organizations: tuple[str, ...] = ()
    sha256: str = ""


class Request(Struct, frozen=True, kw_only=True):
    """A request. `path` is decoded, `query` has the decoded pairs in order, the names of `headers`
    are in lower case. `certificate` None: the client showed none."""

    method: str = "GET"
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=_none)
    certificate: ClientCertificate | None = None

    def first(self, name: str) -> str:
        """The first value of a query parameter; "" for none."""
        return next((value for key, value in self.query if key == name), "")

    def every(self, name: str) -> tuple[str, ...]:
        """All values of a query parameter."""
        return tuple(value for key, value in self.query if key == name)

    @property
    def is_upgrade(self) -> bool:
        """Whether the client wants to speak another protocol on the connection."""
        return "upgrade" in self.headers.get("connection", "").lower()

    @property
    def is_websocket(self) -> bool:
        """Whether that protocol is WebSocket."""
        return self.is_upgrade and self.headers.get("upgrade", "").lower() == "websocket"

    @property
    def websocket_protocols(self) -> tuple[str, ...]:
        """The protocols above WebSocket that the client offers."""
        words = self.headers.get(WEBSOCKET_PROTOCOLS, "").split(",")
        return tuple(word.strip() for word in words if word.strip())


class Tunnel(Struct, frozen=True):
    """What the connection of an upgraded request is joined with: the runtime's streaming server at
    `url`. `request`: what is asked of it there."""

    url: str
    request: Request


class Answer(Struct, frozen=True, kw_only=True):
    """An answer. `chunks`: the body as it comes, after `body`; `tunnel`: there is no answer of our
    own, the connection is joined with another."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=_none)
    chunks: AsyncIterator[bytes] | None = None
    tunnel: Tunnel | None = None


def text(words: str, status: int = 200) -> Answer:
    """A text as it is."""
    return Answer(status=status, body=words.encode())


def error(status: int, words: str) -> Answer:
    """A text with a line end, as Go's http.Error writes it."""
    return Answer(status=status, body=f"{words}\n".encode(), headers=NOSNIFF)


def as_json(value: Any) -> Answer:
    return Answer(body=json.dumps(value, separators=(",", ":")).encode(), content_type=JSON)
