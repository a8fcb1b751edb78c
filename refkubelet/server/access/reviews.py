"""Asks the API server who a token belongs to, and what a user may do.

A request that a server answers with an error of its own, or because it has too much to do, is made
up to five times, with growing pauses; one that finds no server, or is refused, is not made again:
the client hears at once. What must never happen here: a token in a text.
Rules: SRV-013, SRV-014. Upstream: staging/src/k8s.io/apiserver/pkg/util/webhook.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from refkubelet.api.client import ApiError
from simclock import Clock

FIRST_PAUSE_S: Final = 0.5
FACTOR: Final = 1.5
TRIES: Final = 5
AGAIN: Final = frozenset({429, 500, 504})
TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Refused(Exception):
    """The API server gave no answer, or refused to give one."""


class ReviewClient(Protocol):
    """The part of the API client that reviews need."""

    async def create_review(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a POST. Raises `ApiError`."""


class Reviews:
    """Both kinds of reviews."""

    def __init__(self, api: ReviewClient, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def token(self, token: str) -> Mapping[str, Any]:
        """The status of a TokenReview. Raises `Refused`."""
        body = {
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "spec": {"token": token},
        }
        return await self._status("TokenReview", TOKEN_REVIEWS, body)

    async def access(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The status of a SubjectAccessReview. Raises `Refused`."""
        body = {
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": spec,
        }
        return await self._status("SubjectAccessReview", ACCESS_REVIEWS, body)

    async def _status(self, kind: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = await self._tried(kind, lambda: self._api.create_review(path, body))
        status = answer.get("status")
        return status if isinstance(status, Mapping) else {}

    async def _tried(
        self, kind: str, ask: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        pause_s = FIRST_PAUSE_S
        for tries_left in range(TRIES - 1, -1, -1):
            try:
                return await ask()
            except ApiError as error:
                if not tries_left or error.status not in AGAIN:
                    raise Refused(f"{kind}: {error}") from None
            await self._clock.sleep(pause_s)
            pause_s *= FACTOR
        raise AssertionError("the last try returns or raises")
