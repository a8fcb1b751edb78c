"""The check that no test leaves files open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from open_files import MAY_STAY

TESTS = """
import os, pytest

@pytest.fixture
def closed_at_the_end():
    made = [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]
    yield
    for one in made:
        os.close(one)

def test_closes(closed_at_the_end): ...

def test_leaves_few():
    for _ in range(FEW):
        os.open(os.devnull, os.O_RDONLY)

def test_leaves_many():
    for _ in range(FEW + 1):
        os.open(os.devnull, os.O_RDONLY)

def test_after_it(): ...
"""


def test_who_leaves_many_files_open_fails_and_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "test_files.py").write_text(TESTS.replace("FEW", str(MAY_STAY)))
    worlds = str(Path(__file__).parents[1] / "worlds")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "open_files", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": worlds, "PYTHONSAFEPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed, 1 error" in done.stdout, done.stdout
    assert "ERROR test_files.py::test_leaves_many" in done.stdout
    told = f"the test left {MAY_STAY + 1} files open, at most {MAY_STAY} may stay: "
    assert f"{told}{MAY_STAY + 1} x /dev/null" in done.stdout
