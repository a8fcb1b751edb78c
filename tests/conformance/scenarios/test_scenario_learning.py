"""A recording becomes a scenario: what was recorded of refkubelet holds on refkubelet, and not on
one that does otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kubelet_conformance.cli import main
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import Case, Level
from kubelet_conformance.scenarios.case import case_of
from kubelet_conformance.scenarios.play.playing import Player
from kubelet_conformance.scenarios.reading import load_scenario, read_scenario
from kubeobjects.strict.values import parse_yaml

RECORDED = """\
id: recorded
title: Recorded
needs: [api]
pods:
  web:
    spec:
      terminationGracePeriodSeconds: 4
      initContainers: [{name: first}]
      containers:
        - name: main
          readinessProbe: {exec: {command: [check]}, periodSeconds: 2}
          resources: {requests: {cpu: 100m}, limits: {cpu: 200m, memory: 32Mi}}
    does:
      first: {exits: {code: 0, after_s: 1s}}
      main:
        - {exits: {code: 1, after_s: 3s}, replies: {command: check}}
        - {exits: {code: 1, after_s: 3s}, replies: {command: check}}
        - {stops: {code: 0}, replies: {command: check, answers: [{exit_code: 1}, {}]}}
  job:
    spec: {restartPolicy: Never, containers: [{name: work}]}
    does: {work: {exits: {code: 0, after_s: 2s}}}
steps:
  - apply: web
  - advance: 2s
  - create: job
  - wait: {container: {pod: web, restarts: 2}, within: 60s}
  - kubelet: restart
  - advance: 5s
  - remove: web
  - advance: 20s
expect:
  - {pod: {name: job, phase: Succeeded}, says: no}
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calls of a kubelet that played the scenario above."""
    file = tmp_path_factory.mktemp("record") / "my node.jsonl"
    scenario = read_scenario(parse_yaml(RECORDED, "recorded.yaml"))

    async def body(node: Node) -> None:
        await Player(scenario, node).play()
        rows = (call.to_dict() for call in node.calls())
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    needs = case_of(scenario, Path("x")).needs
    case = Case("recorded", "bugs", "x", ("LIFE-001",), Level.MUST, needs, body)
    result = run_virtual_case(case, Choice())
    assert (result.outcome, result.detail) == (Outcome.PASSED, "")
    return file


def learned(record: Path, folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Path:
    assert main(["learn", str(record), *words]) == 0
    file = folder / "learned.yaml"
    file.write_text(capsys.readouterr().out)
    return file


def played(file: Path) -> Result:
    return run_virtual_case(case_of(load_scenario(file), file), Choice(seed=2))


def test_what_was_recorded_happens_again(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = learned(record, tmp_path, capsys)
    assert main(["check", str(file)]) == 0
    result = played(file)
    assert (result.outcome, result.detail) == (Outcome.PASSED, "")
    wrong = file.read_text().replace("count: 3}", "count: 2}")
    assert wrong != file.read_text()
    file.write_text(wrong)
    assert played(file).outcome is Outcome.FAILED


def test_the_scenario_says_what_the_record_shows(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = learned(record, tmp_path, capsys).read_text()
    found = yaml.safe_load(text)
    assert found["id"] == "my-node"
    web, job = found["pods"]["web"]["spec"], found["pods"]["job"]["spec"]
    assert [c["name"] for c in web["initContainers"]] == ["first"]
    assert web["terminationGracePeriodSeconds"] == 4
    (main_container,) = web["containers"]
    assert main_container["readinessProbe"]["exec"] == {"command": ["check"]}
    assert main_container["resources"]["limits"] == {"cpu": "200m", "memory": "33554432"}
    assert main_container["resources"]["requests"] == {"cpu": "100m"}
    assert job["restartPolicy"] == "Never"
    steps = [next(iter(step)) for step in found["steps"] if "advance" not in step]
    assert steps == ["apply", "create", "kubelet", "remove"]
    assert "# guessed: web-node: init containers first: they ended before the next began" in text
    assert "# guessed: job: restartPolicy Never: a container ended" in text
    asked = {
        "method": "StopContainer",
        "pod": "web",
        "container": "main",
        "request": {"timeout": 4},
    }
    assert asked in [entry.get("calls") for entry in found["expect"]]


def test_pods_can_be_chosen(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = learned(record, tmp_path, capsys, "--pod", "j*", "--id", "one")
    found = yaml.safe_load(file.read_text())
    assert (found["id"], list(found["pods"])) == ("one", ["job"])
    assert played(file).outcome is Outcome.PASSED
    assert main(["learn", str(record), "--pod", "db"]) == 2
    assert "no pod db begins in the record" in capsys.readouterr().err
    assert main(["learn", str(tmp_path / "nowhere")]) == 2
    assert "cannot read" in capsys.readouterr().err
