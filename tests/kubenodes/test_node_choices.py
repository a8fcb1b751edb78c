"""What a node is made with, and what its end does, looked at one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from pods_on_nodes import create, is_phase

from fakekubeapi import FakeApi
from kubenodes import NodePool, NodeSettings
from kubenodes.leftovers import is_of
from kubenodes.running import RunningKubelet
from kubenodes.template import CALLS, load_template
from kubenodes.wire import RuntimeWire, client_of
from simclock import run_virtual


@pytest.mark.parametrize(
    ("event", "is_ours"),
    [
        ({"source": {"host": "ours"}, "involvedObject": {"kind": "Pod", "name": "web"}}, True),
        ({"involvedObject": {"kind": "Node", "name": "ours"}}, True),
        ({"involvedObject": {"kind": "Node", "name": "theirs"}}, False),
        ({"involvedObject": {"kind": "Pod", "name": "ours"}}, False),
        ({"source": {"host": "theirs"}}, False),
        ({"source": None, "involvedObject": None}, False),
    ],
)
def test_whose_an_event_is(event: dict[str, Any], is_ours: bool) -> None:
    assert is_of(event, {"ours"}) == is_ours


def test_every_word_of_a_group_reaches_its_nodes(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(
        "nodes:\n"
        "  - {name: w, cpus: 3, memory: 2Gi, pods: 7, labels: {a: b}, kubelet: {maxPods: 8},\n"
        "     zones: [x, y], taints: [{key: gpu, value: 'yes', effect: NoExecute}]}\n"
    )
    assert load_template(file).settings() == [
        NodeSettings(
            name="w-0",
            cpus=3,
            memory_bytes=2 << 30,
            pods=7,
            labels={"a": "b"},
            kubelet={"maxPods": 8},
            runtime={"call_limit": CALLS},
            zone="x",
            taints=({"key": "gpu", "value": "yes", "effect": "NoExecute"},),
        )
    ]


def test_fields_of_the_kubelet_are_over_the_settings(tmp_path: Path) -> None:
    settings = NodeSettings(pods=7, kubelet={"maxPods": 8, "registerWithTaints": []})
    assert settings.configuration(tmp_path).max_pods == 8
    assert NodeSettings(pods=7).configuration(tmp_path).max_pods == 7


def test_a_seed_decides_all_choices(tmp_path: Path) -> None:
    def containers(seed: int, place: Path) -> list[str]:
        async def main() -> list[str]:
            api = FakeApi()
            pool = NodePool([NodeSettings(name="n")], client_of(api), place, seed=seed)
            async with pool:
                await create(api, "web", "n")
                await is_phase(api, "web", "Running")
                return [container.id for container in pool["n"].runtime.containers()]

        ids: list[str] = run_virtual(main)
        return ids

    first = containers(1, tmp_path / "a")
    assert containers(1, tmp_path / "b") == first
    assert containers(2, tmp_path / "c") != first


def test_a_killed_kubelet_asks_its_runtime_for_nothing_at_its_end() -> None:
    asked: list[str] = []

    class Runtime:
        async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> None:
            asked.append(method)

    wire = RuntimeWire(Runtime())

    class Tidy:
        async def run(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await wire.call("StopContainer", None)

    async def main() -> None:
        running = RunningKubelet(cast(Any, Tidy()), wire, None, "a kubelet that tidies up")
        await asyncio.sleep(1)
        await running.kill()
        assert running.ended

    run_virtual(main)
    assert asked == []
