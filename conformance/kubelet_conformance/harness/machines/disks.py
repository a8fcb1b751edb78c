"""A disk for the kubelet's root directory that a case can fill: a loop-mounted file system, or a
fake machine's.

A file of ballast sets what is left on it, beside the files of kubelet and pods. No mount or file
outlives the case, and the machine's own disks are not filled.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fakecri import FakeNode
from kubelet_conformance.harness.machines.fake_machine import NODE, leave_disk, leave_inodes

SIZE_BYTES: Final = 512 << 20
INODES: Final = 4096
_BALLAST: Final = ".ballast"


def why_no_disk() -> str:
    """Why this machine cannot give a case a disk of its own; "" when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not Path("/dev/loop-control").exists():
        return "has no loop devices"
    missing = [name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name) is None]
    return f"has no {missing[0]}" if missing else ""


class OwnDisk:
    """The loop-mounted file system at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._empty_files = 0

    def leave(self, free_bytes: int) -> None:
        """Make the ballast as big as it must be to leave so many bytes free now."""
        ballast = self._root / _BALLAST
        ballast.unlink(missing_ok=True)
        statfs = os.statvfs(self._root)
        to_fill = statfs.f_bavail * statfs.f_frsize - free_bytes
        if to_fill > 0:
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, to_fill)  # nothing is written

    def leave_inodes(self, free: int) -> None:
        """Make so many empty files that so many inodes are left free now."""
        place = self._root / f"{_BALLAST}-inodes"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for number in range(os.statvfs(self._root).f_favail - free):
            (place / str(number)).touch()

    def follow(self, happened: int | None = None) -> None:
        """Nothing to do: a real file system follows by itself."""


class FollowedDisk:
    """The disk of a fake machine on which the files below `root` count: what pods write and remove
    there changes what is left, as on a real one."""

    def __init__(self, machine: FakeNode, root: Path) -> None:
        self._machine = machine
        self._root = root
        self._left: dict[str, tuple[int, int]] = {}  # what is left -> wanted, and used then
        self._last: tuple[int | None, tuple[int, int]] = None, (0, 0)

    def leave(self, free_bytes: int) -> None:
        """Leave so many bytes free now."""
        self._left["bytes"] = free_bytes, self._used()[0]
        self.follow()

    def leave_inodes(self, free: int) -> None:
        """Leave so many inodes free now."""
        self._left["inodes"] = free, self._used()[1]
        self.follow()

    def follow(self, happened: int | None = None) -> None:
        """Subtract what has been written since, and add what has been removed. `happened`: the
        files are those of the last time if this is (`Clock.happened`)."""
        if not self._left:
            return
        if happened is None or happened != self._last[0]:
            self._last = happened, self._used()
        used_bytes, used_inodes = self._last[1]
        if "bytes" in self._left:
            free, before = self._left["bytes"]
            leave_disk(self._machine, NODE, free + before - used_bytes)
        if "inodes" in self._left:
            free, before = self._left["inodes"]
            leave_inodes(self._machine, NODE, free + before - used_inodes)

    def _used(self) -> tuple[int, int]:
        """The bytes and the number of the files below the root directory."""
        sizes = [
            os.lstat(os.path.join(directory, name)).st_size
            for directory, _, names in os.walk(self._root)
            for name in names
        ]
        return sum(sizes), len(sizes)


@asynccontextmanager
async def own_disk(root: Path) -> AsyncIterator[OwnDisk]:
    """A new file system of SIZE_BYTES with INODES inodes, mounted at the directory `root` until the
    block ends. Raises RuntimeError."""
    image = root.parent / f"{root.name}.img"
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    try:
        await run_command("mkfs.ext4", "-q", "-m", "0", "-N", str(INODES), str(image))
        try:
            await run_command("mount", "-o", "loop", str(image), str(root))
            yield OwnDisk(root)
        finally:
            if os.path.ismount(root):  # the end of a kubelet unmounts what is below its case
                await run_command("umount", "--lazy", str(root))
    finally:
        image.unlink()


@asynccontextmanager
async def shared_mounts(directory: Path) -> AsyncIterator[None]:
    """A block in which mounts made below the directory are also seen by a runtime in a container
    that has it. Raises RuntimeError."""
    directory.mkdir(parents=True, exist_ok=True)
    await run_command("mount", "--bind", str(directory), str(directory))
    try:
        await run_command("mount", "--make-shared", str(directory))
        yield
    finally:
        await run_command("umount", "--lazy", str(directory))


async def run_command(*command: str) -> None:
    """Run the command and wait. Raises RuntimeError with its words when it fails."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    ending = asyncio.ensure_future(process.communicate())
    try:
        _, error_output = await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending  # a mount that comes about later would stay
        raise
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {error_output.decode().strip()}")
