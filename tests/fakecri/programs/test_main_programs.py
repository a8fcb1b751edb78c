"""Exec without streams, and main processes that the fake runs: one table of programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import run_exec, started

from fakecri import ExecContext, FakeCRI, Reply, ignores, ready_after, replies, runs
from fakecri.fakesh import Invocation
from kubeobjects.structs import replace


def outcome(answer: Any) -> tuple[int, bytes, bytes]:
    return answer.exit_code, answer.stdout, answer.stderr


NO_READY = b"cat: can't open '/tmp/ready': No such file or directory\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("echo", "a", "b"), (0, b"a b\n", b"")),
        (("sh", "-c", "echo $GREETING >&2; exit 7"), (7, b"", b"hello\n")),
        (("/bin/false",), (1, b"", b"")),
        (("id", "-u"), (0, b"1001\n", b"")),
        (("id",), (0, b"uid=1001 gid=7 groups=7\n", b"")),
        (("id", "-Z"), (2, b"", b"id: the fake knows only: -u, -g, -G, -n\n")),
        (("sleep", "soon"), (1, b"", b"sleep: invalid number 'soon'\n")),
        # Files that the test did not make are there; programs that it did not make are not.
        (("cat", "/tmp/ready"), (0, b"", b"")),
        (("sh", "-c", "rm /tmp/ready; cat /tmp/ready"), (1, b"", NO_READY)),
        (("sh", "-c", "test -f /x && pg_isready"), (127, b"", b"sh: pg_isready: not found\n")),
        (("sh", "-c", "ls / | grep x"), (1, b"", b"")),
    ],
)
@pytest.mark.virtual_time
async def test_exec_sync_reaches_the_programs_CRI_111(
    command: tuple[str, ...], expected: tuple[int, bytes, bytes]
) -> None:
    fake = FakeCRI()
    user = cri.LinuxContainerSecurityContext(
        run_as_user=cri.Int64Value(value=1001), run_as_group=cri.Int64Value(value=7)
    )
    web = await started(
        fake,
        "web",
        envs=[cri.KeyValue(key="GREETING", value=b"hello")],
        linux=cri.LinuxContainerConfig(security_context=user),
    )
    assert outcome(await run_exec(fake, web, *command)) == expected


@pytest.mark.virtual_time
async def test_a_program_of_the_test_answers_exec_sync_with_bytes() -> None:
    async def dump(run: Invocation) -> int:
        await run.stdout.write(b"\xff\x00")
        return 300  # as any process: the low 8 bits

    fake = FakeCRI()
    rule = fake.streaming.command("pg_dump", dump, container="web")
    answer = await run_exec(fake, await started(fake, "web", "shop"), "pg_dump", "-a")
    assert rule.hits == 1
    assert outcome(answer) == (44, b"\xff\x00", b"")


@pytest.mark.virtual_time
async def test_a_program_ends_at_the_time_limit_and_with_its_container_CRI_112() -> None:
    fake = FakeCRI()
    web = await started(fake, "web", "shop")
    loop = asyncio.get_running_loop()
    with pytest.raises(grpc.RpcError) as failure:
        await run_exec(fake, web, "sleep", "60", timeout_s=2)
    assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "timeout 2s exceeded" in failure.value.details()
    assert loop.time() == pytest.approx(2)
    loop.call_later(5, fake.kill, "web")
    assert (await run_exec(fake, web, "sleep", "60")).exit_code == 137
    assert loop.time() == pytest.approx(7)


@pytest.mark.virtual_time
async def test_a_handler_knows_whom_it_answers_and_may_take_its_time() -> None:
    asked: list[ExecContext] = []

    async def slowly(context: ExecContext) -> Reply:
        asked.append(context)
        await asyncio.sleep(3)
        return Reply(context.given_before, stdout=context.container)

    fake = FakeCRI()
    fake.behaves(replies("ask me", handler=slowly))
    web = await started(fake, "web", "shop")
    await asyncio.sleep(10)
    assert outcome(await run_exec(fake, web, "ask", "me")) == (0, b"web", b"")
    assert outcome(await run_exec(fake, web, "ask", "me", timeout_s=4)) == (1, b"web", b"")
    with pytest.raises(grpc.RpcError):
        await run_exec(fake, web, "ask", "me", timeout_s=2)
    assert asked[0].age_s == pytest.approx(10)
    wanted = ExecContext(("ask", "me"), pod="shop", namespace="default", container="web")
    assert replace(asked[0], age_s=0) == wanted
    assert [context.limit_s for context in asked] == [None, 4.0, 2.0]


@pytest.mark.virtual_time
async def test_readiness_comes_after_a_while() -> None:
    fake = FakeCRI()
    fake.behaves(ready_after(5, "cat /ready"), replies("cat /ready", stdout="yes"))
    web = await started(fake, "web", "shop")
    codes = []
    for _ in range(4):
        codes.append((await run_exec(fake, web, "cat", "/ready")).exit_code)
        await asyncio.sleep(2)
    assert (await run_exec(fake, web, "cat", "/other")).exit_code == 0
    assert codes == [1, 1, 1, 0]


@pytest.mark.virtual_time
async def test_a_container_may_run_its_own_command() -> None:
    fake = FakeCRI()
    fake.behaves(runs(), container="job")
    await started(fake, "job", command=["sh", "-c", "echo one; sleep 5; echo two >&2; exit 3"])
    job = fake.container("job")
    await asyncio.sleep(4.9)
    assert job.state.name == "RUNNING"
    assert [line.text for line in job.log] == ["one"]
    await asyncio.sleep(0.2)
    assert (job.state.name, job.exit_code, job.reason) == ("EXITED", 3, "Error")
    assert [(line.stream, line.text) for line in job.log] == [
        ("stdout", "one"),
        ("stderr", "two"),
    ]
    assert (job.finished_at_ns - job.started_at_ns) / 1e9 == pytest.approx(5, abs=0.01)


@pytest.mark.virtual_time
async def test_a_command_that_is_not_there_fails_to_start_CRI_056() -> None:
    fake = FakeCRI()
    fake.behaves(runs())
    with pytest.raises(grpc.RpcError, match='exec: "/no/such": stat /no/such: no such file'):
        await started(fake, command=["/no/such"])
    assert (fake.container().exit_code, fake.container().reason) == (128, "StartError")


@pytest.mark.virtual_time
async def test_a_python_program_is_a_main_process_and_may_end_politely() -> None:
    async def server(run: Invocation) -> int:
        await run.out("serving, no newline")
        await run.stop.wait()
        await asyncio.sleep(2)
        await run.err("bye\n")
        return 0

    fake = FakeCRI()
    fake.behaves(runs(server), ignores())
    web = await started(fake, "web", "shop")
    await asyncio.sleep(100)
    await fake.call("StopContainer", cri.StopContainerRequest(container_id=web, timeout=30))
    ended = fake.container()
    assert ended.exit_code == 0
    assert asyncio.get_running_loop().time() == pytest.approx(102)
    assert [(line.text, line.whole) for line in ended.log] == [
        ("bye", True),
        ("serving, no newline", False),  # CRI-103
    ]


@pytest.mark.parametrize(
    "end",
    [
        lambda fake: fake.kill("web"),
        lambda fake: fake.drop("web"),
        lambda fake: fake.crash(loses_state=True),
        lambda fake: fake.reboot(),
    ],
)
@pytest.mark.virtual_time
async def test_a_container_takes_its_program_along(end: Callable[[FakeCRI], object]) -> None:
    ended: list[str] = []

    async def stubborn(run: Invocation) -> int:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(run.container)
        return 0

    fake = FakeCRI()
    fake.behaves(runs(stubborn))
    await started(fake, "web", "shop")
    await asyncio.sleep(1)
    end(fake)
    await asyncio.sleep(1)
    assert ended == ["web"]


@pytest.mark.virtual_time
async def test_a_mistake_in_a_program_is_the_containers_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(run: Invocation) -> int:
        raise RuntimeError("oops")

    fake = FakeCRI()
    fake.behaves(runs(broken))
    await started(fake, "web", "shop")
    await asyncio.sleep(1)
    assert fake.container().exit_code == 1
    assert "the main program of container web failed" in caplog.text
