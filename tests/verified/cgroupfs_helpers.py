"""Makes cgroups, fills them, writes and reads their files, whether a fake's or a kernel's."""

from __future__ import annotations

import errno
import select
from collections.abc import Callable
from typing import Any, Final

from simclock import RealClock

_PATIENCE_S: Final = 10.0
UNLIMITED: Final = "9223372036854771712\n"


def group(side: Any, tree: str, name: str = "g") -> Any:
    """A new cgroup below this side's own."""
    path = side.tree(tree) / name
    path.mkdir()
    return path


def put(process: Any, path: Any) -> None:
    (path / "cgroup.procs").write_text(str(process.pid))


def equal(seen: Any, wanted: Any) -> None:
    assert seen == wanted


def eventually(action: Callable[[], Any], *, patience_s: float = _PATIENCE_S) -> Any:
    """What the kernel does a little later than asked, it has to do within that time."""
    clock = RealClock()
    end_s = clock.monotonic_s() + patience_s
    while True:
        try:
            return action()
        except (AssertionError, OSError):
            if clock.monotonic_s() >= end_s:
                raise
            select.select([], [], [], 0.002)


def outcome(action: Callable[[], Any]) -> str:
    """`ok`, or the name of the errno."""
    try:
        action()
    except OSError as error:
        return _name(error)
    return "ok"


def write(path: Any, text: str) -> str:
    return outcome(lambda: path.write_text(text))


def read(path: Any) -> str:
    """The contents, or the errno that reading gives."""
    try:
        return path.read_text()
    except OSError as error:
        return _name(error)


def _name(error: OSError) -> str:
    """Of the errno; Linux has two for the number of EOPNOTSUPP."""
    known = error.errno or 0
    return "EOPNOTSUPP" if known == errno.EOPNOTSUPP else errno.errorcode[known]
