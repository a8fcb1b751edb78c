"""How long the fixtures of the pytest plugin take to give each test its own fake.

A pytest process with generated tests writes down how long every set-up took. The first set-up of a
fixture includes imports; it is not part of the number, but in the remark.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from measure import Row

FIXTURE_MS: Final = {"fakecri": 5, "fakecri_server": 150, "fakecri_socket": 150}
_TESTS: Final = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
async def test_of_{fixture}({fixture}, number):
    pass
"""
_CONFTEST: Final = """
import json, time
from collections import defaultdict
from pathlib import Path
import pytest

TOOK = defaultdict(list)

@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    began = time.perf_counter()
    value = yield
    TOOK[fixturedef.argname].append(time.perf_counter() - began)
    return value

def pytest_sessionfinish():
    Path(__file__).with_name("took.json").write_text(json.dumps(TOOK))
"""


def set_up_s(tests: int) -> dict[str, list[float]]:
    """How many seconds each set-up took, by fixture, in order; `tests` tests for each fixture."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "conftest.py").write_text(_CONFTEST)
        for fixture in FIXTURE_MS:
            text = _TESTS.format(fixture=fixture, tests=tests)
            (directory / f"test_{fixture}.py").write_text(text)
        options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "--rootdir", name]
        command = [sys.executable, "-m", "pytest", *options, name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=name, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        took: dict[str, list[float]] = json.loads((directory / "took.json").read_text())
        return took


def rows(tests: int = 20) -> list[Row]:
    """A row for each fixture: the median of its set-ups in `tests` tests but the first."""
    took = set_up_s(tests)
    found = []
    for fixture, limit in FIXTURE_MS.items():
        first, *others = took[fixture]
        remark = f"pytest plugin, function-scoped; the first one {first * 1e3:.0f} ms"
        value = statistics.median(others) * 1e3
        found.append(
            Row(what=f"fixture {fixture}", value=value, unit="ms", limit=limit, remark=remark)
        )
    return found


if __name__ == "__main__":
    for row in rows():
        print(row)
