"""A kubelet killed at any CRI call and started again does no harm (LIFE-202, LIFE-203, BACK-007).

Each script is run once undisturbed; then once for every call that it made (`points_of`). Whatever
the point: never two running instances of a container, every exit is told to the API server with its
code, what is healthy is not started again, and at the end there is what there was undisturbed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from crash_runs import Point, Run, Script, points_of, run_script
from node_world import PODS, Node
from pods import container, manifest, sidecar

from fakecri import exits, ignores, replies, stops, uses

MIB = 1024**2


def create(pod: dict[str, Any]) -> Any:
    return lambda node: node.create(pod)


def delete(name: str) -> Any:
    return lambda node: node.delete(name)


def edit_image(node: Node) -> Any:
    assert node.api is not None
    body = {"spec": {"containers": [{"name": "main", "image": "localhost/busybox:2"}]}}
    kind = "application/strategic-merge-patch+json"
    return node.api.request("PATCH", f"{PODS}/web", body=body, content_type=kind)


def resize(name: str, cpu: str, memory: str) -> Any:
    changed = container(name, cpu=f"{cpu}/{cpu}", memory=f"{memory}/{memory}")

    def act(node: Node) -> Any:
        assert node.api is not None
        body = {"spec": {"containers": [changed]}}
        kind = "application/strategic-merge-patch+json"
        return node.api.request("PATCH", f"{PODS}/web/resize", body=body, content_type=kind)

    return act


def write(pod: dict[str, Any]) -> Any:
    return lambda node: node.apply(pod)


def unlink(node: Node) -> None:
    node.remove()


def polite(node: Node) -> None:
    node.cri.behaves(stops(0, after_s=0.3))


def crashes(node: Node) -> None:
    node.cri.behaves(exits(0, after_s=1))
    node.cri.behaves(exits(3, after_s=1), times=2)


def init_chain(node: Node) -> None:
    polite(node)
    node.cri.behaves(exits(0, after_s=1), container="i?")


def sidecars(node: Node) -> None:
    node.cri.behaves(stops(0, after_s=0.3))
    node.cri.behaves(exits(0, after_s=6), container="work")


def greedy(node: Node) -> None:
    node.cri.node.memory_bytes = 8192 * MIB
    node.cri.node.base_memory_used_bytes = 1024 * MIB
    node.cri.behaves(stops(143), uses(memory_bytes=((4, 4096 * MIB),)), container="main")


def with_hooks(node: Node) -> None:
    node.cri.behaves(
        stops(0, after_s=0.3), replies(["start"], delay_s=0.5), replies(["stop"], delay_s=1.0)
    )


def stubborn(node: Node) -> None:
    node.cri.behaves(ignores("SIGTERM"), container="main")
    node.cri.behaves(stops(7, after_s=0.5), container="side")


HOOKS = {
    "postStart": {"exec": {"command": ["start"]}},
    "preStop": {"exec": {"command": ["stop"]}},
}
SIDECARS = manifest(
    "work",
    init=[sidecar("s1"), sidecar("s2")],
    restartPolicy="Never",
    terminationGracePeriodSeconds=5,
)
RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
RESIZABLE = manifest(
    container("main", cpu="100m/100m", memory="64Mi/64Mi"),
    container("rst", cpu="100m/100m", memory="64Mi/64Mi", resizePolicy=RESTARTS),
)
SCRIPTS = (
    Script(
        "start",
        polite,
        ((0.2, create(manifest("a", "b"))),),
        8.0,
        runs_once=("a", "b"),
    ),
    Script(
        "crash loop",
        crashes,
        ((0.2, create(manifest(restartPolicy="OnFailure"))),),
        60.0,
    ),
    Script(
        "init chain",
        init_chain,
        (
            (
                0.2,
                create(manifest("a", init=["i1", "i2"])),
            ),
        ),
        12.0,
        runs_once=("i1", "i2", "a"),
    ),
    Script("sidecars", sidecars, ((0.2, create(SIDECARS)),), 24.0, runs_once=("work",)),
    Script(
        "deletion",
        stubborn,
        (
            (
                0.2,
                create(manifest("main", "side", terminationGracePeriodSeconds=4)),
            ),
            (4.0, delete("web")),
        ),
        25.0,
        runs_once=("main", "side"),
    ),
    Script(
        "eviction",
        greedy,
        ((0.2, create(manifest())),),
        75.0,
        compared=r"^Failed Evicted",
        settings={"evictionHard": {"memory.available": "4Gi"}},
    ),
    Script(
        "edit",
        polite,
        (
            (0.2, create(manifest("main", "other"))),
            (4.0, edit_image),
        ),
        12.0,
        runs_once=("other",),
    ),
    Script(
        "resize",
        polite,
        (
            (0.2, create(RESIZABLE)),
            (4.0, resize("main", "200m", "96Mi")),
            (8.0, resize("rst", "100m", "96Mi")),
        ),
        50.0,  # what an earlier kubelet left is looked at after 30 s (CG-061)
        runs_once=("main",),
    ),
    Script(
        "pull",
        polite,
        ((0.2, create(manifest(container("a", image="far.example/a:1")))),),
        8.0,
        runs_once=("a",),
    ),
    Script(
        "hooks",
        with_hooks,
        (
            (0.2, create(manifest(container("a", lifecycle=HOOKS)))),
            (5.0, delete("web")),
        ),
        15.0,
        runs_once=("a",),
    ),
    Script(
        "lost sandbox",
        polite,
        (
            (0.2, create(manifest("a", "b"))),
            (4.0, lambda node: node.cri.kill_sandbox()),
        ),
        40.0,
    ),
    Script(
        "static pod",
        polite,
        (
            (0.2, write(manifest("a"))),
            (5.0, write(manifest(container("a", command=["/bin/other"])))),
            (40.0, unlink),
        ),
        50.0,
        tells_exits=False,
    ),
)


# What a crash may cost: a restart is counted for an instance that was created and never started
# (LIFE-114); the addresses of a stopped pod are forgotten (LIFE-176); a sidecar that was stopped
# when its pod ended may have to run again for the pod to end (LIFE-120).
FORGIVEN = re.compile(
    r"restarts=\d+ |\| podIP (?=\|)|(?<=init s[12]: terminated 0 Completed )last\(.*?\) "
)


def shape(script: Script, run: Run) -> dict[str, str]:
    """The statuses at the end, as far as they must be the same."""
    if script.compared:
        return {n: "".join(re.findall(script.compared, line)) for n, line in run.pods.items()}
    return {name: FORGIVEN.sub("", line) for name, line in run.pods.items()}


def problems(script: Script, calm: Run, run: Run) -> list[str]:
    """What the crash has spoilt."""
    found = list(run.wrong)
    found += [
        f"{name} was started {run.started[name]} times"
        for name in script.runs_once
        if run.started[name] != 1
    ]
    if run.left != calm.left:
        found.append(f"left in the runtime: {run.left}, undisturbed: {calm.left}")
    if shape(script, run) != shape(script, calm):
        found.append(f"the end: {run.pods}, undisturbed: {calm.pods}")
    return found


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_crash_at_any_call_does_no_harm(script: Script, tmp_path: Path) -> None:
    calm = run_script(script, _folder(tmp_path, "calm"))
    assert problems(script, calm, calm) == []
    spoilt: dict[Point, list[str]] = {}
    for number, point in enumerate(points_of(calm.methods)):
        found = problems(script, calm, run_script(script, _folder(tmp_path, str(number)), point))
        if found:
            spoilt[point] = found
    report = "\n".join(f"{point}:\n  " + "\n  ".join(told) for point, told in spoilt.items())
    assert not spoilt, report


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder
