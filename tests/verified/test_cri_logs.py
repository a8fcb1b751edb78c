"""Clauses about the logs of containers, on the fake and on a real containerd."""

from __future__ import annotations

import re
import stat
from datetime import datetime
from pathlib import Path

import pytest
from contract_runtime import Program, Runtime
from kubecri.v1 import api_pb2 as cri

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

LINE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d*[1-9])?Z) (stdout|stderr) ([FP]) (.*)", re.S
)
"""A time without trailing zeros, the stream, whether the line ends here, and what was written."""


def plays(script: str) -> Program:
    return Program(script, lambda fake: (fake.runs(),))


async def logged(runtime: Runtime, program: Program, *, tty: bool = False) -> list[tuple[str, ...]]:
    """What the log of a program has: time, stream, mark and text of each line."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config, program, tty=tty)
    await runtime.start(container)
    status = await runtime.exited(container)
    text = Path(status.log_path).read_bytes().decode()
    assert text.endswith("\n")
    found = [LINE.fullmatch(line) for line in text.removesuffix("\n").split("\n")]
    assert all(found), text
    return [line.groups() for line in found if line]


async def test_a_log_is_where_the_create_request_says_CRI_084_CRI_100(runtime: Runtime) -> None:
    """Not where the sandbox was made with: the request has its own config of the sandbox."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    config.log_directory += "-elsewhere"
    container = await runtime.create(sandbox, config, plays("echo hi"))
    await runtime.start(container)
    status = await runtime.exited(container)
    assert status.log_path == f"{config.log_directory}/c/0.log"
    assert stat.S_IMODE(Path(status.log_path).stat().st_mode) == 0o640


@pytest.mark.parametrize("missing", ["directory", "path"])
async def test_without_a_place_there_is_no_log_CRI_100_CRI_104(
    runtime: Runtime, missing: str
) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    directory = Path(config.log_directory)
    if missing == "directory":
        config.log_directory = ""
        container = await runtime.create(sandbox, config)
    else:
        container = await runtime.create(sandbox, config, log_path="")
    await runtime.start(container)
    assert (await runtime.status(container)).log_path == ""
    request = cri.ReopenContainerLogRequest(container_id=container)
    await runtime.call("ReopenContainerLog", request)
    assert not directory.exists()


async def test_lines_have_a_time_a_stream_and_an_end_CRI_101(runtime: Runtime) -> None:
    lines = await logged(runtime, plays("echo a; echo; echo b"))
    assert [line[1:] for line in lines] == [("stdout", "F", text) for text in ("a", "", "b")]
    times = [datetime.fromisoformat(line[0]) for line in lines]
    assert times == sorted(times)
    assert [line[1:] for line in await logged(runtime, plays("echo a >&2"))] == [
        ("stderr", "F", "a")
    ]


async def test_a_terminal_has_one_stream_CRI_101_CRI_102(runtime: Runtime) -> None:
    """It ends its lines with a carriage return of its own, which is dropped."""
    lines = await logged(runtime, plays("echo a; echo b >&2"), tty=True)
    assert [line[1:] for line in lines] == [("stdout", "F", "a"), ("stdout", "F", "b")]


@pytest.mark.parametrize(
    ("size", "pieces"),
    [
        (16384, [("F", 16384)]),
        (16385, [("P", 16384), ("F", 1)]),
        (40000, [("P", 16384), ("P", 16384), ("F", 7232)]),
    ],
)
async def test_long_lines_come_in_pieces_CRI_101_CRI_102(
    runtime: Runtime, size: int, pieces: list[tuple[str, int]]
) -> None:
    script = f"head -c {size} /dev/zero | tr '\\0' x; echo"
    program = Program(script, lambda fake: (fake.prints(size * "x"), fake.exits(0)))
    lines = await logged(runtime, program)
    assert [(mark, len(text)) for _, _, mark, text in lines] == pieces


async def test_a_carriage_return_before_the_end_is_dropped_CRI_102(runtime: Runtime) -> None:
    lines = await logged(runtime, plays(r"printf 'a\r\nb\r\r\n'"))
    assert [line[1:] for line in lines] == [("stdout", "F", "a"), ("stdout", "F", "b\r")]


async def test_what_has_no_end_waits_for_one_CRI_103(runtime: Runtime) -> None:
    """Its time is that of writing it; without an end it is written when the stream ends."""
    lines = await logged(runtime, plays("echo first; printf a; sleep 0.5; echo b; printf c"))
    texts = [("F", "first"), ("F", "ab"), ("P", "c")]
    assert [line[2:] for line in lines] == texts
    first, second = (datetime.fromisoformat(line[0]) for line in lines[:2])
    assert (second - first).total_seconds() > 0.4


async def test_a_log_is_opened_anew_CRI_104(runtime: Runtime) -> None:
    """What follows goes there; the old file, whatever it is called by now, gets nothing more."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    script = "echo a; until [ -e /tmp/go ]; do sleep 0.05; done; echo b"
    container = await runtime.create(sandbox, config, plays(script))
    request = cri.ReopenContainerLogRequest(container_id=container)
    code, text = await runtime.refused("ReopenContainerLog", request)
    assert (code, "container is not running" in text) == ("UNKNOWN", True)
    assert not Path(config.log_directory).exists()
    await runtime.start(container)
    log = Path((await runtime.status(container)).log_path)
    await runtime.until_printed(container)
    old = log.rename(log.with_suffix(".old"))
    await runtime.call("ReopenContainerLog", request)
    assert log.read_text() == ""
    touch = cri.ExecSyncRequest(container_id=container, cmd=["touch", "/tmp/go"], timeout=20)
    await runtime.call("ExecSync", touch)
    await runtime.exited(container)
    assert log.read_text().endswith(" stdout F b\n")
    assert old.read_text().endswith(" stdout F a\n")
    log.unlink()
    code, text = await runtime.refused("ReopenContainerLog", request)
    assert (code, "container is not running" in text) == ("UNKNOWN", True)
    assert not log.exists()


async def test_a_removed_container_leaves_its_log_CRI_066(runtime: Runtime) -> None:
    _, container = await runtime.running(plays("echo a"))
    log = Path((await runtime.exited(container)).log_path)
    await runtime.call("RemoveContainer", cri.RemoveContainerRequest(container_id=container))
    assert log.read_text().endswith(" stdout F a\n")
