"""Counts the calls of the runtime, by the names that the kubelet's metrics have for them (SRV-037).

Upstream: pkg/kubelet/kuberuntime/instrumented_services.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from refkubelet.cri.target import CriCallError
from refkubelet.telemetry.metrics import Durations
from refkubelet.telemetry.runtime_metrics import OperationMetrics
from simclock import Clock

UPDATE: Final = "UpdateContainerResources"
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def operation(method: str) -> str:
    """The name of a call in metrics.

    >>> operation("RunPodSandbox"), operation("ImageFsInfo"), operation(UPDATE)
    ('run_podsandbox', 'image_fs_info', 'update_container')
    """
    if method == UPDATE:
        return "update_container"
    return _CAPITAL.sub("_", method).lower().replace("pod_sandbox", "podsandbox")


class Operations:
    """Counts into `metrics`."""

    def __init__(self, metrics: OperationMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._durations: dict[str, Durations] = {}
        self.began_s: Callable[[], float] = clock.monotonic_s
        """When a call begins, for `ended`."""

    def ended(self, method: str, began_s: float) -> None:
        """A call that began then has ended, however."""
        durations = self._durations.get(method)
        if durations is None:
            durations = self._metrics.duration.of(operation(method))
            self._durations[method] = durations
        durations.add(self._clock.monotonic_s() - began_s)

    @contextmanager
    def of(self, method: str) -> Iterator[None]:
        """One call. It has failed if the block raises `CriCallError`."""
        began_s = self.began_s()
        try:
            yield
        except CriCallError:
            self.failed(method)
            raise
        finally:
            self.ended(method, began_s)

    @contextmanager
    def of_sandbox(self, handler: str) -> Iterator[None]:
        """The making of one sandbox with that runtime handler ("": the default one)."""
        with self._metrics.sandbox_duration.timed(self._clock, handler):
            try:
                yield
            except CriCallError:
                self._metrics.sandbox_errors.inc(handler)
                raise

    def failed(self, method: str) -> None:
        """A call failed, or an answer that had arrived was of no use."""
        self._metrics.errors.inc(operation(method))


class NotCounted(Operations):
    """For a client whose calls are nobody's metrics, as those before the kubelet starts."""

    def __init__(self) -> None:
        """Takes no metrics: there are none to write to."""
        self.began_s = lambda: 0.0

    def ended(self, method: str, began_s: float) -> None:
        """Nothing is counted."""

    @contextmanager
    def of_sandbox(self, handler: str) -> Iterator[None]:
        yield

    def failed(self, method: str) -> None:
        """Nothing is counted."""
