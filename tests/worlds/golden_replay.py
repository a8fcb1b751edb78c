"""A recorded run, done again: the same steps on refkubelet and the fake runtime, in virtual time.

The recording says what was done (`Recording.steps`). Delays between restarts are drawn by chance
(BACK-011), so a step is not done at its second but as long after the same call as in the
recording: `_Anchors`. What must never happen: a step whose words are not understood is left out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import yaml
from golden_forms import KEPT
from golden_recording import Recording, Step
from golden_scenarios import PREROLL_S, scenario_of
from google.protobuf.json_format import MessageToDict
from node_world import PODS, Node, Tap, on_node

from refkubelet.model.objects import to_dict

POLL_S: Final = 0.04
ANCHORS: Final = (
    "RunPodSandbox",
    "PullImage",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
)
LATE_S: Final = 400.0
ROUNDED_S: Final = 0.02  # the times of steps are rounded, those of calls are not
EVENTS: Final = "/api/v1/namespaces/default/events"
LATENCIES_S: Final = {
    "RunPodSandbox": 0.15,
    "CreateContainer": 0.015,
    "StartContainer": 0.075,
    "StopPodSandbox": 0.1,
    "ExecSync": 0.04,
}


@dataclasses.dataclass
class Replayed:
    """What a replay has seen, in the rows of a recording."""

    calls: list[dict[str, Any]]
    pods: list[dict[str, Any]]
    events: list[dict[str, Any]]


def replay(recording: Recording, directory: Path, *, loop_seed: int | None = None) -> Replayed:
    """Do the steps of `recording` again. `loop_seed` permutes what runs at the same instant."""
    return on_node(
        lambda node: _Replay(recording, node).run(),
        directory,
        api=recording.has_api,
        started=False,
        loop_seed=loop_seed,
        **recording.configuration(),
    )


class _Replay:
    def __init__(self, recording: Recording, node: Node) -> None:
        self.recording = recording
        self.node = node
        self.versions = recording.manifests()
        self.pods: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.t0_s = 0.0

    async def run(self) -> Replayed:
        node, scenario = self.node, scenario_of(self.recording)
        node.cri.node.cgroups_version = 1
        for method, seconds in LATENCIES_S.items():
            node.cri.on(method).delays(seconds)
        scenario.containers(node)
        anchors = _Anchors(self.recording, node)
        node.tap = anchors
        await node.start()
        await node.clock.sleep(PREROLL_S)
        self.t0_s = node.clock.monotonic_s()
        watchers = [asyncio.create_task(watch) for watch in self._watches()]
        await asyncio.sleep(0)
        anchors.t0_s = self.t0_s
        for step in sorted([*self.recording.steps(), *scenario.more], key=lambda s: s.at_s):
            act = self._act(step)
            if act is not None:
                await anchors.reach(step.at_s - scenario.late_s)
                done = act()
                if isinstance(done, Awaitable):
                    await done
        await asyncio.sleep(POLL_S)
        for task in watchers:
            task.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        return Replayed(self._calls(), self.pods, self.events)

    # What is seen

    def _watches(self) -> list[Any]:
        if self.node.api is None:
            return [self._poll()]
        return [self._watch(PODS, self._saw_pod), self._watch(EVENTS, self._saw_event)]

    def _now_s(self) -> float:
        return self.node.clock.monotonic_s() - self.t0_s

    async def _poll(self) -> None:
        last: dict[str, Any] = {}
        while True:
            now: dict[str, Any] = {}
            for pod in self.node.shown():
                now[pod.metadata.uid] = pod.status
                if last.get(pod.metadata.uid) is not pod.status:
                    shown = to_dict(pod)
                    self.pods.append(self._row(shown))
            for uid in last:
                if uid not in now and self.node.is_up:
                    self.pods.append({"t": self._now_s(), "uid": uid, "gone": True})
            if self.node.is_up:
                last = now
            await asyncio.sleep(POLL_S)

    def _row(self, pod: dict[str, Any], **more: Any) -> dict[str, Any]:
        meta = pod["metadata"]
        return {
            "t": self._now_s(),
            "pod": meta["name"],
            "uid": meta["uid"],
            "deletionTimestamp": meta.get("deletionTimestamp"),
            "status": pod.get("status") or {},
        } | more

    async def _watch(self, path: str, saw: Callable[[dict[str, Any]], None]) -> None:
        assert self.node.api is not None
        async for event in self.node.api.watch(path):
            saw(event)

    def _saw_pod(self, event: dict[str, Any]) -> None:
        self.pods.append(self._row(event["object"], type=event["type"]))

    def _saw_event(self, event: dict[str, Any]) -> None:
        told = event["object"]
        about = told["involvedObject"]
        row = {key: told.get(key) for key in ("type", "reason", "message", "count")}
        row |= {
            "object": f"{about['kind']} {about['name']}",
            "fieldPath": about.get("fieldPath", ""),
        }
        self.events.append({"t": self._now_s(), "type": event["type"], "event": row})

    def _calls(self) -> list[dict[str, Any]]:
        kept = [c for c in self.node.cri.calls() if c.method in KEPT]
        return [
            {
                "t_start": call.started_s - self.t0_s,
                "method": call.method,
                "request": _as_json(call.request),
                "response": _as_json(call.response) if call.response is not None else {},
            }
            for call in sorted(kept, key=lambda c: c.seq)
        ]

    # What is done

    def _act(self, step: Step) -> Callable[[], Any] | None:
        for words, make in ACTS:
            found = re.search(words, step.words)
            if found:
                return make(self, *found.groups()) if make else None
        raise AssertionError(f"{self.recording.name}: there is no way to do: {step.words}")

    def write(self, file: str) -> Callable[[], Any]:
        return lambda: (self.node.paths.manifests / file).write_text(self.versions[file].pop(0))

    def remove(self, file: str) -> Callable[[], Any]:
        return lambda: self.node.remove(file)

    def create(self, name: str) -> Callable[[], Any]:
        return lambda: self.node.create(yaml.safe_load(self.versions[f"{name}.yaml"].pop(0)))

    def delete(self, name: str, grace_s: str | None = None) -> Callable[[], Any]:
        seconds = int(grace_s) if grace_s is not None else None
        return lambda: self.node.delete(name, seconds)

    def delete_all(self, grace_s: str) -> Callable[[], Any]:
        return lambda: self._delete_all(int(grace_s))

    async def _delete_all(self, grace_s: int) -> None:
        assert self.node.api is not None
        listed = await self.node.api.request("GET", PODS)
        for pod in listed.body["items"]:
            await self.node.delete(pod["metadata"]["name"], grace_s)

    def force(self, name: str) -> Callable[[], Any]:
        return self.delete(name, "0")

    def removed_while_down(self, name: str) -> Callable[[], Any]:
        return self.delete(name) if self.recording.has_api else self.remove(f"{name}.yaml")

    def patch(self, name: str, body: dict[str, Any]) -> Callable[[], Any]:
        assert self.node.api is not None
        api = self.node.api
        kind = "application/strategic-merge-patch+json"
        return lambda: api.request("PATCH", f"{PODS}/{name}", body=body, content_type=kind)

    def new_image(self, container: str, image: str) -> Callable[[], Any]:
        name = next(iter(self.versions)).removesuffix(".yaml")
        return self.patch(name, {"spec": {"containers": [{"name": container, "image": image}]}})

    def resize(self, container: str, *amounts: str) -> Callable[[], Any]:
        """To (CPU, memory), each request/limit, or to the same memory."""
        names = ("cpu", "memory") if len(amounts) == 2 else ("memory",)
        pairs = [amount.split("/") for amount in amounts]
        resources = {
            kind: {name: pair[index] for name, pair in zip(names, pairs, strict=True)}
            for index, kind in enumerate(("requests", "limits"))
        }
        name = next(iter(self.versions)).removesuffix(".yaml")
        containers = [{"name": container, "resources": resources}]
        return self.patch(f"{name}/resize", {"spec": {"containers": containers}})

    def label_mirror(self) -> Callable[[], Any]:
        body = {"metadata": {"labels": {"touched": "yes"}}, "spec": {"activeDeadlineSeconds": 5}}
        return self.patch("st-golden", body)

    def kill(self, container: str, pod: str | None = None) -> Callable[[], Any]:
        return lambda: self.node.cri.kill(container, pod=f"{pod}*" if pod else None)

    def stop_outside(self, container: str) -> Callable[[], Any]:
        return lambda: self.node.cri.kill(container, exit_code=0)

    def stop_sandbox(self) -> Callable[[], Any]:
        return self.node.cri.stop_sandbox

    def kill_sandbox(self) -> Callable[[], Any]:
        return self.node.cri.kill_sandbox

    def kubelet(self, verb: str) -> Callable[[], Any]:
        return {"stopped": self.node.stop, "killed": self.node.kill, "started": self.node.start}[
            verb
        ]

    def runtime(self, verb: str) -> Callable[[], Any]:
        return {"stopped": self.node.cri.crash, "started": self.node.cri.restart}[verb]

    def nothing(self) -> Callable[[], Any]:
        return lambda: None


ACTS: Final[tuple[tuple[str, Any], ...]] = (
    (r"^manifest file written: (\S+)$", _Replay.write),
    (r"^manifest file removed: (\S+)$", _Replay.remove),
    (r"^pod created at the API .*: (\S+)$", _Replay.create),
    (r"^kubectl create -f (\S+)\.yaml$", _Replay.create),
    (r"^pod deleted at the API .*: (\S+)$", _Replay.delete),
    (r"^all pods deleted \(grace (\d+)\)$", _Replay.delete_all),
    (r"^kubectl delete pod (\S+) .*--grace-period=(\d+)", _Replay.delete),
    (r"^kubectl delete pod (\S+) \(", _Replay.delete),
    (r"^pod (\S+) removed while the kubelet is down$", _Replay.removed_while_down),
    (r"^image of container (\S+) patched to (\S+)$", _Replay.new_image),
    (r"^container (\S+) resized: cpu (\S+), memory (\S+)$", _Replay.resize),
    (r"^container (\S+) \(memory: RestartContainer\) resized: memory (\S+)$", _Replay.resize),
    (r"^mirror pod labelled and patched", _Replay.label_mirror),
    (r"^(\S+) killed with SIGKILL from outside$", _Replay.kill),
    (r"^main process of container (\S+) killed", _Replay.kill),
    (r"^container (\S+) of pod (\S+) killed while", _Replay.kill),
    (r"^container (\S+) stopped through the CRI", _Replay.stop_outside),
    (r"^sandbox stopped through the CRI", _Replay.stop_sandbox),
    (r"^sandbox process \(pause\) killed", _Replay.kill_sandbox),
    (r"^kubelet (stopped|killed|started)", _Replay.kubelet),
    (r"^containerd (stopped|started)", _Replay.runtime),
    (r"^end of the recording$", _Replay.nothing),
    (r"\bseen\b|\bgone\b|\bready\b|\bRunning$|all Ready|^memory.available|mirror pod present"
     r"|refused by the API|infeasible on this node|^node condition|^Ready; |^first evicted", None),
)  # fmt: skip


class _Anchors(Tap):
    """When a step comes: as long after the same call as in the recording."""

    def __init__(self, recording: Recording, node: Node) -> None:
        self._node = node
        self.t0_s = 0.0
        self.seen_s: list[float] = []
        self._starts = [
            row["t_start"] for row in recording.rows("cri.jsonl") if row.get("method") in ANCHORS
        ]

    async def before(self, method: str) -> None:
        """Note when the calls come that steps are tied to."""
        if method in ANCHORS:
            self.seen_s.append(self._node.clock.monotonic_s())

    async def reach(self, step_s: float) -> None:
        """Wait for the moment of a step."""
        before = [at_s for at_s in self._starts if at_s < step_s - ROUNDED_S]
        limit_s = self.t0_s + step_s + LATE_S
        anchor_s = await self._nth_call(len(before), limit_s) if before else self.t0_s
        due_s = anchor_s + step_s - (before[-1] if before else 0.0)
        clock = self._node.clock
        await clock.sleep(max(0.0, due_s - clock.monotonic_s()))

    async def _nth_call(self, number: int, limit_s: float) -> float:
        while self._node.clock.monotonic_s() < limit_s:
            if len(self.seen_s) >= number:
                return self.seen_s[number - 1]
            await self._node.clock.sleep(POLL_S)
        return limit_s - LATE_S


def _as_json(message: Any) -> dict[str, Any]:
    return MessageToDict(message, preserving_proto_field_name=True)
