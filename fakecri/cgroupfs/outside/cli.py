"""`fakecri cgroupfs mount` and `fakecri cgroupfs project`: a fake /sys/fs/cgroup until SIGTERM.

Exit codes: 0 after SIGINT, SIGTERM or an unmount, 2 for anything the user can mend (one line on
stderr).
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from fakecri.cgroupfs.filesystem import CgroupFS
from fakecri.cgroupfs.interface.machine import Machine
from fakecri.cgroupfs.outside.errors import OutsideError
from fakecri.cgroupfs.outside.mount import Mount, mount
from fakecri.cgroupfs.outside.projection import Projection, Refusal, project
from simclock import RealClock
from simclock.distribution import add_version

_EXAMPLES: Final = """\
examples:
  fakecri cgroupfs mount /tmp/cgroup
  fakecri cgroupfs mount /tmp/cgroup --version 1 --controllers cpu,cpuacct --controllers memory
  fakecri cgroupfs project /tmp/cgroup
"""


def main(argv: Sequence[str]) -> int:
    """Run the command line after `fakecri cgroupfs`; returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        machine = Machine(cpus=arguments.cpus)
        controllers = arguments.controllers
        if controllers and arguments.version == 2:
            controllers = [name for names in controllers for name in names.split(",")]
        fs = CgroupFS(
            arguments.version, controllers=controllers, machine=machine, clock=RealClock()
        )
        asyncio.run(_run(fs, arguments))
    except (OutsideError, ValueError) as error:
        print(f"fakecri: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fakecri cgroupfs",
        description="A fake /sys/fs/cgroup for other processes.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("mount", "mount it with FUSE: everything as the kernel does it"),
        ("project", "plain files that follow it, where there is no FUSE: nothing is refused"),
    ):
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.add_argument("directory", type=Path, metavar="DIR", help="an empty directory")
        command.add_argument(
            "--version", type=int, choices=(1, 2), default=2, help="(default: %(default)s)"
        )
        command.add_argument(
            "--controllers",
            action="append",
            metavar="NAME[,NAME]",
            help="once or more: with version 1 a mount each, with version 2 those of the root "
            "(default: all there are)",
        )
        command.add_argument(
            "--cpus", type=int, default=4, metavar="N", help="of the machine (default: %(default)s)"
        )
    return parser


async def _run(fs: CgroupFS, arguments: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    opening: AbstractAsyncContextManager[Mount | Projection]
    if arguments.command == "mount":
        opening = mount(fs, arguments.directory, real_processes=True)
    else:
        opening = project(fs, arguments.directory, real_processes=True, refused=_say)
    async with opening as outside:
        print(f"fakecri cgroupfs: version {fs.version} at {outside.directory}", flush=True)
        unmounted = None
        if isinstance(outside, Mount):
            unmounted = asyncio.create_task(outside.wait_unmounted())
            unmounted.add_done_callback(lambda _task: ended.set())
        await ended.wait()
        if unmounted is not None:
            unmounted.cancel()


def _say(refusal: Refusal) -> None:
    print(f"fakecri cgroupfs: refused: {refusal}", file=sys.stderr, flush=True)
