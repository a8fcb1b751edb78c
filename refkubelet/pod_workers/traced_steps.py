"""The steps of pod workers with a span each: `syncPod`, `syncTerminatingPod`, `syncTerminatedPod`.

As in the kubelet a pod that only the runtime knows has none, and a clean-up that fails is no failed
span. Upstream: pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from refkubelet.cri.records import RuntimePod, RuntimePodStatus
from refkubelet.model.objects import Pod
from refkubelet.pod_workers.sync_status import (
    PodStatusFn,
    PodSyncer,
    StepCancelled,
    StepContext,
)
from refkubelet.telemetry.spans import NO_SPANS, Spans, pod_attributes

CANCELLED: Final = "context canceled"


def traced_steps(steps: PodSyncer, spans: Spans) -> PodSyncer:
    """The steps with spans; the steps themselves where nobody keeps spans."""
    return steps if spans is NO_SPANS else TracedSteps(steps, spans)


class TracedSteps:
    """A `PodSyncer` over another one."""

    def __init__(self, steps: PodSyncer, spans: Spans) -> None:
        self._steps = steps
        self._spans = spans

    async def sync_pod(
        self, context: StepContext, pod: Pod, mirror: Pod | None, status: RuntimePodStatus
    ) -> bool:
        """In a span with `k8s.pod.update_type`."""
        more = {"k8s.pod.update_type": context.update_type.value}
        with self._span("syncPod", pod_attributes(pod) | more):
            return await self._steps.sync_pod(context, pod, mirror, status)

    async def sync_terminating_pod(
        self, pod: Pod, status: RuntimePodStatus, grace_s: int | None, status_fn: PodStatusFn | None
    ) -> None:
        """In a span."""
        with self._span("syncTerminatingPod", pod_attributes(pod)):
            await self._steps.sync_terminating_pod(pod, status, grace_s, status_fn)

    async def sync_terminating_runtime_pod(self, running: RuntimePod) -> None:
        """Without a span."""
        await self._steps.sync_terminating_runtime_pod(running)

    async def sync_terminated_pod(self, pod: Pod, status: RuntimePodStatus) -> None:
        """In a span."""
        with self._spans.span("syncTerminatedPod", pod_attributes(pod)):
            await self._steps.sync_terminated_pod(pod, status)

    @contextmanager
    def _span(self, name: str, attributes: dict[str, str]) -> Iterator[None]:
        with self._spans.span(name, attributes) as span:
            try:
                yield
            except StepCancelled as error:
                span.failed(CANCELLED, error)
                raise
            except Exception as error:
                span.failed(str(error), error)
                raise
