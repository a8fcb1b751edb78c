"""A container that probes ask, with a script of answers, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from loops import virtual_loop
from pods import container, make_pod

from refkubelet.cri.records import ContainerRecord, ContainerState, ExecResult, RuntimePodStatus
from refkubelet.cri.target import CriCallError
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.probe_results import ProbeResult, ResultManager
from refkubelet.probes.manager import ProbeDeps, ProbeManager
from refkubelet.status.generate import StatusInputs, generate_pod_status
from simclock import Clock, Rng

OK, BAD, UNSURE = ProbeResult.SUCCESS, ProbeResult.FAILURE, ProbeResult.UNKNOWN
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class World:
    """One pod with one running container, its status as a kubelet would keep it, and a script of
    exec answers: an exit code, an exception, or the last answer again."""

    def __init__(self, *answers: Any, started_s: float = 0, network: Any = None, **probes: Any):
        loop = virtual_loop()
        self.clock: Clock = loop.clock
        self.answers = list(answers)
        self.calls: list[tuple[float, str, tuple[str, ...], float]] = []
        self.events: list[tuple[str, str, str]] = []
        self.took_s = 0.0
        self.stdout = b"out"
        self.network = network
        self.container_id = "id0"
        self.started_ns = self.clock.wall_ns() + round((started_s - self.clock.monotonic_s()) * 1e9)
        self.pod = probed(probes)
        self.phase: str | None = None
        self.previous: PodStatus | None = None
        deps = ProbeDeps(
            clock=self.clock,
            rng=Rng(1),
            exec_runner=self,
            events=self,
            pod_status=self.status,
            network=network,
        )
        self.manager = ProbeManager(deps)

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_s: int = 0
    ) -> ExecResult:
        self.calls.append((self.clock.monotonic_s(), container_id, tuple(command), timeout_s))
        await asyncio.sleep(self.took_s)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return ExecResult(answer, self.stdout, b"err")

    def pod_event(self, pod: Pod, event_type: Any, reason: str, message: str, **more: Any) -> None:
        self.events.append((reason, message, more["field_path"]))

    def node_event(self, event_type: Any, reason: str, message: str) -> None:
        raise AssertionError("probes say nothing about the node")

    def restart(self, container_id: str) -> None:
        self.container_id, self.started_ns = container_id, self.clock.wall_ns()

    def status(self, pod_uid: str) -> PodStatus | None:
        record = ContainerRecord(
            self.container_id, "c", ContainerState.RUNNING, started_at_ns=self.started_ns
        )
        runtime = RuntimePodStatus("u", containers=(record,))
        inputs = StatusInputs(self.clock.now(), self.manager)
        status = generate_pod_status(self.pod, runtime, self.previous, inputs)
        self.previous = status
        return msgspec.structs.replace(status, phase=self.phase) if self.phase else status

    def started(self) -> None:
        self.manager.add_pod(self.pod)

    async def at(self, when_s: float) -> None:
        await asyncio.sleep(when_s - self.clock.monotonic_s())

    @property
    def times_s(self) -> list[float]:
        return [round(call[0], 3) for call in self.calls]


def probed(probes: dict[str, Any]) -> Pod:
    """A pod whose container `c` has these probes: `readiness={"periodSeconds": 5}`."""
    exec_probe = {"exec": {"command": ["check", "$(A)"]}}
    named = {f"{kind}Probe": exec_probe | values for kind, values in probes.items()}
    return make_pod(container("c", env=[{"name": "A", "value": "1"}], **named), uid="u")


async def drain(results: ResultManager, count: int) -> list[tuple[str, ProbeResult]]:
    updates = [await results.updates.get() for _ in range(count)]
    return [(u.container_id, u.result) for u in updates]


async def old_kubelet(*answers: Any, **more: Any) -> World:
    """A world whose kubelet has been up for 100 s when the container starts."""
    world = World(*answers, started_s=100, **more)
    await asyncio.sleep(100)
    world.started()
    return world


def rpc_error(code: str) -> CriCallError:
    return CriCallError("ExecSync", code, "no answer")
