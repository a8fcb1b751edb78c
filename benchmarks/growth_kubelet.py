"""The dimensions of a kubelet: pods, their parts, and what the node has; see `growth`.

Each scenario is a kubelet on a fake runtime in virtual time, with a fake API server where pods come
from there.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from crash_loop import IN_MEMORY, WITH_CGROUPS, configuration, virtual_clock
from growth import Dimension, Meter
from kubecri.v1 import api_pb2 as pb
from workload import start_pod

from fakecri import FakeCRI, FakeNode, exits
from fakecri.deviceplugin import FakeDevicePlugin, InProcessPlugins
from fakekubeapi import FakeApi
from fakekubeapi.in_process import InProcessWire
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.kubelet import Directories, Kubelet, KubeletDeps, PluginSources, ThisNode
from refkubelet.server.common.exchange import Request
from refkubelet.server.common.routes import main_routes
from refkubelet.server.port import Port, handlers_of
from simclock import Clock, Ids, Rng, run_virtual

NODE: Final = "bench"
PODS: Final = "/api/v1/namespaces/default/pods"
IMAGE: Final = "localhost/busybox:1"
MANY: Final = 1_000_000
LIMIT_S: Final = 100_000.0
SETTINGS: Final = {
    **WITH_CGROUPS,
    "max_pods": 10_000,
    "kube_api_qps": MANY,
    "kube_api_burst": MANY,
    "event_record_qps": MANY,
    "event_burst": MANY,
    "registry_pull_qps": 0,
}
Json = dict[str, Any]


@dataclass(slots=True)
class World:
    """A node with its kubelet. `api`: without the kubelet knowing of it if that is `alone`."""

    directory: Path
    cri: FakeCRI
    api: FakeApi
    clock: Clock
    alone: bool
    settings: Mapping[str, Any]
    plugins: InProcessPlugins = field(default_factory=InProcessPlugins)
    kubelet: Any = None
    task: Any = None

    async def start(self) -> None:
        """Start the kubelet."""
        rng = Rng(1)
        deps = KubeletDeps(
            target=self.cri,
            machine=self.cri.node,
            clock=self.clock,
            rng=rng,
            ids=Ids(rng),
            node=ThisNode(NODE),
            directories=Directories(self.directory / "root", self.directory / "links"),
            api=None if self.alone else LightkubeApiClient.over(InProcessWire(self.api)),
            plugins=PluginSources(devices=self.plugins),
        )
        config = configuration(self.directory, **{**SETTINGS, **self.settings})
        self.kubelet = Kubelet(config, deps)
        self.task = asyncio.create_task(self.kubelet.run())

    async def stop(self) -> None:
        """Stop the kubelet."""
        if self.task is not None:
            await self.kubelet.stop()
            await self.task

    def write(self, pod: Json) -> None:
        """Write the manifest of a static pod."""
        name = pod["metadata"]["name"]
        (self.directory / "manifests" / f"{name}.json").write_text(json.dumps(pod))

    async def create(self, kind: str, obj: Json, namespace: str = "default") -> None:
        """Create an object at the API server."""
        place = f"/api/v1/namespaces/{namespace}/{kind}" if namespace else f"/api/v1/{kind}"
        answer = await self.api.request("POST", place, body=obj)
        assert answer.status == 201, answer.body

    async def until(self, done: Callable[[], bool], limit_s: float = 3000.0) -> None:
        """Look once a second. Raises TimeoutError."""
        async with asyncio.timeout(limit_s):
            while not done():  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(1.0)

    def running(self) -> int:
        """How many pods the kubelet shows as ready, or as finished."""
        statuses = [pod.status for pod in self.kubelet.pods_with_status()]
        return sum(
            status is not None
            and (
                status.phase == "Succeeded"
                or (
                    status.phase == "Running"
                    and all(container.ready for container in status.containerStatuses or ())
                )
            )
            for status in statuses
        )

    async def until_running(self, number: int) -> None:
        """Wait until so many pods are ready."""
        await self.until(lambda: self.running() >= number)

    def at_api(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        return list(self.api.store.items(kind))


@asynccontextmanager
async def world(directory: Path, *, api: bool, **settings: Any) -> AsyncIterator[World]:
    """A node whose kubelet is started by the scenario."""
    clock = virtual_clock()
    node = FakeNode(memory_bytes=1 << 50)
    cri = FakeCRI(clock, node=node, call_limit=1000, pod_network="10.0.0.0/8")
    made = World(directory, cri, FakeApi(clock), clock, alone=not api, settings=settings)
    try:
        yield made
    finally:
        await made.stop()


def in_world(
    body: Callable[[World, int, Meter], Awaitable[None]], *, api: bool = False, **settings: Any
) -> Callable[[int, Meter], None]:
    """The scenario `body` as a dimension wants it."""

    def run(size: int, meter: Meter) -> None:
        async def main(directory: Path) -> None:
            async with world(directory, api=api, **settings) as made:
                await body(made, size, meter)

        in_directory(main)

    return run


def in_directory(main: Callable[[Path], Coroutine[Any, Any, None]]) -> None:
    """Run `main` in virtual time, with a fresh directory in memory where possible."""
    parent = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as name:
        directory = Path(name)
        for part in ("manifests", "root", "logs"):
            (directory / part).mkdir()
        run_virtual(lambda: main(directory), limit_s=LIMIT_S)


def pod_of(name: str, containers: Iterable[Json] = (), **spec: Any) -> Json:
    """A manifest; without containers it has one."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": list(containers) or [container_of("main")],
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **spec,
        },
    }


