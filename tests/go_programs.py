"""Builds the Go program that tests of warped time run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "simclock" / "timewarp" / "sleeper.go"


def built(target: Path, *options: str) -> Path:
    """The program of `sleeper.go`, built with these further options."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on this machine")
    environment = {**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0"}
    made = subprocess.run(
        [go, "build", *options, "-o", str(target), str(SOURCE)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return target
