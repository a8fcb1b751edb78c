"""What containers print, as the CRI log file has it (CRI-101..103)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from criapi.v1 import api_pb2 as cri

from fakecri import FakeCRI, exits, prints, runs
from fakecri.behaviors.behavior import Behavior
from fakecri.invocations.invocation import Invocation
from simtime import run_virtual


def logged(directory: Path, *behaviors: Behavior, tty: bool = False) -> list[bytes]:
    """The rows of the log file, without their time stamps."""

    async def main() -> None:
        fake = FakeCRI(write_logs=True)
        fake.behaves(*behaviors, container="web")
        metadata = cri.PodSandboxMetadata(name="shop", uid="u1")
        pod = cri.PodSandboxConfig(metadata=metadata, log_directory=str(directory))
        web = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="web"),
            image=cri.ImageSpec(image="localhost/busybox:1"),
            log_path="0.log",
            tty=tty,
        )
        sandbox: Any = await fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=pod))
        create = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox.pod_sandbox_id, config=web, sandbox_config=pod
        )
        made: Any = await fake.call("CreateContainer", create)
        start = cri.StartContainerRequest(container_id=made.container_id)
        await fake.call("StartContainer", start)
        await asyncio.sleep(1)

    run_virtual(main)
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
def test_every_row_of_a_log_is_a_row_of_the_format_CRI_101_CRI_102(
    text: str, rows: list[bytes], tmp_path: Path
) -> None:
    assert logged(tmp_path, prints(text), exits()) == rows


def test_a_terminal_keeps_a_carriage_return_of_the_program_CRI_102(tmp_path: Path) -> None:
    assert logged(tmp_path, prints("bar\r"), exits(), tty=True) == [b"stdout F bar\r\n"]


def test_programs_lose_one_carriage_return_too_CRI_102(tmp_path: Path) -> None:
    async def dos(run: Invocation) -> int:
        await run.out("one\r\ntwo\r\r\n")
        return 0

    assert logged(tmp_path, runs(dos)) == [b"stdout F one\n", b"stdout F two\r\n"]


def test_the_pieces_of_a_long_line_are_its_bytes_CRI_102(tmp_path: Path) -> None:
    text = "x" + "ä" * 20_000  # the cut is inside a letter
    first, middle, last = logged(tmp_path, prints(text), exits())
    assert first.startswith(b"stdout P ")
    assert middle.startswith(b"stdout P ")
    assert last.startswith(b"stdout F ")
    pieces = [row[9:-1] for row in (first, middle, last)]
    assert len(pieces[0]) == len(pieces[1]) == 16384
    assert b"".join(pieces).decode() == text
