"""Whether the kernel still gives a kubelet the instances of inotify that it needs.

Upstream's kubelet ends, or goes on without seeing its manifests, when it gets none; that would look
like a fault of the kubelet, and is one of the machine's settings.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

NEEDED: Final = 8
"""A kubelet 1.36 has 6."""
SETTING: Final = "fs.inotify.max_user_instances"
CLOSE_ON_EXEC: Final = os.O_CLOEXEC


class MachineLacks(Exception):
    """This machine does not give what a kubelet needs; the text says what to do. It is an error of
    the run, not a failure of the kubelet."""


def require_watches(needed: int = NEEDED) -> None:
    """Raise MachineLacks unless so many instances can be had now."""
    inotify_init = ctypes.CDLL(None, use_errno=True).inotify_init1
    got: list[int] = []
    try:
        for _ in range(needed):
            if (instance := inotify_init(CLOSE_ON_EXEC)) < 0:
                raise MachineLacks(
                    f"no instance of inotify is left for a kubelet ({len(got)} of {needed}): "
                    f"{os.strerror(ctypes.get_errno())}; {SETTING} is {_limit()}; raise it: "
                    f"sysctl -w {SETTING}=1024"
                )
            got.append(instance)
    finally:
        for descriptor in got:
            os.close(descriptor)


def _limit() -> str:
    try:
        return Path("/proc/sys", *SETTING.split(".")).read_text().strip()
    except OSError:
        return "unknown"
