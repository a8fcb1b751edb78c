"""Unmodified Go programs and asyncio in a time of their own, which jumps over waiting.

Programs and loops that share one `TimePage` live in the same time. It passes while any of them
works; when all of them wait, it jumps to the next instant that one of them waits for. An hour of
waiting takes seconds, nobody's work is overtaken, and no program is built anew for it.

    python -m simclock.timewarp -- PROGRAM ARGUMENTS        a Go program alone
    timewarp.run(main)                             an asyncio program, with programs it starts by
                                                   `loop.page.prefix`
    def test_it(warped): warped.run(main)          the same, as a pytest fixture

`docs/timewarp.md` says how it works, and what it cannot do. Names are imported at first use: the
prefix of a program is Python, and must start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from simclock.timewarp.elf import GoProgram, go_program
    from simclock.timewarp.jumper import Jumper
    from simclock.timewarp.loop import WarpedClock, WarpedLoop, loops_at, run
    from simclock.timewarp.pages import TimePage
    from simclock.timewarp.refusal import CannotWarp
    from simclock.timewarp.requirements import require, why_not

__all__ = [
    "CannotWarp",
    "GoProgram",
    "Jumper",
    "TimePage",
    "WarpedClock",
    "WarpedLoop",
    "go_program",
    "loops_at",
    "require",
    "run",
    "why_not",
]

_HOMES: Final = {
    "CannotWarp": "refusal",
    "GoProgram": "elf",
    "Jumper": "jumper",
    "TimePage": "pages",
    "WarpedClock": "loop",
    "WarpedLoop": "loop",
    "go_program": "elf",
    "loops_at": "loop",
    "require": "requirements",
    "run": "loop",
    "why_not": "requirements",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
