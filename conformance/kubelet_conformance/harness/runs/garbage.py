"""Garbage collection in processes that run cases and then end.

Python looks for cycles of dead objects each time some hundred more objects exist than before, and
looks at everything that was imported again and again. In a process that runs cases this takes a
fifth of the time, and finds little: what a case leaves behind is mostly freed without it.
"""

from __future__ import annotations

import gc
from typing import Final

AFTER_OBJECTS: Final = 50_000
"""New objects until the youngest ones are looked at (Python: 700 or 2,000)."""
OLDER_AFTER: Final = 20
"""Looks at the younger objects until the older ones are looked at, too (Python: 10)."""


def collect_less() -> None:
    """From now on this process seldom looks for garbage, and never at what is there already."""
    gc.freeze()
    gc.set_threshold(AFTER_OBJECTS, OLDER_AFTER, OLDER_AFTER)


def collect_young() -> None:
    """Look at the objects that are new since the last look, between two cases: nearly all are of
    the case that has ended, and dead. In the middle of a case most are alive, and each look costs
    more and finds less."""
    gc.collect(0)
