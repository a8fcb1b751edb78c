"""The OpenAPI document of the control socket: valid, whole, and it takes what our pages send."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from places import ROOT
from plain_words import plain

import fakecri
from fakecri import FakeCRI
from fakecri.cli import main
from fakecri.control.api import Control
from fakecri.control.bodies import ACTIONS
from fakecri.control.http import Request
from fakecri.control.openapi import openapi
from fakecri.control.routes import ROUTES
from kubeobjects.strict.values import parse_yaml

DOCUMENT = openapi(ROUTES)
PAGE = (ROOT / "docs/fakecri/from-a-shell.md").read_text()


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
