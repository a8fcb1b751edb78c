"""More recorded runs, replayed: what happened to the real kubelet's pods happens here at the same
times, and the order of CRI calls must be the same until the pod has stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from golden import GOLDEN, observed, recorded, until_stopped
from node_world import Node, on_node
from test_golden_order import program_latencies

from fakecri import any_image, exits, replies, stops

Act = Callable[[Node], None]
BROKEN_HOOK = ["/bin/sh", "-c", "sleep 1; echo broken; exit 7"]


@dataclass(frozen=True)
class Replay:
    """A scenario: its manifest's name, what containers do, and what happens when (s after the
    manifest was written, as in scenario.md)."""

    scenario: str
    file: str
    containers: Act
    steps: tuple[tuple[float, Act], ...]


def on_failure(node: Node) -> None:
    node.cri.behaves(exits(1, after_s=1))
    node.cri.behaves(exits(0, after_s=1), attempt=2)


def sidecars(node: Node) -> None:
    node.cri.behaves(exits(0, after_s=1), container="pre")
    node.cri.behaves(stops(0, after_s=1.1), container="main")
    node.cri.behaves(stops(0, after_s=0.6), container="side?")


def sidecar_of_a_job(node: Node) -> None:
    node.cri.behaves(exits(0, after_s=4), container="main")
    node.cri.behaves(stops(0, after_s=0.5), container="side")


def missing_image(node: Node) -> None:
    node.cri.images.registry = lambda name: None if "missing" in name else any_image(name)


def nothing(node: Node) -> None:
    pass


def removed(file: str) -> Act:
    return lambda node: node.remove(file)


def killed(name: str, code: int = 137) -> Act:
    return lambda node: void(node.cri.kill(name, exit_code=code))


def void(_: object) -> None:
    return None


REPLAYS = [
    Replay("s04", "onf.yaml", on_failure, ((21.2, removed("onf.yaml")), (87.3, nothing))),
    Replay(
        "s05",
        "nev.yaml",
        lambda node: void(node.cri.behaves(exits(1, after_s=1))),
        ((10.1, removed("nev.yaml")), (80.1, nothing)),
    ),
    Replay(
        "s06",
        "ini.yaml",
        lambda node: void(node.cri.behaves(exits(0, after_s=1), container="i?")),
        ((10.3, removed("ini.yaml")), (16.7, nothing)),
    ),
    Replay(
        "s07",
        "sc.yaml",
        sidecars,
        ((10.33, killed("side1")), (15.19, removed("sc.yaml")), (23.8, nothing)),
    ),
    Replay("s07b", "scj.yaml", sidecar_of_a_job, ((11.9, removed("scj.yaml")), (16.9, nothing))),
    Replay(
        "s10",
        "live.yaml",
        lambda node: void(
            node.cri.behaves(replies(["cat", "/tmp/ok"], exit_code=1, from_s=6.0), container="main")
        ),
        ((19.43, removed("live.yaml")), (24.8, nothing)),
    ),
    Replay(
        "s12",
        "kill.yaml",
        nothing,
        (
            (4.57, killed("main")),
            (8.31, killed("main", 0)),
            (22.2, removed("kill.yaml")),
            (27.6, nothing),
        ),
    ),
    Replay("s14", "pull.yaml", missing_image, ((200.0, removed("pull.yaml")), (205.0, nothing))),
    Replay(
        "s18",
        "post.yaml",
        lambda node: void(
            node.cri.behaves(replies(BROKEN_HOOK, exit_code=7, delay_s=1.03), container="main")
        ),
        ((23.44, removed("post.yaml")), (28.8, nothing)),
    ),
]


@pytest.mark.parametrize("loop_seed", [None, 1])
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.scenario)
def test_calls_come_in_the_recorded_order(
    tmp_path: Path, replay: Replay, loop_seed: int | None
) -> None:
    """The order does not depend on which of two things at the same instant comes first."""

    async def body(node: Node) -> None:
        program_latencies(node)
        node.cri.behaves(stops(0, after_s=0.1))
        replay.containers(node)
        node.copy(GOLDEN / replay.scenario / "manifest.yaml", replay.file)
        written_s = node.clock.monotonic_s()
        for at_s, act in replay.steps:
            await node.clock.sleep(written_s + at_s - node.clock.monotonic_s())
            act(node)
        seen = until_stopped(observed(node.cri.calls()))
        assert seen == until_stopped(recorded(replay.scenario))

    on_node(body, tmp_path, loop_seed=loop_seed)
