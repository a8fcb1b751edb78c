"""The fake API server takes and refuses the recorded pods as Kubernetes does (SRC-037).

Fields behind gates that are off it takes, where Kubernetes drops them, and an empty list is none to
it (docs/gaps.md).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pod_changes import changed

from fakekubeapi import FakeApi

pytestmark = pytest.mark.virtual_time
DATA = Path(__file__).parents[2] / "data/kubeobjects"
TAKEN = (
    "clusterTrustBundle",
    "podCertificate",
    "schedulingGroup",
    '{"claims": []}',
)


def recorded(kind: str) -> list[tuple[dict[str, Any], list[list[str]]]]:
    """Pods, and the causes of their refusal."""
    head, *lines = map(json.loads, (DATA / f"pod_{kind}.jsonl").read_text().splitlines())
    return [
        (changed(head["bases"][case["base"]], case["changes"]), case["causes"])
        for case in lines
        if case["causes"] is not None and not any(k in json.dumps(case["changes"]) for k in TAKEN)
    ]


@pytest.mark.parametrize("kind", ["containers", "fields", "volumes"])
async def test_a_pod_is_refused_as_kubernetes_refuses_it_SRC_037(kind: str) -> None:
    api, different = FakeApi(), []
    for pod, causes in recorded(kind):
        answer = await api.request(
            "POST", "/api/v1/namespaces/default/pods", body=pod, params={"dryRun": "All"}
        )
        told = [] if answer.ok else answer.body["details"]["causes"]
        found = [[one["field"], one["message"], one["reason"]] for one in told]
        if found != causes or answer.status != (422 if causes else 201):
            different.append((pod, found, causes))
    assert different == []
