"""The steps of objects keep what they say: which of them write, and which change the object."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fakekubeapi_helpers import POD_A, PODS, create, ok, pod

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.verbs import changing, creation, deletion

pytestmark = pytest.mark.virtual_time

WRITES = {"stored", "marked", "removed"}
CHANGES_NOTHING = {"versioned", "owned", "validated", "allowed", "timed"}
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class Watched:
    """Notes for each step whether it wrote, and whether it changed the object on its way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[str] = []
        self.wrote: set[str] = set()
        self.changed: set[str] = set()
        for module in (creation, changing, deletion):
            steps = tuple(self._watched(step) for step in module.STEPS)
            monkeypatch.setattr(module, "STEPS", steps)

    def _watched(self, step: Callable[..., None]) -> Callable[..., None]:
        def watched(state: Any, server: Any) -> None:
            before, revision = json.dumps(state.obj, sort_keys=True), server.store.revision
            step(state, server)
            self.ran.append(step.__name__)
            if server.store.revision != revision:
                self.wrote.add(step.__name__)
            if json.dumps(state.obj, sort_keys=True) != before:
                self.changed.add(step.__name__)

        return watched


async def test_steps_write_and_change_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = (creation, changing, deletion)
    names = {step.__name__ for module in modules for step in module.STEPS}
    watched = Watched(monkeypatch)
    api = FakeApi(options=ServerOptions(field_managers=True))
    await create(api, PODS, pod())
    stored = ok(await api.request("GET", POD_A))
    labelled = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    ok(await api.request("PUT", POD_A, body=labelled))
    status = {**labelled, "status": {"phase": "Running"}}
    status["metadata"].pop("resourceVersion")
    ok(await api.request("PUT", f"{POD_A}/status", body=status))
    ok(
        await api.request(
            "PATCH", POD_A, body={"metadata": {"labels": {"c": "d"}}}, content_type=MERGE
        )
    )
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"e": "f"}}}
    ok(
        await api.request(
            "PATCH", POD_A, body=applied, content_type=APPLY, params={"fieldManager": "me"}
        )
    )
    ok(await api.request("DELETE", POD_A, body={"gracePeriodSeconds": 0}))
    assert set(watched.ran) == names
    assert watched.wrote == WRITES
    assert watched.changed & CHANGES_NOTHING == set()


async def test_a_refusal_and_a_trial_run_write_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    watched, trial = Watched(monkeypatch), {"dryRun": "All"}
    stored = ok(await api.request("GET", POD_A))
    other = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    ok(await api.request("PUT", POD_A, body=other, params=trial))
    ok(await api.request("DELETE", POD_A, params=trial))
    wrong = {**stored, "spec": {**stored["spec"], "nodeName": "another"}}
    assert (await api.request("PUT", POD_A, body=wrong)).status == 422
    assert watched.ran
    assert watched.wrote == set()
