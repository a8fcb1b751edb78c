"""What the kernel lets this process do: how many files, and how soon it is killed for memory.

Upstream: cmd/kubelet/app/server.go: run (oom.NewOOMAdjuster), pkg/util/rlimit.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

OOM_SCORE_ADJ: Final = Path("/proc/self/oom_score_adj")


def allow_files(count: int) -> str:
    """Let this process open up to `count` files (maxOpenFiles); if more than its hard limit are
    wanted and that cannot be raised, as many as that. Returns what failed, or ""."""
    kind = resource.RLIMIT_NOFILE
    try:
        resource.setrlimit(kind, (count, count))
    except (OSError, ValueError) as e:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (hard, hard))
        return f"{e}; {hard} are allowed"
    return ""


def set_oom_score_adj(value: int, file: Path = OOM_SCORE_ADJ) -> str:
    """Set how likely the kernel is to kill this process when memory is short: -1000 (never) to
    1000 (oomScoreAdj). Returns what failed, or ""."""
    try:
        file.write_text(str(value))
    except OSError as e:
        return (e.strerror or str(e)).lower()
    return ""
