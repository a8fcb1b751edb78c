"""The requests that wait for their connection. Each has a token, which is used once, within a
minute (CRI-115).

A connection needs nothing but the token, so the next one must not be foreseeable.
"""

from __future__ import annotations

import base64
from typing import Final

import grpc
from google.protobuf.message import Message
from msgspec import Struct

from fakecri.errors import CriError
from simclock import Clock, Rng, unguessable

LIFE_S: Final = 60.0
MAX_WAITING: Final = 1000
TOKEN_BYTES: Final = 6
"""8 characters of URL-safe base64."""


class _Waiting(Struct, frozen=True):
    request: Message
    until_s: float


class Tokens:
    """Gives a token for a request, and for a token its request, once.

    `rng`: makes tokens repeatable, for tests; by default the operating system draws them.
    """

    def __init__(self, clock: Clock, rng: Rng | None = None) -> None:
        self._clock = clock
        self._bytes = rng.stream("streaming tokens").randbytes if rng else unguessable
        self._waiting: dict[str, _Waiting] = {}  # oldest first

    def put(self, request: Message) -> str:
        """A new token for `request`. Raises CriError RESOURCE_EXHAUSTED while too many requests
        wait."""
        now_s = self._clock.monotonic_s()
        for token in [t for t, w in self._waiting.items() if w.until_s < now_s]:
            del self._waiting[token]
        if len(self._waiting) >= MAX_WAITING:
            text = "maximum number of in-flight requests exceeded"
            raise CriError(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        while (token := self._draw()) in self._waiting:
            pass
        self._waiting[token] = _Waiting(request, now_s + LIFE_S)
        return token

    def take(self, token: str) -> Message | None:
        """The request of `token`, which is used up; None: there is none, or it is too old."""
        waiting = self._waiting.pop(token, None)
        if waiting is None or waiting.until_s < self._clock.monotonic_s():
            return None
        return waiting.request

    def forget(self) -> None:
        """Forget all requests."""
        self._waiting.clear()

    def _draw(self) -> str:
        return base64.urlsafe_b64encode(self._bytes(TOKEN_BYTES)).decode()
