"""The control requests one by one, in virtual time, without a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as pb
from runtime_calls import started

from fakecri import CriError, FakeCRI
from fakecri.control.api import Control
from fakecri.control.http import Request
from fakecri.control.routes import ROUTES
from fakecri.proxy import RecordingProxy


class Asking:
    """A fake with one running container `web` of pod `shop`, and its control."""

    def __init__(self) -> None:
        self.cri = FakeCRI()
        self.control = Control(self.cri)

    async def ask(self, line: str, body: Any = None, *, status: int = 200) -> Any:
        """`ask("GET /v1/rules?unused=1")`: the answer, which has that status."""
        method, _, rest = line.partition(" ")
        path, _, query = rest.partition("?")
        pairs = dict(pair.split("=") for pair in query.split("&") if pair)
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        response = await self.control.handle(Request(method, path, pairs, text))
        assert response.status == status, response.data
        if response.lines is not None:
            return [json.loads(line) for line in response.lines.splitlines()]
        return response.data


@pytest.mark.virtual_time
async def test_behaviours_and_faults_of_a_body_take_effect() -> None:
    asking = Asking()
    made = await asking.ask(
        "POST /v1/rules",
        "behaviors: [{container: web, exits: {code: 7, after_s: 2}}]\n"
        "faults: [{on: Version, fails: {code: UNAVAILABLE, message: away, times: 1}}]",
        status=201,
    )
    assert [(row["id"], row["left"], row["active"]) for row in made] == [
        (1, None, True),
        (2, 1, True),
    ]
    await started(asking.cri, "web", "shop")
    await asyncio.sleep(2.1)
    assert (await asking.ask("GET /v1/containers"))[0]["exit_code"] == 7
    with pytest.raises(CriError, match="away"):
        await asking.cri.call("Version", pb.VersionRequest())
    assert [row["hits"] for row in await asking.ask("GET /v1/rules")] == [1]


@pytest.mark.virtual_time
async def test_a_hanging_call_goes_on_when_its_rule_is_released() -> None:
    asking = Asking()
    await asking.ask("POST /v1/rules", {"faults": [{"on": "Version", "hangs": {}}]}, status=201)
    call = asyncio.create_task(asking.cri.call("Version", pb.VersionRequest()))
    await asyncio.sleep(60)
    assert not call.done()
    released = await asking.ask("POST /v1/rules/1/release")
    assert (released["hits"], released["active"]) == (1, False)
    assert isinstance(await call, pb.VersionResponse)


@pytest.mark.virtual_time
async def test_rules_can_be_removed_and_the_unused_listed() -> None:
    asking = Asking()
    rules = "faults: [{on: Version, fails: {}}, {on: Status, fails: {}}]"
    await asking.ask("POST /v1/rules", rules, status=201)
    await asking.ask("DELETE /v1/rules/1")
    await asking.cri.call("Version", pb.VersionRequest())
    assert await asking.ask("DELETE /v1/rules") == {"removed": 1}
    assert await asking.ask("GET /v1/rules") == []
    assert [row["id"] for row in await asking.ask("GET /v1/rules?unused=1")] == [1, 2]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("verb", "arguments", "state"),
    [
        ("exit", {"container": "web", "code": 3}, ("EXITED", 3)),
        ("kill", {"pod": "shop"}, ("EXITED", 137)),
        ("kill", {"exit_code": 9, "reason": "OOMKilled"}, ("EXITED", 9)),
        ("reboot", {}, ("EXITED", 255)),
    ],
)
async def test_actions_end_containers(verb: str, arguments: dict[str, Any], state: object) -> None:
    asking = Asking()
    await started(asking.cri, "web", "shop")
    await asking.ask(f"POST /v1/actions/{verb}", arguments)
    row = (await asking.ask("GET /v1/containers?container=web"))[0]
    assert (row["state"], row["exit_code"]) == state


@pytest.mark.virtual_time
async def test_drop_kill_sandbox_crash_and_restart() -> None:
    asking = Asking()
    await started(asking.cri, "web", "shop")
    await asking.ask("POST /v1/actions/drop", {"container": "web"})
    assert await asking.ask("GET /v1/containers") == []
    await asking.ask("POST /v1/actions/kill_sandbox", {"pod": "shop"})
    assert (await asking.ask("GET /v1/sandboxes"))[0]["state"] == "NOTREADY"
    killed = await asking.ask("POST /v1/actions/oom", {"process": "java", "pid": 7})
    assert killed == {"killed": "java", "pid": 7}
    await asking.ask("POST /v1/actions/kernel_says", {"text": "hello"})
    assert asking.cri.node.log.texts[-1] == "hello"
    await asking.ask("POST /v1/actions/crash")
    assert (await asking.ask("GET /v1/state"))["runtime"]["up"] is False
    await asking.ask("POST /v1/actions/restart", {})
    assert (await asking.ask("GET /v1/state"))["runtime"]["up"] is True


@pytest.mark.virtual_time
async def test_the_node_changes_and_the_runtime_sees_it() -> None:
    asking = Asking()
    change = {"memory_bytes": 2**30, "filesystems": {"/": {"base_used_bytes": 99 * 2**30}}}
    row = await asking.ask("PATCH /v1/node", change)
    assert row["memory_bytes"] == asking.cri.node.memory().total_bytes == 2**30
    assert row["filesystems"]["/"]["available_bytes"] <= 2**30
    change = {"pid_limit": 500, "base_pids": 90, "swap_total_bytes": 7, "container_root": "/c"}
    row = await asking.ask("PATCH /v1/node", change)
    assert {name: row[name] for name in change} == change
    assert asking.cri.node.pids().limit == 500
    assert asking.cri.node.swap_bytes() == 7
    assert await asking.ask("GET /v1/node") == row


@pytest.mark.virtual_time
async def test_calls_are_filtered_counted_and_forgotten() -> None:
    asking = Asking()
    await started(asking.cri, "web", "shop")
    rows = await asking.ask("GET /v1/calls?container=web")
    assert [(row["method"], row["pod"], row["attempt"]) for row in rows] == [
        ("CreateContainer", "shop", 0),
        ("StartContainer", "shop", 0),
    ]
    assert rows[0]["request"]["config"]["metadata"] == {"name": "web"}
    assert len(await asking.ask("GET /v1/calls?limit=1")) == 1
    assert await asking.ask("GET /v1/calls/count?method=StartContainer") == {"count": 1}
    assert await asking.ask("DELETE /v1/calls") == {"removed": 3}
    assert await asking.ask("GET /v1/calls") == []


@pytest.mark.virtual_time
async def test_assertions_answer_with_the_words_of_the_python_ones() -> None:
    asking = Asking()
    await started(asking.cri, "web", "shop")
    order = ["RunPodSandbox", {"method": "StartContainer", "container": "web"}]
    await asking.ask("POST /v1/assert", {"order": order})
    called: dict[str, Any] = {"method": "StartContainer", "container": "web", "times": 1}
    await asking.ask("POST /v1/assert", {"called": called})
    await asking.ask("POST /v1/assert", {"not_called": {"method": "StopContainer"}})
    series = {"method": "StartContainer", "expected_s": [0]}
    await asking.ask("POST /v1/assert", {"series": series})
    called["times"] = 2
    answer = await asking.ask("POST /v1/assert", {"called": called}, status=412)
    assert "expected 2 x StartContainer" in answer["error"]


MISTAKES = [
    ("POST /v1/rules", "", 400, "request body: it is empty"),
    ("POST /v1/rules", "faults: [", 400, "request body:1:10: no valid YAML"),
    ("POST /v1/rules", "fault: []", 400, "unknown key 'fault', wanted one of: runtime"),
    (
        "POST /v1/rules",
        "faults: [{on: Vers, hangs: {}}]",
        400,
        "faults[0].on: CRI v1 has no method 'Vers'",
    ),
    ("POST /v1/rules", "faults: [{on: Version, holds_name: {}}]", 400, "faults[0]: "),
    ("DELETE /v1/rules/9", None, 404, "no rule '9'"),
    ("POST /v1/rules/x/release", None, 404, "no rule 'x'"),
    ("POST /v1/actions/explode", "{}", 400, "unknown action 'explode', wanted one of: exit"),
    ("POST /v1/actions/kill", "{container: nobody}", 404, "no running container"),
    (
        "POST /v1/actions/kill",
        "{exit_code: x}",
        400,
        "exit_code: wanted a whole number from 0 to 255",
    ),
    ("POST /v1/actions/oom", "{}", 404, "no process may be killed"),
    (
        "PATCH /v1/node",
        "{memory_bytes: -1}",
        400,
        "memory_bytes: wanted bytes from 0, got the number -1",
    ),
    (
        "PATCH /v1/node",
        "{filesystems: {/data: {}}}",
        400,
        "no filesystem '/data', wanted one of: /",
    ),
    ("GET /v1/calls?color=red", None, 400, "query: unknown key 'color', wanted one of: pod"),
    (
        "GET /v1/calls?attempt=x",
        None,
        400,
        "query: attempt: wanted a whole number, got the text 'x'",
    ),
    ("GET /v1/calls?method=Startcontainer", None, 400, "did you mean StartContainer?"),
    ("POST /v1/assert", "{called: {}}", 400, "called: key 'method' is missing"),
    ("POST /v1/assert", "{}", 400, "wanted exactly one of called"),
    (
        "POST /v1/clock",
        "{advance_s: -1}",
        400,
        "advance_s: wanted seconds from 0 to 1e9, got the number -1",
    ),
    ("POST /v1/clock", "{advance_s: 1}", 409, "fakecri serve --clock manual"),
    ("GET /v1/nothing", None, 404, "there is no '/v1/nothing'; GET /v1 lists what there is"),
    ("PUT /v1/node", "{}", 405, "/v1/node takes GET, PATCH, not PUT"),
]


@pytest.mark.virtual_time
@pytest.mark.parametrize(("line", "text", "status", "message"), MISTAKES)
async def test_mistakes_say_what_was_wanted_and_change_nothing(
    line: str, text: str | None, status: int, message: str
) -> None:
    asking = Asking()
    answer = await asking.ask(line, text, status=status)
    assert message in answer["error"]
    assert await asking.ask("GET /v1/rules") == []


@pytest.mark.virtual_time
async def test_half_of_a_body_never_takes_effect() -> None:
    asking = Asking()
    text = "behaviors: [{exits: {}}]\nfaults: [{on: Version, holds_name: {}}]"
    await asking.ask("POST /v1/rules", text, status=400)
    assert await asking.ask("GET /v1/rules") == []


@pytest.mark.virtual_time
async def test_a_proxy_has_rules_and_calls_but_nothing_of_a_fake() -> None:
    asking = Asking()
    asking.control = Control(RecordingProxy(asking.cri))
    await asking.ask("POST /v1/rules", "faults: [{on: Version, hangs: {}}]", status=201)
    assert (await asking.ask("GET /v1/state"))["kind"] == "proxy"
    refused = await asking.ask("POST /v1/rules", "behaviors: [{exits: {}}]", status=400)
    assert "a proxy takes only faults" in refused["error"]
    for line in ("GET /v1/node", "GET /v1/containers", "POST /v1/actions/crash"):
        refused = await asking.ask(line, status=409)
        assert "its runtime is a real one" in refused["error"]


@pytest.mark.virtual_time
async def test_the_index_names_every_route() -> None:
    asking = Asking()
    index = await asking.ask("GET /v1")
    assert list(index) == [f"{route.method} {route.path}" for route in ROUTES]
