"""A data directory: every change is a line in a file before the server answers.

`journal.jsonl` begins with a line that says what it is, then each line is one change: its revision,
the key, and the object after it (null: removed). At a start the file is read again, and so is the
history that watches need. Once it holds far more changes than objects it is written anew beside the
old one and takes its place.

What must never happen here: an answer to a write that a crash can still lose, and a broken line
before good ones. A line is on the disk (fsync) before the change counts; of a line that could not
be written whole the begin is cut off again, and if even that fails no more is taken.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final, Self

import msgspec
from msgspec import Struct

FORMAT: Final = 1
"""The version of the file's format."""
_NAME: Final = "journal.jsonl"
_REWRITE_AT: Final = 100_000
_log = logging.getLogger(__name__)


class DataError(Exception):
    """A data directory that cannot be used; the text says why and what to do."""


class Entry(Struct, frozen=True):
    """One change, as it is kept."""

    revision: int
    key: tuple[str, str, str]
    """Resource, namespace and name."""
    object: dict[str, Any] | None
    """The object after the change; None: it was removed."""


class Journal:
    """The journal of one data directory, locked against other servers until `close`."""

    def __init__(self, path: Path, file: IO[bytes], lock: IO[bytes], lines: int) -> None:
        self._path = path
        self._file = file
        self._lock = lock
        self._lines = lines
        self._good_bytes = path.stat().st_size
        self._broken = False

    @classmethod
    def open(cls, directory: Path) -> tuple[Self, list[Entry], int]:
        """The journal of a directory, which is made if it is not there; what is in it, the oldest
        change first; and up to which revision the changes are forgotten.

        Raises: DataError for one that cannot be written, that another server has, or that is no
        data directory of this version.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = _locked(directory)
            try:
                return cls._of_locked(directory / _NAME, lock)
            except BaseException:
                lock.close()
                raise
        except OSError as error:
            raise DataError(
                f"cannot use {directory}: {error.strerror or error}; name another directory, one "
                "that can be written"
            ) from None

    @classmethod
    def _of_locked(cls, path: Path, lock: IO[bytes]) -> tuple[Self, list[Entry], int]:
        if not path.exists():
            _write_whole(path, (), 0)
        entries, forgotten, good_bytes = _read(path)
        file = path.open("r+b", buffering=0)
        file.truncate(good_bytes)
        file.seek(good_bytes)
        return cls(path, file, lock, len(entries)), entries, forgotten

    def append(self, entry: Entry) -> None:
        """Keep a change; it is on the disk when this returns. Raises: OSError when it is not."""
        if self._broken:
            raise OSError(f"{self._path} could not be repaired after a failed write")
        line = _line(entry)
        try:
            _write_all(self._file, line)
            os.fsync(self._file.fileno())
        except OSError:
            self._cut_back()
            raise
        self._good_bytes += len(line)
        self._lines += 1

    def has_far_more_than(self, objects: int) -> bool:
        """Whether the file is worth being written anew, for that many objects."""
        return self._lines > _REWRITE_AT + 10 * objects

    def rewrite(self, entries: Iterable[Entry], revision: int) -> None:
        """Begin the file anew with these objects, all there are at `revision`; the changes up to
        it are forgotten. Raises: OSError; then the old one goes on."""
        lines = sorted(entries, key=lambda entry: entry.revision)
        _write_whole(self._path, lines, revision)
        self._file.close()
        self._file = self._path.open("ab", buffering=0)
        self._lines, self._good_bytes = len(lines), self._path.stat().st_size

    def close(self) -> None:
        """Let go of the directory."""
        self._file.close()
        self._lock.close()

    def _cut_back(self) -> None:
        try:
            self._file.truncate(self._good_bytes)
            self._file.seek(self._good_bytes)
        except OSError:
            self._broken = True


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Write all of it to an unbuffered file; such a one may take a part at a time."""
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[file.write(unwritten) :]


def _line(entry: Entry) -> bytes:
    row = {"revision": entry.revision, "key": entry.key, "object": entry.object}
    return msgspec.json.encode(row) + b"\n"


def _locked(directory: Path) -> IO[bytes]:
    """The lock of a directory, held as long as the file is open."""
    lock = (directory / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise DataError(
            f"another fakekubeapi uses {directory}: stop it, or name another directory"
        ) from None
    return lock


def _write_whole(path: Path, entries: Iterable[Entry], forgotten: int) -> None:
    """Write a journal beside the one that is there, and put it in its place at once."""
    beside = path.with_suffix(".new")
    with beside.open("wb") as file:
        header = {"fakekubeapi": FORMAT, "forgotten": forgotten}
        file.write(msgspec.json.encode(header) + b"\n")
        file.writelines(map(_line, entries))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(path: Path) -> tuple[list[Entry], int, int]:
    """The changes in a journal, which are forgotten, and how many of its bytes are good.

    A last line without its end was being written when the server died: it is left out, and nobody
    was told that it counts.
    """
    data = path.read_bytes()
    good = data.rfind(b"\n") + 1
    if good < len(data):
        _log.warning("%s: the last line is torn, %d bytes dropped", path, len(data) - good)
    lines = data[:good].split(b"\n")[:-1] or [b""]
    forgotten = _forgotten(path, lines[0])
    entries = [_entry(path, number, line) for number, line in enumerate(lines[1:], 2)]
    return entries, forgotten, good


def _forgotten(path: Path, line: bytes) -> int:
    """What the first line says, after checking that it is of such a journal."""
    try:
        header = msgspec.json.decode(line)
    except msgspec.DecodeError:
        header = None
    if not isinstance(header, dict) or "fakekubeapi" not in header:
        raise DataError(f"{path} is no journal of fakekubeapi: name another directory")
    if header["fakekubeapi"] != FORMAT:
        raise DataError(
            f"{path} is of another version: format {header['fakekubeapi']}, this fakekubeapi has "
            f"{FORMAT}; name another directory, or use the fakekubeapi that wrote it"
        )
    return int(header.get("forgotten", 0))


def _entry(path: Path, number: int, line: bytes) -> Entry:
    try:
        return msgspec.convert(_mapping(msgspec.json.decode(line)), Entry)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise DataError(
            f"{path}, line {number} is broken ({error}): restore the file, or name another "
            "directory"
        ) from None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
