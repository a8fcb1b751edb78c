"""A Go program for these tests, built on the spot; tests that want it are skipped without Go."""

from __future__ import annotations

from pathlib import Path

import pytest
from go_programs import built


@pytest.fixture(scope="session")
def sleeper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, as Go builds it by default."""
    return built(tmp_path_factory.mktemp("go") / "sleeper")
