"""Counts requests to the API server by their answers (SRV-037.3).

Upstream: staging/src/k8s.io/client-go/rest/request.go; component-base/metrics: restclient.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from refkubelet.telemetry.server_metrics import RequestMetrics
from simclock import Clock

NO_ANSWER: Final = "<error>"


class Counted:
    """One request, while its block lasts; `code`: the HTTP status of its answer, once it is
    there."""

    code = NO_ANSWER

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is counted."""


class NotCounted:
    """Requests that are nobody's metrics."""

    def of(self, method: str) -> Counted:
        """One request."""
        return Counted()


class Requests(NotCounted):
    """Requests to the server at that URL."""

    def __init__(self, server: str, metrics: RequestMetrics, clock: Clock) -> None:
        self._host = urlsplit(server).netloc
        self._metrics = metrics
        self._clock = clock

    def of(self, method: str) -> Counted:
        """For a block around one request: counts it by `Counted.code`, and how long it took."""
        return _Timed(method, self._host, self._metrics, self._clock)


class _Timed(Counted):
    def __init__(self, method: str, host: str, metrics: RequestMetrics, clock: Clock) -> None:
        self._labels = (method, host)
        self._metrics = metrics
        self._clock = clock
        self._began_s = clock.monotonic_s()

    def __exit__(self, *error: object) -> None:
        self._metrics.total.inc(self.code, *self._labels)
        took_s = self._clock.monotonic_s() - self._began_s
        self._metrics.duration.observe(took_s, *self._labels)


NOT_COUNTED: Final = NotCounted()
