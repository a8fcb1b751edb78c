"""Counts requests to the API server by their answers (SRV-037.3).

Upstream: staging/src/k8s.io/client-go/rest/request.go; component-base/metrics: restclient.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from refkubelet.telemetry.server_metrics import RequestMetrics
from simclock import Clock

NO_ANSWER: Final = "<error>"


@dataclass(slots=True)
class Counted:
    """One request; `code`: the HTTP status of its answer, once it is there."""

    code: str = NO_ANSWER


class NotCounted:
    """Requests that are nobody's metrics."""

    @asynccontextmanager
    async def of(self, method: str) -> AsyncIterator[Counted]:
        """One request."""
        yield Counted()


class Requests(NotCounted):
    """Requests to the server at that URL."""

    def __init__(self, server: str, metrics: RequestMetrics, clock: Clock) -> None:
        self._host = urlsplit(server).netloc
        self._metrics = metrics
        self._clock = clock

    @asynccontextmanager
    async def of(self, method: str) -> AsyncIterator[Counted]:
        """Around one request: counts it by `Counted.code`, and how long the block took."""
        counted = Counted()
        with self._metrics.duration.timed(self._clock, method, self._host):
            try:
                yield counted
            finally:
                self._metrics.total.inc(counted.code, method, self._host)


NOT_COUNTED: Final = NotCounted()
