"""The arguments of the command `fakecri`: what there is and what it is for. No effects.

The arguments of `ctl`, `cgroupfs` and `device-plugin` are with those commands.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from fakecri.control.ctl_args import whole_number
from fakecri.serving.fake_arguments import add_fake_arguments
from simclock.distribution import add_version

_EXAMPLES: Final = """\
examples:
  fakecri serve --listen unix:///tmp/cri.sock --script crash.yaml
  fakecri proxy --upstream unix:///run/containerd/containerd.sock --listen unix:///tmp/cri.sock \\
                --record calls.jsonl
  fakecri learn calls.jsonl >script.yaml
  fakecri check -v script.yaml
  fakecri serve --listen unix:///tmp/cri.sock --control unix:///tmp/ctl.sock --clock manual
  fakecri ctl --control unix:///tmp/ctl.sock kill --container web
  fakecri cgroupfs mount /tmp/cgroup --version 2
"""


def parser() -> argparse.ArgumentParser:
    """Reads the whole command line."""
    whole = argparse.ArgumentParser(
        prog="fakecri",
        description="A programmable fake CRI runtime, and its fault rules in front of a real one.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(whole)
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve a fake runtime on a unix socket")
    proxy = commands.add_parser("proxy", help="record and disturb the calls to a real runtime")
    proxy.add_argument(
        "--upstream", required=True, metavar="unix:///PATH", help="socket of the real runtime"
    )
    _of_a_fake(serve)
    learn = commands.add_parser(
        "learn",
        help="make a script of recorded calls",
        description="Print a script that makes the fake do what a recorded runtime did: how "
        "containers ended, what they answered to exec, which calls failed. Times are told to a "
        "tenth of a second.",
    )
    learn.add_argument("record", type=Path, metavar="FILE", help="JSON lines of --record")
    check = commands.add_parser(
        "check",
        help="look at script files without running them",
        description="Print every mistake in script files, each with file, line and column. Exit "
        "code 2 if there are any.",
    )
    check.add_argument("files", nargs="*", type=Path, metavar="FILE")
    check.add_argument("--proxy", action="store_true", help="they are for fakecri proxy")
    check.add_argument("-v", "--verbose", action="store_true", help="tell what each file does")
    check.add_argument(
        "--schema", action="store_true", help="print the JSON schema of script files, for editors"
    )
    commands.add_parser("ctl", help="program and question a running serve or proxy", add_help=False)
    commands.add_parser(
        "cgroupfs", help="a fake /sys/fs/cgroup for other processes", add_help=False
    )
    commands.add_parser(
        "device-plugin", help="a device plugin without devices, for a real kubelet", add_help=False
    )
    for command in (serve, proxy):
        _of_whatever_listens(command)
    return whole


def _of_a_fake(serve: argparse.ArgumentParser) -> None:
    add_fake_arguments(serve)
    serve.add_argument(
        "--cgroups",
        type=Path,
        metavar="DIR",
        help="mount the cgroups of the fake's containers at this empty directory (needs FUSE)",
    )
    serve.add_argument(
        "--clock",
        choices=("real", "manual"),
        default="real",
        help="manual: time stands still until `fakecri ctl advance` (default: %(default)s)",
    )
    serve.add_argument(
        "--clock-page",
        metavar="FILE",
        help="live in the time of this clock page, with the programs and fakes that name it, too "
        "(python -m simclock.timewarp --clock-page FILE); it is made if there is none",
    )


def _of_whatever_listens(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--listen",
        required=True,
        metavar="unix:///PATH",
        help="socket to serve the CRI on; tcp://HOST:PORT is taken too, and has no protection",
    )
    command.add_argument(
        "--ready-file",
        type=Path,
        metavar="FILE",
        help="is written, with the endpoint, when calls are answered; removed at the end",
    )
    command.add_argument(
        "--control", metavar="unix:///PATH", help="second socket, for fakecri ctl (mode 0600)"
    )
    command.add_argument(
        "--script", type=Path, metavar="FILE", help="YAML file with behaviours, faults and options"
    )
    command.add_argument(
        "--record", type=Path, metavar="FILE", help="append every call to FILE, as JSON lines"
    )
    command.add_argument(
        "--keep-calls",
        dest="call_limit",
        type=whole_number,
        metavar="N",
        help="calls that questions and assertions look at: the last N (default: 100000)",
    )
