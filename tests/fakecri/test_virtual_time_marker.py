"""`@pytest.mark.virtual_time`: which tests run in virtual time, and what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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

    def test_without_async(self):  # marked with all others
        pass

@pytest.mark.virtual_time
@given(integers(0, 9))
async def test_of_hypothesis(hours):
    assert type(asyncio.get_running_loop()).__module__.startswith("simclock")

async def test_not_marked(loop_of_fixture):
    assert type(loop_of_fixture).__module__.startswith(("asyncio", "uvloop"))
"""


REAPER = """
import asyncio
import time
from datetime import datetime, timezone
from time import time_ns

import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub

HOUR_S = 3600
AGES = {
    "time": lambda at_ns: time.time() - at_ns / 1e9,
    "time_ns": lambda at_ns: (time_ns() - at_ns) / 1e9,
    "now": lambda at_ns: (datetime.now() - datetime.fromtimestamp(at_ns / 1e9)).total_seconds(),
    "utc": lambda at_ns: datetime.now(timezone.utc).timestamp() - at_ns / 1e9,
    "gmtime": lambda at_ns: time.mktime(time.localtime()) - at_ns / 1e9,
    "real": lambda at_ns: REAL() - at_ns / 1e9,
}
REAL = time.perf_counter  # a clock that is not shown the fake's time


async def reap(runtime, age_s):
    \"\"\"The code under test: stops sandboxes that are older than an hour; returns how many.\"\"\"
    items = (await runtime.ListPodSandbox(cri.ListPodSandboxRequest())).items
    old = [item for item in items if age_s(item.created_at) > HOUR_S]
    for item in old:
        await runtime.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=item.id))
    return len(old)


@pytest.mark.virtual_time
@pytest.mark.parametrize("clock", AGES)
async def test_reaper(fakecri, clock):
    runtime = RuntimeServiceStub(fakecri.channel())
    config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="1"))
    await runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config))
    assert await reap(runtime, AGES[clock]) == 0
    await asyncio.sleep(HOUR_S - 1)
    assert await reap(runtime, AGES[clock]) == 0
    await asyncio.sleep(2)
    assert await reap(runtime, AGES[clock]) == 1
"""
SOURCES = """
import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
import pytest

@pytest.fixture
def began():
    return time.time(), time.monotonic()

@pytest.fixture
def real_fixture():
    async def passes():
        before = time.time(), time.monotonic()
        await asyncio.sleep(0.01)
        return time.time() > before[0] and time.monotonic() > before[1]
    return asyncio.run(passes())

@pytest.mark.virtual_time
async def test_sync_fixtures_and_log_records_are_in_it(began, caplog):
    assert began == (time.time(), time.monotonic()) == (1767225600, 0)
    await asyncio.sleep(60)
    assert (time.time() - began[0], time.monotonic() - began[1]) == (60, 60)
    logging.warning("now")
    assert int(caplog.records[0].created) == 1767225660

@pytest.mark.virtual_time
async def test_begins_anew(began):
    assert began == (1767225600, 0)

@pytest.mark.virtual_time
async def test_a_client_with_a_deadline_of_its_own_ends():
    deadline, tries = time.monotonic() + 30, 0
    while time.monotonic() < deadline:
        await asyncio.sleep(1)
        tries += 1
    assert tries == 30

@pytest.mark.virtual_time
async def test_real_loops_threads_and_processes_are_not(real_fixture):
    assert real_fixture
    told = []
    thread = threading.Thread(target=lambda: told.append((time.time(), time.monotonic())))
    thread.start()
    thread.join()
    child = [sys.executable, "-c", "import time; print(time.time())"]
    told.append((float(subprocess.run(child, capture_output=True).stdout), 0))
    assert [abs(wall - os.stat(__file__).st_atime) < 600 for wall, _ in told] == [True, True]
    assert told[0][1] > 1

def test_not_marked():
    assert time.time() > 1767225600 + 86400 or time.time() < 1767225600
"""


def ran(directory: Path, *options: str, mode: str = "auto", tests: str = TESTS) -> str:
    (directory / "test_one.py").write_text(tests)
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


def test_a_marked_test_that_is_not_async_is_refused(tmp_path: Path) -> None:
    test = "import pytest\n\n@pytest.mark.virtual_time\ndef test_in_vain() -> None: ...\n"
    said = ran(tmp_path, tests=test)
    assert "test_in_vain: the marker virtual_time is for `async def` tests" in said
    assert "passed" not in said


def test_a_clients_clocks_are_the_fakes(tmp_path: Path) -> None:
    """A reaper stops what is older than an hour by any clock of Python, and not a second before;
    with a clock that shows other times its test fails."""
    pytest.importorskip("time_machine")
    said = ran(tmp_path, "-W", "error", "-rA", tests=REAPER)
    assert "1 failed, 5 passed" in said
    assert "6 failed" in ran(tmp_path, "-o", "fakecri_python_clocks=false", tests=REAPER)


def test_what_shows_virtual_time_and_what_stays_real(tmp_path: Path) -> None:
    pytest.importorskip("time_machine")
    assert "5 passed" in ran(tmp_path, "-W", "error", tests=SOURCES)


def test_without_time_machine_it_says_what_to_install_or_set(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import sys\nsys.modules['time_machine'] = None\n")
    said = ran(tmp_path, "-p", "no:time_machine")
    assert "needs time-machine, which lets time.time() and datetime.now() show virtual time" in said
    assert "pip install time-machine" in said
    assert "fakecri_python_clocks = false" in said
    assert "passed" not in said
    assert "6 passed" in ran(tmp_path, "-p", "no:time_machine", "-o", "fakecri_python_clocks=false")
