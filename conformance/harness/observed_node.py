"""A node that can be watched: its time, and all that can be seen of it from outside.

Observations are those every kubelet has: CRI calls, `/pods`, API objects, events. They are
snapshots: `run_until` and `run_for` refresh them each tick, so conditions are plain functions.
What must never happen here: a wait that depends on real time in a virtual run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from conformance.harness import limits
from conformance.harness.cgroups import pod_words
from conformance.harness.expect import Seen, failure
from conformance.harness.looked import looked_at, seen_by
from conformance.harness.observe import Observations, call_line, is_write, write_name

if TYPE_CHECKING:
    from conformance.harness.cgroups import NodeCgroups
    from conformance.harness.limits import Pace
    from conformance.harness.setup import Parts


class ObservedNode:
    """Pods go by the names of their manifests; `web` is found as `web-<node>` where it is
    static."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._observed = Observations(parts)
        self._api_pods: set[str] = set()
        self._start_s = parts.clock.monotonic_s()
        self._kubelet_since_s = 0.0

    # --- the node itself ------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._parts.node_name

    @property
    def now_s(self) -> float:
        """Seconds since the case began."""
        return self._parts.clock.monotonic_s() - self._start_s

    @property
    def slack_s(self) -> float:
        """What measuring may add to an upper bound now."""
        return self._pace.slack_s * self._pace.busy()

    @property
    def _pace(self) -> Pace:
        return self._parts.pace

    @property
    def uses_api(self) -> bool:
        return self._parts.api is not None

    def runtime_name(self, name: str) -> str:
        """The pod's name in the runtime and in `/pods` (SRC-033): every pod that was not created
        at the API is taken for a static one."""
        return name if name in self._api_pods else f"{name}-{self.name}"

    # --- time -----------------------------------------------------------------------------

    async def run_for(self, duration_s: float) -> None:
        """Let `duration_s` seconds pass."""
        end_s = self.now_s + duration_s
        while self.now_s < end_s:
            await self._tick(min(self._pace.tick_s, end_s - self.now_s))

    async def run_until(
        self, condition: Callable[[], object], *, within_s: float, what: str = ""
    ) -> None:
        """Let time pass until `condition()` is true; fail after `within_s` seconds (plus slack, and
        what a kubelet that has just started may need).

        `what`: the expectation as a sentence, for the failure.
        """
        start_s = max(self.now_s, self._kubelet_since_s + self._pace.settle_s)
        await self._observed.refresh()
        while not condition():
            if self.now_s >= start_s + within_s + self.slack_s:
                wanted = f"{what or 'condition'} within {within_s:g} s"
                raise failure(self, wanted, seen_by(condition))
            await self._tick(max(self._pace.tick_s, min(1.0, within_s / 300)))

    async def wait_running(self, pod: str, *names: str) -> None:
        """Run until the pod's containers are shown as running, within limits.START_S."""
        await self.run_until(
            lambda: self.running(pod, *names),
            within_s=limits.START_S,
            what=f"containers {', '.join(names or ['main'])} of pod {pod} run",
        )

    async def _tick(self, duration_s: float) -> None:
        await self._parts.clock.sleep(duration_s)
        if self._parts.disk is not None:
            self._parts.disk.follow()
        await self._observed.refresh()

    # --- calls of the runtime -------------------------------------------------------------

    @looked_at
    def calls(
        self,
        method: str | None = None,
        *,
        pod: str | None = None,
        container: str | None = None,
        since_s: float = 0.0,
    ) -> list[Any]:
        """The recorded CRI calls (fakecri's `Call`), in order; `time_s` tells when."""
        found = self._parts.runtime.calls(method, pod and self.runtime_name(pod), container)
        kept = [c for c in found if c.started_s - self._start_s >= since_s - 1e-9]
        return Seen(kept, self, _words(method or "call", pod, container))

    @looked_at
    def count(
        self,
        method: str,
        *,
        pod: str | None = None,
        container: str | None = None,
        since_s: float = 0.0,
    ) -> int:
        return len(self.calls(method, pod=pod, container=container, since_s=since_s))

    @looked_at
    def times_s(
        self, method: str, *, pod: str | None = None, container: str | None = None
    ) -> list[float]:
        """Arrival of these calls, in seconds since the case began."""
        found = self.calls(method, pod=pod, container=container)
        times = [c.started_s - self._start_s for c in found]
        return Seen(times, self, _words(method, pod, container))

    def time_s(self, call: Any) -> float:
        """When `call` arrived, in seconds since the case began."""
        return float(call.started_s) - self._start_s

    def ended_s(self, call: Any) -> float:
        """When the answer of `call` left, in seconds since the case began; -1 while it waits."""
        return -1.0 if call.ended_s is None else float(call.ended_s) - self._start_s

    @looked_at
    def writes(self, pod: str, *, since_s: float = 0.0) -> list[str]:
        """The changing calls for that pod, in order: `RunPodSandbox/0`, `StartContainer main/1`."""
        found = self.calls(pod=pod, since_s=since_s)
        return [write_name(c) for c in found if is_write(c)]

    @looked_at
    def visits(self, pod: str) -> list[Any]:
        """Who connected to the pod's containers (fakecri's `Visit`), in order; `time_s` is of the
        runtime's clock (Feature.POD_SERVERS)."""
        found = self._parts.runtime.visits(self.runtime_name(pod))
        return Seen(found, self, f"visit to {pod}")

    # --- pods, as the kubelet shows them --------------------------------------------------

    @looked_at
    def pod(self, name: str) -> dict[str, Any] | None:
        """The pod as the kubelet's `/pods` shows it; None when it is not listed."""
        return self._observed.pods.get(self.runtime_name(name))

    @looked_at
    def phase(self, name: str) -> str:
        """Phase in `/pods`; "" when the pod is not listed."""
        return str(((self.pod(name) or {}).get("status") or {}).get("phase", ""))

    @looked_at
    def container(self, pod: str, name: str) -> dict[str, Any]:
        """The status of a container of any kind in `/pods`; {} when there is none."""
        return _container_status(self.pod(pod), name)

    @looked_at
    def running(self, pod: str, *names: str) -> bool:
        """Whether these containers (without names: `main`) are shown as running."""
        return all("running" in self.container(pod, n).get("state", {}) for n in names or ["main"])

    @looked_at
    def condition(self, pod: str, kind: str) -> dict[str, Any]:
        """The pod's condition of that type in `/pods`; {} when there is none."""
        conditions = ((self.pod(pod) or {}).get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == kind), {})

    @looked_at
    def statuses(self, name: str) -> list[dict[str, Any]]:
        """The successive distinct statuses of the pod seen in `/pods`."""
        return self._observed.statuses.get(self.runtime_name(name), [])

    @looked_at
    def states(self, pod: str, container: str) -> list[str]:
        """The successive distinct states of a container in `/pods`: `waiting(ContainerCreating)`,
        `running`, `terminated(1)`."""
        return self._observed.states(self.runtime_name(pod), container)

    @looked_at
    def phases(self, pod: str) -> list[str]:
        """The successive distinct phases of the pod in `/pods`."""
        return self._observed.phases(self.runtime_name(pod))

    # --- the API --------------------------------------------------------------------------

    @looked_at
    def api_pod(self, name: str) -> dict[str, Any] | None:
        """The pod (or mirror pod) at the API; None when there is none."""
        return self._observed.api_pods.get(self.runtime_name(name))

    mirror = api_pod

    @looked_at
    def api_container(self, pod: str, name: str) -> dict[str, Any]:
        """The container's status at the API; {} when there is none."""
        return _container_status(self.api_pod(pod), name)

    @looked_at
    def api_phase(self, name: str) -> str:
        return str(((self.api_pod(name) or {}).get("status") or {}).get("phase", ""))

    @looked_at
    def api_requests(self, method: str, path: str) -> list[Any]:
        """The kubelet's requests to the API server; `path`: a regular expression."""
        return self._parts.api_requests(method, path)

    @looked_at
    def events(self, reason: str | None = None, *, pod: str | None = None) -> list[dict[str, Any]]:
        """Events at the API, oldest first: about that pod, or all."""
        wanted = pod and self.runtime_name(pod)
        found = [
            e
            for e in self._observed.events
            if (reason is None or e["reason"] == reason)
            and (wanted is None or e["involvedObject"]["name"] == wanted)
        ]
        return Seen(found, self, _words("event", reason, pod))

    @looked_at
    def event_count(self, reason: str, *, pod: str | None = None) -> int:
        """How often that happened: repeated events count (BACK-012)."""
        return sum(int(e.get("count") or 1) for e in self.events(reason, pod=pod))

    @looked_at
    def node_condition(self, kind: str) -> dict[str, Any]:
        """The condition of that type of the Node at the API; {} when there is none."""
        conditions = (self._observed.node.get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == kind), {})

    @looked_at
    def allocatable(self, resource: str) -> str:
        """What the Node at the API says it can give to pods, as written; "" before it is there."""
        return self._amount("allocatable", resource)

    @looked_at
    def capacity(self, resource: str) -> str:
        """The same for all that the node has."""
        return self._amount("capacity", resource)

    @looked_at
    def node_status(self, field: str) -> Any:
        """That field of the Node's status at the API; None while it is not there."""
        return (self._observed.node.get("status") or {}).get(field)

    def _amount(self, kind: str, resource: str) -> str:
        amounts = (self._observed.node.get("status") or {}).get(kind) or {}
        return str(amounts.get(resource, ""))

    @looked_at
    def node_uid(self) -> str:
        """The UID of the Node at the API; "" before it is there."""
        return str((self._observed.node.get("metadata") or {}).get("uid", ""))

    @looked_at
    def taints(self) -> list[dict[str, Any]]:
        """The taints of the Node at the API."""
        return list((self._observed.node.get("spec") or {}).get("taints") or [])

    # --- cgroups, statistics, logs --------------------------------------------------------

    @property
    def cgroups(self) -> NodeCgroups:
        """The node's cgroups, read anew at every question (Feature.CGROUPS)."""
        return self._parts.the_cgroups()

    def pod_cgroup(self, name: str) -> tuple[str, ...]:
        """The words of the pod's cgroup, from its class and UID in `/pods`."""
        pod = self.pod(name)
        if pod is None:
            raise failure(self, f"pod {name} in /pods", "not listed")
        return pod_words(str(pod["status"].get("qosClass", "")), str(pod["metadata"]["uid"]))

    async def summary(self) -> dict[str, Any]:
        """The statistics of the node and its pods, as `/stats/summary` shows them now."""
        return await self._parts.kubelet.summary()

    @looked_at
    def log_files(self, pod: str, container: str) -> list[str]:
        """The names of the container's log files, the log itself first."""
        found = self._parts.paths.logs.glob(f"*_{self.runtime_name(pod)}_*/{container}/*")
        return Seen(sorted(path.name for path in found), self, _words("log file", pod, container))

    @looked_at
    def log_directories(self, pod: str) -> int:
        """How many log directories the pod has."""
        return len(list(self._parts.paths.logs.glob(f"*_{self.runtime_name(pod)}_*")))

    # --- reports --------------------------------------------------------------------------

    def trace(self, *, last: int | None = None) -> list[str]:
        """The recorded calls, one line each; without `last`, all of them with the periodic ones."""
        found = self.calls()
        if last is not None:
            found = [c for c in found if is_write(c)][-last:]
        return [call_line(c, self._start_s) for c in found]

    def status_lines(self, *, last: int) -> list[str]:
        """The last status changes, one line each."""
        return self._observed.lines(self._start_s)[-last:]


def _words(*words: str | None) -> str:
    return " ".join(word for word in words if word)


def _container_status(pod: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    status = (pod or {}).get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(kind) or []:
            if entry["name"] == name:
                return dict(entry)
    return {}
