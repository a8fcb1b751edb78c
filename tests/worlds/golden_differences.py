"""Where refkubelet may differ from a recorded run, and why. Each row must be needed.

A row names the recording, the beginning of the differing line (`-`: only recorded, `+`: only
replayed) as `golden_compare.py` writes it, the rule, and the reason.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Difference(NamedTuple):
    """One accepted difference."""

    recording: str
    line: str
    rule: str
    reason: str


DIFFERENCES: Final = (
    Difference(
        "s22b",
        "status be-hog - Running | main: terminated 137 Error",
        "LIFE-190",
        "The recorded kubelet read the worker's state, to withhold the terminal phase, some "
        "milliseconds before the worker had noted that all is stopped, and wrote the phase with "
        "the next sync, 0.7 s later. Nothing takes time between the two here, and the phase is "
        "written at once, as the same kubelet did in s22.",
    ),
)
