"""The OpenAPI document of the control socket: valid, whole, and it takes what our pages send."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kubecri.v1 import api_pb2 as api
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from places import ROOT
from plain_words import plain

import fakecri
from fakecri import CriError, FakeCRI
from fakecri.cli import main
from fakecri.control.api import Control
from fakecri.control.bodies import ACTIONS
from fakecri.control.http import Request
from fakecri.control.openapi import openapi
from fakecri.control.routes import ROUTES
from kubeobjects.strict.values import parse_yaml

DOCUMENT = openapi(ROUTES)
PAGE = (ROOT / "docs/fakecri/from-a-shell.md").read_text()
BODIES_OF_PAGE = re.findall(
    r"^\| `((?:POST|PATCH) /v1/\S+)` \| `({.*})` \|",
    (ROOT / "docs/fakecri/http-api.md").read_text(),
    re.M,
)


def test_it_is_openapi_and_has_every_route() -> None:
    validate(DOCUMENT, cls=OpenAPIV31SpecValidator)
    there = {(method.upper(), path) for path, rows in DOCUMENT["paths"].items() for method in rows}
    wanted = {
        (route.method, route.path.replace("{verb}", verb)) for route in ROUTES for verb in ACTIONS
    }
    assert there == wanted
    names = [row["operationId"] for rows in DOCUMENT["paths"].values() for row in rows.values()]
    assert len(set(names)) == len(names)


def test_it_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with fakecri.serve() as fake:
        assert fake.ctl().request("GET", "/v1/openapi.json") == DOCUMENT
        assert main(["ctl", "--control", fake.control, "openapi"]) == 0
    assert json.loads(capsys.readouterr().out) == DOCUMENT


def schema_of(line: str) -> dict[str, Any]:
    """The schema of the body of a request such as `POST /v1/rules`."""
    method, _, path = line.partition(" ")
    body = DOCUMENT["paths"][path][method.lower()]["requestBody"]
    schema: dict[str, Any] = body["content"]["application/json"]["schema"]
    return {**schema, "components": DOCUMENT["components"]}


def sent_by_ctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The lines and bodies of what the shell block of the page sends."""
    sent: list[tuple[str, str]] = []

    def request(self: Any, method: str, path: str, body: Any = None, **_: Any) -> Any:
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        sent.append((f"{method} {path}", text or ""))
        return {"done": "", "now": "", "mode": "", "since_start_s": 0}

    monkeypatch.setattr("fakecri.control.client.ControlClient.request", request)
    for line in re.findall(r"^fakecri ctl (.*)$", PAGE, re.M):
        words = shlex.split(line, comments=True)
        if words[0] != "wait":
            assert main(["ctl", "--control", f"unix://{tmp_path}/ctl", *words]) == 0
    return sent


async def test_what_the_page_sends_is_taken_by_schema_and_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = Control(FakeCRI())
    with_body = 0
    for line, text in sent_by_ctl(tmp_path, monkeypatch):
        method, _, path = line.partition(" ")
        response = await control.handle(Request(method, path, {}, text))
        assert response.status in (200, 201, 404, 409), (line, text, response.data)
        if text:
            jsonschema.validate(plain(parse_yaml(text, "body")), schema_of(line))
            with_body += 1
    assert with_body > 10


BODIES = [
    ("POST /v1/assert", {"called": {"method": "StartContainer", "container": "web", "times": 2}}),
    ("POST /v1/assert", {"order": ["RunPodSandbox", {"method": "StartContainer"}]}),
    ("POST /v1/assert", {"series": {"method": "Version", "expected_s": [0, 1.5], "slack_s": 1}}),
    ("PATCH /v1/node", {"memory_bytes": "1Gi", "filesystems": {"/": {"inodes": 5}}}),
    ("POST /v1/clock", {"advance_s": "5m"}),
    ("POST /v1/actions/kill", {"container": "web", "exit_code": 137, "reason": "OOMKilled"}),
]
WRONG = [
    ("POST /v1/assert", {"called": {"method": "Startcontainer"}}),
    ("POST /v1/assert", {"series": {"method": "Version"}}),
    ("PATCH /v1/node", {"memory_bytes": -1}),
    ("PATCH /v1/node", {"memory": 1}),
    ("POST /v1/clock", {}),
    ("POST /v1/actions/kill", {"exit_code": 256}),
    ("POST /v1/rules", {"faults": [{"on": "Version", "delays": {}}]}),
]


@pytest.mark.parametrize(("line", "body"), BODIES)
async def test_right_bodies_are_taken_by_schema_and_reader(line: str, body: Any) -> None:
    jsonschema.validate(body, schema_of(line))
    method, _, path = line.partition(" ")
    response = await Control(FakeCRI()).handle(Request(method, path, {}, json.dumps(body)))
    assert response.status != 400, response.data


