"""Who owns what: the decisions of server-side apply against those of Kubernetes' field manager."""

from __future__ import annotations

import json
from typing import Any

import pytest
from places import ROOT

from fakekubeapi.apply.managers import Manager, Managers, encode
from fakekubeapi.apply.ownership import Conflicts, Write, after_apply, after_update
from fakekubeapi.apply.structure import Struct, shape_of
from fakekubeapi.bodies import without_null
from kubeobjects.schema.messages import message

ANSWERS = [
    json.loads(line) for line in (ROOT / "tests/data/apply/answers.jsonl").read_text().splitlines()
]


def entries(found: list[dict[str, Any]]) -> list[str]:
    """The entries of managedFields, without the order that times give."""
    return sorted(json.dumps(entry, sort_keys=True) for entry in found)


def carried_out(
    step: dict[str, Any], live: dict[str, Any], owners: Managers, shape: Struct
) -> tuple[dict[str, Any], Managers]:
    operation = "Apply" if step["op"] == "apply" else "Update"
    write = Write(Manager(step["manager"], operation, "v1"), "")
    if operation == "Update":
        return step["object"], after_update(owners, live, step["object"], shape, write)
    return after_apply(owners, live, step["object"], shape, write, force=step["force"])


def test_the_answers_hold_all_that_can_happen() -> None:
    steps = [step for run in ANSWERS for step in run["steps"]]
    assert {run["kind"] for run in ANSWERS} == {"Pod", "Node", "Service", "ConfigMap"}
    assert sum("causes" in step for step in steps) >= 5
    assert sum(step["op"] == "update" for step in steps) >= 20


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_owners_and_objects_are_those_of_kubernetes(number: int) -> None:
    run = ANSWERS[number]
    shape = shape_of(message(f"core.v1.{run['kind']}"))
    live: dict[str, Any] = {"apiVersion": "v1", "kind": run["kind"], "metadata": {}}
    owners: Managers = {}
    for step in run["steps"]:
        causes: list[dict[str, str]] = []
        try:
            live, owners = carried_out(step, live, owners, shape)
        except Conflicts as conflicts:
            causes = conflicts.causes
        assert entries(encode(owners)) == entries(step["managed"])
        assert without_null(live) == step["live"]
        found, wanted = (
            {str(sorted(c.items())) for c in one} for one in (causes, step.get("causes", []))
        )
        assert found == wanted
