"""The files of one container: what an image and the create request put there, and what its programs
write. In memory only.

What must never happen here: a file of the machine that the fake really runs on is read or written.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import posixpath
from collections.abc import Callable, Mapping
from typing import Final

from fakecri.core.image_volumes import TOP
from fakecri.core.objects import Container
from fakecri.invocations.identity import GROUP, PASSWD, identity_of

_OF_IMAGE: Final = ("/bin", "/dev", "/dev/shm", "/etc", "/proc", "/root", "/sys", "/tmp", "/var")
_FOR_ALL: Final = ("/tmp", "/dev")
_KERNEL: Final = ("/proc", "/sys")
_NOT_DIRECTORIES: Final = (
    "/dev/termination-log",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/hostname",
)
_NAMESERVER: Final = "nameserver 127.0.0.53\n"
MOST_BYTES: Final = 64 * 1024 * 1024
"""What the files of one container may hold together."""


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


class Files:
    """Paths are absolute and normal (`Invocation.path` makes them so); `name` is what errors call
    the file."""

    def __init__(self, may_write: Callable[[str], int] = lambda path: 0) -> None:
        self._files: dict[str, bytes] = {}
        self._directories = {"/", *_OF_IMAGE}
        self._gone: set[str] = set()
        self._may_write = may_write

    def put(self, path: str, data: bytes) -> None:
        """A file that is there from the start, with the directories above it."""
        self._files[path] = data
        self.put_directory(posixpath.dirname(path))

    def put_directory(self, path: str) -> None:
        """A directory that is there from the start, with those above it."""
        while path not in self._directories:
            self._directories.add(path)
            path = posixpath.dirname(path)

    def read(self, path: str, *, lenient: bool = False, name: str = "") -> bytes:
        """What is in it. `lenient`: a file that nobody made or removed is there and empty. Raises:
        OSError."""
        if path in self._files:
            return self._files[path]
        if path in self._directories:
            raise _error(errno.EISDIR, name or path)
        if path == "/dev/null" or self._is_taken_to_be(path, lenient=lenient):
            return b""
        raise _error(errno.ENOENT, name or path)

    def _is_taken_to_be(self, path: str, *, lenient: bool) -> bool:
        return lenient and path not in self._gone

    def is_file(self, path: str, *, lenient: bool = False) -> bool:
        if path in self._files or path == "/dev/null":
            return True
        return path not in self._directories and self._is_taken_to_be(path, lenient=lenient)

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def size(self, path: str) -> int:
        """Its bytes, 0 for what is no file."""
        return len(self._files.get(path, b""))

    def names_in(self, directory: str) -> list[str]:
        """What is in a directory, sorted."""
        found = {p for p in (*self._files, *self._directories) if p != "/"}
        return sorted(posixpath.basename(p) for p in found if posixpath.dirname(p) == directory)

    def matching(self, pattern: str, cwd: str) -> list[str]:
        """The paths that fit, as the pattern is written: from `cwd` or from the root."""
        whole = posixpath.normpath(posixpath.join(cwd, pattern))
        parts = whole.strip("/").split("/")
        found = ["/"]
        for part in parts:
            found = [
                posixpath.join(directory, name)
                for directory in found
                for name in self.names_in(directory)
                if fnmatch.fnmatchcase(name, part) and name.startswith(".") == part.startswith(".")
            ]
        if pattern.startswith("/"):
            return sorted(found)
        return sorted(posixpath.relpath(path, cwd) for path in found)

    def open_for_writing(self, path: str, *, append: bool = False, name: str = "") -> None:
        """It is there from now on, empty unless it is appended to. Raises: OSError."""
        if path in ("/dev/null", "/dev/tty"):
            return
        self._require_place(path, name or path)
        if path in self._directories:
            raise _error(errno.EISDIR, name or path)
        self._gone.discard(path)
        self._files[path] = self._files.get(path, b"") if append else b""

    def _require_place(self, path: str, name: str) -> None:
        if not self.is_directory(posixpath.dirname(path)):
            raise _error(errno.ENOENT, name)
        if refused := self._may_write(path):
            raise _error(refused, name)

    def append(self, path: str, data: bytes) -> None:
        """More bytes at its end. Raises: OSError when there is no more room."""
        if path in self._files:
            if sum(map(len, self._files.values())) + len(data) > MOST_BYTES:
                raise _error(errno.ENOSPC, path)
            self._files[path] += data

    def remove(self, path: str, *, lenient: bool = False, name: str = "") -> None:
        """Raises: OSError."""
        if not self.is_file(path, lenient=lenient):
            there = self.is_directory(path)
            raise _error(errno.EISDIR if there else errno.ENOENT, name or path)
        self._require_place(path, name or path)
        self._files.pop(path, None)
        self._gone.add(path)

    def remove_tree(self, path: str, *, name: str = "") -> None:
        """A directory and all below it. Raises: OSError."""
        if path == "/":
            raise _error(errno.EBUSY, name or path)
        if refused := self._may_write(path):
            raise _error(refused, name or path)
        below = [p for p in self._files if p.startswith(f"{path}/")]
        self._gone.update(below)
        for one in below:
            del self._files[one]
        self._directories -= {p for p in self._directories if f"{p}/".startswith(f"{path}/")}

    def make_directory(self, path: str, *, parents: bool = False, name: str = "") -> None:
        """Raises: OSError."""
        if self.is_directory(path) and parents:
            return
        if self.is_directory(path) or path in self._files:
            raise _error(errno.EEXIST, name or path)
        if parents:
            self.make_directory(posixpath.dirname(path), parents=True, name=name)
        self._require_place(path, name or path)
        self._directories.add(path)


class FileOutput:
    """A stream into a file."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path

    async def write(self, data: bytes) -> None:
        self._files.append(self._path, data)


