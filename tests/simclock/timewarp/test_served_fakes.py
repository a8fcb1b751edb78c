"""`fakecri serve` and `fakekubeapi serve` in the time of a clock page."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakecri.cli import main as fakecri
from fakekubeapi.cli import main as fakekubeapi
from simclock import timewarp
from simclock.timewarp.pages import TimePage

SHORT_S = 240.0
"""Real seconds, far below the 3,000 that pass; a busy machine takes a minute for two programs."""


@asynccontextmanager
async def serving(*words: str) -> AsyncIterator[None]:
    """The command runs, and has said where it serves, until the block ends; then so does it."""
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert program.stdout is not None
        assert b"ing on " in await program.stdout.readline()
        yield
        program.terminate()
        await program.stdout.read()
        assert await program.wait() == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


def test_what_the_fakes_stamp_is_of_the_shared_time(tmp_path: Path) -> None:
    file, control = tmp_path / "page", tmp_path / "ctl.sock"
    page = TimePage.create(path=str(file))

    async def main() -> list[tuple[float, float, float]]:
        kubeconfig = tmp_path / "kubeconfig"
        runtime = serving(
            *("fakecri", "serve", "--listen", f"unix://{tmp_path}/cri.sock"),
            *("--control", f"unix://{control}", "--clock-page", str(file)),
        )
        server = serving(
            *("fakekubeapi.cli", "serve", "--listen", "127.0.0.1:0"),
            *("--kubeconfig-out", str(kubeconfig), "--clock-page", str(file)),
        )
        seen = []
        async with runtime, server:
            url = next(x.split()[1] for x in kubeconfig.read_text().splitlines() if "server:" in x)
            for number in range(3):
                await asyncio.sleep(1000)
                for asked in (runtime_clock(control), created(url, f"n{number}")):
                    before_s = page.wall_ns() / 1e9
                    seen.append((before_s, await asked, page.wall_ns() / 1e9))
        return seen

    began_s = time.monotonic()
    seen = timewarp.run(main, page)
    assert time.monotonic() - began_s < SHORT_S
    assert len(seen) == 6
    whole_s = 1  # times of the API have no parts of seconds
    assert all(before - whole_s < stamp <= after for before, stamp, after in seen), seen


async def runtime_clock(control: Path) -> float:
    """What the fake runtime tells of its clock."""
    connector = aiohttp.UnixConnector(str(control))
    async with aiohttp.ClientSession(connector=connector) as session:
        async with session.get("http://fake/v1/clock") as answer:
            told: dict[str, Any] = await answer.json()
    return stamp(told["now"])


async def created(url: str, name: str) -> float:
    """When the fake API server says that it made a namespace."""
    body = {"metadata": {"name": name}}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/api/v1/namespaces", json=body) as answer:
            told: dict[str, Any] = await answer.json()
    return stamp(told["metadata"]["creationTimestamp"])


def stamp(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_what_is_no_page_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page").write_text("no page")
    page = f"--clock-page={tmp_path}/page"
    assert fakecri(["serve", "--listen", f"unix://{tmp_path}/cri.sock", page]) == 2
    assert "--clock-page: " in capsys.readouterr().err
    assert fakekubeapi(["serve", "--listen", "127.0.0.1:0", page]) == 2
    assert "is no clock page" in capsys.readouterr().err
    words = ["--clock=manual", f"--control=unix://{tmp_path}/ctl.sock", page]
    assert fakecri(["serve", "--listen", f"unix://{tmp_path}/cri.sock", *words]) == 2
    assert "leave one out" in capsys.readouterr().err
