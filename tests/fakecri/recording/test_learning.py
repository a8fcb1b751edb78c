"""From a record to a script: the fake then does what the recorded runtime did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from runtime_calls import IMAGE, container_config, create, pod_config

from fakecri import (
    FakeCRI,
    RegistryImage,
    Reply,
    exits,
    ignores,
    registry_of,
    replies,
    start_fails,
    stops,
)
from fakecri.cli import main as cli_main
from fakecri.proxy import RecordingProxy
from fakecri.recording.call_log import CallLog
from fakecri.recording.learning import learned_script
from fakecri.recording.recorded import RecordError, exchanges, read_record
from fakecri.scripts.script import apply_script, read_script
from kubeobjects.strict.values import parse_yaml
from simclock import run_virtual

POD = pod_config("shop")


async def attempt(fake: FakeCRI, name: str, number: int = 0) -> str:
    """A container that was started, if that can be."""
    config = container_config(name, number)
    config.image.user_specified_image = IMAGE
    request = cri.CreateContainerRequest(
        pod_sandbox_id=fake.sandboxes()[-1].id, config=config, sandbox_config=POD
    )
    made: Any = await fake.call("CreateContainer", request)
    await call(fake, "StartContainer", cri.StartContainerRequest(container_id=made.container_id))
    return str(made.container_id)


async def call(fake: Any, method: str, request: Any) -> Any:
    """The answer, or the error."""
    try:
        return await fake.call(method, request)
    except grpc.RpcError as error:
        return error


async def a_day_of_a_kubelet(fake: FakeCRI) -> None:
    run = cri.RunPodSandboxRequest(config=POD)
    await call(fake, "RunPodSandbox", run)
    await call(fake, "RunPodSandbox", run)
    pull = cri.PullImageRequest(image=cri.ImageSpec(image="registry.example/app:1"))
    await call(fake, "PullImage", pull)
    ids = [await attempt(fake, "crash", number) for number in range(3)]
    for name in ("job", "stubborn", "polite", "broken", "plain"):
        ids.append(await attempt(fake, name))
    for _ in range(4):
        for command, timeout_s in ((("ready",), 0), (("slow",), 1)):
            request = cri.ExecSyncRequest(container_id=ids[4], cmd=command, timeout=timeout_s)
            await call(fake, "ExecSync", request)
    await asyncio.sleep(30)
    for identity in ids[4:]:
        await call(
            fake, "StopContainer", cri.StopContainerRequest(container_id=identity, timeout=5)
        )
    for identity in ids:
        await call(fake, "ContainerStatus", cri.ContainerStatusRequest(container_id=identity))
    await call(fake, "ListContainers", cri.ListContainersRequest())


def programmed(fake: FakeCRI) -> None:
    fake.behaves(exits(3), container="crash")
    fake.behaves(exits(0, after_s=2.5, message="done"), container="job")
    fake.behaves(ignores(), container="stubborn")
    fake.behaves(stops(0, after_s=1.5), container="polite")
    fake.behaves(start_fails("no such file"), container="broken")
    fake.behaves(replies("ready", answers=[Reply(1, stderr="no"), Reply(1), Reply(0)]))
    fake.behaves(replies("slow", delay_s=2))
    fake.on("RunPodSandbox", nth=1).fails("UNAVAILABLE", "not yet")
    fake.on("ListContainers").fails("INTERNAL", "broken")
    fake.images.registry = registry_of({"registry.example/app:1": RegistryImage(pull_s=4)})


def recorded(program: Callable[[FakeCRI], object]) -> str:
    """The record of a day of a fake that was programmed like this."""
    fake = FakeCRI(images=(IMAGE,))
    program(fake)
    run_virtual(lambda: a_day_of_a_kubelet(fake))
    return fake.recorder.to_jsonl()


def test_the_fake_does_again_what_was_recorded() -> None:
    first = recorded(programmed)
    learned = yaml.safe_dump(learned_script(list(exchanges(first.splitlines()))), sort_keys=False)
    script = read_script(parse_yaml(learned, "learned"))
    again = recorded(lambda fake: apply_script(script, fake))
    assert again.splitlines() == first.splitlines()


def test_what_is_learned_is_short() -> None:
    script = learned_script(list(exchanges(recorded(programmed).splitlines())))
    ends = {entry["container"]: entry for entry in script["behaviors"] if "replies" not in entry}
    assert script["images"] == [IMAGE]
    assert script["registry"] == {"registry.example/app:1": {"pull_s": 4.0}}
    assert ends == {
        "crash": {"pod": "shop", "container": "crash", "exits": {"code": 3}},
        "job": {
            "pod": "shop",
            "container": "job",
            "attempt": 0,
            "exits": {"after_s": 2.5, "message": "done"},
        },
        "stubborn": {"pod": "shop", "container": "stubborn", "attempt": 0, "ignores": {}},
        "polite": {
            "pod": "shop",
            "container": "polite",
            "attempt": 0,
            "stops": {"code": 0, "after_s": 1.5},
        },
        "broken": {
            "pod": "shop",
            "container": "broken",
            "attempt": 0,
            "start_fails": {"message": "no such file"},
        },
    }
    assert [(fault["on"], fault["nth"]) for fault in script["faults"]] == [
        ("RunPodSandbox", 1),
        ("ListContainers", 1),
    ]


def test_a_quiet_run_teaches_nothing() -> None:
    assert learned_script([]) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}\n{", "calls.jsonl:1: wanted an object with method, t_start"),
        ('{"method": "Version", "t_start": 0, "request": {}}\n{', "calls.jsonl:2: no JSON"),
        ('{"method": "Boot", "t_start": 0, "request": {}}', "CRI v1 has no method 'Boot'"),
        ("[]", "request and response or error, got list"),
        (
            '{"method": "StopContainer", "t_start": 0, "t_end": 1, "request": {"timeout": "x"},'
            ' "response": {}}',
            "calls.jsonl:1: StopContainerRequest: ",
        ),
        (
            '{"method": "Version", "t_start": 0, "t_end": 1, "request": {}, "error": {}}',
            "calls.jsonl:1: 'code'",
        ),
    ],
)
def test_a_damaged_record_names_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(text)
    with pytest.raises(RecordError) as failure:
        read_record(path)
    assert message in str(failure.value)
    assert cli_main(["learn", str(path)]) == 2
    assert capsys.readouterr().err == f"fakecri: error: {failure.value}\n"


def test_a_record_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such file or directory"):
        read_record(tmp_path / "none.jsonl")
    (tmp_path / "calls.jsonl").write_bytes(b"\xff")
    with pytest.raises(RecordError, match="no UTF-8 text"):
        read_record(tmp_path / "calls.jsonl")


def test_the_command_prints_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(recorded(programmed))
    assert cli_main(["learn", str(path)]) == 0
    script = read_script(parse_yaml(capsys.readouterr().out, "printed"))
    assert script.images == (IMAGE,)


@pytest.mark.virtual_time
async def test_what_a_proxy_did_to_calls_is_not_the_runtimes(tmp_path: Path) -> None:
    """Its rules fail and delay; the script has none of it, however the calls were recorded."""
    fake = FakeCRI(images=(IMAGE,))
    proxy = RecordingProxy(fake, clock=virtual_loop().clock)
    proxy.on("RunPodSandbox").fails("UNAVAILABLE", "of the proxy", times=1)
    proxy.on("StartContainer").fails("UNKNOWN", "of the proxy", times=1)
    proxy.on("ExecSync").delays(7, times=1)
    fake.on("StopPodSandbox").fails("UNKNOWN", "of the runtime", times=1)
    file = tmp_path / "calls.jsonl"
    log = CallLog(proxy, file, proxy.clock)
    run = cri.RunPodSandboxRequest(config=POD)
    for _ in range(2):
        made = await call(log, "RunPodSandbox", run)
    web = await create(log, made.pod_sandbox_id, POD, "web")
    for _ in range(2):
        await call(log, "StartContainer", cri.StartContainerRequest(container_id=web))
    await log.call("ExecSync", cri.ExecSyncRequest(container_id=web, cmd=["echo", "a"]))
    stop = cri.StopPodSandboxRequest(pod_sandbox_id=made.pod_sandbox_id)
    await call(log, "StopPodSandbox", stop)
    log.close()
    for lines in (file.read_text().splitlines(), proxy.recorder.to_jsonl().splitlines()):
        script = learned_script(list(exchanges(lines)))
        assert [fault["fails"]["message"] for fault in script["faults"]] == ["of the runtime"]
        assert script["behaviors"] == [
            {
                "pod": "shop",
                "container": "web",
                "attempt": 0,
                "replies": {"command": ["echo", "a"], "answers": [{"stdout": "a\n"}]},
            }
        ]


@pytest.mark.virtual_time
@pytest.mark.parametrize("verb", ["fails", "loses_answer", "delays"])
async def test_an_end_is_not_learned_if_the_proxy_disturbed_the_stop(verb: str) -> None:
    """One container whose stop a rule of the proxy acted on, and one that it let alone."""
    fake = FakeCRI(images=(IMAGE,))
    fake.behaves(ignores())
    proxy = RecordingProxy(fake, clock=asyncio.get_running_loop().clock)  # type: ignore[attr-defined]
    disturbed = proxy.on("StopContainer", container="web")
    getattr(disturbed, verb)(**({"delay_s": 7} if verb == "delays" else {}), times=1)
    made: Any = await proxy.call("RunPodSandbox", cri.RunPodSandboxRequest(config=POD))
    for name in ("web", "db"):
        one = await create(proxy, made.pod_sandbox_id, POD, name)
        await proxy.call("StartContainer", cri.StartContainerRequest(container_id=one))
        for _ in range(2):
            stop = cri.StopContainerRequest(container_id=one, timeout=5)
            await call(proxy, "StopContainer", stop)
        await proxy.call("ContainerStatus", cri.ContainerStatusRequest(container_id=one))
    script = learned_script(list(exchanges(proxy.recorder.to_jsonl().splitlines())))
    assert script["behaviors"] == [{"pod": "shop", "container": "db", "attempt": 0, "ignores": {}}]
    assert "faults" not in script
