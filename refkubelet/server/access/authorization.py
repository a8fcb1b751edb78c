"""Whether a user may do what a request wants: all may (AlwaysAllow), or the API server says.

Rules: SRV-014. Upstream: cmd/kubelet/app/auth.go: BuildAuthz;
staging/src/k8s.io/apiserver/plugin/pkg/authorizer/webhook.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from enum import Enum
from typing import Final, Protocol

from refkubelet.config.schema.kubelet_config import Authorization
from refkubelet.server.access.attributes import Attributes, request_length, review_spec
from refkubelet.server.access.authentication import NotConfigured
from refkubelet.server.access.review_cache import ReviewCache
from refkubelet.server.access.reviews import Refused, Reviews
from simclock import Clock

log = logging.getLogger(__name__)
ALWAYS_ALLOW: Final = "AlwaysAllow"
LONGEST: Final = 10_000
"""Answers about a request of so many characters, or more, are not kept (SRV-014.6)."""


class Verdict(Enum):
    """What a review says. A contradiction is kept as what is allowed, as upstream keeps it."""

    ALLOWED = "allowed"
    NOT_ALLOWED = "denied, or no opinion"
    CONTRADICTION = "allowed and denied"


class CannotTell(Exception):
    """Nobody can say whether it is allowed: 500."""


class Authorizer(Protocol):
    async def allows(self, attributes: Attributes) -> bool:
        """Whether the user may do that. Raises `CannotTell`: nobody can be asked."""


class AlwaysAllow:
    """Everything is allowed to whoever was authenticated."""

    async def allows(self, attributes: Attributes) -> bool:
        return True


class WebhookAuthorizer:
    """The API server decides, by SubjectAccessReview; its answers are kept for a while."""

    def __init__(self, config: Authorization, reviews: Reviews, clock: Clock) -> None:
        self._ttl = config.webhook
        self._reviews = reviews
        self._clock = clock
        self._cache: ReviewCache[Verdict] = ReviewCache()

    async def allows(self, attributes: Attributes) -> bool:
        """As the API server's SubjectAccessReview says, remembered for a while. Raises
        `CannotTell`."""
        spec = review_spec(attributes)
        key = json.dumps(spec, sort_keys=True)
        verdict = self._cache.get(key, self._clock.monotonic_s())
        if verdict is None:
            verdict = await self._asked(spec)
            if request_length(attributes) < LONGEST:
                ttl = self._ttl
                allowed = verdict is not Verdict.NOT_ALLOWED
                ttl_s = ttl.cache_authorized_ttl_s if allowed else ttl.cache_unauthorized_ttl_s
                self._cache.put(key, verdict, now_s=self._clock.monotonic_s(), ttl_s=ttl_s)
        if verdict is Verdict.CONTRADICTION:
            raise CannotTell("webhook subject access review returned both allow and deny response")
        return verdict is Verdict.ALLOWED

    async def _asked(self, spec: Mapping[str, object]) -> Verdict:
        """What the API server says. Raises `CannotTell`."""
        try:
            status = await self._reviews.access(spec)
        except Refused as refused:
            log.warning("Failed to make webhook authorizer request: %s", refused)
            raise CannotTell(str(refused)) from None
        if not status.get("allowed"):
            return Verdict.NOT_ALLOWED
        return Verdict.CONTRADICTION if status.get("denied") else Verdict.ALLOWED


def authorizer_of(config: Authorization, reviews: Reviews | None, clock: Clock) -> Authorizer:
    """The authorizer of a configuration. Raises `NotConfigured`."""
    if config.mode == ALWAYS_ALLOW:
        return AlwaysAllow()
    if reviews is None:
        raise NotConfigured("no client provided, cannot use webhook authorization")
    return WebhookAuthorizer(config, reviews, clock)
