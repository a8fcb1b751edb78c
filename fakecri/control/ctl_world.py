"""The verbs of `fakecri ctl` that make things happen, and those that look."""

from __future__ import annotations

import argparse
from typing import Any

from fakecri.control.client import ControlClient
from fakecri.control.ctl_args import (
    add_fields,
    add_selectors,
    add_verb,
    given,
    renamed,
    said_shortly,
    size,
)
from fakecri.words.actions import Action
from fakecri.words.word import fields_of


def add_actions(verbs: Any) -> None:
    for word, action in Action.known.items():
        parser = add_verb(verbs, word.replace("_", "-"), _run_action, said_shortly(action))
        parser.set_defaults(action=word)
        add_fields(parser, action)


def _run_action(client: ControlClient, arguments: argparse.Namespace) -> Any:
    names = [field.said for field in fields_of(Action.known[arguments.action])]
    return client.request("POST", f"/v1/actions/{arguments.action}", given(arguments, *names))


def add_state(verbs: Any) -> None:
    add_verb(verbs, "state", _run_state, "everything there is, as JSON")
    add_verb(verbs, "openapi", _run_openapi, "the requests of the control socket, as OpenAPI 3.1")
    add_verb(verbs, "reset", _run_reset, "the fake as it was started, for the next test")
    containers = add_verb(verbs, "containers", _run_list, "the containers")
    add_selectors(containers, "pod", "container")
    sandboxes = add_verb(verbs, "sandboxes", _run_list, "the sandboxes")
    add_selectors(sandboxes, "pod")
    node = add_verb(verbs, "node", _run_node, "show the node, or change what it has; bytes or 6Gi")
    node.add_argument("--memory", type=size, metavar="BYTES", help="memory of the machine")
    node.add_argument("--memory-used", type=size, metavar="BYTES", help="by non-containers")
    node.add_argument("--pid-limit", type=int, metavar="NUMBER", help="tasks there may be")
    node.add_argument("--pids-used", type=int, metavar="NUMBER", help="by non-containers")
    node.add_argument("--swap", type=size, metavar="BYTES", help="size of all swap areas")
    node.add_argument("--path", default="/", metavar="DIR", help="which filesystem (default: /)")
    node.add_argument("--disk", type=size, metavar="BYTES", help="size of the filesystem")
    node.add_argument("--disk-used", type=size, metavar="BYTES", help="by non-containers")
    add_verb(verbs, "clock", _run_clock, "what time it is for the runtime")
    advance = add_verb(verbs, "advance", _run_advance, "let time pass (serve with --clock manual)")
    advance.add_argument("seconds", type=_seconds, metavar="SECONDS", help="60, or 5m, 1h")


def _run_state(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("GET", "/v1/state")


def _run_openapi(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("GET", "/v1/openapi.json")


def _run_reset(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("POST", "/v1/reset")


def _run_list(client: ControlClient, arguments: argparse.Namespace) -> Any:
    query = given(arguments, "pod", "container")
    return client.request("GET", f"/v1/{arguments.verb}", query=query)


def _run_node(client: ControlClient, arguments: argparse.Namespace) -> Any:
    changes = renamed(
        arguments,
        memory="memory_bytes",
        memory_used="base_memory_used_bytes",
        pid_limit="pid_limit",
        pids_used="base_pids",
        swap="swap_total_bytes",
    )
    disk = renamed(arguments, disk="capacity_bytes", disk_used="base_used_bytes")
    if disk:
        changes["filesystems"] = {arguments.path: disk}
    if not changes:
        return client.request("GET", "/v1/node")
    return client.request("PATCH", "/v1/node", changes)


def _run_clock(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("GET", "/v1/clock")


def _run_advance(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("POST", "/v1/clock", {"advance_s": arguments.seconds})


def _seconds(text: str) -> float | str:
    """A number, or a text that the other side understands or refuses."""
    try:
        return float(text)
    except ValueError:
        return text
