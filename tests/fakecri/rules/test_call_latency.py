"""Calls that take time: their effect lies inside it, and deadlines and rules count with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import now_s, pod_config, refused, run_pod, started

from fakecri import CriTarget, FakeCRI, cri_latency, ignores
from fakecri.proxy import RecordingProxy
from simclock import Delay, Latency, Rng

pytestmark = pytest.mark.virtual_time
VERSION = cri.VersionRequest()


class Fixed(Latency):
    """Known delays instead of drawn ones."""

    def __init__(self, delays: Mapping[str, Delay]) -> None:
        super().__init__(Rng(0), {"x": 1.0}, purpose="test")
        self._delays = delays

    def of(self, kind: str) -> Delay:
        return self._delays.get(kind, Delay(0, 0))


async def test_the_effect_of_a_call_lies_inside_its_time() -> None:
    fake = FakeCRI(latency=Fixed({"RunPodSandbox": Delay(2, 3)}))
    running = asyncio.create_task(run_pod(fake, pod_config("web")))
    await asyncio.sleep(1.9)
    assert not fake.sandboxes(pod="web")
    await asyncio.sleep(0.2)
    assert len(fake.sandboxes(pod="web")) == 1
    assert not running.done()
    await running
    assert now_s() == 5
    (call,) = fake.calls("RunPodSandbox")
    assert (call.started_s, call.ended_s) == (0, 5)


@pytest.mark.parametrize(("timeout_s", "made"), [(1, 0), (3, 1)])
async def test_a_deadline_inside_the_call_comes_before_or_after_its_effect(
    timeout_s: float, made: int
) -> None:
    fake = FakeCRI(latency=Fixed({"RunPodSandbox": Delay(2, 3)}))
    code, _ = await refused(run_pod(fake, pod_config("web"), timeout_s=timeout_s))
    assert (code, now_s()) == ("DEADLINE_EXCEEDED", timeout_s)
    assert len(fake.sandboxes(pod="web")) == made
    await asyncio.sleep(9)
    assert len(fake.sandboxes(pod="web")) == made


async def test_a_stop_takes_its_latency_beside_the_grace() -> None:
    fake = FakeCRI(latency=Fixed({"StopContainer": Delay(1, 2)}))
    fake.behaves(ignores("SIGTERM"))
    container = await started(fake, "main")
    await fake.call("StopContainer", cri.StopContainerRequest(container_id=container, timeout=10))
    assert now_s() == 1 + 10 + 2


async def test_a_refused_call_takes_its_time_too_and_a_rule_decides_at_the_arrival() -> None:
    fake = FakeCRI(latency=Fixed({"Version": Delay(1, 1), "StopPodSandbox": Delay(1, 1)}))
    rule = fake.on("Version").fails("UNKNOWN", "no", times=1)
    failing = asyncio.create_task(refused(fake.call("Version", VERSION)))
    await asyncio.sleep(0.1)
    assert rule.hits == 1
    assert not failing.done()
    assert await failing == ("UNKNOWN", "no")
    assert now_s() == 2
    fake.on("Version").delays(5, times=1)
    await fake.call("Version", VERSION)
    assert now_s() == 2 + 5 + 2


async def test_a_proxy_adds_its_latency_and_what_goes_past_it_takes_none() -> None:
    fake = FakeCRI()
    proxy = RecordingProxy(fake, clock=fake.clock, latency=Fixed({"Version": Delay(0, 3)}))
    await fake.call("Version", VERSION)
    assert now_s() == 0
    await proxy.call_bytes("Version", VERSION)
    assert now_s() == 3


async def test_a_late_answer_is_the_same_bytes_while_nothing_changes() -> None:
    fake = FakeCRI()
    proxy = RecordingProxy(fake, clock=fake.clock, latency=Fixed({"ListPodSandbox": Delay(1, 2)}))
    asked = cri.ListPodSandboxRequest()
    await run_pod(fake, pod_config("web"))
    first = await proxy.call_bytes("ListPodSandbox", asked)
    assert now_s() == 3
    assert await proxy.call_bytes("ListPodSandbox", asked) is first
    assert [len(c.response.items) for c in proxy.calls("ListPodSandbox")] == [1, 1]
    assert [c.ended_s - c.started_s for c in proxy.calls("ListPodSandbox")] == [3, 3]


async def test_rules_and_deadlines_hold_for_answers_in_bytes() -> None:
    fake = FakeCRI()
    proxy = RecordingProxy(fake, clock=fake.clock, latency=Fixed({"Status": Delay(1, 2)}))
    asked = cri.StatusRequest()
    assert await refused(proxy.call_bytes("Status", asked, timeout_s=2)) == (
        "DEADLINE_EXCEEDED",
        "context deadline exceeded",
    )
    proxy.on("Status").fails("UNKNOWN", "boom")
    assert await refused(proxy.call_bytes("Status", asked)) == ("UNKNOWN", "boom")
    assert [c.error and c.error[0] for c in proxy.calls("Status")] == [
        "DEADLINE_EXCEEDED",
        "UNKNOWN",
    ]


async def test_a_crash_breaks_off_the_calls_that_wait() -> None:
    fake = FakeCRI(latency=Fixed({"Version": Delay(5, 5)}))
    asking = asyncio.create_task(refused(fake.call("Version", VERSION)))
    await asyncio.sleep(6)
    fake.crash()
    code, _ = await asking
    assert (code, now_s()) == ("UNAVAILABLE", 6)


async def test_a_stream_opens_late() -> None:
    fake = FakeCRI(latency=Fixed({"GetContainerEvents": Delay(1, 1)}))
    events: Any = fake.stream("GetContainerEvents", cri.GetEventsRequest())
    first = asyncio.create_task(anext(events))
    await asyncio.sleep(1.5)
    await run_pod(fake, pod_config("early"))
    await asyncio.sleep(1)
    await run_pod(fake, pod_config("late"))
    assert (await first).pod_sandbox_status.metadata.name == "late"
    await events.aclose()


async def test_every_call_of_a_runtime_has_a_latency() -> None:
    target: CriTarget = FakeCRI(latency=cri_latency(Rng(3), 10))
    await target.call("Version", VERSION)
    assert 0.001 < now_s() < 0.02
    before_s = now_s()
    await run_pod(target, pod_config("web"))
    assert 0.2 < now_s() - before_s < 5
