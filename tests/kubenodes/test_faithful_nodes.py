"""A kubelet of a pool, whose reads are shared, is the kubelet that the suite knows: cases of the
areas that look at API and runtime alone pass on it."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from fakekubeapi import FakeApi
from kubelet_conformance.harness.runs import virtual
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.registry import Case, Feature, load_cases
from kubenodes.shared_reads import PoolClient, SharedReads
from kubenodes.wire import NodeWire, client_of
from refkubelet.api.lightkube_client import LightkubeApiClient
from simclock import Rng, clock_of

AREAS: Final = ("backoff", "images", "lifecycle", "probes", "status")
ONE_OF: Final = 8
"""So many of them are one that runs here; all were seen to pass."""


def pooled(api: FakeApi) -> LightkubeApiClient:
    own = client_of(api)
    reads = SharedReads(own, clock_of(asyncio.get_running_loop()), Rng(0))
    return PoolClient(NodeWire(own.wire), own.server, reads)


def chosen() -> list[Case]:
    cases = [c for c in load_cases() if c.area in AREAS and Feature.API in c.needs]
    return sorted(cases, key=lambda case: case.id)[::ONE_OF]


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.id)
def test_a_case_passes_on_a_kubelet_of_a_pool(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "client_of", pooled)
    result = virtual.run_virtual_case(case, Choice(seed=1))
    assert result.outcome is Outcome.PASSED, result


def test_enough_cases_are_asked() -> None:
    assert len(chosen()) > 50
