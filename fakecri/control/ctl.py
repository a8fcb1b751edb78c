"""`fakecri ctl`: the control socket as a command line.

Exit codes: 0 done, 1 an assertion failed or a wait ran out, 2 for what the user can mend.
Nothing heavy is imported: a shell script calls this many times.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from fakecri.control.client import ControlClient, ControlError
from fakecri.control.printing import print_plain
from fakecri.endpoint import EndpointError

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

Command = Callable[[ControlClient, argparse.Namespace], Any]


class UsageError(Exception):
    """A wrong argument; the text is the whole message."""


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
    parser.add_argument("--json", action="store_true", help="print answers as JSON")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for add in (_add_rules, _add_calls, _add_actions, _add_state):
        add(verbs)
    return parser


def _verb(verbs: Any, name: str, run: Command, help_text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=help_text, description=help_text)
    parser.set_defaults(run=run)
    return parser


def _add_selectors(parser: argparse.ArgumentParser, *names: str) -> None:
    for name in names:
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type={"attempt": int, "nth": int, "since_s": float}.get(name, str),
            metavar=name.upper(),
        )


# -- rules ---------------------------------------------------------------------------------------


def _add_rules(verbs: Any) -> None:
    add = _verb(verbs, "add", _run_add, "add the behaviours and faults of a script file")
    add.add_argument("file", metavar="FILE", help="YAML or JSON as for serve --script; - is stdin")
    behave = _verb(verbs, "behave", _run_behave, "say what containers do from their next start on")
    behave.add_argument("behavior", metavar="BEHAVIOR", help="for example 'exits: {code: 1}'")
    _add_selectors(behave, "pod", "container", "image", "attempt")
    behave.add_argument("--times", type=int, metavar="N", help="for the next N starts only")
    fault = _verb(verbs, "fault", _run_fault, "disturb calls of a method")
    fault.add_argument("method", metavar="METHOD")
    fault.add_argument("fault", metavar="FAULT", help="'hangs: {}', 'delays: {delay_s: 2}', ...")
    _add_selectors(fault, "pod", "container", "image", "attempt", "nth")
    rules = _verb(verbs, "rules", _run_rules, "list the active rules")
    rules.add_argument("--unused", action="store_true", help="those that never decided anything")
    remove = _verb(verbs, "remove", _run_remove, "remove rules")
    remove.add_argument("id", metavar="ID|all")
    release = _verb(verbs, "release", _run_release, "let the calls that hang on a rule go on")
    release.add_argument("id", type=int, metavar="ID")


def _run_add(client: ControlClient, arguments: argparse.Namespace) -> Any:
    try:
        text = sys.stdin.read() if arguments.file == "-" else Path(arguments.file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {arguments.file}: {error}") from None
    try:
        return client.request("POST", "/v1/rules", text)
    except ControlError as error:
        name = "stdin" if arguments.file == "-" else arguments.file
        raise ControlError(error.status, str(error).replace("request body", name, 1)) from None


def _run_behave(client: ControlClient, arguments: argparse.Namespace) -> Any:
    given = _given(arguments, "pod", "container", "image", "attempt", "times")
    return client.request("POST", "/v1/rules", _entry("behaviors", given, arguments.behavior))


def _run_fault(client: ControlClient, arguments: argparse.Namespace) -> Any:
    given = _given(arguments, "pod", "container", "image", "attempt", "nth")
    entry = _entry("faults", {"on": arguments.method, **given}, arguments.fault)
    return client.request("POST", "/v1/rules", entry)


def _entry(kind: str, given: dict[str, Any], words: str) -> str:
    """A script with one entry; `words` are the user's own, in YAML, and stay as they are."""
    head = "".join(f"{key}: {json.dumps(value)}, " for key, value in given.items())
    return f"{kind}: [{{{head}{words}}}]"


def _run_rules(client: ControlClient, arguments: argparse.Namespace) -> Any:
    query = {"unused": 1} if arguments.unused else None
    return client.request("GET", "/v1/rules", query=query)


def _run_remove(client: ControlClient, arguments: argparse.Namespace) -> Any:
    which = "" if arguments.id == "all" else f"/{arguments.id}"
    return client.request("DELETE", f"/v1/rules{which}")


