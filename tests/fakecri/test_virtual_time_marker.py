"""`@pytest.mark.virtual_time`: which tests run in virtual time, and what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import asyncio
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis.strategies import integers

@pytest_asyncio.fixture
async def loop_of_fixture():
    return asyncio.get_running_loop()

@pytest.mark.virtual_time
async def test_marked(loop_of_fixture):
    await asyncio.sleep(86_400)
    assert loop_of_fixture is asyncio.get_running_loop()

@pytest.mark.virtual_time
class TestMarked:
    @pytest.mark.parametrize("hours", [1, 2])
    async def test_in_a_class(self, hours):
        await asyncio.sleep(hours * 3600)

@pytest.mark.virtual_time  # as a module's pytestmark does
def test_without_async():
    pass

@pytest.mark.virtual_time
@given(integers(0, 9))
async def test_of_hypothesis(hours):
    assert type(asyncio.get_running_loop()).__module__.startswith("simclock")

async def test_not_marked(loop_of_fixture):
    assert type(loop_of_fixture).__module__.startswith(("asyncio", "uvloop"))
"""


def ran(directory: Path, *options: str, mode: str = "auto") -> str:
    (directory / "test_one.py").write_text(TESTS)
    (directory / "pytest.ini").write_text(
        f"[pytest]\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=120", *options],
        cwd=directory, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_marked_tests_and_their_fixtures_run_in_virtual_time(tmp_path: Path) -> None:
    assert "6 passed" in ran(tmp_path, "-W", "error")


def test_in_strict_mode_the_marker_is_enough(tmp_path: Path) -> None:
    said = ran(tmp_path, "-W", "error", "-k", "not not_marked", mode="strict")
    assert "5 passed" in said


def test_without_pytest_asyncio_it_says_what_to_install(tmp_path: Path) -> None:
    said = ran(tmp_path, "-p", "no:asyncio")
    assert "the marker virtual_time needs pytest-asyncio 1.4 or newer; install it" in said
    assert "passed" not in said
