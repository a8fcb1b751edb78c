"""What the control socket can do, as functions from a request to a response. No sockets here.

Every route is a row of `routes.ROUTES`; `GET /v1` lists them. Bodies are JSON or YAML and are read
as strictly as script files. Times are seconds since the target was made, as in failure texts and in
files of `--record`. Mistakes are 400, what does not exist 404, what this target or clock
cannot do 409, a failed assertion 412; each answers `{"error": text}`. What must never happen
here: half of a request takes effect.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec

from fakecri.control.answers import ClockRow
from fakecri.control.bodies import (
    ACTIONS,
    Advance,
    Assertion,
    CallsQuery,
    ContainersQuery,
    NodeChange,
    RulesQuery,
    SandboxesQuery,
)
from fakecri.control.http import HttpError, Request, Response, serve_http
from fakecri.control.openapi import openapi
from fakecri.control.routes import ROUTES, find
from fakecri.control.state import call_row, container_row, node_row, rule_row, sandbox_row, state_of
from fakecri.core.objects import Container, Sandbox
from fakecri.fake import FakeCRI
from fakecri.machine.values import Victim
from fakecri.rules.faults import Rule
from fakecri.rules.instrument import Instrumented
from fakecri.scripts.script import apply_script, read_script
from kubeobjects.strict.errors import ScriptError, did_you_mean
from kubeobjects.strict.reader import read
from kubeobjects.strict.values import Value, parse_yaml, texts_value
from simclock import ManualLoop, format_rfc3339

S = TypeVar("S", bound=msgspec.Struct)
ASSERTION_FAILED: Final = 412
_ROUNDING_S: Final = 0.00005  # calls show their times with four digits


class Control:
    """Answers control requests about a fake or a proxy.

    `target`: a `FakeCRI` or a `RecordingProxy`. `loop`: the manual loop on which it lives; None:
    its time passes by itself.
    """

    def __init__(self, target: Instrumented, loop: ManualLoop | None = None) -> None:
        self.target = target
        self._loop = loop
        self._numbers: dict[int, Rule] = {}

    async def handle(self, request: Request) -> Response:
        """The response to a request. What is wrong with the request is a response, too (400, 404,
        405, 409, 412); nothing is raised but cancellation."""
        try:
            route, arguments = find(request)
            if route.fake_only and self._fake() is None:
                raise HttpError(409, f"{request.path}: not on a proxy, its runtime is a real one")
            found = getattr(self, route.handler)(request, **arguments)
            response: Response = await found if inspect.isawaitable(found) else found
            return response
        except HttpError as error:
            return error.response()
        except LookupError as error:
            return Response({"error": str(error.args[0] if error.args else error)}, 404)
        except (ScriptError, ValueError) as error:
            return Response({"error": str(error)}, 400)
        except AssertionError as error:
            return Response({"error": str(error)}, ASSERTION_FAILED)

    def _fake(self) -> FakeCRI | None:
        return self.target if isinstance(self.target, FakeCRI) else None

    @property
    def _cri(self) -> FakeCRI:
        cri = self._fake()
        assert cri is not None, "only routes for fakes ask"
        return cri

    # -- rules ---------------------------------------------------------------------------------

    def list_rules(self, request: Request) -> Response:
        unused = _query(request, RulesQuery).unused in ("1", "true")
        rules = self.target.unused_rules() if unused else self.target.rules()
        return Response([rule_row(self._number(rule), rule) for rule in rules])

    def add_rules(self, request: Request) -> Response:
        script = read_script(_body(request), faults_only=self._fake() is None, running=True)
        rules = apply_script(script, self.target)
        for reference in script.given().get("images", ()):
            self._cri.images.add(reference)
        return Response([rule_row(self._number(rule), rule) for rule in rules], 201)

    def remove_rule(self, request: Request, number: str) -> Response:
        self._rule(number).remove()
        return Response(rule_row(int(number), self._rule(number)))

    def release_rule(self, request: Request, number: str) -> Response:
        self._rule(number).release()
        return Response(rule_row(int(number), self._rule(number)))

    def remove_rules(self, request: Request) -> Response:
        rules = self.target.rules()
        for rule in rules:
            rule.release()
        return Response({"removed": len(rules)})

    def _number(self, rule: Rule) -> int:
        for number, known in self._numbers.items():
            if known is rule:
                return number
        number = len(self._numbers) + 1
        self._numbers[number] = rule
        return number

    def _rule(self, number: str) -> Rule:
        rule = self._numbers.get(int(number)) if number.isdigit() else None
        if rule is None:
            raise HttpError(404, f"no rule {number!r}; GET /v1/rules (ctl rules) shows them")
        return rule

    # -- calls ---------------------------------------------------------------------------------

    def list_calls(self, request: Request) -> Response:
        wanted = _query(request, CallsQuery).given()
        limit = wanted.pop("limit", None)
        found = self.target.calls(**self._on_clock(wanted))
        t0_s = self.target.recorder.t0_s
        found = found[max(0, len(found) - limit) :] if limit is not None else found
        lines = "".join(
            json.dumps(call_row(call, t0_s), separators=(",", ":")) + "\n" for call in found
        )
        return Response(lines=lines)

    def count_calls(self, request: Request) -> Response:
        wanted = _query(request, CallsQuery).given()
        wanted.pop("limit", None)
        return Response({"count": self.target.count(**self._on_clock(wanted))})

    def clear_calls(self, request: Request) -> Response:
        count = self.target.count()
        self.target.recorder.clear()
        return Response({"removed": count})

    def check(self, request: Request) -> Response:
        kind, arguments = read(_body(request), Assertion).kind_and_arguments()
        checks: dict[str, Callable[..., Any]] = {
            "called": self.target.assert_called,
            "not_called": self.target.assert_not_called,
            "order": self.target.assert_order,
            "series": self.target.assert_series,
        }
        if kind == "order":
            steps = arguments["steps"]
            arguments["steps"] = [s if isinstance(s, str) else self._on_clock(s) for s in steps]
        checks[kind](**self._on_clock(arguments))
        return Response({"ok": True})

    def _on_clock(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with `since_s` on the target's clock instead of seconds since its start. A
        time that was read off a call, and so rounded, includes that call."""
        if "since_s" not in arguments:
            return arguments
        since_s = arguments["since_s"] + self.target.recorder.t0_s - _ROUNDING_S
        return {**arguments, "since_s": since_s}

    # -- state, node, actions ------------------------------------------------------------------

    def state(self, request: Request) -> Response:
        cri = self._fake()
        rules = [rule_row(self._number(rule), rule) for rule in self.target.rules()]
        totals = self.target.recorder.totals
        kept = self.target.count()
        return Response(
            {
                "kind": "proxy" if cri is None else "fake",
                "clock": self._clock_row(),
                **({} if cri is None else state_of(cri)),
                "rules": rules,
                "calls": {"seen": totals.total(), "kept": kept, "by_method": dict(totals)},
            }
        )

    def containers(self, request: Request) -> Response:
        found = self._cri.containers(**_query(request, ContainersQuery).given())
        return Response([container_row(container) for container in found])

    def sandboxes(self, request: Request) -> Response:
        found = self._cri.sandboxes(**_query(request, SandboxesQuery).given())
        return Response([sandbox_row(sandbox) for sandbox in found])

    def act(self, request: Request, verb: str) -> Response:
        if verb not in ACTIONS:
            hint = did_you_mean(verb, ACTIONS)
            raise HttpError(
                400, f"unknown action {verb!r}, wanted one of: {', '.join(ACTIONS)}{hint}"
            )
        arguments = read(_body(request, empty="{}"), ACTIONS[verb]).given()
        done = getattr(self._cri, verb)(**arguments)
        if isinstance(done, Victim):
            return Response({"killed": done.name, "pid": done.pid})
        if isinstance(done, Container):
            return Response(container_row(done))
        return Response(sandbox_row(done) if isinstance(done, Sandbox) else {"done": verb})

    async def reset(self, request: Request) -> Response:
        await self._cri.reset()
        self._numbers.clear()
        return Response({"done": "reset"})

    def node(self, request: Request) -> Response:
        return Response(node_row(self._cri.node))

    def change_node(self, request: Request) -> Response:
        node = self._cri.node
        changes = read(_body(request), NodeChange).given()
        filesystems = changes.pop("filesystems", {})
        for path, change in filesystems.items():
            if path not in node.filesystems:
                there = ", ".join(sorted(node.filesystems))
                raise change.error(f"there is no filesystem {path!r}, wanted one of: {there}")
        for name, value in changes.items():
            setattr(node, name, value)
        for path, change in filesystems.items():
            for name, value in change.given().items():
                setattr(node.filesystems[path], name, value)
        node.use_memory(node.base_memory_used_bytes)
        return Response(node_row(node))

    # -- time ----------------------------------------------------------------------------------

    def clock(self, request: Request) -> Response:
        return Response(self._clock_row())

    async def advance(self, request: Request) -> Response:
        duration_s = read(_body(request), Advance).advance_s
        if self._loop is None:
            raise HttpError(
                409, "the clock is the machine's own and cannot be advanced; a fake can, started "
                "by: fakecri serve --clock manual"
            )  # fmt: skip
        await self._loop.advance(duration_s)
        return Response(self._clock_row())

    def _clock_row(self) -> ClockRow:
        """The time of the target. `mode`: `real`, or `manual` for a clock that stands still until
        it is advanced."""
        clock = self.target.clock
        return {
            "mode": "real" if self._loop is None else "manual",
            "now": format_rfc3339(clock.wall_ns(), digits=9),
            "since_start_s": round(clock.monotonic_s() - self.target.recorder.t0_s, 9),
        }

    def index(self, request: Request) -> Response:
        return Response({f"{r.method} {r.path}": r.summary for r in ROUTES})

    def openapi(self, request: Request) -> Response:
        return Response(openapi(ROUTES))


@asynccontextmanager
async def serve_control(
    target: Instrumented, listen: str, loop: ManualLoop | None = None
) -> AsyncIterator[str]:
    """Answer control requests about `target` on the endpoint `listen` (`unix:///path`) until the
    block ends; gives the endpoint. `loop`: see `Control`. Raises EndpointError, see
    `serve_http`."""
    async with serve_http(Control(target, loop).handle, listen) as path:
        yield f"unix://{path}"


def _query(request: Request, shape: type[S]) -> S:
    return read(texts_value(request.query, "query"), shape)


def _body(request: Request, *, empty: str = "") -> Value:
    return parse_yaml(request.body or empty, "request body")