def files_of(container: Container | None) -> Files:
    """The files of that container; None: those of an image alone."""
    if container is None:
        return _with_users(Files())
    if container.files is None:
        container.files = _made(container)
    assert isinstance(container.files, Files)
    return container.files


def _with_users(files: Files) -> Files:
    files.put("/etc/passwd", PASSWD.encode())
    files.put("/etc/group", GROUP.encode())
    return files


def _made(container: Container) -> Files:
    files = _with_users(Files(lambda path: _refusal(container, path)))
    texts = {**_network_files(container), **_kernel_files(container)}
    for path, text in texts.items():
        files.put(path, text.encode())
    if container.config.working_dir.startswith("/"):
        files.put_directory(_absolute(container.config.working_dir))
    for mount in container.config.mounts:
        place = _absolute(mount.container_path)
        if mount.HasField("image"):
            for name in TOP:
                files.put_directory(posixpath.join(place, name))
        elif place in _NOT_DIRECTORIES:
            files.put(place, texts.get(place, "").encode())
        else:
            files.put_directory(place)
    return files


def _network_files(container: Container) -> dict[str, str]:
    """As containerd writes them (CRI-045)."""
    config = container.sandbox.config
    name, dns = config.hostname or container.pod.name, config.dns_config
    lines = []
    if dns.searches:
        lines.append(f"search {' '.join(dns.searches)}\n")
    lines += [f"nameserver {server}\n" for server in dns.servers]
    if dns.options:
        lines.append(f"options {' '.join(dns.options)}\n")
    own = f"{container.sandbox.ip}\t{name}\n" if container.sandbox.ip else ""
    return {
        "/etc/resolv.conf": "".join(lines) or _NAMESERVER,
        "/etc/hostname": f"{name}\n",
        "/etc/hosts": f"127.0.0.1\tlocalhost\n::1\tlocalhost\n{own}",
    }


def _kernel_files(container: Container) -> Mapping[str, str]:
    """The sysctls of its pod; the ids of its user namespace."""
    linux = container.sandbox.config.linux
    found = {
        f"/proc/sys/{name.replace('.', '/')}": "\t".join(value.split()) + "\n"
        for name, value in linux.sysctls.items()
    }
    found.setdefault("/proc/sys/kernel/shm_rmid_forced", "0\n")
    found.setdefault("/proc/sys/kernel/hostname", _network_files(container)["/etc/hostname"])
    users = linux.security_context.namespace_options.userns_options
    for name, mappings in (("uid_map", users.uids), ("gid_map", users.gids)):
        rows = [(m.container_id, m.host_id, m.length) for m in mappings] or [(0, 0, 2**32 - 1)]
        found[f"/proc/self/{name}"] = "".join(f"{a:10} {b:10} {c:10}\n" for a, b, c in rows)
    return found


def _refusal(container: Container, path: str) -> int:
    """Why it cannot be written there; 0: it can."""
    security = container.config.linux.security_context
    for mount in container.config.mounts:
        if _is_in(path, _absolute(mount.container_path)):
            return errno.EROFS if mount.readonly or mount.HasField("image") else 0
    if any(_is_in(path, top) for top in _KERNEL) and not security.privileged:
        return errno.EROFS
    if security.readonly_rootfs and not _is_in(path, "/dev"):
        return errno.EROFS
    own = identity_of(container).uid == 0 or any(_is_in(path, top) for top in _FOR_ALL)
    return 0 if own else errno.EACCES


def _absolute(path: str) -> str:
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