def _run_release(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("POST", f"/v1/rules/{arguments.id}/release")


# -- calls ---------------------------------------------------------------------------------------

_FILTERS: Final = ("pod", "container", "image", "attempt", "since_s")


def _add_calls(verbs: Any) -> None:
    calls = _verb(verbs, "calls", _run_calls, "the recorded calls; with --json as JSON lines")
    count = _verb(verbs, "count", _run_count, "how many calls there were")
    for parser in (calls, count):
        parser.add_argument("method", nargs="?", metavar="METHOD")
        _add_selectors(parser, *_FILTERS)
    calls.add_argument("--limit", type=int, metavar="N", help="only the last N")
    _verb(verbs, "clear", _run_clear, "forget the recorded calls")
    wait = _verb(verbs, "wait", _run_wait, "wait until there were so many calls")
    wait.add_argument("method", metavar="METHOD")
    wait.add_argument("--times", type=int, default=1, metavar="N", help="default: %(default)s")
    wait.add_argument(
        "--timeout", type=float, default=10.0, metavar="S", help="seconds (default: %(default)g)"
    )
    _add_selectors(wait, *_FILTERS)
    check = _verb(verbs, "assert", _run_assert, "exit with 1 unless it is so")
    check.add_argument("kind", choices=("called", "not-called", "order"))
    check.add_argument("methods", nargs="+", metavar="METHOD")
    check.add_argument("--times", type=int, metavar="N", help="exactly so often (called)")
    _add_selectors(check, *_FILTERS)


def _run_calls(client: ControlClient, arguments: argparse.Namespace) -> Any:
    query = _given(arguments, "method", *_FILTERS, "limit")
    return client.request("GET", "/v1/calls", query=query)


def _run_count(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("GET", "/v1/calls/count", query=_given(arguments, "method", *_FILTERS))


def _run_clear(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("DELETE", "/v1/calls")


def _run_wait(client: ControlClient, arguments: argparse.Namespace) -> Any:
    filters = _given(arguments, *_FILTERS)
    count = client.wait_for_calls(
        arguments.method, times=arguments.times, within_s=arguments.timeout, **filters
    )
    return {"count": count}


def _run_assert(client: ControlClient, arguments: argparse.Namespace) -> Any:
    filters = _given(arguments, *_FILTERS)
    if arguments.kind == "order":
        steps = [{"method": method, **filters} for method in arguments.methods]
        return client.request("POST", "/v1/assert", {"order": steps})
    if len(arguments.methods) != 1:
        raise UsageError(f"assert {arguments.kind}: wanted one method, got {arguments.methods}")
    what = {"method": arguments.methods[0], **filters, **_given(arguments, "times")}
    return client.request("POST", "/v1/assert", {arguments.kind.replace("-", "_"): what})


# -- what happens --------------------------------------------------------------------------------


def _add_actions(verbs: Any) -> None:
    for name, help_text in (
        ("exit", "the newest running container that fits ends by itself"),
        ("kill", "somebody kills the newest running container that fits"),
        ("drop", "the newest container that fits vanishes from the runtime"),
        ("kill-sandbox", "the newest sandbox that fits dies"),
        ("crash", "the runtime goes down: calls fail with UNAVAILABLE"),
        ("restart", "the runtime is up again"),
        ("reboot", "the node reboots"),
    ):
        parser = _verb(verbs, name, _run_action, help_text)
        if name in ("exit", "kill", "drop"):
            _add_selectors(parser, "pod", "container")
        if name == "kill-sandbox":
            _add_selectors(parser, "pod")
        if name == "exit":
            parser.add_argument("--code", type=int, metavar="CODE")
        if name == "kill":
            parser.add_argument("--exit-code", type=int, metavar="CODE")
            parser.add_argument("--reason", metavar="REASON")
        if name == "crash":
            parser.add_argument("--loses-state", action="store_true", default=None)
        if name == "restart":
            parser.add_argument("--lost-exits", action="store_true", default=None)


def _run_action(client: ControlClient, arguments: argparse.Namespace) -> Any:
    names = ("pod", "container", "code", "exit_code", "reason", "loses_state", "lost_exits")
    verb = arguments.verb.replace("-", "_")
    return client.request("POST", f"/v1/actions/{verb}", _given(arguments, *names))


# -- state and time ------------------------------------------------------------------------------


def _add_state(verbs: Any) -> None:
    _verb(verbs, "state", _run_state, "everything there is, as JSON")
    containers = _verb(verbs, "containers", _run_list, "the containers")
    _add_selectors(containers, "pod", "container")
    sandboxes = _verb(verbs, "sandboxes", _run_list, "the sandboxes")
    _add_selectors(sandboxes, "pod")
    node = _verb(verbs, "node", _run_node, "show the node, or change what it has; bytes or 6Gi")
    node.add_argument("--memory", type=_bytes, metavar="BYTES", help="memory of the machine")
    node.add_argument("--memory-used", type=_bytes, metavar="BYTES", help="by non-containers")
    node.add_argument("--path", default="/", metavar="DIR", help="which filesystem (default: /)")
    node.add_argument("--disk", type=_bytes, metavar="BYTES", help="size of the filesystem")
    node.add_argument("--disk-used", type=_bytes, metavar="BYTES", help="by non-containers")
    _verb(verbs, "clock", _run_clock, "what time it is for the runtime")
    advance = _verb(verbs, "advance", _run_advance, "let time pass (serve with --clock manual)")
    advance.add_argument("seconds", type=float, metavar="SECONDS")


def _run_state(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("GET", "/v1/state")


def _run_list(client: ControlClient, arguments: argparse.Namespace) -> Any:
    query = _given(arguments, "pod", "container")
    return client.request("GET", f"/v1/{arguments.verb}", query=query)


def _run_node(client: ControlClient, arguments: argparse.Namespace) -> Any:
    changes = _renamed(arguments, memory="memory_bytes", memory_used="base_memory_used_bytes")
    disk = _renamed(arguments, disk="capacity_bytes", disk_used="base_used_bytes")
    if disk:
        changes["filesystems"] = {arguments.path: disk}
    if not changes:
        return client.request("GET", "/v1/node")
    return client.request("PATCH", "/v1/node", changes)


def _run_clock(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("GET", "/v1/clock")


def _run_advance(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("POST", "/v1/clock", {"advance_s": arguments.seconds})


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The arguments that were given, by name."""
    found = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _renamed(arguments: argparse.Namespace, **names: str) -> dict[str, Any]:
    return {names[name]: value for name, value in _given(arguments, *names).items()}


_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def _bytes(text: str) -> int:
    """Bytes, or a whole number with Ki, Mi, Gi or Ti behind it."""
    number, unit = (text[:-2], _UNITS[text[-2:]]) if text[-2:] in _UNITS else (text, 1)
    if not number.isdigit():
        raise argparse.ArgumentTypeError(f"wanted bytes or 512Mi, 6Gi, ..., got {text!r}")
    return int(number) * unit
