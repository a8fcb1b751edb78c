"""The verbs of `fakecri ctl` that make things happen, and those that look."""

from __future__ import annotations

import argparse
from typing import Any, Final

from fakecri.control.client import ControlClient
from fakecri.control.ctl_args import (
    FORMS,
    add_fields,
    add_selectors,
    add_verb,
    asking,
    given,
    said_shortly,
)
from fakecri.words.actions import Action
from fakecri.words.settings import DISK, NODE, by_field
from fakecri.words.word import fields_of

_OPENAPI: Final = "the requests of the control socket, as OpenAPI 3.1"


def add_actions(verbs: Any) -> None:
    for word, action in Action.known.items():
        parser = add_verb(verbs, word.replace("_", "-"), _run_action, said_shortly(action))
        parser.set_defaults(action=word)
        add_fields(parser, action)


def _run_action(client: ControlClient, arguments: argparse.Namespace) -> Any:
    names = [field.said for field in fields_of(Action.known[arguments.action])]
    return client.request("POST", f"/v1/actions/{arguments.action}", given(arguments, *names))


def add_state(verbs: Any) -> None:
    add_verb(verbs, "state", asking("GET", "/v1/state"), "everything there is, as JSON")
    add_verb(verbs, "openapi", asking("GET", "/v1/openapi.json"), _OPENAPI)
    add_verb(
        verbs, "reset", asking("POST", "/v1/reset"), "the fake as it was started, for the next test"
    )
    containers = add_verb(verbs, "containers", _run_list, "the containers")
    add_selectors(containers, "pod", "container")
    sandboxes = add_verb(verbs, "sandboxes", _run_list, "the sandboxes")
    add_selectors(sandboxes, "pod")
    node = add_verb(verbs, "node", _run_node, "show the node, or change what it has; bytes or 6Gi")
    for setting in (*NODE, *DISK):
        if setting.changes:
            node.add_argument(setting.option, help=setting.about, **FORMS[setting.kind])
    node.add_argument("--path", default="/", metavar="DIR", help="which filesystem (default: /)")
    add_verb(verbs, "clock", asking("GET", "/v1/clock"), "what time it is for the runtime")
    advance = add_verb(verbs, "advance", _run_advance, "let time pass (serve with --clock manual)")
    advance.add_argument("seconds", type=_seconds, metavar="SECONDS", help="60, or 5m, 1h")


def _run_list(client: ControlClient, arguments: argparse.Namespace) -> Any:
    query = given(arguments, "pod", "container")
    return client.request("GET", f"/v1/{arguments.verb}", query=query)


def _run_node(client: ControlClient, arguments: argparse.Namespace) -> Any:
    settings = given(arguments, *(setting.word for setting in (*NODE, *DISK)))
    changes, disk = by_field(NODE, settings), by_field(DISK, settings)
    if disk:
        changes["filesystems"] = {arguments.path: disk}
    if not changes:
        return client.request("GET", "/v1/node")
    return client.request("PATCH", "/v1/node", changes)


def _run_advance(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("POST", "/v1/clock", {"advance_s": arguments.seconds})


def _seconds(text: str) -> float | str:
    """A number, or a text that the other side understands or refuses."""
    try:
        return float(text)
    except ValueError:
        return text
