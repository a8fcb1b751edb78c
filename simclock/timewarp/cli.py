"""`python -m simclock.timewarp [--speed N] [--clock-page FILE] -- PROGRAM ARGUMENTS`: a Go program
in warped time."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from simclock.timewarp.joining import become
from simclock.timewarp.pages import TimePage
from simclock.timewarp.refusal import CannotWarp

USAGE: Final = 2
PAUSE_S: Final = 0.0005
HELP: Final = """\
usage: python -m simclock.timewarp [--speed N] [--clock-page FILE] [--stats] -- PROGRAM ARGUMENTS

Run a Go program in a time of its own that jumps over waiting: when every thread of the program
waits, the time goes on to the program's next timer.

  --speed N          do not jump; time passes N times as fast (1 to 1024)
  --clock-page FILE  share the time with the other programs and loops that name this file;
                     it is made if there is none
  --stats            tell at the end how much time has passed, on standard error
  --join FILE        become the program (same process ID) in the time of that page; another
                     member moves the time on

Exit code: that of the program; 128 and the number of the signal that killed it; 2 when the program
or this machine cannot be in warped time.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["--join"] and words[2:3] == ["--"] and len(words) > 3:
            become(words[3:], TimePage.open(words[1]))
        if not words or words[0] in ("-h", "--help"):
            print(HELP, end="")
            return 0 if words else USAGE
        options, program = _options(words)
        return _run(program, options)
    except (CannotWarp, OSError) as problem:
        print(f"timewarp: {problem}", file=sys.stderr)
        return USAGE


def _options(words: list[str]) -> tuple[Any, list[str]]:
    """The options, and the command line of the program. Ends with exit code 2 for wrong ones."""
    import argparse  # not at the top: a prefix of a program does without

    parser = argparse.ArgumentParser(prog="python -m simclock.timewarp", usage=HELP, add_help=False)
    parser.add_argument("--speed", type=float)
    parser.add_argument("--clock-page")
    parser.add_argument("--stats", action="store_true")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args(words)
    if options.speed is not None and not 1 < options.speed <= 1024:
        parser.error(f"--speed {options.speed:g}: wanted more than 1, at most 1024")
    return options, options.program


def _run(program: list[str], options: Any) -> int:
    """Run the program as a child and move its time on until it has ended."""
    from simclock.timewarp.jumper import Jumper

    rate = options.speed
    if options.clock_page is None:
        page = TimePage.create(rate)
    else:
        page = TimePage.open_or_create(options.clock_page, rate)
    jumper = Jumper(page)
    began_s, began_ns = time.monotonic(), page.monotonic_ns()
    child = os.fork()
    if child == 0:
        os._exit(_become(program, page))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: os.kill(child, n))
    status = _until_end(child, page, jumper)
    if options.stats:
        passed_s, real_s = (page.monotonic_ns() - began_ns) / 1e9, time.monotonic() - began_s
        print(
            f"timewarp: {passed_s:.3f} s in {real_s:.3f} real s, {jumper.jumps} jumps, "
            f"{jumper.looks} looks; busy: {dict(jumper.busy)}",
            file=sys.stderr,
        )
    return status


def _become(program: list[str], page: TimePage) -> int:
    try:
        become(program, page)
    except (CannotWarp, OSError) as problem:
        os.write(2, f"timewarp: {problem}\n".encode())
        return USAGE


def _until_end(child: int, page: TimePage, jumper: Any) -> int:
    """Move the time on until the child has ended; returns its exit code as shells tell it."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if not page.lead():
            time.sleep(PAUSE_S)
        elif not page.jumps:
            jumper.wake_due()
            time.sleep(PAUSE_S)
        elif not jumper.move():
            time.sleep(PAUSE_S)
