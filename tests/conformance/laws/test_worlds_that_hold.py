"""Worlds of search in which laws once saw a breach where there is none: kept as scenario files, so
that they stay as they are when others are drawn. Each stands for what its law must leave alone."""

from __future__ import annotations

import pytest
from places import ROOT

from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.scenarios.case import case_of
from kubelet_conformance.scenarios.reading import load_scenario

KEPT = {
    103: "gone-in-time: the runtime cannot stop the sandbox for want of a network",
    174: "begun-in-time: another pod of this name runs",
    391: "probes-end: a step waits for two relists before the pod is ended",
    839: "last-run-kept: the answer to the start of the next instance was lost",
    1035: "nothing-in-what-is-over: the sync waited for an image",
    1040: "ends-noticed: with events a hook after a start holds up what is shown",
    1081: "begun-in-time: the driver of a volume is away",
    1276: "begun-in-time: a pod is deleted before the kubelet has seen it",
    1432: "nothing-in-what-is-over: the sync waited for a hook after a start",
    1670: "phases-go-on: a kubelet that starts asks anew whether a static pod is taken",
    2031: "begun-in-time: the step of its last life waits in the queue for images",
    2205: "refused-when-full: a kubelet that starts does not know that a static pod was over",
    2218: "ends-shown: another container of the pod is being stopped",
    2322: "nothing-in-what-is-over: a step waits for a call that hangs",
    2479: "ends-shown: a hook of another container holds up the end of the pod",
    2841: "told-as-it-is: a hook after a start holds up what is shown",
    3035: "ends-shown: the sandbox of the pod takes long to stop",
    3206: "done-stays-done: records were taken away, and init containers run again",
    3873: "ends-noticed: with events nothing is shown while the server refuses it",
    10147: "user-ids-given-once: lists tell that the runtime has lost the other's sandbox",
    11045: "nothing-in-what-is-over: the runtime is away, and tells nothing",
    12040: "restarts-go-up: the runtime has lost its records, and the status met another mirror",
    12303: "running-is-initialized: a sidecar starts anew in a sandbox in which others have run",
    12714: "mirrors-agree: the server was away until the pod was over",
}
"""Seed by which the world was drawn -> which law was wrong, and why."""


@pytest.mark.parametrize("seed", KEPT)
def test_a_world_that_once_seemed_to_break_a_law_holds(seed: int) -> None:
    path = ROOT / f"tests/data/worlds_that_hold/world-{seed}.yaml"
    result = run_virtual_case(case_of(load_scenario(path), path), Choice())
    assert (result.outcome, result.detail) == (Outcome.PASSED, "")
