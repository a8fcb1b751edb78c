"""The commands of the tutorials run as they stand there, in an empty directory, and say what the
tutorials show.

A fence with a title is a file, `sh` is run, and the lines of the `text` after it are in its output.
What a step exports, later ones have. A page with kubectl wants one: that of REFKUBELET_KUBECTL, or
the one on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import ROOT
from process_world import free_port

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
STEP_S = 240.0
KUBECTL = os.environ.get("REFKUBELET_KUBECTL") or shutil.which("kubectl")
PORT = "10350"  # in pages; in tests it is a free one
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
    exports = before = ""
    for language, title, text in FENCE.findall(page):
        if title:
            files[title] = text
        elif language == "sh":
            steps.append(Step(dict(files), exports + text, ""))
            exports += "".join(re.findall(r"^export .*\n", text, re.M))
        elif language == "text" and before == "sh":
            steps[-1] = Step(steps[-1].files, steps[-1].commands, text)
        before = language
    return steps


def run(commands: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the commands of one step; what they left in the background ends when they failed."""
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
    assert len(TUTORIALS) == 5
    assert all(steps_of(page.read_text()) for page in TUTORIALS)


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_of_a_tutorial_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text().replace(PORT, str(free_port()))
    programs = [str(Path(sys.executable).parent)]
    if "kubectl" in page.stem:
        if not KUBECTL:
            pytest.skip("needs kubectl (on PATH, or named by REFKUBELET_KUBECTL)")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "kubectl").symlink_to(KUBECTL)
        programs.append(str(tmp_path / "bin"))
    environment = {**os.environ, "COLUMNS": "120"}
    environment["PATH"] = os.pathsep.join([*programs, os.environ["PATH"]])
    environment.pop("PYTEST_ADDOPTS", None)
    try:
        follow(text, tmp_path, environment)
    except BaseException:  # the step that ends what earlier ones began was not reached
        for file in tmp_path.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)
        raise


def follow(page: str, directory: Path, environment: dict[str, str]) -> None:
    """Do what a page says; raises AssertionError where it does not come out as shown."""
    written: set[str] = set()
    for step in steps_of(page):
        for name in step.files.keys() - written:
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(step.files[name])
            written.add(name)
        done = run(step.commands, directory, environment)
        assert done.returncode == 0, f"{step.commands}\n{done.stdout}"
        missing = [line for line in step.said.splitlines() if line.strip() not in done.stdout]
        assert missing == [], f"{missing} of {step.commands}\n{done.stdout}"
