"""Groups of a fake cgroup v2 file system, and how it refuses."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from fakecri.cgroupfs import CgroupFS, Machine

MIB = 1 << 20


def v2(*controllers: str, machine: Machine | None = None) -> CgroupFS:
    fs = CgroupFS(2, machine=machine)
    words = " ".join(f"+{name}" for name in controllers)
    fs.path("/cgroup.subtree_control").write_text(words)
    fs.path("/g").mkdir()
    return fs


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(OSError) as refused:
        action()
    return errno.errorcode[refused.value.errno or 0].replace("ENOTSUP", "EOPNOTSUPP")
