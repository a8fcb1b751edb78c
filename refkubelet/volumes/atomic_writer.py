"""Writes the files of a volume so that containers see all the old ones or all the new (NODE-206).

The files are in a directory `..<time>.<random>`; `..data` links to it, and each name at the top of
the volume links to `..data/<name>`. An update makes a new directory, and moves a new link over
`..data` in one step. What is in the volume was written here: containers have it read-only.
What must never happen here: a container sees half an update; unchanged content is written again.
Upstream: pkg/volume/util/atomic_writer.go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final

from msgspec import Struct

from refkubelet.host.untrusted_files import holds, looked_at, removed_now
from refkubelet.model.names import safe_join
from refkubelet.volumes.payload import FileProjection, Payload, checked, stale_paths, visible_names
from simclock import Clock, Ids

DATA: Final = "..data"
NEW_DATA: Final = "..data_tmp"
DIRECTORY_MODE: Final = 0o755
TIME_FORMAT: Final = "..%Y_%m_%d_%H_%M_%S."


def directory_prefix(now: datetime) -> str:
    """The beginning of a data directory's name.

    >>> directory_prefix(datetime(2026, 2, 3, 4, 5, 6))
    '..2026_02_03_04_05_06.'
    """
    return now.strftime(TIME_FORMAT)


class AtomicWriter(Struct, frozen=True):
    """Writes volumes."""

    clock: Clock
    ids: Ids

    def write(self, volume: str, payload: Payload, set_permissions: Callable[[], None]) -> bool:
        """Make the volume's directory hold these files. `set_permissions` is called between writing
        and showing them. Returns whether they differed from those before. Raises `PayloadError`,
        OSError."""
        files = checked(payload)
        old = _link_target(os.path.join(volume, DATA))
        old_path = safe_join(volume, old) if old is not None else None
        stale = stale_paths(_paths_below(old_path), files) if old_path is not None else []
        changed = old_path is None or bool(stale) or _differs(old_path, files)
        if changed:
            self._publish(volume, files, set_permissions)
        _link_names(volume, files)
        for path in stale:
            if "/" not in path:
                _remove_link(os.path.join(volume, path))
        if changed and old_path is not None:
            removed_now(old_path)
        return changed

    def _publish(self, volume: str, files: Payload, set_permissions: Callable[[], None]) -> None:
        """Write the files into a new directory and let `..data` link to it."""
        name = self._new_directory(volume)
        new = os.path.join(volume, name)
        try:
            os.chmod(new, DIRECTORY_MODE)  # mkdir applies the umask
            for path, file in files.items():
                _write_file(os.path.join(new, path), file)
            set_permissions()
            link = os.path.join(volume, NEW_DATA)
            _remove_link(link)  # left by a kubelet that ended just there
            os.symlink(name, link)
            os.rename(link, os.path.join(volume, DATA))
        except BaseException:
            with suppress(OSError):
                removed_now(new)
            raise

    def _new_directory(self, volume: str) -> str:
        """Make a data directory with a name that nobody has; returns the name."""
        while True:
            name = directory_prefix(self.clock.now()) + str(int(self.ids.hex(8), 16))
            try:
                os.mkdir(safe_join(volume, name), 0o700)
            except FileExistsError:
                continue
            return name


def _write_file(path: str, file: FileProjection) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    with open(descriptor, "wb") as target:
        target.write(file.data)
        os.fchmod(descriptor, file.mode)
        if file.user is not None:
            os.fchown(descriptor, file.user, -1)


def _link_names(volume: str, files: Payload) -> None:
    owners = {path.split("/", 1)[0]: file.user for path, file in files.items()}
    for name in visible_names(files):
        link = os.path.join(volume, name)
        if not os.path.lexists(link):
            os.symlink(os.path.join(DATA, name), link)
            user = owners[name]
            if user is not None:
                os.lchown(link, user, -1)


def _remove_link(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return None


def _differs(directory: str, files: Payload) -> bool:
    """Whether a file is missing or has other content; modes and owners are not looked at."""
    return any(not holds(os.path.join(directory, path), f.data) for path, f in files.items())


def _paths_below(directory: str) -> Iterator[str]:
    """All paths below a directory, relative to it."""
    unvisited = [""]
    while unvisited:
        above = unvisited.pop()
        with suppress(OSError):
            for met in looked_at(os.path.join(directory, above)):
                path = os.path.join(above, met.name)
                yield path
                if met.is_directory:
                    unvisited.append(path)
