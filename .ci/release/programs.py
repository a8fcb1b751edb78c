"""Runs programs, several at once, and never says nothing for long."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

SILENT_S: Final = 15.0
"""A step that takes longer says so, again and again."""
LIMIT_S: Final = 600.0
BEGAN: Final = time.monotonic()


class Failed(Exception):
    """A program ended otherwise than it should; its text is one line and what it printed."""


def say(text: str) -> None:
    print(f"{time.monotonic() - BEGAN:4.0f} s  {text}", flush=True)


async def run(
    step: str,
    command: Sequence[str | Path],
    directory: Path,
    *,
    code: int = 0,
    environment: Mapping[str, str] | None = None,
) -> str:
    """What the program printed. `directory`: where it runs; `environment`: beside this one's.

    Raises: Failed when it does not end with `code`, or not in ten minutes.
    """
    words = [str(word) for word in command]
    began = time.monotonic()
    kept = {name: text for name, text in os.environ.items() if name not in _OF_THIS_PYTHON}
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=directory,
        env={**kept, "PYTHONSAFEPATH": "1", **(environment or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    ended = asyncio.create_task(process.communicate())
    try:
        while not (await asyncio.wait({ended}, timeout=SILENT_S))[0]:
            lasts_s = time.monotonic() - began
            if lasts_s > LIMIT_S:
                raise Failed(f"{step}: {' '.join(words)} has not ended after {LIMIT_S:.0f} s")
            say(f"... {step} ({lasts_s:.0f} s)")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    printed = (await ended)[0].decode(errors="replace")
    if process.returncode != code:
        raise Failed(f"{step}: {' '.join(words)} ended with {process.returncode}\n{printed}")
    return printed


_OF_THIS_PYTHON: Final = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS")


def python(*words: str | Path) -> list[str | Path]:
    """A command of the Python that runs this."""
    return [sys.executable, *words]
