"""The texts of evictions: the message, the annotations, and the status of an evicted pod."""

from typing import Any

from fakecri import stops, uses
from kubelet_conformance.cases.eviction.common import MI, comparable, first_victim, hungry
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, KnownBug, conformance

API, SHORT, STATUS = Feature.API, Feature.SHORTAGE, Feature.STATUS
MEMORY = {"evictionHard": {"memory.available": "200Mi"}}
SIDECARS_LEFT_OUT = KnownBug(
    "124947", "The message of an eviction does not count sidecars in", fixed="1.32"
)
DISK = {"evictionHard": {"nodefs.available": "1Gi"}}


@conformance(id="message-containers", rules=["EVIC-091.2", "EVIC-091.4", "EVIC-093.1"],
             needs=[API, SHORT], node_config=MEMORY, bugs=[SIDECARS_LEFT_OUT])  # fmt: skip
async def the_message_names_each_container_above_its_request(node: Node) -> None:
    """The message and the annotations of an eviction name every container that uses more than it
    requests, sidecars too, with its request and not its limit."""
    sizes = {"side": (20, "5Mi"), "a": (300, "100Mi"), "b": (10, "50Mi"), "c": (40, "")}
    containers = {}
    for name, (uses_mi, request) in sizes.items():
        resources: dict[str, Any] = {"limits": {"memory": "1Gi"}, "requests": {"memory": "0"}}
        if request:
            resources["requests"] = {"memory": request}
        kind = sidecar if name == "side" else container
        work = runs(stops(1), uses(memory_bytes=uses_mi * MI))
        containers[name] = kind(name, work, resources=resources)
    side = containers.pop("side")
    await node.api.run_pods(pod("web", *containers.values(), init=[side]))
    await node.machine.run_short("memory.available", 150 * MI)
    await first_victim(node)
    event = node.events("Evicted")[0]
    begin = "The node was low on resource: memory. Threshold quantity: 200Mi, available: 150Mi. "
    text = comparable(node, event["message"])
    parts = text.removeprefix(comparable(node, begin)).split("Container ")
    requests = {"side": ("20Mi", "5Mi"), "a": ("300Mi", "100Mi"), "c": ("40Mi", "0")}
    expected = {
        f"{name} was using {uses}, request is {request}, has larger consumption of memory. "
        for name, (uses, request) in requests.items()
    }
    expect_equal(node, set(parts), {"", *expected}, "parts of the message")
    notes = event["metadata"]["annotations"]
    expect_equal(node, notes["starved_resource"], "memory", "starved_resource")
    names = notes["offending_containers"].split(",")
    usages = notes["offending_containers_usage"].split(",")
    usage = dict(zip(names, usages, strict=False))
    expect_equal(node, usage, {name: uses for name, (uses, _) in requests.items()}, "annotations")


@conformance(id="message-storage", rules=["EVIC-091.3", "EVIC-091.5"],
             needs=[API, SHORT, STATUS, Feature.CGROUPS], node_config=DISK)  # fmt: skip
async def the_message_adds_logs_to_layers(node: Node) -> None:
    """In the message of an eviction for the disk, writable layer and logs of a container are added
    up; a request of memory by the pod plays no role."""
    whole = {"requests": {"memory": "64Mi", "cpu": "1m"}}
    await node.api.run_pods(hungry("web", disk_mi=4, resources=whole))
    node.machine.write_log("web", "main", "0.log.old", "x" * 2 * MI)
    await node.machine.run_short("nodefs.available", 500 * MI)
    await first_victim(node)
    message = node.events("Evicted")[0]["message"]
    begin = (
        "The node was low on resource: ephemeral-storage. "
        "Threshold quantity: 1Gi, available: 500Mi. "
    )
    part = comparable(node, message).removeprefix(comparable(node, begin))
    words = part.split()
    expect_equal(node, words[:4], ["Container", "main", "was", "using"], "words of the message")
    used = words[4].rstrip(",")
    kib = int(used.removesuffix("Ki")) if used.endswith("Ki") else 1024 * int(used.rstrip("Mi"))
    expect_equal(node, 6 * 1024 <= kib <= 6 * 1024 + 64, True, f"{used} are 6 MiB and a little")
    ending = "request is 0, has larger consumption of ephemeral-storage. "
    expect_equal(node, part.partition(", ")[2], ending, "end of the message")


@conformance(
    id="message-storage-unknown",
    rules=["EVIC-091.3"],
    needs=[API, SHORT, STATUS, Feature.FAULTS],
    node_config=DISK,
)
async def a_container_of_unknown_storage_is_not_named(node: Node) -> None:
    """A container of which only the writable layer is known, because its log directory is gone, is
    not named in the message of an eviction for the disk."""
    await node.api.run_pods(hungry("web", disk_mi=4))
    node.machine.remove_logs("web", "main")
    with node.runtime.on("ReopenContainerLog").fails("UNKNOWN", "no space"):  # it makes a new log
        await node.machine.run_short("nodefs.available", 500 * MI)
        await first_victim(node)
    expected_message = (
        "The node was low on resource: ephemeral-storage. "
        "Threshold quantity: 1Gi, available: 500Mi. "
    )
    message = comparable(node, node.events("Evicted")[0]["message"])
    expect_equal(node, message, comparable(node, expected_message), "message")
