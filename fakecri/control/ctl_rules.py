"""The verbs of `fakecri ctl` that program rules."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fakecri.control.client import ControlClient, ControlError
from fakecri.control.ctl_args import UsageError, add_selectors, add_verb, given
from fakecri.words.word import Word


def add_rules(verbs: Any) -> None:
    add = add_verb(verbs, "add", _run_add, "add the behaviours and faults of a script file")
    add.add_argument("file", metavar="FILE", help="YAML or JSON as for serve --script; - is stdin")
    behave = add_verb(
        verbs, "behave", _run_behave, "say what containers do from their next start on"
    )
    behave.add_argument(
        "behaviors", nargs="+", metavar="BEHAVIOR", help="for example 'exits: {code: 1}'"
    )
    behave.words = _behaviors
    add_selectors(behave, "pod", "container", "image", "attempt")
    behave.add_argument(
        "--first-attempts", type=int, metavar="N", help="only in the first N attempts of each"
    )
    behave.add_argument("--times", type=int, metavar="N", help="for the next N starts only")
    fault = add_verb(verbs, "fault", _run_fault, "disturb calls of a method")
    fault.words = _faults
    fault.add_argument("method", metavar="METHOD")
    fault.add_argument("fault", metavar="FAULT", help="'hangs: {}', 'delays: {delay_s: 2}', ...")
    add_selectors(fault, "pod", "container", "image", "attempt", "nth")
    forward = add_verb(verbs, "forward", _run_forward, "let a port of pods lead somewhere")
    forward.add_argument("port", type=int, metavar="PORT", help="0: every port")
    forward.add_argument("to", metavar="[HOST:]PORT", help="on this machine")
    add_selectors(forward, "pod")
    rules = add_verb(verbs, "rules", _run_rules, "list the active rules")
    rules.add_argument("--unused", action="store_true", help="those that never decided anything")
    remove = add_verb(verbs, "remove", _run_remove, "remove rules")
    remove.add_argument("id", metavar="ID|all")
    release = add_verb(verbs, "release", _run_release, "let the calls that hang on a rule go on")
    release.add_argument("id", type=int, metavar="ID")


def _behaviors() -> Iterable[type[Word]]:
    from fakecri.words.behaviors import Behavior

    return Behavior.known.values()


def _faults() -> Iterable[type[Word]]:
    from fakecri.rules.on import VERBS

    return VERBS.values()


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
    which = given(arguments, "pod", "container", "image", "attempt", "first_attempts", "times")
    entry = _entry("behaviors", which, ", ".join(arguments.behaviors))
    return client.request("POST", "/v1/rules", entry)


def _run_fault(client: ControlClient, arguments: argparse.Namespace) -> Any:
    which = given(arguments, "pod", "container", "image", "attempt", "nth")
    entry = _entry("faults", {"on": arguments.method, **which}, arguments.fault)
    return client.request("POST", "/v1/rules", entry)


def _run_forward(client: ControlClient, arguments: argparse.Namespace) -> Any:
    entry = {"port": arguments.port, "to": arguments.to, **given(arguments, "pod")}
    return client.request("POST", "/v1/rules", {"forwards": [entry]})


def _entry(kind: str, which: dict[str, Any], words: str) -> str:
    """A script with one entry. `words` are the user's own YAML and are sent as they are."""
    head = "".join(f"{key}: {json.dumps(value)}, " for key, value in which.items())
    return f"{kind}: [{{{head}{words}}}]"


def _run_rules(client: ControlClient, arguments: argparse.Namespace) -> Any:
    query = {"unused": 1} if arguments.unused else None
    return client.request("GET", "/v1/rules", query=query)


def _run_remove(client: ControlClient, arguments: argparse.Namespace) -> Any:
    which = "" if arguments.id == "all" else f"/{arguments.id}"
    return client.request("DELETE", f"/v1/rules{which}")


def _run_release(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("POST", f"/v1/rules/{arguments.id}/release")