def container_of(name: str, **fields: Any) -> Json:
    return {"name": name, "image": IMAGE, **fields}


async def static_pods(world: World, size: int, meter: Meter) -> None:
    """Manifests that are there become ready; then they are removed, and their pods end."""
    for number in range(size):
        world.write(pod_of(f"pod-{number}"))
    await world.start()
    with meter:
        await world.until_running(size)
        for file in (world.directory / "manifests").iterdir():
            file.unlink()
        await world.until(lambda: not world.kubelet.pods_with_status())


async def api_pods(world: World, size: int, meter: Meter) -> None:
    """Pods are created, become ready, and are deleted."""
    await world.start()
    with meter:
        for number in range(size):
            await world.create("pods", pod_of(f"pod-{number}", nodeName=NODE))
        await world.until_running(size)
        for number in range(size):
            await world.api.request("DELETE", f"{PODS}/pod-{number}")
        await world.until(lambda: not world.at_api("pods"))


async def trickling_pods(world: World, size: int, meter: Meter) -> None:
    """Pods come one after another within 100 s, as they do in a cluster that is in use."""
    await world.start()
    with meter:
        for number in range(size):
            await world.create("pods", pod_of(f"pod-{number}", nodeName=NODE))
            await asyncio.sleep(100.0 / size)
        await world.until_running(size)


async def idle_pods(world: World, size: int, meter: Meter) -> None:
    """A minute in which nothing happens."""
    for number in range(size):
        await world.create("pods", pod_of(f"pod-{number}", nodeName=NODE))
    await world.start()
    await world.until_running(size)
    await asyncio.sleep(60.0)
    with meter:
        await asyncio.sleep(60.0)


async def pods_with_objects(world: World, size: int, meter: Meter) -> None:
    """Each pod has a config map and a secret of its own, which the kubelet watches."""
    for number in range(size):
        meta = {"name": f"own-{number}"}
        await world.create("configmaps", {"metadata": meta, "data": {"a": "b"}})
        await world.create("secrets", {"metadata": meta, "stringData": {"a": "b"}})
    await world.start()
    with meter:
        for number in range(size):
            name = f"own-{number}"
            volumes = [
                {"name": "c", "configMap": {"name": name}},
                {"name": "s", "secret": {"secretName": name}},
            ]
            mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
            main = container_of("main", volumeMounts=mounts)
            pod = pod_of(f"pod-{number}", [main], volumes=volumes, nodeName=NODE)
            await world.create("pods", pod)
        await world.until_running(size)


async def restart_of_kubelet(world: World, size: int, meter: Meter) -> None:
    """A kubelet that starts finds the pods of the one before."""
    await world.start()
    for number in range(size):
        await world.create("pods", pod_of(f"pod-{number}", nodeName=NODE))
    await world.until_running(size)
    await world.stop()
    with meter:
        await world.start()
        await world.until_running(size)
        await asyncio.sleep(20.0)


