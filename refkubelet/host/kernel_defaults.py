"""Kernel settings that a kubelet wants, and which of them are otherwise. Pure.

Rules: CG-037. Upstream: pkg/kubelet/cm/container_manager_linux.go: setupKernelTunables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

WANTED: Final[Mapping[str, int]] = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""Below /proc/sys."""


def wrong_kernel_flags(value_of: Callable[[str], int]) -> list[str]:
    """What is not as wanted, each a sentence. `value_of` reads a setting; that it raises OSError or
    ValueError is a problem, too."""
    problems = []
    for flag, wanted in WANTED.items():
        try:
            actual = value_of(flag)
        except (OSError, ValueError) as error:
            problems.append(f"cannot read kernel flag {flag}: {error}")
            continue
        if actual != wanted:
            problems.append(
                f"invalid kernel flag: {flag}, expected value: {wanted}, actual value: {actual}"
            )
    return problems
