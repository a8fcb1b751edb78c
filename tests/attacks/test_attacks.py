"""One short round of attacks on a running kubelet (NODE-230); `python tests/attacks/attacks.py` has
the long one. How long an answer takes says nothing on a busy machine; that one comes does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attacks
import pytest

from kubelet_conformance.harness.machines.racing import CannotRace
from refkubelet.host.untrusted_files import removed_now
from refkubelet.volumes.mounting import RealMounts


@pytest.fixture
def directory() -> Iterator[Path]:
    """With a short name: paths of sockets end at 107 characters. What is mounted below it, and
    deeper than others go, is removed."""
    path = tempfile.mkdtemp(prefix="attack-")
    yield Path(path)
    if os.geteuid() == 0:
        RealMounts().unmount_below(path)
    removed_now(path)


async def test_racing_containers_harm_nobody_NODE_230(directory: Path) -> None:
    try:
        wrong = await attacks.run(directory, seconds=1.0, files=1000, p99_s=10.0)
    except CannotRace as error:
        pytest.skip(str(error))
    assert wrong == []
