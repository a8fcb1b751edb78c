"""The verbs of `fakecri ctl` that ask about calls."""

from __future__ import annotations

import argparse
from typing import Any, Final

from fakecri.control.client import ControlClient
from fakecri.control.ctl_args import UsageError, add_selectors, add_verb, asking, given, renamed

_FILTERS: Final = ("pod", "container", "image", "attempt", "since_s")


def add_calls(verbs: Any) -> None:
    calls = add_verb(verbs, "calls", _run_calls, "the recorded calls; with --json as JSON lines")
    count = add_verb(verbs, "count", _run_count, "how many calls there were")
    for parser in (calls, count):
        parser.add_argument("method", nargs="?", metavar="METHOD")
        add_selectors(parser, *_FILTERS)
    calls.add_argument("--limit", type=int, metavar="N", help="only the last N")
    add_verb(verbs, "clear", asking("DELETE", "/v1/calls"), "forget the recorded calls")
    wait = add_verb(verbs, "wait", _run_wait, "wait until there were so many calls")
    wait.add_argument("method", nargs="?", metavar="METHOD")
    wait.add_argument("--ready", action="store_true", help="wait until the fake is served instead")
    wait.add_argument("--times", type=int, default=1, metavar="N", help="default: %(default)s")
    wait.add_argument(
        "--timeout", type=float, default=10.0, metavar="S", help="seconds (default: %(default)g)"
    )
    add_selectors(wait, *_FILTERS)
    check = add_verb(verbs, "assert", _run_assert, "exit with 1 unless it is so")
    check.add_argument("kind", choices=("called", "not-called", "order", "series"))
    check.add_argument("methods", nargs="+", metavar="METHOD")
    check.add_argument("--times", type=int, metavar="N", help="exactly so often (called)")
    check.add_argument(
        "--at", type=_seconds, metavar="S,S,...", help="seconds after the first (series)"
    )
    check.add_argument("--slack", type=float, metavar="S", help="how much later is fine (series)")
    add_selectors(check, *_FILTERS)


def _run_calls(client: ControlClient, arguments: argparse.Namespace) -> Any:
    query = given(arguments, "method", *_FILTERS, "limit")
    return client.request("GET", "/v1/calls", query=query)


def _run_count(client: ControlClient, arguments: argparse.Namespace) -> Any:
    return client.request("GET", "/v1/calls/count", query=given(arguments, "method", *_FILTERS))


def _run_wait(client: ControlClient, arguments: argparse.Namespace) -> Any:
    if arguments.ready == (arguments.method is not None):
        raise UsageError("wait: wanted a METHOD or --ready")
    if arguments.ready:
        client.wait_until_ready(within_s=arguments.timeout)
        return {"done": "ready"}
    filters = given(arguments, *_FILTERS)
    count = client.wait_for_calls(
        arguments.method, times=arguments.times, within_s=arguments.timeout, **filters
    )
    return {"count": count}


def _run_assert(client: ControlClient, arguments: argparse.Namespace) -> Any:
    filters = given(arguments, *_FILTERS)
    if arguments.kind == "order":
        steps = [{"method": method, **filters} for method in arguments.methods]
        return client.request("POST", "/v1/assert", {"order": steps})
    if len(arguments.methods) != 1:
        raise UsageError(f"assert {arguments.kind}: wanted one method, got {arguments.methods}")
    query = {"method": arguments.methods[0], **filters, **given(arguments, "times")}
    if arguments.kind == "series":
        if arguments.at is None:
            raise UsageError("assert series: --at is missing, for example --at 0,10,30")
        query |= renamed(arguments, at="expected_s", slack="slack_s")
    return client.request("POST", "/v1/assert", {arguments.kind.replace("-", "_"): query})


def _seconds(text: str) -> list[float]:
    """Numbers of seconds with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"wanted seconds like 0,10,30, got {text!r}") from None