async def one_pod(world: World, pod: Json, meter: Meter, then_s: float = 0.0) -> None:
    """A pod becomes ready, lives for a while, and is deleted."""
    await world.start()
    pod["spec"]["nodeName"] = NODE
    with meter:
        await world.create("pods", pod)
        await world.until_running(1)
        await asyncio.sleep(then_s)
        await world.api.request("DELETE", f"{PODS}/{pod['metadata']['name']}")
        await world.until(lambda: not world.at_api("pods"))


async def containers(world: World, size: int, meter: Meter) -> None:
    """A pod of many containers."""
    resources = {"requests": {"cpu": "1m"}, "limits": {"cpu": "2m"}}
    each = [container_of(f"c{n}", resources=resources) for n in range(size)]
    await one_pod(world, pod_of("big", each), meter, 20.0)


async def probed_containers(world: World, size: int, meter: Meter) -> None:
    """Each with three probes."""
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 5}
    kinds = ("startupProbe", "livenessProbe", "readinessProbe")
    each = [container_of(f"c{n}", **dict.fromkeys(kinds, probe)) for n in range(size)]
    await one_pod(world, pod_of("big", each), meter, 20.0)


async def restarting_containers(world: World, size: int, meter: Meter) -> None:
    """Each ends after a while, and starts again."""
    world.cri.behaves(exits(1, after_s=30.0), container="c*")
    each = [container_of(f"c{n}") for n in range(size)]
    await one_pod(world, pod_of("big", each), meter, 60.0)


async def init_containers(world: World, size: int, meter: Meter) -> None:
    """One after another."""
    world.cri.behaves(exits(0, after_s=0.1), container="i*")
    each = [container_of(f"i{n}") for n in range(size)]
    await one_pod(world, pod_of("big", initContainers=each), meter)


async def sidecars(world: World, size: int, meter: Meter) -> None:
    """One after another, and all of them go on."""
    each = [container_of(f"i{n}", restartPolicy="Always") for n in range(size)]
    await one_pod(world, pod_of("big", initContainers=each), meter)


async def volumes(world: World, size: int, meter: Meter) -> None:
    """Many volumes of a pod, each of a config map, each mounted."""
    await world.create("configmaps", {"metadata": {"name": "one"}, "data": {"a": "b"}})
    every = [{"name": f"v{n}", "configMap": {"name": "one"}} for n in range(size)]
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in every]
    main = container_of("main", volumeMounts=mounts)
    await one_pod(world, pod_of("big", [main], volumes=every), meter, 20.0)


async def keys(world: World, size: int, meter: Meter) -> None:
    """One volume with many keys, and another with each of them at a path of its own."""
    data = {f"k{n}": "v" for n in range(size)}
    await world.create("configmaps", {"metadata": {"name": "one"}, "data": data})
    items = [{"key": key, "path": f"d/{key}"} for key in data]
    projected = {"sources": [{"configMap": {"name": "one", "items": items}}]}
    every = [
        {"name": "all", "configMap": {"name": "one"}},
        {"name": "each", "projected": projected},
    ]
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in every]
    main = container_of("main", volumeMounts=mounts)
    await one_pod(world, pod_of("big", [main], volumes=every), meter, 20.0)


async def variables(world: World, size: int, meter: Meter) -> None:
    """Many variables of a container, each with another in it."""
    env = [{"name": "V0", "value": "x"}]
    env += [
        {"name": f"V{n}", "value": f"$(V{n // 2})y" if n < 8 else "$(V0)"} for n in range(1, size)
    ]
    await one_pod(world, pod_of("big", [container_of("main", env=env)]), meter)


async def services(world: World, size: int, meter: Meter) -> None:
    """A pod with a variable for each service."""
    for number in range(size):
        spec = {"ports": [{"port": 80}], "clusterIP": f"10.96.{number >> 8}.{number & 255 or 1}"}
        if number % 256:
            await world.create("services", {"metadata": {"name": f"s{number}"}, "spec": spec})
    await one_pod(world, pod_of("big", enableServiceLinks=True), meter)


