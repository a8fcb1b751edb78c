"""Starts that hang, crashes of the first attempts, limits that change, a node without network,
and calls that break off halfway."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import create, created, now_s, pod_config, refused, run_pod, start, started

from fakecri import FakeCRI, exits, prints, start_fails, start_hangs, stops, uses


@pytest.mark.virtual_time
async def test_a_start_may_take_its_time_and_is_one_at_a_time_CRI_055() -> None:
    fake = FakeCRI()
    fake.behaves(start_hangs(4))
    web = await created(fake, "web")
    first = asyncio.create_task(start(fake, web))
    await asyncio.sleep(1)
    assert "already in starting state" in (await refused(start(fake, web)))[1]
    await first
    assert now_s() == pytest.approx(4)
    assert fake.container().state.name == "RUNNING"


@pytest.mark.virtual_time
async def test_a_start_that_hangs_has_failed_when_its_caller_gives_up_CRI_056() -> None:
    fake = FakeCRI()
    fake.behaves(start_hangs())
    code, _ = await refused(start(fake, await created(fake, "web"), timeout_s=120))
    assert code == "DEADLINE_EXCEEDED"
    assert now_s() == pytest.approx(120)
    web = fake.container()
    assert (web.state.name, web.exit_code, web.reason) == ("EXITED", 128, "StartError")


@pytest.mark.virtual_time
@pytest.mark.parametrize("method", ["RemoveContainer", "RemovePodSandbox"])
async def test_a_container_is_not_removed_during_its_start_CRI_066(method: str) -> None:
    fake = FakeCRI()
    fake.behaves(start_hangs(4))
    web = await created(fake, "web")
    first = asyncio.create_task(start(fake, web))
    await asyncio.sleep(1)
    request: Any = (
        cri.RemoveContainerRequest(container_id=web)
        if method == "RemoveContainer"
        else cri.RemovePodSandboxRequest(pod_sandbox_id=fake.sandboxes()[0].id)
    )
    code, text = await refused(fake.call(method, request))
    assert (code, "container is in starting state, can't be removed" in text) == (
        "UNKNOWN",
        True,
    )
    await asyncio.wait((first,))
    await fake.call(method, request)
    assert fake.containers() == []


@pytest.mark.virtual_time
async def test_a_hanging_start_of_a_container_that_goes_away_fails() -> None:
    fake = FakeCRI()
    fake.behaves(start_hangs(4))
    web = await created(fake, "web")
    asyncio.get_running_loop().call_later(1, fake.drop, "web")
    assert (await refused(start(fake, web)))[0] == "NOT_FOUND"


@pytest.mark.virtual_time
async def test_the_first_attempts_crash() -> None:
    fake = FakeCRI()
    rule = fake.behaves(exits(1, after_s=1), container="web", first_attempts=2)
    states = []
    for attempt in range(4):
        await started(fake, "web", attempt=attempt)
        await asyncio.sleep(2)
        states.append(fake.container().state.name)
    assert rule.hits == 2
    assert "first 2 attempts" in repr(rule)
    assert states == ["EXITED", "EXITED", "RUNNING", "RUNNING"]


@pytest.mark.virtual_time
async def test_a_start_fails_in_the_first_attempt_only() -> None:
    fake = FakeCRI()
    fake.behaves(start_fails("no such file"), first_attempts=1)
    assert (await refused(started(fake, "web")))[1] == "no such file"
    await started(fake, "web", attempt=1)


@pytest.mark.virtual_time
async def test_a_pod_brings_its_behaviours_along() -> None:
    fake = FakeCRI()
    fake.behaves(exits(9, after_s=60), prints("of a rule"), container="web")
    words = "{exits: {code: 4, after_s: 1}, prints: [{text: a}, {text: b, at_s: 0.5}]}"
    await run_pod(fake, pod_config(annotations={"fakecri/web": words, "fakecri/other": "nonsense"}))
    await started(fake, "web")
    await asyncio.sleep(2)
    assert fake.container().exit_code == 4
    assert [line.text for line in fake.container().log] == ["a", "b"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("exit: {}", "annotation fakecri/web:1:1: unknown key 'exit', wanted one of: exits,"),
        (
            "exits: {code: -1}",
            "annotation fakecri/web:1:15: exits.code: wanted a whole number from 0 to 255",
        ),
        ("", "annotation fakecri/web: it is empty, wanted a mapping"),
        ("{}", "annotation fakecri/web:1:1: wanted at least one of: exits"),
    ],
)
async def test_a_mistake_in_an_annotation_is_a_failed_start(words: str, text: str) -> None:
    fake = FakeCRI()
    await run_pod(fake, pod_config(annotations={"fakecri/web": words}))
    assert (await refused(start(fake, await created(fake, "web"))))[1].startswith(text)
    assert fake.container().message.startswith(text)


@pytest.mark.virtual_time
async def test_a_signal_ends_with_code_reason_and_message() -> None:
    fake = FakeCRI()
    fake.behaves(stops(3, after_s=1, reason="Draining", message="half done"))
    web = await created(fake, "web")
    await start(fake, web)
    await fake.call("StopContainer", cri.StopContainerRequest(container_id=web, timeout=9))
    ended = fake.container()
    assert (ended.exit_code, ended.reason, ended.message) == (3, "Draining", "half done")


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("limit", "ends_at_s"),
    [(500, None), (150, 20), (50, 10)],  # never, at the next step, at once
)
async def test_a_changed_limit_counts_from_then_on_CRI_121(
    limit: int, ends_at_s: float | None
) -> None:
    fake = FakeCRI()
    fake.behaves(uses(memory_bytes=[(0, 100), (20, 200)]))
    at_first = cri.LinuxContainerResources(memory_limit_in_bytes=1000 if ends_at_s else 150)
    web = await created(fake, "web", linux=cri.LinuxContainerConfig(resources=at_first))
    await start(fake, web)
    await asyncio.sleep(10)
    resources = cri.LinuxContainerResources(memory_limit_in_bytes=limit)
    update = cri.UpdateContainerResourcesRequest(container_id=web, linux=resources)
    await fake.call("UpdateContainerResources", update)
    await asyncio.sleep(50)
    ended = fake.container()
    if ends_at_s is None:
        assert ended.state.name == "RUNNING"
    else:
        assert ended.reason == "OOMKilled"
        lived_s = (ended.finished_at_ns - ended.started_at_ns) / 1e9
        assert lived_s == pytest.approx(ends_at_s, abs=0.01)


@pytest.mark.virtual_time
async def test_the_number_of_processes_follows_its_curve_CRI_124() -> None:
    fake = FakeCRI()
    fake.behaves(uses(pids=[(0, 1), (10, 40)]))
    await started(fake, "web")
    seen = []
    for _ in range(2):
        stats: Any = await fake.call(
            "PodSandboxStats",
            cri.PodSandboxStatsRequest(pod_sandbox_id=fake.sandboxes()[0].id),
        )
        seen.append(stats.stats.linux.process.process_count.value)
        await asyncio.sleep(11)
    assert seen == [2, 41]


@pytest.mark.virtual_time
async def test_without_network_a_pod_is_not_torn_down_to_its_end_CRI_037() -> None:
    fake = FakeCRI()
    sandbox = await run_pod(fake)
    host = pod_config("host")
    host.linux.security_context.namespace_options.network = cri.NODE
    await run_pod(fake, host)
    await start(fake, await create(fake, sandbox, pod_config(), "web"))
    stop = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox)
    with fake.without_network():
        code, text = await refused(fake.call("StopPodSandbox", stop))
        assert code == "UNKNOWN"
        assert text.startswith("failed to destroy network for sandbox")
        stopped = fake.sandboxes(pod="web")[0]
        assert (stopped.ready, bool(stopped.ip)) == (False, True)
        assert fake.container().state.name == "EXITED"
        fake.stop_sandbox(pod="host")
    await fake.call("StopPodSandbox", stop)
    assert fake.sandboxes(pod="web")[0].ip == ""


@pytest.mark.virtual_time
async def test_a_run_that_breaks_off_leaves_a_dead_sandbox_with_its_name_CRI_032() -> None:
    fake = FakeCRI()
    with fake.on("RunPodSandbox").fails_halfway(times=1):
        code, text = await refused(run_pod(fake))
    assert code == "UNKNOWN"
    assert "failed to setup network for sandbox" in text
    assert [s.ready for s in fake.sandboxes()] == [False]
    assert "is reserved for" in (await refused(run_pod(fake)))[1]
    await run_pod(fake, pod_config(attempt=1))


@pytest.mark.virtual_time
async def test_calls_on_containers_break_off_with_half_of_their_effect() -> None:
    fake = FakeCRI()
    web = await created(fake, "web")
    fake.on("StopContainer").fails_halfway("UNAVAILABLE", "gone", times=1)
    fake.on("RemoveContainer").fails_halfway(times=1)
    fake.behaves(stops(after_s=5))
    await start(fake, web)
    stop = cri.StopContainerRequest(container_id=web, timeout=30)
    assert await refused(fake.call("StopContainer", stop)) == ("UNAVAILABLE", "gone")
    assert fake.container().state.name == "RUNNING"
    await asyncio.sleep(6)
    assert fake.container().exit_code == 143  # it had got its signal
    remove = cri.RemoveContainerRequest(container_id=web)
    assert "device or resource busy" in (await refused(fake.call("RemoveContainer", remove)))[1]
    assert fake.containers()
    await fake.call("RemoveContainer", remove)
    assert fake.containers() == []


@pytest.mark.virtual_time
async def test_a_start_that_breaks_off_is_a_failed_one_CRI_056() -> None:
    fake = FakeCRI()
    fake.on("StartContainer").fails_halfway()
    await refused(start(fake, await created(fake, "web")))
    assert (fake.container().exit_code, fake.container().reason) == (128, "StartError")


@pytest.mark.virtual_time
async def test_a_tear_down_that_breaks_off_can_be_repeated_CRI_036_CRI_038() -> None:
    fake = FakeCRI()
    await started(fake, "web")
    sandbox = fake.sandboxes()[0]
    fake.on("StopPodSandbox").fails_halfway(times=1)
    fake.on("RemovePodSandbox").fails_halfway(times=1)
    stop = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox.id)
    remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox.id)
    await refused(fake.call("StopPodSandbox", stop))
    assert (sandbox.ready, bool(sandbox.ip), len(fake.containers())) == (False, True, 1)
    await fake.call("StopPodSandbox", stop)
    await refused(fake.call("RemovePodSandbox", remove))
    assert (len(fake.sandboxes()), fake.containers()) == (1, [])
    await fake.call("RemovePodSandbox", remove)
    assert fake.sandboxes() == []


def test_what_has_no_middle_says_so() -> None:
    with pytest.raises(
        ValueError, match="Version has no middle to break off in; wanted one of Run"
    ):
        FakeCRI().on("Version").fails_halfway()
