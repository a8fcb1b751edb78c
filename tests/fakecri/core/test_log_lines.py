"""What containers print, as the CRI log file has it (CRI-101..103)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from runtime_calls import create, pod_config, run_pod, start

from fakecri import FakeCRI, exits, prints, runs
from fakecri.fakesh import Invocation
from fakecri.words.behaviors import Behavior

pytestmark = pytest.mark.virtual_time


async def log_of(directory: Path, *behaviors: Behavior, tty: bool = False) -> list[bytes]:
    """The rows of the log file of a container that does that, without their time stamps."""
    fake = FakeCRI(write_logs=True)
    fake.behaves(*behaviors)
    pod = pod_config(log_directory=str(directory))
    container = await create(fake, await run_pod(fake, pod), pod, log_path="0.log", tty=tty)
    await start(fake, container)
    await asyncio.sleep(1)
    rows = (directory / "0.log").read_bytes().splitlines(keepends=True)
    return [row.partition(b" ")[2] for row in rows]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("hello", [b"stdout F hello\n"]),
        ("hello\n", [b"stdout F hello\n"]),
        ("one\ntwo", [b"stdout F one\n", b"stdout F two\n"]),
        ("one\r\ntwo\r\n", [b"stdout F one\n", b"stdout F two\n"]),
        ("one\n\ntwo", [b"stdout F one\n", b"stdout F \n", b"stdout F two\n"]),
        ("", [b"stdout F \n"]),
    ],
)
async def test_every_row_of_a_log_is_a_row_of_the_format_CRI_101_CRI_102(
    text: str, rows: list[bytes], tmp_path: Path
) -> None:
    assert await log_of(tmp_path, prints(text), exits()) == rows


async def test_a_terminal_keeps_a_carriage_return_of_the_program_CRI_102(tmp_path: Path) -> None:
    assert await log_of(tmp_path, prints("bar\r"), exits(), tty=True) == [b"stdout F bar\r\n"]


async def test_programs_lose_one_carriage_return_too_CRI_102(tmp_path: Path) -> None:
    async def dos(run: Invocation) -> int:
        await run.out("one\r\ntwo\r\r\n")
        return 0

    assert await log_of(tmp_path, runs(dos)) == [b"stdout F one\n", b"stdout F two\r\n"]


async def test_the_pieces_of_a_long_line_are_its_bytes_CRI_102(tmp_path: Path) -> None:
    text = "x" + "ä" * 20_000  # the cut is inside a letter
    first, middle, last = await log_of(tmp_path, prints(text), exits())
    assert first.startswith(b"stdout P ")
    assert middle.startswith(b"stdout P ")
    assert last.startswith(b"stdout F ")
    pieces = [row[9:-1] for row in (first, middle, last)]
    assert len(pieces[0]) == len(pieces[1]) == 16384
    assert b"".join(pieces).decode() == text