async def tolerations(world: World, size: int, meter: Meter) -> None:
    """A pod that tolerates much and wants much, on a node that it fits."""
    terms = [
        {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"}]} for n in range(size)
    ]
    required = {"nodeSelectorTerms": terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    every = [{"key": f"t{n}", "operator": "Exists"} for n in range(size)]
    await one_pod(world, pod_of("big", tolerations=every, affinity=affinity), meter)


async def dead_containers(world: World, size: int, meter: Meter) -> None:
    """A runtime full of what earlier kubelets have left: dead sandboxes with dead containers."""
    await leftovers(world.cri, size)
    with meter:
        await world.start()
        await asyncio.sleep(130.0)
    assert not world.cri.containers()


async def leftovers(cri: FakeCRI, size: int) -> None:
    """So many pods that have ended."""
    for number in range(size):
        sandbox, container = await start_pod(cri, number)
        await cri.call("StopContainer", pb.StopContainerRequest(container_id=container))
        await cri.call("StopPodSandbox", pb.StopPodSandboxRequest(pod_sandbox_id=sandbox))


async def orphaned_directories(world: World, size: int, meter: Meter) -> None:
    """Directories of pods that nobody knows."""
    for number in range(size):
        path = world.directory / "root" / "pods" / f"uid-{number}"
        (path / "containers" / "main").mkdir(parents=True)
        (path / "etc-hosts").write_text("127.0.0.1 localhost\n")
    with meter:
        await world.start()
        await asyncio.sleep(60.0)
    assert not list((world.directory / "root" / "pods").iterdir())


async def broken_manifests(world: World, size: int, meter: Meter) -> None:
    """Files that are no pods, looked at again and again."""
    for number in range(size):
        (world.directory / "manifests" / f"bad-{number}.yaml").write_text("kind: [Pod\n")
    with meter:
        await world.start()
        await asyncio.sleep(100.0)


async def trickling_manifests(world: World, size: int, meter: Meter) -> None:
    """Manifests that are written one after another, within 100 s."""
    await world.start()
    with meter:
        for number in range(size):
            world.write(pod_of(f"pod-{number}"))
            await asyncio.sleep(100.0 / size)
        await world.until_running(size)


async def images(world: World, size: int, meter: Meter) -> None:
    """Images that are listed, told of, and collected."""
    for number in range(size):
        world.cri.images.add(f"localhost/image-{number}:1")
    await world.start()
    with meter:
        await asyncio.sleep(900.0)


async def pages(world: World, size: int, meter: Meter, paths: Iterable[str]) -> None:
    """The pages about pods."""
    for number in range(size):
        world.write(pod_of(f"pod-{number}"))
    await world.start()
    await world.until_running(size)
    host = world.kubelet.servers.host
    port = Port(main_routes(world.kubelet.config, ()), handlers_of(host), world.clock)
    with meter:
        for path in paths:
            answer = await port.answer(Request(path=path))
            assert answer.status == 200, answer.body


async def resizes(world: World, size: int, meter: Meter) -> None:
    """All pods are resized at once, to more than there is: all of them wait."""
    for number in range(size):
        resources = {"requests": {"cpu": "1m"}, "limits": {"cpu": "1m"}}
        pod = pod_of(f"pod-{number}", [container_of("main", resources=resources)], nodeName=NODE)
        await world.create("pods", pod)
    await world.start()
    await world.until_running(size)
    more = {"requests": {"cpu": "3900m"}, "limits": {"cpu": "3900m"}}
    body = {"spec": {"containers": [{"name": "main", "resources": more}]}}
    with meter:
        for number in range(size):
            answer = await world.api.request(
                "PATCH",
                f"{PODS}/pod-{number}/resize",
                body=body,
                content_type="application/strategic-merge-patch+json",
            )
            assert answer.status == 200, answer.body
        await asyncio.sleep(60.0)


async def under_pressure(world: World, size: int, meter: Meter) -> None:
    """Ten minutes of a node that is short of memory: a pod after another is evicted."""
    for number in range(size):
        world.write(pod_of(f"pod-{number}"))
    await world.start()
    await world.until_running(size)
    world.cri.node.base_memory_used_bytes = world.cri.node.memory_bytes - (1 << 20)
    with meter:
        await asyncio.sleep(300.0)


async def devices(world: World, size: int, meter: Meter) -> None:
    """A plug-in with many devices, each of which comes to a pod; a monitor asks who has which."""
    ids = [f"d{n}" for n in range(size)]
    plugin = FakeDevicePlugin("bench.example/device", devices=ids)
    resources = {"limits": {plugin.resource: "1"}}
    await world.start()
    await asyncio.sleep(1.0)
    with meter:
        await world.plugins.start(plugin)
        await asyncio.sleep(20.0)
        for number in range(size):
            main = container_of("main", resources=resources)
            await world.create("pods", pod_of(f"pod-{number}", [main], nodeName=NODE))
        await world.until_running(size)
        answer = world.kubelet.resources.pod_resources.list()
    assert sum(len(c.devices) for p in answer.pod_resources for c in p.containers) == size


async def exclusive_cpus(world: World, size: int, meter: Meter) -> None:
    """Pods with a processor of their own, on a machine that has so many."""
    world.cri.node.cpus = size + 4
    amounts = {"cpu": "1", "memory": "1Mi"}
    resources = {"requests": amounts, "limits": amounts}
    for number in range(size):
        world.write(pod_of(f"pod-{number}", [container_of("main", resources=resources)]))
    with meter:
        await world.start()
        await world.until_running(size)
        answer = world.kubelet.resources.pod_resources.list()
    assert sum(len(c.cpu_ids) for p in answer.pod_resources for c in p.containers) == size


PAGES: Final = (
    "/pods",
    "/runningpods/",
    "/metrics",
    "/metrics/cadvisor",
    "/metrics/resource",
    "/metrics/probes",
    "/stats/summary",
)
OF_API: Final = partial(in_world, api=True)

DIMENSIONS: Final = {
    "static-pods": Dimension("static pods, to Running and gone", 3, in_world(static_pods)),
    "api-pods": Dimension("pods of the API server, to Running and gone", 2, OF_API(api_pods)),
    "trickling-pods": Dimension("pods that come one after another", 2, OF_API(trickling_pods)),
    "idle-pods": Dimension("pods that only run", 3, OF_API(idle_pods)),
    "pods-with-objects": Dimension(
        "pods with a ConfigMap and a Secret each", 2, OF_API(pods_with_objects)
    ),
    "restarts": Dimension("pods that a new kubelet finds", 3, OF_API(restart_of_kubelet)),
    "resizes": Dimension("pods whose resizes wait", 2, OF_API(resizes)),
    "pressure": Dimension(
        "pods under pressure",
        3,
        in_world(under_pressure, eviction_hard={"memory.available": "100Mi"}),
    ),
    "devices": Dimension("devices of a plug-in, a pod with each", 2, OF_API(devices)),
    "exclusive-cpus": Dimension(
        "pods with a processor of their own",
        2,
        in_world(exclusive_cpus, cpu_manager_policy="static", kube_reserved={"cpu": "1"}),
    ),
    "containers": Dimension("containers of a pod", 5, OF_API(containers)),
    "probed-containers": Dimension("containers with probes", 1, OF_API(probed_containers), power=2),
    "restarting-containers": Dimension("containers that restart", 5, OF_API(restarting_containers)),
    "init-containers": Dimension("init containers of a pod", 1, OF_API(init_containers), power=2),
    "sidecars": Dimension("sidecars of a pod", 1, OF_API(sidecars), power=2),
    "volumes": Dimension("volumes of a pod, mounted", 5, OF_API(volumes)),
    "keys": Dimension("keys of a ConfigMap in volumes", 40, OF_API(keys)),
    "variables": Dimension("variables of a container", 40, OF_API(variables)),
    "services": Dimension("services in variables", 40, OF_API(services)),
    "tolerations": Dimension("tolerations and terms of affinity", 40, OF_API(tolerations)),
    "dead-containers": Dimension("dead pods in the runtime", 10, in_world(dead_containers)),
    "directories": Dimension("orphaned directories", 20, in_world(orphaned_directories)),
    "broken-manifests": Dimension("broken manifests", 10, in_world(broken_manifests)),
    "trickling-manifests": Dimension(
        "manifests that come one after another", 2, in_world(trickling_manifests)
    ),
    "images": Dimension("images on the node", 20, OF_API(images)),
    **{
        f"page {path}": Dimension(
            f"pods on the page {path}", 3, in_world(partial(pages, paths=[path]))
        )
        for path in PAGES
    },
}
