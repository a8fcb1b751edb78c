"""Counts the calls of the runtime, by the names that the kubelet's metrics have for them (SRV-037).

Upstream: pkg/kubelet/kuberuntime/instrumented_services.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from refkubelet.cri.target import CriCallError
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
        self._names: dict[str, str] = {}

    @contextmanager
    def of(self, method: str) -> Iterator[None]:
        """One call. It has failed if the block raises `CriCallError`."""
        name, metrics = self._name(method), self._metrics
        began_s = self._clock.monotonic_s()
        try:
            yield
        except CriCallError:
            metrics.errors.inc(name)
            raise
        finally:
            metrics.total.inc(name)
            metrics.duration.observe(self._clock.monotonic_s() - began_s, name)

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
        """An answer that had arrived was of no use."""
        self._metrics.errors.inc(self._name(method))

    def _name(self, method: str) -> str:
        name = self._names.get(method)
        if name is None:
            name = self._names[method] = operation(method)
        return name


class NotCounted(Operations):
    """For a client whose calls are nobody's metrics, as those before the kubelet starts."""

    def __init__(self) -> None:
        """Takes no metrics: there are none to write to."""

    @contextmanager
    def of(self, method: str) -> Iterator[None]:
        yield

    @contextmanager
    def of_sandbox(self, handler: str) -> Iterator[None]:
        yield

    def failed(self, method: str) -> None:
        """Nothing is counted."""
