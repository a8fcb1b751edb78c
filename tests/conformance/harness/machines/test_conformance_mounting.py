"""Mounts by system calls: what is mounted in a namespace of its own is seen by nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubelet_conformance.harness.machines import mounting

REFUSED = 77
PROGRAM = f"""
import os, sys
from pathlib import Path
from kubelet_conformance.harness.machines import mounting
place = Path(sys.argv[1])
try:
    mounting.own_namespace()
except OSError:
    sys.exit({REFUSED})
mounting.mount_memory(place)
mounting.make_shared(place)
(place / "file").touch()
print(os.path.ismount(place), flush=True)
sys.stdin.readline()
mounting.unmount(place)
print(os.path.ismount(place), (place / "file").exists())
"""


def test_mounts_in_a_namespace_of_its_own_are_seen_by_nobody_else(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    root = Path(mounting.__file__).parents[4]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        said = program.stdout.readline()
        seen = os.path.ismount(tmp_path), (tmp_path / "file").exists()
        program.stdin.close()
        rest = program.stdout.read()
    if program.returncode == REFUSED:
        pytest.skip("this process may not have a mount namespace of its own")
    assert (said, rest, program.returncode) == ("True\n", "False False\n", 0)
    assert seen == (False, False)


IN_MEMORY = f"""
import os, sys
from pathlib import Path
from kubelet_conformance.harness.machines import mounting
from kubelet_conformance.harness.runs.warped import in_memory
try:
    mounting.own_namespace()
except OSError:
    sys.exit({REFUSED})
with in_memory(Path(sys.argv[1])):
    told = os.statvfs(sys.argv[1])
    print(1 - told.f_bavail / told.f_blocks, 1 - told.f_favail / told.f_files)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[4] == sys.argv[1]:
            print(line)
"""


@pytest.fixture
def disk_in_memory(tmp_path: Path) -> list[str]:
    """The shares of its bytes and inodes that are used, and its line of /proc/self/mountinfo."""
    root = Path(mounting.__file__).parents[4]
    told = subprocess.run(
        [sys.executable, "-c", IN_MEMORY, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    if told.returncode == REFUSED:
        pytest.skip("this process may not have a mount namespace of its own")
    return told.stdout.splitlines()


def test_a_disk_in_memory_meets_a_threshold_that_any_disk_meets(disk_in_memory: list[str]) -> None:
    used = [float(share) for share in disk_in_memory[0].split()]
    assert len(used) == 2
    assert min(used) > 2 * (1 - 0.999)
    assert max(used) < 0.05


def test_a_kubelet_need_not_mount_a_disk_in_memory_once_more(disk_in_memory: list[str]) -> None:
    (mount,) = disk_in_memory[1:]
    assert " shared:" in mount


def test_what_cannot_be_unmounted_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"argument|permitted") as caught:
        mounting.unmount(tmp_path)
    assert caught.value.filename == str(tmp_path)
