"""The commands of the tutorials run as they stand there, in an empty directory, and say what the
tutorials show.

A fence with a title is a file, `sh` is run, and the lines of the `text` after it are in its output.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import ROOT

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
STEP_S = 240.0
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.S | re.M)


@dataclass(frozen=True)
class Step:
    """Commands, the files that were written before them, the lines they shall print."""

    files: dict[str, str]
    commands: str
    said: str


def steps_of(page: str) -> list[Step]:
    """The steps of a page, in order."""
    files: dict[str, str] = {}
    steps: list[Step] = []
    before = ""
    for language, title, text in FENCE.findall(page):
        if title:
            files[title] = text
        elif language == "sh":
            steps.append(Step(dict(files), text, ""))
        elif language == "text" and before == "sh":
            steps[-1] = Step(steps[-1].files, steps[-1].commands, text)
        before = language
    return steps


def run(commands: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the commands of one step; what they left in the background ends when they failed.

    A tutorial starts a server in one step and stops it in a later one; after a failure nothing
    would stop it.
    """
    with tempfile.TemporaryFile("w+") as output:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", commands],
            cwd=cwd,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code = None
        try:
            code = shell.wait(STEP_S)
        finally:
            if code != 0:
                with suppress(ProcessLookupError):  # it left nothing
                    os.killpg(shell.pid, signal.SIGKILL)
        output.seek(0)
        return subprocess.CompletedProcess(commands, code, output.read())


def test_there_is_one_for_each_kind_of_user_and_each_has_commands() -> None:
    assert len(TUTORIALS) == 4
    assert all(steps_of(page.read_text()) for page in TUTORIALS)


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_of_a_tutorial_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "COLUMNS": "120"}
    environment.pop("PYTEST_ADDOPTS", None)
    written: set[str] = set()
    for step in steps_of(page.read_text()):
        for name in step.files.keys() - written:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(step.files[name])
            written.add(name)
        done = run(step.commands, tmp_path, environment)
        assert done.returncode == 0, f"{step.commands}\n{done.stdout}"
        missing = [line for line in step.said.splitlines() if line.strip() not in done.stdout]
        assert missing == [], f"{step.commands}\n{done.stdout}"
