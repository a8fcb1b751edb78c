"""The JSON schema of scenarios, and the page about them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from places import ROOT

from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.packaged import shipped
from kubelet_conformance.scenarios.case import case_of
from kubelet_conformance.scenarios.commands import schema_text
from kubelet_conformance.scenarios.reading import read_scenario
from kubelet_conformance.scenarios.shape.conditions import KINDS
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.steps import WORDS
from kubeobjects.strict.values import parse_yaml, read_yaml

SCHEMA: dict[str, Any] = json.loads(
    (ROOT / "conformance/kubelet_conformance/scenario.schema.json").read_text()
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PAGE = (ROOT / "docs/scenarios.md").read_text()


def test_the_schema_is_the_one_of_the_structs() -> None:
    """To make it anew: kubelet-conformance check --schema, into the file that is read here."""
    assert (
        ROOT / "conformance/kubelet_conformance/scenario.schema.json"
    ).read_text() == schema_text()


def test_the_schema_is_a_schema() -> None:
    assert SCHEMA["$schema"] == VALIDATOR.META_SCHEMA["$id"]
    VALIDATOR.check_schema(SCHEMA)


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.stem)
def test_fixtures_are_what_the_schema_takes(path: Any) -> None:
    VALIDATOR.validate(read_yaml(path).plain())  # `on` is a word, as in YAML 1.2


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "x", "title": "t", "steps": [{"advance": "5x"}]},
        {"id": "x", "title": "t", "steps": [{"apply": "a", "mark": "b"}]},
        {"id": "x", "title": "t", "steps": []},
        {"id": "x", "title": "t", "steps": [{"mark": "a"}], "needs": ["apis"]},
        {"id": "x", "title": "t", "steps": [{"fault": {"on": "StopContaner", "hangs": {}}}]},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(wrong)


EXAMPLES = re.findall(r"```yaml\n((?:# yaml-language.*?\n)?id: .*?)```", PAGE, re.DOTALL)


def test_the_page_has_examples() -> None:
    ids = [read_scenario(parse_yaml(text, "docs/scenarios.md")).id for text in EXAMPLES]
    assert ids == ["104648", "widgets"]


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_page_pass(text: str) -> None:
    scenario = read_scenario(parse_yaml(text, "docs/scenarios.md"))
    result = run_virtual_case(case_of(scenario, Path("example.yaml")), Choice())
    assert (result.outcome, result.detail) == (Outcome.PASSED, "")


@pytest.mark.parametrize("word", [*WORDS, *KINDS, *Scenario.__struct_fields__])
def test_the_page_tells_of_every_word(word: str) -> None:
    assert re.search(rf"`{word}\b|/ `{word}`|, `{word}", PAGE), word
