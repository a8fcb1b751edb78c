"""Runs of containers: how they start, what they write, how they end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import (
    create,
    hear,
    now_s,
    pod_config,
    refused,
    run_pod,
    start,
    started,
    status,
    stop,
)

from fakecri import (
    CriError,
    FakeCRI,
    exits,
    ignores,
    prints,
    start_fails,
    stops,
    uses,
    writes_termination_message,
)


@pytest.mark.virtual_time
async def test_a_container_ends_when_its_behaviour_says_CRI_070() -> None:
    fake = FakeCRI()
    fake.behaves(exits(3, after_s=2.5), container="c")
    container = await started(fake)
    await asyncio.sleep(2.4)
    assert (await status(fake, container)).state == cri.CONTAINER_RUNNING
    await asyncio.sleep(0.2)
    ended = await status(fake, container)
    assert (ended.state, ended.exit_code, ended.reason) == (cri.CONTAINER_EXITED, 3, "Error")
    assert ended.finished_at - ended.started_at == pytest.approx(2.5e9, abs=1e6)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("behaviours", "timeout_s", "code", "took_s"),
    [
        ((), 10, 143, 0.0),
        ((stops(0, after_s=1.5),), 10, 0, 1.5),
        ((ignores("SIGTERM"),), 7, 137, 7.0),
        ((ignores("SIGTERM"),), 0, 137, 0.0),
        ((stops(0, after_s=9),), 4, 137, 4.0),
        ((exits(5, after_s=3), ignores("SIGTERM")), 30, 5, 3.0),
    ],
)
async def test_stop_signals_waits_and_kills_CRI_060(
    behaviours: tuple[Any, ...], timeout_s: int, code: int, took_s: float
) -> None:
    fake = FakeCRI()
    fake.behaves(*behaviours)
    container = await started(fake)
    before = now_s()
    await stop(fake, container, timeout_s)
    assert now_s() - before == pytest.approx(took_s, abs=1e-3)
    ended = await status(fake, container)
    assert (ended.state, ended.exit_code) == (cri.CONTAINER_EXITED, code)


@pytest.mark.virtual_time
async def test_of_two_stops_the_shorter_kills_CRI_063() -> None:
    fake = FakeCRI()
    fake.behaves(ignores("SIGTERM"))
    container = await started(fake)
    before = now_s()
    await asyncio.gather(stop(fake, container, 30), stop(fake, container, 2))
    assert now_s() - before == pytest.approx(2.0, abs=1e-3)


@pytest.mark.virtual_time
async def test_a_deadline_before_the_time_out_kills_nothing_CRI_064() -> None:
    fake = FakeCRI()
    fake.behaves(ignores("SIGTERM"))
    container = await started(fake)
    code, _ = await refused(stop(fake, container, 30, deadline_s=1.0))
    assert code == "DEADLINE_EXCEEDED"
    await asyncio.sleep(60)
    assert (await status(fake, container)).state == cri.CONTAINER_RUNNING


@pytest.mark.virtual_time
async def test_a_failed_start_is_128_and_final_CRI_056() -> None:
    fake = FakeCRI()
    config = pod_config()
    container = await create(fake, await run_pod(fake, config), config)
    with fake.behaves(start_fails("exec: no such file")):
        code, text = await refused(start(fake, container))
    assert code == "UNKNOWN"
    assert "exec: no such file" in text
    ended = await status(fake, container)
    assert (ended.exit_code, ended.reason, ended.started_at) == (128, "StartError", 0)
    assert ended.finished_at > 0
    assert "CONTAINER_EXITED" in (await refused(start(fake, container)))[1]


@pytest.mark.virtual_time
async def test_a_container_cannot_start_in_a_stopped_sandbox_CRI_040() -> None:
    fake = FakeCRI()
    config = pod_config()
    sandbox = await run_pod(fake, config)
    container = await create(fake, sandbox, config)
    await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    assert (
        f'sandbox container "{sandbox}" is not running'
        in (await refused(start(fake, container)))[1]
    )
    assert (await refused(create(fake, sandbox, config, attempt=1)))[0] == "NOT_FOUND"


@pytest.mark.virtual_time
async def test_memory_over_the_limit_is_an_oom_kill_CRI_070() -> None:
    fake = FakeCRI()
    fake.behaves(uses(memory_bytes=[(0, 10), (4, 2000)]))
    limits = cri.LinuxContainerConfig(
        resources=cri.LinuxContainerResources(memory_limit_in_bytes=1000)
    )
    container = await started(fake, linux=limits)
    await asyncio.sleep(4.1)
    ended = await status(fake, container)
    assert (ended.exit_code, ended.reason) == (137, "OOMKilled")


@pytest.mark.virtual_time
async def test_a_termination_message_is_a_file_CRI_072(tmp_path: Path) -> None:
    message = tmp_path / "termination"
    fake = FakeCRI()
    fake.behaves(exits(1, after_s=1), writes_termination_message("out of cheese"))
    mount = cri.Mount(container_path="/dev/termination-log", host_path=str(message))
    container = await started(fake, mounts=[mount])
    await asyncio.sleep(1.1)
    assert (await status(fake, container)).message == ""
    assert message.read_text() == "out of cheese"


@pytest.mark.virtual_time
async def test_log_lines_have_the_cri_form_CRI_100_CRI_101(tmp_path: Path) -> None:
    fake = FakeCRI(write_logs=True)
    fake.behaves(prints("hello", at_s=0.5), prints("", at_s=1.25, stream="stderr"))
    config = pod_config(log_directory=str(tmp_path))
    sandbox = await run_pod(fake, config)
    container = await create(fake, sandbox, config, log_path="c/0.log")
    assert (await status(fake, container)).log_path == f"{tmp_path}/c/0.log"
    await start(fake, container)
    await asyncio.sleep(2)
    first, second = (tmp_path / "c/0.log").read_text().splitlines()
    assert first.startswith("2026-01-01T00:00:00.5")
    assert first.endswith("Z stdout F hello")
    assert second.endswith("Z stderr F ")


@pytest.mark.virtual_time
async def test_a_failed_start_is_told_by_the_next_event_only_CRI_142() -> None:
    fake = FakeCRI()
    seen: list[Any] = []

    fake.behaves(start_fails("no such program"), pod="web")
    listener = asyncio.create_task(hear(fake, seen))
    await asyncio.sleep(0)
    with pytest.raises(CriError):
        await started(fake)
    await asyncio.sleep(1)
    kinds = [event.container_event_type for event in seen]
    created, begun = cri.CONTAINER_CREATED_EVENT, cri.CONTAINER_STARTED_EVENT
    assert kinds == [created, begun, created]  # of the sandbox two, of the container one
    sandbox = seen[0].pod_sandbox_status.id
    await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    await asyncio.sleep(1)
    listener.cancel()
    assert [status.reason for status in seen[-1].containers_statuses] == ["StartError"]
