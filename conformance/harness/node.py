"""The node a case sees: pods, faults, time and observations; no kubelet, no runtime behind it.

Observations are those every kubelet has: CRI calls, `/pods`, API objects, events. They are
snapshots: `run_until` and `run_for` refresh them each tick, so conditions are plain functions.
What must never happen here: a wait that depends on real time in a virtual run, or a case that can
reach the kubelet's inside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.harness import limits, machine
from conformance.harness.cgroups import pod_words
from conformance.harness.expect import Seen, failure
from conformance.harness.kubelets.base import KubeletDied
from conformance.harness.manifests import Container, PodPlan
from conformance.harness.observe import Observations, call_line, is_write, write_name

if TYPE_CHECKING:
    from conformance.harness.cgroups import NodeCgroups
    from conformance.harness.limits import Pace
    from conformance.harness.registry import Registry
    from conformance.harness.setup import Parts


class Node:
    """One node with one kubelet under test. Pods go by the names of their manifests; `web` is
    found as `web-<node>` where it is static."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._observed = Observations(parts)
        self._files: dict[str, str] = {}  # static pod -> manifest file
        self._api_pods: set[str] = set()
        self._start_s = parts.clock.monotonic_s()

    # --- the node itself ---------------------------------------------------------------------

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

    @property
    def cri(self) -> Any:
        """The runtime without record and faults, for things no kubelet asked for."""
        return self._parts.runtime.direct

    # --- pods --------------------------------------------------------------------------------

    async def apply_static(self, plan: PodPlan, *, file: str | None = None) -> None:
        """Write (or overwrite) the manifest of a static pod; `file` defaults to `<name>.yaml`."""
        self._files[plan.name] = file or f"{plan.name}.yaml"
        self._parts.runtime.teach(self.runtime_name(plan.name), plan)
        self._parts.write_manifest(self._files[plan.name], plan.manifest)

    async def remove_static(self, name: str) -> None:
        """Remove the manifest of that pod."""
        (self._parts.paths.manifests / self._files[name]).unlink()

    def write_file(self, file: str, text: str) -> None:
        """Put any text into the manifest directory; `file` may name a sub-directory."""
        self._parts.write_text(file, text)

    def write_log(self, pod: str, container: str, file: str, text: str) -> None:
        """Put a file beside the logs of a container."""
        meta = (self.pod(pod) or {})["metadata"]
        directory = f"{meta['namespace']}_{meta['name']}_{meta['uid']}"
        path = self._parts.paths.logs / directory / container / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_volume_file(self, pod: str, volume: str, file: str, text: str) -> None:
        """Put a file into an emptyDir volume of the pod."""
        self._volume_file(pod, volume, file).write_text(text)

    def has_volume_file(self, pod: str, volume: str, file: str) -> bool:
        """Whether there is such a file in an emptyDir volume of the pod."""
        return self._volume_file(pod, volume, file).exists()

    def _volume_file(self, pod: str, volume: str, file: str) -> Path:
        uid = str((self.pod(pod) or {})["metadata"]["uid"])
        volumes = self._parts.paths.root / "pods" / uid / "volumes" / "kubernetes.io~empty-dir"
        return volumes / volume / file

    def write_root_file(self, file: str, text: str) -> None:
        """Put a text into the kubelet's root directory."""
        (self._parts.paths.root / file).write_text(text)

    def read_root_file(self, file: str) -> str:
        """A text from the kubelet's root directory."""
        return (self._parts.paths.root / file).read_text()

    async def create_pod(self, plan: PodPlan) -> None:
        """Create the pod at the API, bound to this node."""
        self._api_pods.add(plan.name)
        self._parts.runtime.teach(plan.name, plan)
        spec = {**plan.manifest["spec"], "nodeName": self.name}
        await self._parts.the_api().create({**plan.manifest, "spec": spec})

    async def create_secret(self, manifest: Mapping[str, Any]) -> None:
        """Create the Secret at the API."""
        await self._parts.the_api().create_secret(manifest)

    async def create_object(self, plural: str, manifest: Mapping[str, Any]) -> None:
        """Create another object at the API, for example of `configmaps` or `services`."""
        await self._parts.the_api().create_object(plural, manifest)

    async def create_runtime_class(self, name: str, handler: str) -> None:
        """Create a RuntimeClass at the API."""
        await self._parts.the_api().create_runtime_class(name, handler)

    async def resize_pod(
        self, name: str, container: str, resources: Mapping[str, Any], *, init: bool = False
    ) -> None:
        """Change the resources of a container at the API, in place."""
        group = "initContainers" if init else "containers"
        wanted = {"name": container, "resources": resources}
        await self._parts.the_api().resize(name, {group: [wanted]})

    async def resize_containers(self, name: str, wanted: Mapping[str, Any]) -> None:
        """The same for several at once: name -> resources."""
        containers = [{"name": each, "resources": wanted[each]} for each in wanted]
        await self._parts.the_api().resize(name, {"containers": containers})

    async def resize_whole_pod(self, name: str, resources: Mapping[str, Any]) -> None:
        """Change the pod's own resources at the API, in place."""
        await self._parts.the_api().resize(name, {"resources": resources})

    async def debug(self, plan: PodPlan, *containers: Container, target: str = "") -> None:
        """Add ephemeral containers to a pod at the API, in the process namespace of `target`."""
        self._parts.runtime.teach(plan.name, replace(plan, containers=plan.containers + containers))
        aimed = {"targetContainerName": target} if target else {}
        manifests = [{**c.manifest, **aimed} for c in containers]
        await self._parts.the_api().debug(plan.name, manifests)

    async def delete_pod(self, name: str, *, grace_s: int | None = None) -> None:
        """Delete the pod (or mirror pod) at the API; grace None: the pod's own."""
        await self._parts.the_api().delete(self.runtime_name(name), grace_s)

    async def patch_pod(self, name: str, patch: Mapping[str, Any], *, status: bool = False) -> None:
        """Merge-patch the pod (or mirror pod) at the API, as a user would."""
        await self._parts.the_api().patch(self.runtime_name(name), patch, status=status)

    def runtime_name(self, name: str) -> str:
        """The pod's name in the runtime and in `/pods` (SRC-033): every pod that was not created
        at the API is taken for a static one."""
        return name if name in self._api_pods else f"{name}-{self.name}"

    # --- the kubelet and the runtime -----------------------------------------------------------

    async def stop_kubelet(self) -> None:
        """Stop the kubelet as a service manager does; containers keep running."""
        await self._parts.kubelet.stop()

    async def kill_kubelet(self) -> None:
        """Kill the kubelet without warning."""
        await self._parts.kubelet.kill()

    async def start_kubelet(self, **config: Any) -> None:
        """Start the kubelet (again); `config`: KubeletConfiguration fields changed from now on."""
        self._parts.config.update(config)
        await self._parts.kubelet.start(self._parts.config)

    async def restart_kubelet(self, **config: Any) -> None:
        """Stop and start."""
        await self.stop_kubelet()
        await self.start_kubelet(**config)

    async def refused_start(self, **config: Any) -> str:
        """Stop the kubelet and start it with these fields, which it must not accept: its last
        words. Afterwards none runs."""
        await self.stop_kubelet()
        try:
            await self._parts.kubelet.start({**self._parts.config, **config})
            await self.run_for(limits.START_S + self.slack_s)
        except KubeletDied as died:
            await self._parts.kubelet.close()
            return str(died)
        raise failure(self, f"a kubelet that does not start with {config}", "it runs")

    def on(self, method: str, *, pod: str | None = None, container: str | None = None) -> Any:
        """Make calls of the kubelet misbehave: `.fails(code, text, times=)`, `.delays(s)`,
        `.hangs()`; the rule is a context manager and has `.remove()`."""
        return self._parts.runtime.on(method, pod and self.runtime_name(pod), container)

    async def registry(self) -> Registry:
        """The case's own registry, which the runtime pulls from (Feature.REGISTRY)."""
        return await self._parts.runtime.registry()

    async def kill_container(self, container: str, *, pod: str) -> None:
        """End the running container behind the kubelet's back (exit 137)."""
        await self._parts.runtime.kill_container(self.runtime_name(pod), container)

    async def stop_sandbox(self, pod: str) -> None:
        """Stop the pod's ready sandbox, and what runs in it, behind the kubelet's back."""
        await self._parts.runtime.stop_sandbox(self.runtime_name(pod))

    async def plug_in(self, plugin: Any, *, faithful: bool = True) -> None:
        """Start a device plugin (fakecri's FakeDevicePlugin) and register it, as soon as the
        kubelet takes it; what a kubelet says that refuses it is in `plugin.refusals`. A faithful
        one comes back after a restart of the kubelet (Feature.DEVICE_PLUGINS)."""
        from fakecri.errors import CriError

        deadline_s = self.now_s + limits.REGISTER_S
        before = len(plugin.refusals)
        while True:
            try:
                await self._parts.plugins.start(plugin, faithful=faithful)
                return
            except CriError as error:
                if len(plugin.refusals) > before:
                    return
                if self.now_s >= deadline_s:
                    raise failure(self, "a kubelet that takes registrations", str(error)) from None
            await self._parts.plugins.stop(plugin)
            await self._tick(self._pace.tick_s)

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """The answer of the pod-resources API to List, GetAllocatableResources or Get. Raises
        LookupError with the kubelet's words for a pod that it does not know."""
        return await self._parts.kubelet.pod_resources(method, **fields)

    @property
    def plugins_dir(self) -> Path:
        """The device-plugins directory, where the kubelet keeps its checkpoint of devices."""
        default = self._parts.paths.root / "device-plugins"
        return Path(getattr(self._parts.plugins, "directory", default))

    async def unplug(self, plugin: Any) -> None:
        """The device plugin dies."""
        await self._parts.plugins.stop(plugin)

    @asynccontextmanager
    async def pressure(self, signal: str) -> AsyncIterator[None]:
        """Restart the kubelet with a hard threshold for `signal` that the node is far below, and
        again with the case's own thresholds at the end (Feature.PRESSURE)."""
        before = self._parts.config.get("evictionHard", {})
        await self.restart_kubelet(evictionHard={signal: "99.9%"})
        yield
        await self.restart_kubelet(evictionHard=before)

    def runtime_away(self) -> Any:
        """A block in which every call of the kubelet fails with UNAVAILABLE."""
        return self._parts.runtime.on("*", None, None).fails("UNAVAILABLE", "runtime is away")

    def leave_memory(self, free_bytes: int) -> None:
        """Set what else runs on the node so that `free_bytes` of memory are available now, beside
        what its containers use (Feature.NODE_RESOURCES)."""
        machine.leave_memory(self._parts.runtime.machine, free_bytes)

    def leave_disk(self, free_bytes: int, *, disk: str = machine.NODE) -> None:
        """The same for a disk: `node` has the kubelet's root directory, `images` the images,
        `containers` the writable layers; unless they are separated, all are one. With
        Feature.OWN_DISK alone there is the kubelet's only."""
        if self._parts.disk is not None:
            self._parts.disk.leave(free_bytes)
        else:
            machine.leave_disk(self._parts.runtime.machine, disk, free_bytes)

    def leave_inodes(self, free: int, *, disk: str = machine.NODE) -> None:
        """The same for the inodes of a disk."""
        if self._parts.disk is not None:
            self._parts.disk.leave_inodes(free)
        else:
            machine.leave_inodes(self._parts.runtime.machine, disk, free)

    def leave_pids(self, free: int) -> None:
        """The same for processes."""
        machine.leave_pids(self._parts.runtime.machine, free)

    async def separate_disks(self, *, split: bool = False, restart: bool = True) -> None:
        """Give images and writable layers a disk of their own (`split`: the images alone), and
        restart the kubelet, which looks at that only once."""
        machine.separate_disks(self._parts.runtime.machine, split=split)
        if restart:
            await self.restart_kubelet()

    def lose_image_disk(self) -> None:
        """The runtime names a directory for its images that is on no disk."""
        self._parts.runtime.machine.image_root = "nowhere"

    def freeze_image_times(self, *, frozen: bool = True) -> None:
        """The runtime measures its disks no more: ImageFsInfo keeps its time stamp."""
        node = self._parts.runtime.machine
        node.image_fs_time_ns = node.now_ns() if frozen else None

    def shut_down(self) -> None:
        """Have the machine tell that it is about to go down (Feature.SHUTDOWN)."""
        self._parts.the_logind().shut_down()

    def call_off_shutdown(self) -> None:
        """Have it tell that it does not go down after all."""
        self._parts.the_logind().call_off()

    @property
    def holds_up_shutdown(self) -> bool:
        """The kubelet keeps the machine from going down."""
        return self._parts.the_logind().delayed

    def kernel_says(self, *lines: str) -> None:
        """Write lines into the log of the node's kernel (Feature.NODE_RESOURCES)."""
        for line in lines:
            self._parts.runtime.kernel_says(line)

    def run_out_of_memory(self) -> str:
        """Have the kernel kill whom it likes to kill most, as when the whole machine is short of
        memory (Feature.NODE_RESOURCES). The victim as the kubelet's event names it."""
        victim = self._parts.runtime.machine.oom()
        return f"{victim.name}, pid: {victim.pid}"

    def api_fails(self, method: str, path: str) -> Any:
        """A block in which the API server answers 500 to these requests; `path`: a regular
        expression."""
        return self._parts.the_api().fake.fails(method, path)

    def api_down(self) -> Any:
        """A block in which the API server is not there."""
        return self._parts.the_api().fake.down()

    # --- time --------------------------------------------------------------------------------

    async def run_for(self, duration_s: float) -> None:
        """Let `duration_s` seconds pass."""
        end_s = self.now_s + duration_s
        while self.now_s < end_s:
            await self._tick(min(self._pace.tick_s, end_s - self.now_s))

    async def run_until(
        self, condition: Callable[[], object], *, within_s: float, what: str = ""
    ) -> None:
        """Let time pass until `condition()` is true; fail after `within_s` seconds (plus slack).

        `what`: the expectation as a sentence, for the failure.
        """
        start_s = self.now_s
        await self._observed.refresh()
        while not condition():
            if self.now_s >= start_s + within_s + self.slack_s:
                raise failure(self, f"{what or 'condition'} within {within_s:g} s", "not so")
            await self._tick(max(self._pace.tick_s, min(1.0, within_s / 300)))

    async def _tick(self, duration_s: float) -> None:
        await self._parts.clock.sleep(duration_s)
        await self._observed.refresh()

    # --- observations ------------------------------------------------------------------------

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

    def count(
        self,
        method: str,
        *,
        pod: str | None = None,
        container: str | None = None,
        since_s: float = 0.0,
    ) -> int:
        return len(self.calls(method, pod=pod, container=container, since_s=since_s))

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

    def writes(self, pod: str, *, since_s: float = 0.0) -> list[str]:
        """The changing calls for that pod, in order: `RunPodSandbox/0`, `StartContainer main/1`."""
        found = self.calls(pod=pod, since_s=since_s)
        return [write_name(c) for c in found if is_write(c)]

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

    def pod(self, name: str) -> dict[str, Any] | None:
        """The pod as the kubelet's `/pods` shows it; None when it is not listed."""
        return self._observed.pods.get(self.runtime_name(name))

    def phase(self, name: str) -> str:
        """Phase in `/pods`; "" when the pod is not listed."""
        return str(((self.pod(name) or {}).get("status") or {}).get("phase", ""))

    def container(self, pod: str, name: str) -> dict[str, Any]:
        """The status of a container of any kind in `/pods`; {} when there is none."""
        return _container_status(self.pod(pod), name)

    def running(self, pod: str, *names: str) -> bool:
        """Whether these containers (without names: `main`) are shown as running."""
        return all("running" in self.container(pod, n).get("state", {}) for n in names or ["main"])

    def condition(self, pod: str, kind: str) -> dict[str, Any]:
        """The pod's condition of that type in `/pods`; {} when there is none."""
        conditions = ((self.pod(pod) or {}).get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == kind), {})

    def api_pod(self, name: str) -> dict[str, Any] | None:
        """The pod (or mirror pod) at the API; None when there is none."""
        return self._observed.api_pods.get(self.runtime_name(name))

    mirror = api_pod

    def api_container(self, pod: str, name: str) -> dict[str, Any]:
        """The container's status at the API; {} when there is none."""
        return _container_status(self.api_pod(pod), name)

    def api_phase(self, name: str) -> str:
        return str(((self.api_pod(name) or {}).get("status") or {}).get("phase", ""))

    def api_requests(self, method: str, path: str) -> list[Any]:
        """The kubelet's requests to the API server; `path`: a regular expression."""
        return self._parts.api_requests(method, path)

    def node_condition(self, kind: str) -> dict[str, Any]:
        """The condition of that type of the Node at the API; {} when there is none."""
        conditions = (self._observed.node.get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == kind), {})

    def allocatable(self, resource: str) -> str:
        """What the Node at the API says it can give to pods, as written; "" before it is there."""
        return self._amount("allocatable", resource)

    def capacity(self, resource: str) -> str:
        """The same for all that the node has."""
        return self._amount("capacity", resource)

    def node_status(self, field: str) -> Any:
        """That field of the Node's status at the API; None while it is not there."""
        return (self._observed.node.get("status") or {}).get(field)

    def _amount(self, kind: str, resource: str) -> str:
        amounts = (self._observed.node.get("status") or {}).get(kind) or {}
        return str(amounts.get(resource, ""))

    def taints(self) -> list[dict[str, Any]]:
        """The taints of the Node at the API."""
        return list((self._observed.node.get("spec") or {}).get("taints") or [])

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

    def event_count(self, reason: str, *, pod: str | None = None) -> int:
        """How often that happened: repeated events count (BACK-012)."""
        return sum(int(e.get("count") or 1) for e in self.events(reason, pod=pod))

    async def summary(self) -> dict[str, Any]:
        """The statistics of the node and its pods, as `/stats/summary` shows them now."""
        return await self._parts.kubelet.summary()

    def statuses(self, name: str) -> list[dict[str, Any]]:
        """The successive distinct statuses of the pod seen in `/pods`."""
        return self._observed.statuses.get(self.runtime_name(name), [])

    def states(self, pod: str, container: str) -> list[str]:
        """The successive distinct states of a container in `/pods`: `waiting(ContainerCreating)`,
        `running`, `terminated(1)`."""
        return self._observed.states(self.runtime_name(pod), container)

    def phases(self, pod: str) -> list[str]:
        """The successive distinct phases of the pod in `/pods`."""
        return self._observed.phases(self.runtime_name(pod))

    def log_files(self, pod: str, container: str) -> list[str]:
        """The names of the container's log files, the log itself first."""
        found = self._parts.paths.logs.glob(f"*_{self.runtime_name(pod)}_*/{container}/*")
        return Seen(sorted(path.name for path in found), self, _words("log file", pod, container))

    def log_directories(self, pod: str) -> int:
        """How many log directories the pod has."""
        return len(list(self._parts.paths.logs.glob(f"*_{self.runtime_name(pod)}_*")))

    def visits(self, pod: str) -> list[Any]:
        """Who connected to the pod's containers (fakecri's `Visit`), in order; `time_s` is of the
        runtime's clock (Feature.POD_SERVERS)."""
        found = self._parts.runtime.visits(self.runtime_name(pod))
        return Seen(found, self, f"visit to {pod}")

    # --- reports -----------------------------------------------------------------------------

    def trace(self, *, last: int | None = None) -> list[str]:
        """The recorded calls, one line each; without `last`, all of them with the periodic ones."""
        found = self.calls()
        if last is not None:
            found = [c for c in found if is_write(c)][-last:]
        return [call_line(c, self._start_s) for c in found]

    def status_lines(self, *, last: int) -> list[str]:
        """The last status changes, one line each."""
        return self._observed.lines(self._start_s)[-last:]

    async def wait_running(self, pod: str, *names: str) -> None:
        """Run until the pod's containers are shown as running, within limits.START_S."""
        await self.run_until(
            lambda: self.running(pod, *names),
            within_s=limits.START_S,
            what=f"containers {', '.join(names or ['main'])} of pod {pod} run",
        )


def _words(*words: str | None) -> str:
    return " ".join(word for word in words if word)


def _container_status(pod: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    status = (pod or {}).get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(kind) or []:
            if entry["name"] == name:
                return dict(entry)
    return {}
