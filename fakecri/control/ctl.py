"""`fakecri ctl`: the control socket as a command line.

Exit codes: 0 done, 1 an assertion failed or a wait ran out, 2 for what the user can mend.
Nothing heavy is imported: a shell script calls this many times.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from fakecri.control.client import ControlClient, ControlError
from fakecri.control.ctl_args import UsageError, VerbParser
from fakecri.control.ctl_calls import add_calls
from fakecri.control.ctl_rules import add_rules
from fakecri.control.ctl_world import add_actions, add_state
from fakecri.control.printing import print_plain
from fakecri.cri.endpoint import EndpointError
from simclock.distribution import add_version

_EXAMPLES: Final = """\
examples, after  export FAKECRI_CONTROL=unix:///tmp/ctl.sock
  fakecri ctl behave --container web 'exits: {code: 1, after_s: 2}'
  fakecri ctl fault StartContainer --container web 'fails: {code: UNKNOWN, times: 1}'
  fakecri ctl wait StartContainer --container web --times 2
  fakecri ctl assert order RunPodSandbox CreateContainer StartContainer
  fakecri ctl kill --container web --exit-code 137
  fakecri ctl advance 300
"""
_CONDITION_FALSE: Final = 412


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        if not arguments.control:
            raise UsageError("which one? give --control unix:///PATH or set FAKECRI_CONTROL")
        client = ControlClient(arguments.control)
        print_plain(arguments.verb, arguments.run(client, arguments), as_json=arguments.json)
    except (UsageError, EndpointError, ControlError) as error:
        print(f"fakecri ctl: error: {error}", file=sys.stderr)
        return 1 if getattr(error, "status", 0) == _CONDITION_FALSE else 2
    except BrokenPipeError:  # `| head` has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fakecri ctl",
        description="Program and question a running `fakecri serve` or `fakecri proxy`.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--control",
        default=os.environ.get("FAKECRI_CONTROL"),
        metavar="unix:///PATH",
        help="the control socket (default: $FAKECRI_CONTROL)",
    )
    add_version(parser)
    parser.add_argument("--json", action="store_true", help="print answers as JSON")
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="VERB", parser_class=VerbParser
    )
    for add in (add_rules, add_calls, add_actions, add_state):
        add(verbs)
    return parser
