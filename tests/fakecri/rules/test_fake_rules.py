"""Fault rules, and the record of calls with its questions and assertions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import created, hear, start, started

from fakecri import FakeCRI, exits, ignores
from fakecri.recording.questions import check_series
from fakecri.recording.recorder import Recorder

VERSION = cri.VersionRequest()


async def pull(fake: FakeCRI, image: str, **auth: str) -> Any:
    request = cri.PullImageRequest(
        image=cri.ImageSpec(image=image), auth=cri.AuthConfig(**auth) if auth else None
    )
    return await fake.call("PullImage", request)


async def code_of(call: Awaitable[Any]) -> str:
    try:
        await call
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


@pytest.mark.virtual_time
async def test_a_failure_is_limited_by_times_and_by_its_block() -> None:
    fake = FakeCRI()
    rule = fake.on("Version").fails("unavailable", "gone", times=2)
    codes = [await code_of(fake.call("Version", VERSION)) for _ in range(3)]
    assert codes == ["UNAVAILABLE", "UNAVAILABLE", "OK"]
    assert rule.hits == 2
    with fake.on("Version").fails():
        assert await code_of(fake.call("Version", VERSION)) == "UNKNOWN"
    assert await code_of(fake.call("Version", VERSION)) == "OK"


@pytest.mark.virtual_time
async def test_rules_are_picked_by_pod_container_and_attempt() -> None:
    fake = FakeCRI()
    first = await created(fake, "main", "web")
    second = await created(fake, "main", "web", attempt=1)
    other = await created(fake, "main", "db")
    with fake.on("StartContainer", pod="web", container="ma*", attempt=1).fails():
        assert await code_of(start(fake, first)) == "OK"
        assert await code_of(start(fake, other)) == "OK"
        assert await code_of(start(fake, second)) == "UNKNOWN"
    assert await code_of(start(fake, second)) == "OK"  # a failed call had no effect


@pytest.mark.virtual_time
async def test_nth_and_where_pick_single_calls() -> None:
    fake = FakeCRI()
    fake.on("PullImage", nth=2).fails("INTERNAL")
    fake.on("PullImage", where=lambda call: "bad" in call.request.image.image).fails("ABORTED")
    codes = [await code_of(pull(fake, f"r.io/{name}")) for name in ("a", "b", "c", "bad")]
    assert codes == ["OK", "INTERNAL", "OK", "ABORTED"]


@pytest.mark.virtual_time
async def test_delay_and_failure_add_up() -> None:
    fake = FakeCRI()
    fake.on("Version").fails("INTERNAL")
    fake.on("Version").delays(3)
    assert await code_of(fake.call("Version", VERSION)) == "INTERNAL"
    assert asyncio.get_running_loop().time() == pytest.approx(3)


@pytest.mark.virtual_time
async def test_a_hanging_call_ends_at_release_or_at_its_deadline() -> None:
    fake = FakeCRI()
    rule = fake.on("Version").hangs()
    assert await code_of(fake.call("Version", VERSION, timeout_s=5)) == "DEADLINE_EXCEEDED"
    hanging = asyncio.create_task(code_of(fake.call("Version", VERSION)))
    await asyncio.sleep(100)
    assert not hanging.done()
    rule.release()
    assert await hanging == "OK"


@pytest.mark.virtual_time
async def test_a_lost_answer_has_its_effect() -> None:
    fake = FakeCRI()
    container = await created(fake, "main", "web")
    with fake.on("StartContainer").loses_answer():
        assert await code_of(start(fake, container)) == "UNAVAILABLE"
    assert fake.container("main").started_at_ns > 0


@pytest.mark.virtual_time
async def test_answers_can_be_replaced_and_changed() -> None:
    fake = FakeCRI()
    with fake.on("Exec").answers(cri.ExecResponse(url="http://x/1")):
        answer: Any = await fake.call("Exec", cri.ExecRequest())
        assert answer.url == "http://x/1"
    await created(fake, "main", "web")
    with fake.on("ListContainers").changes_answer(lambda a: a.ClearField("containers")):
        listed: Any = await fake.call("ListContainers", cri.ListContainersRequest())
        assert not listed.containers
    listed = await fake.call("ListContainers", cri.ListContainersRequest())
    assert len(listed.containers) == 1


@pytest.mark.virtual_time
async def test_a_sentence_on_start_programs_the_container() -> None:
    fake = FakeCRI()
    states = []
    fake.on("StartContainer", container="main").exits(7, after_s=1, times=1)
    for attempt in range(2):
        container = await created(fake, "main", "web", attempt=attempt)
        await start(fake, container)
        await asyncio.sleep(2)
        states.append(fake.container("main").state.name)
    assert states == ["EXITED", "RUNNING"]


def test_a_wrong_method_name_is_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match="did you mean StartContainer"):
        FakeCRI().on("StartContainr")
    with pytest.raises(ValueError, match="no gRPC status code"):
        FakeCRI().on("StartContainer").fails("BOOM")
    with pytest.raises(ValueError, match="StartContainer of a fake runtime"):
        FakeCRI().on("StopContainer").does(exits(1))


@pytest.mark.virtual_time
async def test_callers_and_fake_share_no_message() -> None:
    fake = FakeCRI()
    await created(fake, "main", "web")
    for _ in range(2):
        listed: Any = await fake.call("ListContainers", cri.ListContainersRequest())
        assert listed.containers[0].metadata.name == "main"
        listed.containers[0].metadata.name = "spoiled"
    assert fake.calls("ListContainers")[0].response.containers[0].metadata.name == "main"


@pytest.mark.virtual_time
async def test_calls_know_whose_they_are() -> None:
    fake = FakeCRI()
    container = await created(fake, "main", "web", attempt=3)
    await start(fake, container[:12])
    call = fake.calls("StartContainer")[0]
    assert (call.pod, call.namespace, call.uid) == ("web", "default", "uid-web")
    assert (call.container, call.attempt) == ("main", 3)
    assert call.image == "localhost/busybox:1"
    assert fake.count("StartContainer", pod="uid-web", container="main") == 1
    assert fake.count(pod="other") == 0


@pytest.mark.virtual_time
async def test_times_and_deadlines_are_recorded() -> None:
    fake = FakeCRI()
    fake.on("Version").delays(2, times=1)
    await fake.call("Version", VERSION, timeout_s=120)
    await asyncio.sleep(3)
    await fake.call("Version", VERSION)
    first, second = fake.calls("Version")
    assert (first.started_s, first.ended_s, first.deadline_s) == (0.0, 2.0, 120)
    assert (second.started_s, second.deadline_s) == (5.0, None)
    assert fake.times_s("Version") == [0.0, 5.0]
    assert fake.calls("Version", since_s=1.0) == [second]
    assert fake.calls("Version", until_s=0.9) == [first]


def test_times_of_a_miss_count_from_the_start_as_all_others() -> None:
    recorder = Recorder(t0_s=5000.0)
    recorder.begin("Version", VERSION, 5003.0, None)
    with pytest.raises(AssertionError) as late:
        recorder.assert_called("Version", since_s=5004.5)
    with pytest.raises(AssertionError) as early:
        recorder.assert_called("Version", until_s=5001.5)
    assert "time: wanted 4.500 s or later, got 3.000 s" in str(late.value)
    assert "time: wanted 1.500 s or before, got 3.000 s" in str(early.value)


@pytest.mark.virtual_time
async def test_credentials_are_masked_CRI_097() -> None:
    fake = FakeCRI()
    await pull(fake, "r.io/a", username="me", password="secret", identity_token="secret")
    auth = fake.calls("PullImage")[0].request.auth
    assert (auth.username, auth.password, auth.identity_token) == ("me", "***", "***")
    assert auth.auth == ""
    assert "secret" not in fake.recorder.to_jsonl()


@pytest.mark.virtual_time
async def test_exported_lines_have_the_recorded_form() -> None:
    fake = FakeCRI()
    await fake.call("Version", VERSION, timeout_s=120)
    missing = cri.ContainerStatusRequest(container_id="beef")
    await code_of(fake.call("ContainerStatus", missing))
    good, bad = (json.loads(line) for line in fake.recorder.to_jsonl().splitlines())
    assert good["method"] == "Version"
    assert (good["t_start"], good["t_end"], good["deadline_s"]) == (0.0, 0.0, 120)
    assert good["response"]["runtime_api_version"] == "v1"
    assert bad["request"] == {"container_id": "beef"}
    assert bad["error"]["code"] == "NOT_FOUND"
    assert "response" not in bad


def test_the_record_is_bounded() -> None:
    recorder = Recorder(3)
    for number in range(10):
        recorder.begin("Version", VERSION, float(number), None)
    assert recorder.times_s("Version") == [7.0, 8.0, 9.0]


@pytest.mark.virtual_time
async def test_a_failed_assertion_shows_the_nearest_miss_and_the_last_calls() -> None:
    fake = FakeCRI()
    await started(fake, "main", "web")
    fake.assert_called("StartContainer", pod="web", times=1)
    fake.assert_not_called("StartContainer", pod="db")
    with pytest.raises(AssertionError) as failure:
        fake.assert_called("StartContainer", container="side")
    with pytest.raises(AssertionError, match="expected no StartContainer"):
        fake.assert_not_called("StartContainer")
    text = str(failure.value)
    assert "StartContainer (container='side')" in text
    assert "container: wanted 'side', got 'main'" in text
    assert "CreateContainer web/main#0" in text


@pytest.mark.virtual_time
async def test_order_allows_calls_between_and_names_the_missing_step() -> None:
    fake = FakeCRI()
    for name in ("one", "two"):
        await started(fake, "main", name)
    fake.assert_order(["RunPodSandbox", ("StartContainer", "main"), "RunPodSandbox"])
    with pytest.raises(AssertionError) as failure:
        fake.assert_order([("StartContainer", "main"), "StopContainer"])
    assert "step 2, StopContainer" in str(failure.value)


@pytest.mark.parametrize(
    ("times", "expected", "slack", "good"),
    [
        ([1.0, 1.0, 11.5], [0, 0, 10], 2.0, True),
        ([1.0, 1.0, 13.5], [0, 0, 10], 2.0, False),
        ([1.0, 1.0, 10.5], [0, 0, 10], 2.0, False),
        ([1.0, 1.0], [0, 0, 10], 2.0, False),
        ([0.0, 14.0], [0, 10], lambda gap: (gap, 1.5 * gap), True),
        ([], [], 0.0, True),
    ],
)
def test_series_compares_gaps(
    times: list[float], expected: list[float], slack: Any, good: bool
) -> None:
    if good:
        check_series(times, expected, slack)
        return
    with pytest.raises(AssertionError, match=f"expected {len(expected)} times, got {len(times)}"):
        check_series(times, expected, slack)


@pytest.mark.virtual_time
async def test_waiting_calls_end_when_the_runtime_goes_down() -> None:
    fake = FakeCRI()
    fake.behaves(ignores("SIGTERM"))
    container = await created(fake, "main", "web")
    await start(fake, container)
    stop = cri.StopContainerRequest(container_id=container, timeout=100)
    waiting = [
        asyncio.create_task(code_of(fake.call("StopContainer", stop))),
        asyncio.create_task(code_of(hear(fake, []))),
    ]
    await asyncio.sleep(1)
    fake.crash()
    assert await asyncio.gather(*waiting) == ["UNAVAILABLE", "UNAVAILABLE"]


@pytest.mark.virtual_time
async def test_a_stream_that_its_reader_leaves_is_ended_in_the_record() -> None:
    fake = FakeCRI()
    reader = asyncio.create_task(hear(fake, []))
    await asyncio.sleep(1)
    reader.cancel()
    await asyncio.sleep(1)
    call = fake.calls("GetContainerEvents")[0]
    assert call.error is not None
    assert call.error[0] == "CANCELLED"
