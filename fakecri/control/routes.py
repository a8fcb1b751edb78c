"""The routes of the control socket: which request is answered by which method of `Control`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from fakecri.control.answers import (
    CallRow,
    ClockRow,
    ContainerRow,
    Count,
    Done,
    NodeRow,
    Ok,
    Removed,
    RuleRow,
    SandboxRow,
    State,
)
from fakecri.control.bodies import (
    Advance,
    Assertion,
    CallsQuery,
    ContainersQuery,
    NodeChange,
    RulesQuery,
    SandboxesQuery,
)
from fakecri.control.http import HttpError, Request
from fakecri.scripts.script import Script
from fakecri.words.actions import Action
from kubeobjects.strict.reader import Strict


@dataclass(frozen=True, slots=True)
class Route:
    """A request that is understood. `{name}` in the path is an argument of the handler."""

    method: str
    path: str
    handler: str
    """The name of the method of `Control`."""
    summary: str
    fake_only: bool = False
    _: KW_ONLY
    query: type[Strict] | None = None
    """What may be in the query."""
    body: type[Strict] | None = None
    """What the body is."""
    body_required: bool = True
    made: bool = False
    """It answers 201: something was made."""
    lines: bool = False
    """It answers with JSON lines."""
    answer: Any
    """The type of the answer, of each of its lines."""


ROUTES: Final = (
    Route("GET", "/v1", "index", "this list", answer=dict[str, str]),
    Route("GET", "/v1/openapi.json", "openapi", "this list for machines: OpenAPI 3.1",
          answer=dict[str, Any]),
    Route("GET", "/v1/state", "state", "everything there is", answer=State),
    Route("GET", "/v1/rules", "list_rules", "the active rules; ?unused=1: those never hit",
          query=RulesQuery, answer=list[RuleRow]),
    Route("POST", "/v1/rules", "add_rules", "add what a script file may hold",
          body=Script, made=True, answer=list[RuleRow]),
    Route("DELETE", "/v1/rules", "remove_rules", "remove all rules, release what hangs",
          answer=Removed),
    Route("DELETE", "/v1/rules/{number}", "remove_rule", "remove one rule", answer=RuleRow),
    Route("POST", "/v1/rules/{number}/release", "release_rule", "let its calls go on",
          answer=RuleRow),
    Route("GET", "/v1/calls", "list_calls", "calls as JSON lines: ?method, pod, container, "
          "image, attempt, since_s, limit", query=CallsQuery, lines=True, answer=CallRow),
    Route("GET", "/v1/calls/count", "count_calls", "how many calls, same filters",
          query=CallsQuery, answer=Count),
    Route("DELETE", "/v1/calls", "clear_calls", "forget the calls", answer=Removed),
    Route("POST", "/v1/assert", "check", "called, not_called, order or series",
          body=Assertion, answer=Ok),
    Route("GET", "/v1/containers", "containers", "by ?container and ?pod", fake_only=True,
          query=ContainersQuery, answer=list[ContainerRow]),
    Route("GET", "/v1/sandboxes", "sandboxes", "by ?pod", fake_only=True,
          query=SandboxesQuery, answer=list[SandboxRow]),
    Route("POST", "/v1/actions/{verb}", "act", ", ".join(Action.known), fake_only=True,
          answer=Done),
    Route("POST", "/v1/reset", "reset", "the fake as it was started", fake_only=True, answer=Done),
    Route("GET", "/v1/node", "node", "memory, processes and filesystems", fake_only=True,
          answer=NodeRow),
    Route("PATCH", "/v1/node", "change_node", "change them", fake_only=True,
          body=NodeChange, answer=NodeRow),
    Route("GET", "/v1/clock", "clock", "what time it is", answer=ClockRow),
    Route("POST", "/v1/clock", "advance", "let {advance_s} seconds pass", body=Advance,
          answer=ClockRow),
)  # fmt: skip


def find(request: Request) -> tuple[Route, dict[str, str]]:
    """The route for a request, and the arguments in its path. Raises HttpError: 404, or 405 for a
    path with another method."""
    parts = request.path.rstrip("/").split("/")
    other: list[str] = []
    for route in ROUTES:
        wanted = route.path.split("/")
        pairs = list(zip(wanted, parts, strict=False))
        if len(wanted) != len(parts) or any(w != p for w, p in pairs if not w.startswith("{")):
            continue
        if route.method == request.method:
            return route, {w.strip("{}"): p for w, p in pairs if w.startswith("{")}
        other.append(route.method)
    if other:
        raise HttpError(405, f"{request.path} takes {', '.join(other)}, not {request.method}")
    raise HttpError(404, f"there is no {request.path!r}; GET /v1 lists what there is")
