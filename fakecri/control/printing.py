"""Prints answers of the control socket: one line a thing for people, or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final


def print_plain(verb: str, answer: Any, *, as_json: bool = False) -> None:
    """Print the answer to the request of a verb. `as_json`: the answer as it came, with one line of
    JSON for each call."""
    if as_json and verb == "calls":
        for row in answer:
            print(json.dumps(row, separators=(",", ":")))
    elif as_json or verb in ("state", "node", "openapi"):
        print(json.dumps(answer, indent=2))
    elif verb in ("wait", "count") and "count" in answer:
        print(answer["count"])
    elif verb in ("clear", "remove") and "removed" in answer:
        print(f"removed {answer['removed']}")
    elif verb in ("clock", "advance"):
        print(f"{answer['now']} ({answer['mode']}, {answer['since_start_s']:.3f} s)")
    elif verb == "assert" or "done" in answer:
        print("ok")
    else:
        show = _LINES.get(verb, _shown_object)
        for row in answer if isinstance(answer, list) else [answer]:
            print(show(row))


def _rule(row: dict[str, Any]) -> str:
    state = "" if row["active"] else ", ended"
    uses_left = "" if row["left"] is None else f", {row['left']} left"
    return f"{row['id']}: {row['what']} ({row['hits']} hits{uses_left}{state})"


def _call(row: dict[str, Any]) -> str:
    took = "running" if row["t_end"] is None else f"{row['t_end'] - row['t_start']:.3f} s"
    error = row.get("error")
    outcome = f" -> {error['code']}: {error['message']}" if error else ""
    place = "/".join(part for part in (row["pod"], row["container"]) if part)
    attempt = "" if row["attempt"] is None else f"#{row['attempt']}"
    about = f" {place}{attempt}" if place else ""
    return f"{row['t_start']:10.3f} s  {row['method']}{about} ({took}){outcome}"


def _killed(row: dict[str, Any]) -> str:
    return f"killed {row['killed']}, pid {row['pid']}"


def _shown_object(row: dict[str, Any]) -> str:
    if "name" not in row:
        return f"{row['id'][:13]}  {row['namespace']}/{row['pod']}#{row['attempt']}  {row['state']}"
    place = f"{row['namespace']}/{row['pod']}/{row['name']}#{row['attempt']}"
    end = f" {row['exit_code']} {row['reason']}".rstrip() if row["state"] == "EXITED" else ""
    return f"{row['id'][:13]}  {place}  {row['state']}{end}"


_LINES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "add": _rule,
    "behave": _rule,
    "fault": _rule,
    "forward": _rule,
    "rules": _rule,
    "remove": _rule,
    "release": _rule,
    "calls": _call,
    "oom": _killed,
}
