"""Laws of a node under faults: whatever goes wrong with one pod, these hold.

A pod named `odd` gets random faults: its calls fail, lose their answers or hang, its containers and
sandboxes die, it is edited, the kubelet is killed. A pod `calm` is left alone, and a pod `late`
comes in the middle of it. Never do two containers of one pod and name run; a phase never leaves
Succeeded or Failed; a completed container of a pod that never restarts is not run again; and the
other pods notice nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from crash_runs import is_running
from hypothesis import given, settings
from hypothesis import strategies as st
from node_world import PODS, Node, Tap, on_node
from pods import manifest

from fakecri import exits, stops

METHODS: Final = (
    "RunPodSandbox",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "RemoveContainer",
    "StopPodSandbox",
)
PROMPT_S: Final = 6.0  # a relist, a sync, the start; and a kubelet that has to be started first
TERMINAL: Final = ("Succeeded", "Failed")
FAULTS = st.one_of(
    st.tuples(st.sampled_from(["fails", "loses", "hangs"]), st.sampled_from(METHODS)),
    st.tuples(
        st.sampled_from(["kill main", "kill side", "kill sandbox", "edit", "crash", "nothing"]),
        st.just(""),
    ),
)
STEPS = st.lists(st.tuples(st.sampled_from([0.3, 1.1, 4.0, 12.0]), FAULTS), max_size=8)


class Watcher(Tap):
    """Looks at the runtime after every start."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.wrong: list[str] = []

    async def after(self, method: str) -> None:
        if method == "StartContainer":
            containers = self._node.cri.containers()
            alive = Counter((c.pod.uid, c.name) for c in containers if is_running(c))
            self.wrong += [f"{name} runs {n} times" for (_, name), n in alive.items() if n > 1]


def do(node: Node, fault: str, method: str) -> None:
    """What can be done at once; what is not there cannot be killed."""
    rule = node.cri.on(method, pod="odd") if method else None
    try:
        if fault == "kill sandbox":
            node.cri.kill_sandbox(pod="odd")
        elif fault.startswith("kill"):
            node.cri.kill(fault.split()[1], pod="odd")
    except LookupError:
        return
    if rule is not None:
        if fault == "fails":
            rule.fails("UNKNOWN", "no", times=2)
        elif fault == "loses":
            rule.loses_answer(times=1)
        else:
            hanging = rule.hangs(times=1)
            asyncio.get_running_loop().call_later(9.0, hanging.release)


async def edit(node: Node) -> None:
    assert node.api is not None
    body = {"spec": {"containers": [{"name": "main", "image": "localhost/busybox:2"}]}}
    kind = "application/strategic-merge-patch+json"
    await node.api.request("PATCH", f"{PODS}/odd", body=body, content_type=kind)


async def story(node: Node, policy: str, steps: list[tuple[float, tuple[str, str]]]) -> None:
    node.tap = watcher = Watcher(node)
    phases: dict[str, list[str]] = {}
    watch = asyncio.create_task(note_phases(node, phases))
    node.cri.behaves(stops(0, after_s=0.2))
    node.cri.behaves(exits(0, after_s=3), container="job")
    await node.start()
    names = ("main", "side", "job")
    odd = manifest(
        *names,
        name="odd",
        restartPolicy=policy,
        terminationGracePeriodSeconds=3,
    )
    await node.create(manifest(name="calm"))
    await node.create(odd)
    await node.until(lambda: runs(node, "calm"), PROMPT_S)
    for number, (wait_s, (fault, method)) in enumerate(steps):
        do(node, fault, method)
        if fault == "crash":
            await node.kill()
            await node.start()
        elif fault == "edit":
            await edit(node)
        if number == len(steps) // 2:
            await node.create(manifest(name="late"))
            await node.until(lambda: runs(node, "late"), PROMPT_S)
        await node.clock.sleep(wait_s)
    await node.clock.sleep(15.0)
    assert watcher.wrong == []
    assert [c.attempt for c in node.cri.containers(pod="calm")] == [0]
    assert runs(node, "calm")
    assert node.cri.count("StopContainer", pod="calm") == 0
    for seen in phases.values():
        ended = [phase for phase in seen if phase in TERMINAL]
        assert len(set(ended)) <= 1
        assert not ended or seen[seen.index(ended[0]) :] == ended, seen
    if policy == "Never":
        assert completed_once(node)
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)


def runs(node: Node, pod: str) -> bool:
    return any(is_running(c) for c in node.cri.containers(pod=pod))


def completed_once(node: Node) -> bool:
    """`job` ended with 0 at most once in one sandbox: a new sandbox may run it anew (LIFE-111)."""
    done = Counter(
        c.sandbox.id
        for c in node.cri.containers("job", pod="odd")
        if not is_running(c) and c.started_at_ns and not c.exit_code
    )
    return all(count == 1 for count in done.values())


async def note_phases(node: Node, phases: dict[str, list[str]]) -> None:
    assert node.api is not None
    async for event in node.api.watch(PODS):
        pod = event["object"]
        seen = phases.setdefault(pod["metadata"]["uid"], [])
        phase = (pod.get("status") or {}).get("phase", "Pending")
        if not seen or seen[-1] != phase:
            seen.append(phase)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["Always", "OnFailure", "Never"]), STEPS)
def test_whatever_goes_wrong_with_one_pod_LIFE_030_LIFE_166(
    policy: str, steps: list[tuple[float, tuple[str, str]]]
) -> None:
    with TemporaryDirectory() as directory:
        on_node(lambda node: story(node, policy, steps), Path(directory), api=True, started=False)
