"""Endpoints: reading `unix:///path` and `tcp://HOST:PORT`, and what listens on a unix socket.

What must never happen here: a living runtime's socket is taken away, or a file that is no socket
is removed.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path
from typing import Final

_MAX_PATH_BYTES: Final = 107  # sockaddr_un.sun_path holds 108 with its closing zero


class EndpointError(ValueError):
    """An endpoint cannot be used; the text says which, what was wanted and what to do."""


def socket_path(endpoint: str) -> Path:
    """The path of `unix:///path` (an absolute path alone is taken too).

    Raises EndpointError for another scheme, a relative path or a path longer than a socket
    address can hold.

    >>> socket_path("unix:///run/x.sock")
    PosixPath('/run/x.sock')
    """
    if not isinstance(endpoint, str):
        raise EndpointError(f"endpoint: wanted a text such as unix:///run/x.sock, got {endpoint!r}")
    path = endpoint.removeprefix("unix://")
    if not path.startswith("/") or path.endswith("/"):
        raise EndpointError(
            f"endpoint {endpoint!r}: wanted unix:///absolute/path.sock "
            "(CRI is spoken on unix sockets)"
        )
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise EndpointError(
            f"endpoint {endpoint!r}: the path has {len(os.fsencode(path))} bytes, a unix socket "
            f"takes at most {_MAX_PATH_BYTES}; choose a shorter one, for example under /tmp"
        )
    return Path(path)


def tcp_address(endpoint: str) -> str | None:
    """`HOST:PORT` of `tcp://HOST:PORT`; None for another endpoint. Port 0 is any free one.

    Raises: EndpointError for what is no host and port.

    >>> tcp_address("tcp://127.0.0.1:3333")
    '127.0.0.1:3333'
    """
    if not isinstance(endpoint, str) or not endpoint.startswith("tcp://"):
        return None
    address = endpoint.removeprefix("tcp://")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise EndpointError(f"endpoint {endpoint!r}: wanted tcp://HOST:PORT with a port to 65535")
    return address


def require_two_sockets(listen: str, control: str | None) -> None:
    """Check that the CRI and its control have sockets of their own. Raises EndpointError."""
    if not control or tcp_address(listen):
        return
    if socket_path(listen).resolve() == socket_path(control).resolve():
        raise EndpointError(
            f"listen and control are both {listen}: the CRI and its control need a socket "
            "each; choose another path for one of them"
        )


def listener(path: Path) -> str | None:
    """The process that listens at `path` ("pid 12 (containerd)"); None: none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except TimeoutError:
            return "a process that does not accept connections"
        except OSError as error:
            return f"something that cannot be reached ({error.strerror})"
        raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid = struct.unpack("3i", raw)[0]
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        name = "in another pid namespace" if pid == 0 else "unknown program"
    return f"pid {pid} ({name})"


def make_room(path: Path) -> None:
    """Prepare `path` for a new socket; the socket file of a dead process is removed.

    Raises EndpointError if another process listens there, if the file is no socket, or if the
    directory is missing or not writable.
    """
    if not path.parent.is_dir():
        raise EndpointError(
            f"cannot listen on unix://{path}: the directory {path.parent} does not exist\n"
            f"  make it:  mkdir -p {path.parent}"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise EndpointError(
            f"cannot listen on unix://{path}: no permission to write in {path.parent}"
        )
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise EndpointError(
            f"cannot listen on unix://{path}: the file exists and is no socket; "
            "choose another path or remove it yourself"
        )
    holder = listener(path)
    if holder is not None:
        raise EndpointError(
            f"cannot listen on unix://{path}: {holder} listens there already; "
            "stop it or choose another path"
        )
    path.unlink(missing_ok=True)


def require_listener(path: Path, *, hint: str) -> None:
    """Check that a process listens at `path`.

    Raises EndpointError that says what is there instead, and `hint`: how to start one.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        problem = "no such file"
    except PermissionError:
        problem = "permission denied"
    else:
        if not stat.S_ISSOCK(mode):
            problem = "the file is no socket"
        elif listener(path) is None:
            problem = "nobody listens there (the socket file is a dead process's)"
        else:
            return
    raise EndpointError(f"cannot connect to the runtime at unix://{path}: {problem}\n  {hint}")
