"""Defaults and checks of pods give what Kubernetes gave when it was asked about the same pods
(SRC-036, SRC-037, PROBE-003, PROBE-061, NODE-204, NODE-205).

`ask.py` writes the answers; the first line of a file says of which version they are.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from pod_changes import changed, prepare_new_pod

from kubeobjects.pods.defaults import default_pod
from kubeobjects.pods.validation import pod_causes

DATA = Path(__file__).parents[2] / "data/kubeobjects"
KINDS = ("containers", "fields", "volumes")


def recorded(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    head, *lines = (DATA / f"pod_{name}.jsonl").read_text().splitlines()
    return json.loads(head), [json.loads(line) for line in lines]


def causes_of(pod: dict[str, Any], *, static: bool) -> list[list[str]]:
    """Field, message and reason of each cause; causes of one map may come in any order."""
    return [[one.field, one.message, one.kind] for one in pod_causes(pod, static=static)]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_with_a_pod_is_told_as_upstream_does_SRC_037(kind: str, static: bool) -> None:
    head, cases = recorded(kind)
    assert len(cases) > 400
    different = {}
    for case in cases:
        pod = changed(head["bases"][case["base"]], case["changes"])
        default_pod(pod)
        if not static:
            prepare_new_pod(pod)
        expected = case.get("static", case["causes"]) if static else case["causes"]
        if expected is not None and causes_of(pod, static=static) != expected:
            different[json.dumps(case["changes"])] = expected
    assert different == {}


def test_a_pod_gets_the_defaults_that_upstream_gives_it_SRC_036_PROBE_003_NODE_205() -> None:
    _, cases = recorded("defaults")
    assert len(cases) > 150
    for case in cases:
        pod = copy.deepcopy(case["pod"])
        default_pod(pod)
        assert without_empty(pod["spec"]) == without_empty(case["spec"]), case["pod"]


def without_empty(value: Any) -> Any:
    """Without what is only written because Go's encoder never leaves it out."""
    if isinstance(value, dict):
        left_out = [key for key in ("resources", "metadata") if value.get(key) == {}]
        return {key: without_empty(one) for key, one in value.items() if key not in left_out}
    return [without_empty(one) for one in value] if isinstance(value, list) else value


def test_defaults_stay_as_they_are_when_they_are_filled_in_again() -> None:
    _, cases = recorded("defaults")
    for case in cases:
        once = copy.deepcopy(case["pod"])
        default_pod(once)
        twice = copy.deepcopy(once)
        default_pod(twice)
        assert twice == once
