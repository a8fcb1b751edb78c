"""The sides that the tests compare; and what a run against a real containerd found is kept where
REFKUBELET_VERIFIED_RESULTS says."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from api_results import ApiResults, save_api
from cgroup_kernel import RealSide, why_not_real
from cgroup_sides import (
    NUMBERS,
    FakeSide,
    MountedSide,
    fake_cgroups,
    fake_side,
    make_own,
    why_not_mounted,
)
from contract_runtime import runtime

from fakecri.cgroupfs.outside import mount_in_background
from results import Results, save
from simclock import RealClock

__all__ = ["runtime"]

RESULTS: Final = pytest.StashKey[Results]()
API_RESULTS: Final = pytest.StashKey[ApiResults]()
FILE_VARIABLE: Final = "REFKUBELET_VERIFIED_RESULTS"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RESULTS] = Results()
    config.stash[API_RESULTS] = ApiResults()


@pytest.fixture(scope="session")
def api_results(request: pytest.FixtureRequest) -> ApiResults:
    return request.config.stash[API_RESULTS]


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest) -> Results:
    return request.config.stash[RESULTS]


def _of_contract(item: pytest.Item) -> bool:
    """A test of the CRI that runs on both sides, on the real one."""
    here, real = item.path.parent == Path(__file__).parent, item.get_closest_marker("real")
    of_cri = item.path.stem.startswith("test_cri_") and item.path.stem != "test_cri_machine"
    return here and real is not None and of_cri


def _of_api_contract(item: pytest.Item) -> bool:
    """The same for the API server."""
    real = item.get_closest_marker("real") is not None
    return real and item.path.name == "test_api_contract.py"


def pytest_collection_finish(session: pytest.Session) -> None:
    results = session.config.stash[RESULTS]
    results.expected = sum(map(_of_contract, session.items))
    session.config.stash[API_RESULTS].expected = sum(map(_of_api_contract, session.items))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _of_contract(item):
        results = item.config.stash[RESULTS]
        results.passed += report.when == "call" and report.passed
        results.failed += report.failed
    if _of_api_contract(item):
        of_api = item.config.stash[API_RESULTS]
        of_api.passed += report.when == "call" and report.passed
        of_api.failed += report.failed
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = os.environ.get(FILE_VARIABLE)
    if not path:
        return
    results = session.config.stash[RESULTS]
    kernel = ".".join(platform.release().split(".")[:2])
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    results.facts = {
        "date": datetime.fromtimestamp(RealClock().wall_ns() / 1e9, UTC).date().isoformat(),
        "host": f"Linux {kernel}, cgroup v{2 if unified else 1}",
    }
    kept = save(Path(path), results)
    kept = save_api(Path(path), session.config.stash[API_RESULTS], results.facts) or kept
    print(f"\nresults {'kept in' if kept else 'of a part of the tests: not kept in'} {path}")


@pytest.fixture(scope="session")
def mounted_fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], MountedSide]]:
    """Makes sides with directories of their own in one mounted fake: a mount takes its time."""
    if reason := why_not_mounted():
        pytest.skip(reason)
    fs, at = fake_cgroups(), tmp_path_factory.mktemp("cgroup")
    with mount_in_background(fs, at) as run:

        def made() -> MountedSide:
            side = MountedSide(FakeSide(fs, own=f"own-{next(NUMBERS)}"), at, run)
            run(lambda: make_own(side.fake))
            return side

        yield made


@pytest.fixture(params=["fake", "mounted", pytest.param("real", marks=pytest.mark.real)])
def side(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "real" and (reason := why_not_real()):
        pytest.skip(reason)
    made: Any
    if request.param == "mounted":
        made = request.getfixturevalue("mounted_fake")()
    else:
        made = fake_side() if request.param == "fake" else RealSide()
    yield made
    made.close()
