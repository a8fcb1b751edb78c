"""Laws that hold whatever happens to a node: while faults last, and after they are over."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Protocol

from chaos_plan import WORK, PodPlan
from crash_runs import is_running
from node_world import NODE, Node, Tap

TERMINAL: Final = ("Succeeded", "Failed")
KILLED: Final = "of a killed kubelet"  # what its tasks log afterwards does not count
MOST_SANDBOXES: Final = 6
"""The most calls of RunPodSandbox for one pod in two seconds; no loop of failures may make more."""


def full_name(plan: PodPlan) -> str:
    """The pod's name in the runtime and at the API server."""
    return f"{plan.name}-{NODE}" if plan.static else plan.name


class Watcher(Tap):
    """Looks at the runtime after every call that may break a law, and notes what is wrong."""

    def __init__(self, node: Node, plans: Iterable[PodPlan]) -> None:
        self._node = node
        self._once_only = {full_name(p) for p in plans if p.policy != "Always"}
        self.wrong: list[str] = []
        self.excused: set[str] = set()  # UIDs of pods that may do their work again
        self._told: set[str] = set()

    async def after(self, method: str) -> None:
        if method == "StartContainer":
            self._look_for_doubles()
            self.look_for_work_done_twice()
        elif method == "RunPodSandbox":
            self._look_for_doubles()
            self._look_for_haste()

    def _look_for_doubles(self) -> None:
        fake = self._node.cri
        alive = Counter(f"{c.pod.uid} {c.name}" for c in fake.containers() if is_running(c))
        ready = Counter(f"{s.config.metadata.uid} sandbox" for s in fake.sandboxes() if s.ready)
        for name, count in (alive + ready).items():
            if count > 1:
                self.tell(f"{count} times at once: {name}")

    def look_for_work_done_twice(self) -> None:
        """A container that has exited 0 must not be started again in a pod that does not restart
        it."""
        started: dict[tuple[str, str], list[Any]] = {}
        for container in self._node.cri.containers():
            is_work = container.name.startswith(WORK) and container.pod.name in self._once_only
            if is_work and container.started_at_ns:
                started.setdefault((container.pod.uid, container.name), []).append(container)
        for (pod_uid, name), instances in started.items():
            if pod_uid in self.excused:
                continue
            instances.sort(key=lambda c: c.started_at_ns)
            done = [n for n, c in enumerate(instances) if not is_running(c) and c.exit_code == 0]
            if done and done[0] < len(instances) - 1:
                self.tell(f"{name} of {pod_uid} was done and ran again")

    def _look_for_haste(self) -> None:
        now_s = self._node.clock.monotonic_s()
        calls = self._node.cri.calls("RunPodSandbox")
        recent = Counter(c.subject.uid for c in calls[-200:] if c.started_s > now_s - 2.0)
        for pod_uid, count in recent.items():
            if count > MOST_SANDBOXES:
                self.tell(f"{count} sandboxes of {pod_uid} in 2 s")

    def tell(self, text: str) -> None:
        """Note that something is wrong, each thing once."""
        if text not in self._told:
            self._told.add(text)
            self.wrong.append(f"{self._node.clock.monotonic_s():.3f}: {text}")


class Told(Protocol):
    """What notes that something is wrong."""

    def tell(self, text: str) -> None: ...


class Tracebacks(logging.Handler):
    """An unexpected error is logged with its traceback: there must be none."""

    def __init__(self, watcher: Told) -> None:
        super().__init__(logging.ERROR)
        self._watcher = watcher

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and KILLED not in str(error):
            self._watcher.tell(f"{record.getMessage()}: {error!r}")


def problems(node: Node, plans: Iterable[PodPlan], at_api: list[dict[str, Any]]) -> list[str]:
    """What is not as it should be although all faults are over. `plans`: the pods that are
    wanted."""
    found: list[str] = []
    shown = {p.metadata.name: p for p in node.shown() if p.metadata is not None}
    wanted_uids = set()
    for plan in plans:
        name = full_name(plan)
        pod = shown.get(name)
        if pod is None or pod.metadata is None:
            found.append(f"{name} is not known")
            continue
        wanted_uids.add(pod.metadata.uid)
        found += _not_there_yet(node, plan, name, str(pod.metadata.uid), pod.status.phase or "")
    found += _statuses(node, plans, at_api)
    for container in node.cri.containers():
        if is_running(container) and container.pod.uid not in wanted_uids:
            found.append(f"left over: {container.name} of {container.pod.name} runs")
    for box in node.cri.sandboxes():
        if box.ready and box.config.metadata.uid not in wanted_uids:
            found.append(f"left over: sandbox of {box.config.metadata.name}")
    return found


def _not_there_yet(node: Node, plan: PodPlan, name: str, pod_uid: str, phase: str) -> list[str]:
    """A pod runs what its policy requires, or has finished and runs nothing."""
    mine = [c for c in node.cri.containers(pod=name) if c.pod.uid == pod_uid]
    running = {c.name for c in mine if is_running(c)}
    if phase in TERMINAL:
        return [f"{name} is {phase} and runs {sorted(running)}"] if running else []
    if plan.policy == "Never":
        if phase == "Running" and not running:
            return [f"{name} runs nothing and is not over"]
        return []
    names = [f"{kind}-{letter}" for kind, letter in zip(plan.kinds, "abc", strict=False)]
    lasting = {n for n in names if n.startswith("run")}
    missing = lasting - running
    return [f"{name} is {phase} and {sorted(missing)} do not run"] if missing else []


def _statuses(node: Node, plans: Iterable[PodPlan], at_api: list[dict[str, Any]]) -> list[str]:
    """The API server has what the kubelet shows, and nothing else."""
    if node.api is None:
        return []
    found = []
    names = {full_name(p) for p in plans}
    listed = {pod["metadata"]["name"]: pod for pod in at_api}
    for name in sorted(names | listed.keys()):
        pod = listed.get(name)
        if pod is None:
            if not _is_over(node, name):  # the mirror of a finished pod is not made again
                found.append(f"{name} is not at the API server")
        elif name not in names or "deletionTimestamp" in pod["metadata"]:
            found.append(f"{name} is still at the API server")
        else:
            found += _told_wrong(node, name, pod.get("status") or {})
    return found


def _is_over(node: Node, name: str) -> bool:
    status = node.status(name)
    return name.endswith(NODE) and status is not None and status.phase in TERMINAL


def _told_wrong(node: Node, name: str, status: dict[str, Any]) -> list[str]:
    """How a status at the API server differs from the kubelet's own, and from what runs."""
    mine = node.status(name)
    if mine is None:
        return [f"{name} has no status"]
    if (status.get("phase") or "Pending") != (mine.phase or "Pending"):
        return [f"{name} is {mine.phase}, and {status.get('phase')} at the API server"]
    running = {c.id for c in node.cri.containers(pod=name) if is_running(c)}
    lists = ("containerStatuses", "initContainerStatuses")
    told = {
        str(one.get("containerID", "")).rpartition("/")[2]
        for kind in lists
        for one in status.get(kind) or ()
        if "running" in (one.get("state") or {})
    }
    return [f"{name} runs other containers than the API server is told"] if told != running else []
