"""Who asks: the client certificate, a token that the API server reviews, or nobody (anonymous).

The ways are tried in that order; one that fails (a token that is refused) is no reason to stop, but
then nobody is anonymous. What must never happen here: a token in a log or in the cache; a way that
is not configured lets anybody in.
Rules: SRV-013, SRV-014. Upstream: cmd/kubelet/app/auth.go: BuildAuthn.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from refkubelet.config.schema.kubelet_config import Authentication
from refkubelet.server.access.attributes import User
from refkubelet.server.access.credentials import (
    ANONYMOUS,
    BadCredentials,
    authenticated,
    bearer_token,
    user_of_certificate,
    websocket_token,
)
from refkubelet.server.access.review_cache import ReviewCache
from refkubelet.server.access.reviews import Refused, Reviews
from refkubelet.server.common.exchange import Request
from simclock import Clock, unguessable

log = logging.getLogger(__name__)
KEY_BYTES: Final = 32


class NotConfigured(Exception):
    """The configuration cannot work; the text is upstream's."""


class Authenticator(Protocol):
    """Says who asks."""

    async def user_of(self, request: Request) -> User | None:
        """The user; None: 401."""


class RequestAuthenticator:
    """The authenticators of a configuration. `reviews` None: there is no API server.

    Raises `NotConfigured`.
    """

    def __init__(self, config: Authentication, reviews: Reviews | None, clock: Clock) -> None:
        if config.webhook.enabled and reviews is None:
            raise NotConfigured("no client provided, cannot use webhook authentication")
        self._config = config
        self._reviews = reviews if config.webhook.enabled else None
        self._clock = clock
        self._cache: ReviewCache[User | str] = ReviewCache()
        self._key = unguessable(KEY_BYTES)

    async def user_of(self, request: Request) -> User | None:
        """The user, with the group system:authenticated, or the anonymous one; None: 401."""
        if self._config.x509.client_ca_file:
            user = user_of_certificate(request.certificate)
            if user is not None:
                return authenticated(user)
        problem = None
        if self._reviews is not None:
            try:
                user = await self._by_token(request)
            except (BadCredentials, Refused) as refused:
                problem = refused
            else:
                if user is not None:
                    return authenticated(user)
        if problem is not None:
            log.warning("Unable to authenticate the request due to an error: %s", problem)
            return None
        return ANONYMOUS if self._config.anonymous.enabled else None

    async def _by_token(self, request: Request) -> User | None:
        """The owner of the token; None: there is no token. Raises `BadCredentials`, `Refused`."""
        token = bearer_token(request) or websocket_token(request)
        return None if token is None else await self._owner(token)

    async def _owner(self, token: str) -> User:
        assert self._reviews is not None
        key = hmac.new(self._key, token.encode(), hashlib.sha256).hexdigest()
        now_s = self._clock.monotonic_s()
        user = self._cache.get(key, now_s)
        if user is None:
            status = await self._reviews.token(token)
            user = reviewed(status)
            if not status.get("error"):  # an error may be over at the next request (SRV-013.6)
                ttl_s = self._config.webhook.cache_ttl_s
                self._cache.put(key, user, now_s=self._clock.monotonic_s(), ttl_s=ttl_s)
        if isinstance(user, str):
            raise BadCredentials(user)
        return user


def reviewed(status: Mapping[str, Any]) -> User | str:
    """The user of a reviewed token, or why it has none."""
    if not status.get("authenticated"):
        return str(status.get("error") or "invalid bearer token")
    user = status.get("user") or {}
    extra = user.get("extra") or {}
    return User(
        str(user.get("username") or ""),
        tuple(user.get("groups") or ()),
        str(user.get("uid") or ""),
        tuple((key, tuple(values)) for key, values in sorted(extra.items())),
    )
