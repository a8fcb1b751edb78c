"""`project`: a CgroupFS as a directory of ordinary files that follow it, where there is no FUSE.

Files are written from the fake's state. A file that another process writes and closes is one write
to the fake; a directory that is made or removed there is made or removed in the fake. What the fake
refuses is undone in the directory, but the writer has seen a success by then. So this serves
programs that read, and those that write what is right; see docs/cgroupfs.md. What must never happen
here: the fake's own writes are taken for those of another process.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from inotify_simple import INotify, flags
from msgspec import Struct

from fakecri.cgroupfs.filesystem import CgroupFS
from fakecri.cgroupfs.outside.adoption import Adoption
from fakecri.cgroupfs.outside.errors import require_empty
from fakecri.cgroupfs.outside.requests import PROCESS_FILES, VISIBLE
from fakecri.cgroupfs.path import CgroupPath

REFRESH_S: Final = 0.1
_APPEARED: Final = flags.CREATE | flags.MOVED_TO
_GONE: Final = flags.DELETE | flags.MOVED_FROM
_WATCHED: Final = _APPEARED | _GONE | flags.CLOSE_WRITE | flags.ONLYDIR


class Refusal(Struct, frozen=True):
    """Something that another process wrote, made or removed, and that the fake refused."""

    path: str
    what: str
    error: OSError

    def __str__(self) -> str:
        return f"{self.path}: {self.what}: {(self.error.strerror or '').lower()}"


class Projection:
    """The files of `fs` below `directory`. `refused` is called with each change that was undone."""

    def __init__(
        self,
        fs: CgroupFS,
        directory: Path,
        adoption: Adoption | None,
        refused: Callable[[Refusal], None],
    ) -> None:
        self.directory = directory
        self._fs = fs
        self._adoption = adoption
        self._refused = refused
        self._inotify = INotify(nonblocking=True)
        self._watches: dict[int, CgroupPath] = {}
        self._texts: dict[CgroupPath, str] = {}
        """What was last written into each file."""
        self._directories: dict[CgroupPath, int] = {}

    def fileno(self) -> int:
        """A descriptor that is readable when other processes have done something; then call
        `take_in`."""
        number: int = self._inotify.fileno()
        return number

    def refresh(self) -> None:
        """Make the files say what the fake says now; those that do are left alone."""
        paths: set[CgroupPath] = set()
        self._write_below(self._fs.path(), paths)
        for path in sorted(self._directories, reverse=True):
            if path not in paths:
                self._drop(path)

    def take_in(self) -> None:
        """Do in the fake what other processes have done in the directory, or undo it there."""
        for event in self._inotify.read(timeout=0):
            at = self._watches.get(event.wd)
            if at is None or not event.name:
                continue
            if event.mask & flags.ISDIR:
                self._directory_changed(at / event.name, appeared=bool(event.mask & _APPEARED))
            elif event.mask & flags.CLOSE_WRITE:
                self._file_written(at / event.name)
        self.refresh()

    def close(self) -> None:
        """Leave the directory empty."""
        self._inotify.close()
        for entry in self.directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def _real(self, path: CgroupPath) -> Path:
        return self.directory / str(path).lstrip("/")

    def _write_below(self, path: CgroupPath, there: set[CgroupPath]) -> None:
        there.add(path)
        if path not in self._directories:
            self._add(path)
        files = {entry: self._text(entry) for entry in path.iterdir() if entry.is_file()}
        for stale in [p for p in self._texts if p.parent == path and p not in files]:
            del self._texts[stale]
            self._real(stale).unlink(missing_ok=True)
        for file, text in files.items():
            if self._texts.get(file) != text:
                self._write(file, text)
        for entry in path.iterdir():
            if entry.is_dir():
                self._write_below(entry, there)

    def _add(self, path: CgroupPath) -> None:
        real = self._real(path)
        real.mkdir(exist_ok=True)
        watch = self._inotify.add_watch(real, _WATCHED)
        self._directories[path] = watch
        self._watches[watch] = path
        for entry in sorted(real.iterdir()):  # made before they were watched
            if entry.is_dir():
                self._directory_changed(path / entry.name, appeared=True)

    def _drop(self, path: CgroupPath) -> None:
        """Remove what the fake does not have any more."""
        with suppress(OSError):
            self._inotify.rm_watch(self._directories[path])
        self._forget(path)
        shutil.rmtree(self._real(path), ignore_errors=True)

    def _forget(self, path: CgroupPath) -> None:
        """Forget a directory that is gone; if the fake has it, the next refresh makes it anew."""
        watch = self._directories.pop(path, None)
        if watch is not None:
            del self._watches[watch]
        self._texts = {p: t for p, t in self._texts.items() if p.parent != path}

    def _text(self, file: CgroupPath) -> str:
        try:
            return file.read_text()
        except OSError:
            return ""  # only to be written, or not to be read now

    def _write(self, file: CgroupPath, text: str) -> None:
        """Write a file. An ordinary user may write its own file only where the mode allows it, so
        the mode is changed for the moment. The user must also be able to read what other users
        write there."""
        real, mode = self._real(file), file.stat().st_mode & 0o777 | 0o400
        new = file not in self._texts
        self._texts[file] = text
        if not new and not mode & 0o200:
            real.chmod(mode | 0o200)
        real.write_text(text)
        if new or not mode & 0o200:
            real.chmod(mode)

    def _directory_changed(self, path: CgroupPath, *, appeared: bool) -> None:
        if self._real(path).is_dir() != appeared or path.exists() == appeared:
            return  # no news, or no longer
        if appeared and path in self._directories:
            return  # our own doing; the fake has dropped it since
        try:
            if appeared:
                path.mkdir()
            else:
                self._forget(path)
                path.rmdir()
        except OSError as error:
            self._refused(Refusal(str(path), "mkdir" if appeared else "rmdir", error))
            if appeared:
                shutil.rmtree(self._real(path), ignore_errors=True)

    def _file_written(self, file: CgroupPath) -> None:
        try:
            text = self._real(file).read_bytes().translate(VISIBLE).decode("ascii")
        except OSError:
            return  # removed since
        if text == self._texts.get(file) or not file.is_file():
            return
        self._texts.pop(file, None)  # whatever comes of it, the fake's text goes back there
        try:
            if self._adoption is not None and file.name in PROCESS_FILES:
                text = self._adoption.with_process(text, 0)
            file.write_text(text)
        except OSError as error:
            self._refused(Refusal(str(file), f"write {text!r}", error))


@asynccontextmanager
async def project(
    fs: CgroupFS,
    directory: str | Path,
    *,
    real_processes: bool = False,
    refresh_s: float = REFRESH_S,
    refused: Callable[[Refusal], None] = lambda _refusal: None,
) -> AsyncIterator[Projection]:
    """Keep plain files in an empty directory in step with `fs` until the block ends.

    What other processes do there is seen at once; what happens in the fake is there after at most
    `refresh_s` seconds, or after `refresh()`. `real_processes`: as of `mount`. `refused`: called
    with every change that the fake refused. Raises OutsideError, and OSError of the directory.
    """
    at = Path(directory).absolute()
    require_empty(at, "project")
    loop = asyncio.get_running_loop()
    adoption = Adoption(fs) if real_processes else None
    projection = Projection(fs, at, adoption, refused)

    async def follow() -> None:
        while True:
            with suppress(OSError):  # others remove files at the same time; the next look mends it
                projection.refresh()
            await asyncio.sleep(refresh_s)

    try:
        projection.refresh()
        loop.add_reader(projection.fileno(), projection.take_in)
        following = asyncio.create_task(follow())
        try:
            yield projection
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            loop.remove_reader(projection.fileno())
    finally:
        projection.close()
        if adoption is not None:
            adoption.close()
