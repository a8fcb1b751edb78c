"""`Node`: what a case gets: one node with one kubelet under test, on any runtime.

On the node itself are static pods, time, and what every kubelet shows: its CRI calls, its pods, its
events. What else a case can do is sorted by subject into facets: `node.api`, `node.kubelet`,
`node.runtime`, `node.machine`, `node.cgroups`, `node.plugins`, `node.storage`, `node.logins`.

All that is shown is from the last snapshot, taken at each tick of `run_until` and `run_for`, so
conditions are plain functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import Seen
from kubelet_conformance.harness.manifest_url import ManifestUrl
from kubelet_conformance.harness.manifests import PodPlan
from kubelet_conformance.harness.node.api import NodeApi
from kubelet_conformance.harness.node.cgroups import NodeCgroups
from kubelet_conformance.harness.node.ending import history_of, remove_pods, there_on
from kubelet_conformance.harness.node.kubelet import NodeKubelet
from kubelet_conformance.harness.node.logins import NodeLogins
from kubelet_conformance.harness.node.machine import NodeMachine
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.plugins import NodePlugins
from kubelet_conformance.harness.node.runtime import NodeRuntime
from kubelet_conformance.harness.node.storage import NodeStorage
from kubelet_conformance.harness.node.tracing import trace_of
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.kubelet_log import kept
from kubelet_conformance.harness.observing.looked import looked_at
from kubelet_conformance.harness.observing.snapshots import container_status
from kubelet_conformance.harness.observing.words import is_write, write_name
from kubelet_conformance.laws.history import History, Left, Planned, There
from kubelet_conformance.traces.entries import Trace


class Node:
    """One node. Pods are named as in their manifests: `web` also where the kubelet calls the static
    pod `web-node`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._watch = Watch(parts)
        self._files: dict[str, str] = {}  # static pod -> manifest file
        self.api = NodeApi(parts, self._watch)
        self.kubelet = NodeKubelet(parts, self._watch)
        self.runtime = NodeRuntime(parts, self._watch)
        self.machine = NodeMachine(parts, self._watch, self.kubelet)
        self.plugins = NodePlugins(parts, self._watch)
        self.storage = NodeStorage(parts, self._watch, self.api)
        self.logins = NodeLogins(parts, self.kubelet)

    @property
    def cgroups(self) -> NodeCgroups:
        """The node's cgroups. Raises RuntimeError in a case that does not need Feature.CGROUPS."""
        return NodeCgroups(self._parts.machine.the_cgroups(), self._watch)

    @property
    def name(self) -> str:
        """The name of the node at the API."""
        return self._parts.node_name

    @property
    def web(self) -> ManifestUrl:
        """The web server of `staticPodURL`. Raises RuntimeError in a case that does not need
        Feature.MANIFEST_URL."""
        return self._parts.the_manifests()

    def serve_pods(self, *plans: PodPlan) -> None:
        """Let the web server answer with one pod as it is, or with a list of several."""
        for plan in plans:
            self._parts.runtime.teach(self._watch.runtime_name(plan.name), plan)
        items = [plan.manifest for plan in plans]
        whole = {"apiVersion": "v1", "kind": "PodList", "items": items}
        self.web.answers(json.dumps(items[0] if len(items) == 1 else whole))

    # --- static pods ----------------------------------------------------------------------

    async def apply_static(self, plan: PodPlan, *, file: str | None = None) -> None:
        """Write (or overwrite) the manifest of a static pod; `file` defaults to `<name>.yaml`."""
        self._files[plan.name] = file or f"{plan.name}.yaml"
        self._parts.runtime.teach(self._watch.runtime_name(plan.name), plan)
        self.write_manifest(self._files[plan.name], json.dumps(plan.manifest, indent=1))

    def manifest_file(self, name: str) -> str | None:
        """The file that has the manifest of that pod; None before it was written."""
        return self._files.get(name)

    def kept_log(self) -> tuple[str, ...]:
        """The lines of the kubelet's log that a failure shows; `$CASE` is the case's directory."""
        pods = {*self._files, *self._files.values(), *self._watch.created_at_api}
        lines = kept(self._parts.kubelet.log_lines(), pods)
        return tuple(line.replace(str(self._parts.paths.base), "$CASE") for line in lines)

    async def remove_static(self, name: str) -> None:
        """Remove the manifest of that pod."""
        self.remove_manifest(self._files[name])

    def remove_manifest(self, file: str) -> None:
        """Remove a file of the manifest directory."""
        self._parts.manifest_place(file).unlink()
        self._watch.plan("manifest", file)

    def write_manifest(self, file: str, text: str, *, twice: bool = False) -> None:
        """Write any text into the manifest directory, in one step (a hidden file is renamed);
        `file` may name a sub-directory. `twice`: another file may have the same pod."""
        target = self._parts.manifest_place(file)
        text = self._parts.tenant.manifest(text) if self._parts.tenant else text
        if twice or target.exists():
            self._watch.plan("manifest", file)
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.parent / f".{target.name}.new"
        hidden.write_text(text)
        hidden.rename(target)

    def rename_manifest(self, file: str, new: str) -> None:
        """Rename a file of the manifest directory."""
        self._watch.plan("manifest", file)
        self._parts.manifest_place(file).rename(self._parts.manifest_place(new))

    def link_manifest(self, file: str, target: Path) -> None:
        """Put a symbolic link to a file elsewhere into the manifest directory."""
        self._parts.not_shared("a link in the directory of static pods")
        self._parts.manifest_place(file).symlink_to(target)

    # --- time -----------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the case began."""
        return self._watch.now_s

    @property
    def settled_s(self) -> float:
        """When a wait begins to count: now, or later when the kubelet has just started."""
        return self._watch.settled_s

    @property
    def slack_s(self) -> float:
        """How many seconds measuring may add to an upper bound now."""
        return self._watch.slack_s

    @property
    def unix_s(self) -> float:
        """The wall clock of the node now, seconds since 1970."""
        return self._parts.clock.now().timestamp()

    async def run_for(self, duration_s: float, *, tick_s: float = 0.0) -> None:
        """Let `duration_s` seconds pass, with a look every `tick_s` seconds, at most ten in a
        second."""
        await self._watch.run_for(duration_s, tick_s=tick_s)

    async def refresh(self) -> None:
        """Look at the node now, without letting time pass."""
        await self._watch.snapshots.refresh()

    async def run_until(
        self, condition: Callable[[], object], *, within_s: float, what: str = ""
    ) -> None:
        """Let time pass until `condition()` is true.

        Raises ExpectationFailed, with what the condition looked at, after `within_s` seconds (plus
        slack, and what a kubelet that has just started may need). `what`: the expectation as a
        phrase, for that text.
        """
        await self._watch.run_until(condition, within_s=within_s, what=what)

    async def wait_running(self, pod: str, *names: str) -> None:
        """Run until the pod's containers (without names: `main`) are shown as running, within
        limits.START_S."""
        await self.run_until(
            lambda: self.running(pod, *names),
            within_s=limits.START_S,
            what=f"containers {', '.join(names or ['main'])} of pod {pod} run",
        )

    # --- CRI calls of the kubelet ---------------------------------------------------------

    @looked_at
    def calls(
        self,
        method: str | None = None,
        *,
        pod: str | None = None,
        container: str | None = None,
        since_s: float = 0.0,
    ) -> list[Any]:
        """The recorded calls (fakecri's `Call`) in order of arrival: of that method, for that pod
        and container (None: all), from `since_s` seconds after the beginning of the case on."""
        name = pod and self._watch.runtime_name(pod)
        selected = self._parts.runtime.calls(method, name, container)
        recent = [c for c in selected if self.time_s(c) >= since_s - 1e-9]
        return Seen(recent, self, _phrase(method or "call", pod, container))

    @looked_at
    def count(
        self,
        method: str,
        *,
        pod: str | None = None,
        container: str | None = None,
        since_s: float = 0.0,
    ) -> int:
        """The number of these calls; arguments as for `calls`."""
        return len(self.calls(method, pod=pod, container=container, since_s=since_s))

    @looked_at
    def times_s(
        self, method: str, *, pod: str | None = None, container: str | None = None
    ) -> list[float]:
        """The arrival of each of these calls, in seconds since the case began."""
        selected = self.calls(method, pod=pod, container=container)
        return Seen([self.time_s(c) for c in selected], self, _phrase(method, pod, container))

    def since_start_s(self, monotonic_s: float) -> float:
        """A moment of the clock of the run, in seconds since the case began."""
        return self._watch.since_start_s(monotonic_s)

    def time_s(self, call: Any) -> float:
        """The arrival of `call`, in seconds since the case began."""
        return self._watch.since_start_s(float(call.started_s))

    def ended_s(self, call: Any) -> float:
        """The end of `call`, in seconds since the case began; -1 while it has no answer."""
        return -1.0 if call.ended_s is None else self._watch.since_start_s(float(call.ended_s))

    @looked_at
    def writes(self, pod: str, *, since_s: float = 0.0) -> list[str]:
        """The calls for that pod that change something, in order, with the attempt behind a slash:
        `RunPodSandbox/0`, `StartContainer main/1`."""
        pod_calls = self.calls(pod=pod, since_s=since_s)
        return [write_name(c) for c in pod_calls if is_write(c)]

    # --- pods, as the kubelet shows them in /pods -----------------------------------------

    @looked_at
    def pod(self, name: str) -> dict[str, Any] | None:
        """The pod; None when it is not listed."""
        return self._watch.pod(name)

    @looked_at
    def phase(self, name: str) -> str:
        """The pod's phase; "" when it is not listed."""
        return str(((self.pod(name) or {}).get("status") or {}).get("phase", ""))

    @looked_at
    def phases(self, name: str) -> list[str]:
        """The successive distinct phases of the pod so far."""
        return self._watch.snapshots.phases(self._watch.runtime_name(name))

    @looked_at
    def condition(self, pod: str, kind: str) -> dict[str, Any]:
        """The pod's condition of that type; {} when there is none."""
        conditions = ((self.pod(pod) or {}).get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == kind), {})

    @looked_at
    def statuses(self, name: str) -> list[dict[str, Any]]:
        """The successive distinct statuses of the pod so far."""
        return self._watch.snapshots.statuses.get(self._watch.runtime_name(name), [])

    @looked_at
    def container(self, pod: str, name: str) -> dict[str, Any]:
        """The status of a container of any kind; {} when there is none."""
        return container_status(self.pod(pod), name)

    @looked_at
    def running(self, pod: str, *names: str) -> bool:
        """Whether these containers (without names: `main`) are shown as running."""
        return all("running" in self.container(pod, n).get("state", {}) for n in names or ["main"])

    @looked_at
    def states(self, pod: str, container: str) -> list[str]:
        """The successive distinct states of a container so far: `waiting(ContainerCreating)`,
        `running`, `terminated(1)`."""
        return self._watch.snapshots.states(self._watch.runtime_name(pod), container)

    # --- events, as the API has them ------------------------------------------------------

    @looked_at
    def events(self, reason: str | None = None, *, pod: str | None = None) -> list[dict[str, Any]]:
        """The events, oldest first: for that reason, about that pod (None: all)."""
        pod_name = pod and self._watch.runtime_name(pod)
        events = [
            e
            for e in self._watch.snapshots.events
            if (reason is None or e["reason"] == reason)
            and (pod_name is None or e["involvedObject"]["name"] == pod_name)
        ]
        return Seen(events, self, _phrase("event", reason, pod))

    async def events_arrive(self) -> None:
        """Let a second pass, in which the events of what was seen arrive at the API server: they
        are sent beside the work and in turn, so a status may be there before its event."""
        await self.run_for(limits.EVENTS_S)

    @looked_at
    def event_count(self, reason: str, *, pod: str | None = None) -> int:
        """How often that was reported: an event with a count stands for so many (BACK-012)."""
        return sum(int(e.get("count") or 1) for e in self.events(reason, pod=pod))

    # --- for failures and results ---------------------------------------------------------

    def report(self) -> list[str]:
        """What happened last, as lines below the text of a failure."""
        return self._watch.report()

    def trace(self) -> list[str]:
        """All recorded calls, one line each."""
        return self._watch.trace()

    def record(self) -> Trace:
        """What happened so far, for result files."""
        return trace_of(self._parts, self._watch)

    def calm(self) -> None:
        """Say that from now on nothing more is done to the node, and all is there that it needs:
        laws may ask whether everything comes to be as it should."""
        self._watch.plan("calm")

    async def there(self) -> There:
        """What runtime, kubelet and API server have of pods now."""
        return await there_on(self._parts, self._watch, self._files)

    @property
    def planned(self) -> Sequence[Planned]:
        """What was done to the node up to now, in order."""
        return self._watch.planned

    async def settled(self) -> History:
        """Remove all pods, wait until the node is still, and tell all that has happened."""
        end_s, stored = self._parts.clock.monotonic_s(), dict(self._watch.snapshots.api_pods)
        is_calm = any(each.kind == "calm" for each in self._watch.planned)
        there = await self.there() if is_calm else None
        left = await remove_pods(self._parts, self._watch) if self._parts.pace.removal_s else Left()
        return history_of(
            self._parts, self._watch, end_s=end_s, stored=stored, there=there, left=left
        )


def _phrase(*words: str | None) -> str:
    return " ".join(word for word in words if word)
