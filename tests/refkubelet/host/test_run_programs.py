"""Programs of the node: what goes in, what comes out, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from refkubelet.host.programs import (
    MAX_COMPLAINT_BYTES,
    MAX_OUTPUT_BYTES,
    Finished,
    Processes,
    Program,
    ProgramError,
)


def shell(script: str, stdin: bytes = b"", **variables: str) -> Program:
    environment = {"PATH": os.environ["PATH"], **variables}
    return Program(("sh", "-c", script, "name", "one two"), environment, stdin)


async def test_a_program_gets_and_gives_BACK_214() -> None:
    script = 'cat; printf "%s" "$1$A"; echo why >&2; exit 3'
    finished = await Processes().run(shell(script, b"in:", A="b"))
    assert finished == Finished(3, b"in:one twob", b"why\n")
    assert await Processes().run(shell("kill -9 $$")) == Finished(-9)


async def test_a_program_need_not_read_BACK_214() -> None:
    finished = await Processes().run(shell("exec 0<&-; echo ok", b"x" * 10_000_000))
    assert finished == Finished(0, b"ok\n")


async def test_output_has_a_bound_BACK_214() -> None:
    just = await Processes().run(shell(f"head -c {MAX_OUTPUT_BYTES} /dev/zero"))
    assert len(just.output) == MAX_OUTPUT_BYTES
    with pytest.raises(ProgramError, match=f"it printed more than {MAX_OUTPUT_BYTES} bytes"):
        await Processes().run(shell("cat /dev/zero"))
    long = await Processes().run(shell("head -c 1000000 /dev/zero >&2; echo ok"))
    assert (long.output, len(long.complaint)) == (b"ok\n", MAX_COMPLAINT_BYTES)


async def test_what_cannot_be_started_is_told_BACK_214(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="cannot be started: no such file or directory"):
        await Processes().run(Program((str(tmp_path / "gone"),)))


async def test_a_program_ends_with_all_it_started_BACK_214(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    reader = asyncio.StreamReader()
    file = open(os.open(held, os.O_RDONLY | os.O_NONBLOCK), "rb")  # noqa: SIM115
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    run = asyncio.create_task(Processes().run(shell(f"exec 3>{held}; sleep 600 & echo >&3; wait")))
    async with asyncio.timeout(10):
        assert await reader.readline() == b"\n"
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    async with asyncio.timeout(10):
        assert await reader.read() == b""  # nobody holds the other end any more
    pipe.close()


def test_secrets_are_not_shown_BACK_214() -> None:
    shown = repr(shell("x", b"hidden", TOKEN="hidden")) + repr(Finished(0, b"hidden", b"hidden"))
    assert "hidden" not in shown
