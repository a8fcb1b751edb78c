"""Makes the directories that a kubelet has to itself, and tells what it shares with another one.

What must never happen: a kubelet that cannot write finds that out pod by pod, with a traceback each
time; a kubelet that is not the machine's own touches what belongs to that.
Rules: LIFE-136, NODE-200.
Upstream: pkg/kubelet/kubelet.go: setupDataDirs, initializeModules.
"""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

from refkubelet.config import ConfigError, KubeletConfiguration
from refkubelet.host.places import ROOT_DIR, container_logs_dir

log = logging.getLogger(__name__)


def own_directories(root_dir: str, config: KubeletConfiguration) -> tuple[Path, Path | None]:
    """Make the root directory, the one of pod logs, and that of links to logs. Returns the first
    and the last; where that cannot be used, there are no links, and a warning says so. Raises
    `ConfigError` when another one cannot be used."""
    root, logs = Path(root_dir).absolute(), Path(config.pod_logs_dir)
    for name, path, probed in (
        (f"--root-dir {root_dir}", root, root / "pods"),
        (f"podLogsDir {logs}", logs, logs),
    ):
        if problem := _unusable(path, probed, 0o750):
            raise ConfigError(
                f"{name}: cannot be used: {problem}\n  name a directory that this kubelet may "
                "write into and that no other kubelet has"
            )
    links = container_logs_dir(root, logs)
    if problem := _unusable(links, links, 0o755):
        log.warning("%s: cannot be used: %s; there are no links to logs", links, problem)
        return root, None
    return root, links


def _unusable(path: Path, made: Path, mode: int) -> str:
    """Make the directory `made`: `path`, or one below it. What keeps this process from making files
    in both, or ""."""
    try:
        made.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as e:
        return (e.strerror or str(e)).lower()
    may_write = all(os.access(place, os.W_OK | os.X_OK) for place in {path, made})
    return "" if may_write else os.strerror(errno.EACCES).lower()


def shared_cgroups(root_dir: Path, config: KubeletConfiguration) -> str:
    """What is to be said of cgroups that belong to another kubelet (CG-043), or ""."""
    if root_dir == ROOT_DIR or not config.cgroups_per_qos or config.cgroup_root:
        return ""
    return (
        f"--root-dir is not {ROOT_DIR}, and cgroupRoot is not set: pods get cgroups below "
        "/kubepods, and what another kubelet of this machine runs there is killed; name a cgroup "
        "of its own, or / where this is the machine's only kubelet"
    )