@pytest.mark.parametrize(("line", "body"), WRONG)
async def test_wrong_bodies_are_refused_by_schema_and_reader(line: str, body: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, schema_of(line))
    method, _, path = line.partition(" ")
    response = await Control(FakeCRI()).handle(Request(method, path, {}, json.dumps(body)))
    assert response.status == 400


def answer_schema(method: str, path: str) -> dict[str, Any]:
    """The schema of what a request is answered with, in which no other key has a place."""
    told = DOCUMENT["paths"][path][method.lower()]["responses"]
    content = next(told[code] for code in ("200", "201") if code in told)["content"]
    (schema,) = (one["schema"] for one in content.values())
    closed = {
        name: {**one, "additionalProperties": False} if "properties" in one else one
        for name, one in DOCUMENT["components"]["schemas"].items()
    }
    return {**schema, "components": {"schemas": closed}}


async def a_world() -> FakeCRI:
    """A fake that has had two pods with a container, a fault, and a call that failed."""
    cri = FakeCRI()
    cri.on("StopContainer", pod="no").fails("UNKNOWN", "no")
    cri.on("Version").fails("UNKNOWN", "no", times=1)
    with pytest.raises(CriError):
        await cri.call("Version", api.VersionRequest())
    for name in ("web", "db"):
        config = api.PodSandboxConfig(metadata={"name": name, "uid": name})
        sandbox = await cri.call("RunPodSandbox", api.RunPodSandboxRequest(config=config))
        made = await cri.call(
            "CreateContainer",
            api.CreateContainerRequest(
                pod_sandbox_id=sandbox.pod_sandbox_id,
                config={"metadata": {"name": "main"}, "image": {"image": "localhost/busybox:1"}},
                sandbox_config=config,
            ),
        )
        start = api.StartContainerRequest(container_id=made.container_id)
        await cri.call("StartContainer", start)
    return cri


SENT: dict[str, Any] = {
    "POST /v1/rules": {"behaviors": [{"container": "web", "exits": {"code": 1}}]},
    "POST /v1/assert": {"called": {"method": "StartContainer"}},
    "PATCH /v1/node": {"memory_bytes": "16Gi"},
    "POST /v1/clock": {"advance_s": 1},
    "POST /v1/actions/exit": {"pod": "web", "container": "main"},
    "POST /v1/actions/kill": {"pod": "web", "container": "main"},
    "POST /v1/actions/drop": {"pod": "web", "container": "main"},
    "POST /v1/actions/kill_sandbox": {"pod": "web"},
    "POST /v1/actions/stop_sandbox": {"pod": "web"},
    "POST /v1/actions/kernel_says": {"text": "x"},
}
REQUESTS = [(method.upper(), path) for path, rows in DOCUMENT["paths"].items() for method in rows]


@pytest.mark.virtual_time
@pytest.mark.parametrize(("method", "path"), REQUESTS)
async def test_every_answer_is_as_the_document_says(method: str, path: str) -> None:
    class Loop:
        async def advance(self, seconds: float) -> None: ...

    control = Control(await a_world(), Loop())  # type: ignore[arg-type]
    if "{number}" in path:
        await control.handle(Request("GET", "/v1/rules", {}, ""))  # numbers them
    body = SENT.get(f"{method} {path}")
    request = Request(method, path.replace("{number}", "1"), {}, json.dumps(body) if body else "")
    response = await control.handle(request)
    assert response.status in (200, 201), response.data
    schema = answer_schema(method, path)
    assert schema.keys() - {"components"}
    answers = [json.loads(line) for line in response.lines.splitlines()] if response.lines else []
    assert answers or response.data is not None
    for answer in answers or [response.data]:
        jsonschema.validate(answer, schema)


async def test_a_proxy_says_less_of_its_state() -> None:
    required = DOCUMENT["components"]["schemas"]["State"]["required"]
    assert set(required) == {"kind", "clock", "rules", "calls"}


def test_the_page_shows_a_body_for_each_request_that_has_one() -> None:
    with_body = {
        f"{route.method} {route.path}" for route in ROUTES if route.body and "{" not in route.path
    }
    assert with_body <= {line for line, _ in BODIES_OF_PAGE}
    assert any(line.startswith("POST /v1/actions/") for line, _ in BODIES_OF_PAGE)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("line", "body"), BODIES_OF_PAGE)
async def test_bodies_of_the_page_are_taken(line: str, body: str) -> None:
    jsonschema.validate(json.loads(body), schema_of(line))
    method, _, path = line.partition(" ")
    response = await Control(await a_world()).handle(Request(method, path, {}, body))
    assert response.status in (200, 201) or path == "/v1/clock", response.data
