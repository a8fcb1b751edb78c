"""Scripts that would not end, or would end the fake: each ends, at the latest with its limit."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as cri
from runtime_calls import run_exec, started

from fakecri import FakeCRI, runs


async def execute(fake: FakeCRI, container: str, script: str) -> int | str:
    """The exit code, or the code of the refusal."""
    try:
        answer = await run_exec(fake, container, "sh", "-c", script, timeout_s=5)
    except grpc.RpcError as error:
        return error.code().name
    return int(answer.exit_code)


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("while :; do :; done", "DEADLINE_EXCEEDED"),
        ("yes >/dev/null", "DEADLINE_EXCEEDED"),
        ("while true; do true & done", "DEADLINE_EXCEEDED"),
        ("while true; do sleep 9 & done", 2),
        ("f() { f; }; f", 2),
        ("f() { f | f & }; f", "any"),
        ("( " * 300 + ":" + " )" * 300, 2),
        ("echo " + "$(echo " * 60 + "a" + ")" * 60, "any"),
        ("echo $((" + "(" * 3000 + "1" + ")" * 3000 + "))", 2),
        ("echo $((9 ** 999999999999))", 0),
        ("x=a; while :; do x=$x$x; done", 2),
        ("while :; do echo aaaaaaaaaaaaaaaa >>/tmp/f; done", "any"),
        ("eval 'eval \"eval :\"'", 0),
        ("sh -c 'sh -c \"sh -c :\"'", 0),
    ],
)
@pytest.mark.virtual_time
async def test_scripts_that_would_not_end(script: str, wanted: int | str) -> None:
    fake = FakeCRI()
    container = await started(fake, command=["sleep", "1000"])
    code = await execute(fake, container, script)
    assert await execute(fake, container, "exit 7") == 7
    assert wanted in (code, "any")


@pytest.mark.virtual_time
async def test_a_busy_main_process_can_be_stopped() -> None:
    fake = FakeCRI()
    fake.behaves(runs())
    container = await started(fake, command=["sh", "-c", "while :; do :; done"])
    await asyncio.sleep(3600 / 60)
    stop = cri.StopContainerRequest(container_id=container, timeout=1)
    await fake.call("StopContainer", stop)
    assert fake.container("c").exit_code == 143


WORDS = st.sampled_from(
    ["if", "then", "fi", "while", "do", "done", "for", "x", "in", "case", "esac", "{", "}", "(",
     ")", ";", "&&", "||", "|", "&", "!", "\n", ">", "<", ">>", "2>&1", "echo", "cat", "true",
     "false",
     "exit", "$x", "${x", "${x%a}", "$(", "`", "'", '"', "$((1+", "))", "[", "]", "=", "x=1", "a b",
     "/tmp/f", "f()", "trap", "wait", "kill", "$$", "$!", "read", "set", "-e", "shift", "break",
     "continue", "return", "exec", "eval", "*", "\\", "#", "local", "printf", "%s%d", "test", "-f",
     "-eq", "head", "-n", "ls", "rm", "cd", "..", "grep", "seq", "3", ";;", "elif", "else", "until"]
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS, max_size=14))
@pytest.mark.virtual_time
async def test_no_script_breaks_the_fake(words: list[str]) -> None:
    fake = FakeCRI()
    container = await started(fake, command=["sleep", "1000"])
    code = await execute(fake, container, " ".join(words))
    assert code in range(256) or code == "DEADLINE_EXCEEDED"
    assert await execute(fake, container, "exit 7") == 7
