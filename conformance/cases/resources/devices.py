"""Device plugins: registration, allocation at admission, what containers and the Node get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from criapi.deviceplugin import api_pb2 as api

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import Container, container, pod
from conformance.harness.node import Node
from conformance.harness.workload import exits
from conformance.registry import Feature, conformance
from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice
from refkubelet.resources.devices import checkpoint
from refkubelet.resources.devices.records import Allotment

WIDGET: Final = "vendor.example/widget"
NEEDS: Final = (Feature.DEVICE_PLUGINS, Feature.API, Feature.STATUS)
UNEXPECTED: Final = "UnexpectedAdmissionError"


def with_widgets(count: int, name: str = "main", *more: Any, **fields: Any) -> Container:
    """A container that asks for that many widgets."""
    return container(name, *more, resources={"limits": {WIDGET: str(count)}}, **fields)


async def widgets(node: Node, *devices: str | PluginDevice) -> FakeDevicePlugin:
    """A registered plugin of widgets whose devices the Node shows."""
    plugin = FakeDevicePlugin(WIDGET, devices)
    await node.plug_in(plugin)
    await shows(node, str(len(devices)), "capacity")
    return plugin


async def shows(node: Node, number: str, kind: str = "allocatable") -> None:
    """Run until the Node shows so many widgets."""
    await node.run_until(
        lambda: getattr(node, kind)(WIDGET) == number,
        within_s=limits.NODE_STATUS_S,
        what=f"{kind} of the Node shows {number} widgets",
    )


async def rejected(node: Node, name: str) -> Mapping[str, Any]:
    """Run until the pod has failed; its status."""
    await node.run_until(
        lambda: (node.api_pod(name) or {}).get("status", {}).get("phase") == "Failed",
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what=f"pod {name} is rejected",
    )
    status: Mapping[str, Any] = (node.api_pod(name) or {})["status"]
    return status


@conformance(id="device-allocate", rules=["CG-084"], needs=NEEDS)
async def a_container_gets_what_the_plugin_answers(node: Node) -> None:
    """Allocate is called once, at admission; variables, mounts, device files and annotations of its
    answer are in CreateContainer."""
    plugin = FakeDevicePlugin(WIDGET, ["w1"])
    plugin.answers = lambda ids: api.ContainerAllocateResponse(
        envs={"WIDGET": ",".join(ids)},
        mounts=[api.Mount(container_path="/opt/w", host_path="/usr", read_only=True)],
        devices=[api.DeviceSpec(container_path="/dev/w", host_path="/dev/null", permissions="rw")],
        annotations={"vendor.example/w": "yes"},
    )
    await node.plug_in(plugin)
    await shows(node, "1")
    await node.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    expect_equal(node, plugin.allocated, [("w1",)], "calls of Allocate")
    (create,) = node.calls("CreateContainer", pod="web")
    config = create.request.config
    expect_equal(node, [e.value for e in config.envs if e.key == "WIDGET"], [b"w1"], "variable")
    mounts = [(m.host_path, m.container_path, m.readonly) for m in config.mounts]
    expect(node, ("/usr", "/opt/w", True) in mounts, "the plugin's mount", mounts)
    devices = [(d.host_path, d.container_path, d.permissions) for d in config.devices]
    expect_equal(node, devices, [("/dev/null", "/dev/w", "rw")], "device files")
    expect_equal(node, config.annotations["vendor.example/w"], "yes", "annotation")


@conformance(id="device-cdi", rules=["CG-084"], needs=NEEDS)
async def cdi_names_go_to_the_runtime(node: Node) -> None:
    """The CDI names of Allocate are in CreateContainer, whatever the runtime makes of them."""
    plugin = FakeDevicePlugin(WIDGET, ["w1"])
    plugin.answers = lambda ids: api.ContainerAllocateResponse(
        cdi_devices=[api.CDIDevice(name=f"vendor.example/widget={one}") for one in ids]
    )
    await node.plug_in(plugin)
    await shows(node, "1")
    await node.create_pod(pod("web", with_widgets(1)))
    await node.run_until(
        lambda: node.count("CreateContainer", pod="web"),
        within_s=limits.START_S,
        what="the container is made",
    )
    config = node.calls("CreateContainer", pod="web")[0].request.config
    names = [device.name for device in config.CDI_devices]
    expect_equal(node, names, ["vendor.example/widget=w1"], "CDI devices")


@conformance(id="device-shortage", rules=["CG-084", "LIFE-223"], needs=NEEDS)
async def a_pod_that_wants_more_devices_than_are_free_is_rejected(node: Node) -> None:
    """With one of two devices given away, a pod that asks for two is rejected, and one that asks
    for one is not."""
    plugin = await widgets(node, "w1", "w2")
    await node.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.create_pod(pod("greedy", with_widgets(2)))
    status = await rejected(node, "greedy")
    expect_equal(node, status["reason"], UNEXPECTED, "reason")
    text = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
        f"{WIDGET}. Requested: 2, Available: 1, which is unexpected"
    )
    expect_equal(node, status["message"], text, "message")
    await node.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    given = sorted(one for ids in plugin.allocated for one in ids)
    expect_equal(node, given, ["w1", "w2"], "devices given")


@conformance(id="device-unhealthy", rules=["CG-084"], needs=NEEDS)
async def unhealthy_devices_count_but_are_not_given(node: Node) -> None:
    """A device that turns unhealthy leaves allocatable, not capacity; with none left a pod is
    rejected, and one that runs is left alone."""
    plugin = await widgets(node, "w1")
    await node.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    plugin.set_health("w1", "Unhealthy")
    await shows(node, "0")
    expect_equal(node, node.capacity(WIDGET), "1", "capacity")
    shown = [{"name": WIDGET, "resources": [{"resourceID": "w1", "health": "Unhealthy"}]}]
    await node.run_until(
        lambda: node.api_container("first", "main").get("allocatedResourcesStatus") == shown,
        within_s=limits.NOTICE_S + limits.STATUS_PASS_S,
        what="the pod's status shows the unhealthy device",
    )
    await node.create_pod(pod("late", with_widgets(1)))
    status = await rejected(node, "late")
    text = (
        "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate "
        f"unhealthy devices {WIDGET}, which is unexpected"
    )
    expect_equal(node, status["message"], text, "message")
    expect_equal(node, node.count("StopContainer", pod="first"), 0, "stops of the running pod")


@conformance(id="device-plugin-dies", rules=["CG-084"], needs=NEEDS)
async def a_plugin_that_dies_takes_no_pod_along(node: Node) -> None:
    """Its devices are unhealthy at once, pods go on running; when it comes back, its devices can
    be given again."""
    plugin = await widgets(node, "w1", "w2")
    await node.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.unplug(plugin)
    await shows(node, "0")
    expect_equal(node, node.capacity(WIDGET), "2", "capacity")
    await node.plug_in(plugin)
    await shows(node, "2")
    await node.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    given = sorted(one for ids in plugin.allocated for one in ids)
    expect_equal(node, given, ["w1", "w2"], "devices given")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="device-plugin-gone", rules=["CG-084"], needs=[*NEEDS, Feature.VIRTUAL_TIME])
async def a_resource_is_dropped_five_minutes_after_its_plugin(node: Node) -> None:
    """Capacity stays for five minutes, then it is 0, and a pod that asks for the resource is out
    of it."""
    plugin = await widgets(node, "w1")
    await node.unplug(plugin)
    await shows(node, "0")
    await node.run_for(280)
    expect_equal(node, node.capacity(WIDGET), "1", "capacity before five minutes")
    await node.run_for(20)
    await shows(node, "0", "capacity")
    await node.create_pod(pod("late", with_widgets(1)))
    status = await rejected(node, "late")
    expect_equal(node, status["reason"], f"OutOf{WIDGET}", "reason")


@conformance(id="device-restart", rules=["CG-084"], needs=[*NEEDS, Feature.RESTART])
async def a_restarted_kubelet_knows_who_has_which_device(node: Node) -> None:
    """After a restart the running pod keeps its device without a second Allocate, even while its
    plugin is not back, and nobody else gets it."""
    plugin = await widgets(node, "w1", "w2")
    await node.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.stop_kubelet()
    await node.unplug(plugin)
    await node.start_kubelet()
    await node.run_for(limits.NOTICE_S)
    phase = (node.api_pod("first") or {})["status"]["phase"]
    expect_equal(node, phase, "Running", "phase of the running pod")
    await node.plug_in(plugin)
    await shows(node, "2")
    await node.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    given = sorted(one for ids in plugin.allocated for one in ids)
    expect_equal(node, given, ["w1", "w2"], "devices given")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="device-init", rules=["CG-084"], needs=NEEDS)
async def init_containers_leave_their_devices_to_the_next(node: Node) -> None:
    """The device of an init container that ends is used again; that of a sidecar is not."""
    plugin = await widgets(node, "w1", "w2")
    plan = pod(
        "web",
        with_widgets(1),
        init=[with_widgets(1, "setup", exits(0)), with_widgets(1, "proxy", restartPolicy="Always")],
    )
    await node.create_pod(plan)
    await node.wait_running("web")
    setup, proxy, main = (ids[0] for ids in plugin.allocated)
    expect_equal(node, proxy, setup, "the sidecar's device is the first init container's")
    expect(node, main != proxy, "the main container has a device of its own", main)


@conformance(id="device-freed", rules=["CG-084"], needs=NEEDS)
async def devices_of_a_pod_that_is_gone_are_given_again(node: Node) -> None:
    """The only device goes from a deleted pod to the next one."""
    plugin = await widgets(node, "w1")
    await node.create_pod(pod("first", with_widgets(1), grace_s=1))
    await node.wait_running("first")
    await node.delete_pod("first")
    await node.run_until(
        lambda: node.api_pod("first") is None, within_s=1 + limits.STOP_S, what="the pod is gone"
    )
    await node.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    expect_equal(node, plugin.allocated, [("w1",), ("w1",)], "devices given")


@conformance(id="device-prestart", rules=["CG-084"], needs=NEEDS)
async def the_plugin_is_told_before_every_start(node: Node) -> None:
    """With pre_start_required PreStartContainer is called before CreateContainer; while it fails
    the container is not made and waits with the plugin's words."""
    plugin = FakeDevicePlugin(WIDGET, ["w1"])
    plugin.pre_start_required = True
    plugin.fails("PreStartContainer", "not warm yet")
    await node.plug_in(plugin)
    await shows(node, "1")
    await node.create_pod(pod("web", with_widgets(1)))
    await node.run_until(
        lambda: "waiting(CreateContainerConfigError)" in node.states("web", "main"),
        within_s=limits.START_S,
        what="the container waits for its plugin",
    )
    said = {e["message"] for e in node.events("Failed", pod="web")}
    text = (
        "Error: device plugin PreStartContainer rpc failed with err: "
        "rpc error: code = Unknown desc = not warm yet"
    )
    expect_equal(node, said, {text}, "events")
    expect_equal(node, node.count("CreateContainer", pod="web"), 0, "containers made")
    plugin.works("PreStartContainer")
    await node.run_until(
        lambda: node.running("web"), within_s=limits.SYNC_ERROR_S, what="the container runs"
    )
    told = {tuple(c.request.devices_ids) for c in plugin.calls if c.method == "PreStartContainer"}
    expect_equal(node, told, {("w1",)}, "devices of PreStartContainer")


@conformance(id="device-preferred", rules=["CG-084"], needs=NEEDS)
async def the_plugin_may_choose_among_free_devices(node: Node) -> None:
    """What GetPreferredAllocation names is allocated, if it is free; the question tells what is
    free and how many are wanted."""
    plugin = FakeDevicePlugin(WIDGET, ["w1", "w2", "w3"])
    plugin.preferred_allocation = True
    plugin.prefers = lambda available, must, size: ["w3", "w9", "w2"]
    await node.plug_in(plugin)
    await shows(node, "3")
    await node.create_pod(pod("web", with_widgets(2)))
    await node.wait_running("web")
    expect_equal(node, [sorted(ids) for ids in plugin.allocated], [["w2", "w3"]], "devices given")
    (asked,) = [c.request for c in plugin.calls if c.method == "GetPreferredAllocation"]
    (wish,) = asked.container_requests
    expect_equal(node, sorted(wish.available_deviceIDs), ["w1", "w2", "w3"], "free devices")
    expect_equal(node, wish.allocation_size, 2, "number")


@conformance(id="device-refused", rules=["CG-084"], needs=NEEDS)
async def a_registration_that_is_wrong_is_answered_with_the_reason(node: Node) -> None:
    """Another API version, or a name that is no extended resource, is refused; a plugin that is
    right is taken afterwards."""
    old = FakeDevicePlugin(WIDGET, ["w1"])
    old.version = "v1alpha1"
    await node.plug_in(old, faithful=False)
    native = FakeDevicePlugin("kubernetes.io/widget", ["w1"])
    await node.plug_in(native, faithful=False)
    wanted = [
        'requested API version "v1alpha1" is not supported by kubelet. '
        'Supported version is ["v1beta1"]',
        'the ResourceName "kubernetes.io/widget" is invalid',
    ]
    expect_equal(node, [*old.refusals, *native.refusals], wanted, "answers")
    await widgets(node, "w1")


@conformance(id="device-allocate-fails", rules=["CG-084", "LIFE-223"], needs=NEEDS)
async def a_failing_allocate_rejects_the_pod_and_frees_the_device(node: Node) -> None:
    """The pod is rejected with the plugin's words; the next pod gets the same device."""
    plugin = await widgets(node, "w1")
    plugin.fails("Allocate", "no power", times=1)
    await node.create_pod(pod("first", with_widgets(1)))
    status = await rejected(node, "first")
    text = (
        "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = no power, which "
        "is unexpected"
    )
    expect_equal(node, (status["reason"], status["message"]), (UNEXPECTED, text), "status")
    await node.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    expect_equal(node, plugin.allocated, [("w1",), ("w1",)], "calls of Allocate")


@conformance(id="device-no-answer", rules=["CG-084"], needs=NEEDS)
async def an_allocate_without_an_answer_rejects_the_pod(node: Node) -> None:
    """A plugin that answers for no container is not believed; pods that run are left alone."""
    plugin = await widgets(node, "w1", "w2")
    await node.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    plugin.answer_count = 0
    await node.create_pod(pod("second", with_widgets(1)))
    status = await rejected(node, "second")
    text = (
        "Pod was rejected: Allocate failed due to no containers return in allocation response "
        ", which is unexpected"
    )
    expect_equal(node, (status["reason"], status["message"]), (UNEXPECTED, text), "status")
    expect_equal(node, node.count("StopContainer", pod="first"), 0, "stops of the running pod")


@conformance(
    id="device-alignment",
    rules=["CG-083", "CG-084"],
    needs=[*NEEDS, Feature.NODE_RESOURCES],
    node_config={"topologyManagerPolicy": "single-numa-node"},
    machine={"sockets": 2, "cores": 4},
)
async def devices_are_given_from_one_numa_node(node: Node) -> None:
    """With single-numa-node the devices of a pod are near one node; a pod for which no node has
    enough is rejected, even if there are enough altogether."""
    near = {"a0": 0, "b1": 1, "c1": 1, "d0": 0}
    plugin = await widgets(node, *(PluginDevice(one, nodes=(n,)) for one, n in near.items()))
    await node.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.create_pod(pod("second", with_widgets(2)))
    await node.wait_running("second")
    expect_equal(node, plugin.allocated[:2], [("a0",), ("b1", "c1")], "devices given")
    plugin.set_devices(*(PluginDevice(one, nodes=(n,)) for one, n in {**near, "e1": 1}.items()))
    await shows(node, "5")
    await node.create_pod(pod("third", with_widgets(2)))
    status = await rejected(node, "third")
    expect_equal(node, status["reason"], "TopologyAffinityError", "reason")


CHECKPOINT: Final = "kubelet_internal_checkpoint"


@conformance(id="device-checkpoint", rules=["CG-084"], needs=NEEDS)
async def the_checkpoint_tells_who_has_which_device(node: Node) -> None:
    """kubelet_internal_checkpoint has a row for the container, with its devices by NUMA node and
    the plugin's answer, the registered resources, and a checksum that is right."""
    plugin = await widgets(node, PluginDevice("w1", nodes=(0,)))
    await node.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    found = checkpoint.read((node.plugins_dir / CHECKPOINT).read_text())
    (entry,) = found.entries
    uid = (node.api_pod("web") or {})["metadata"]["uid"]
    answer = plugin.answers(["w1"]).SerializeToString()
    wanted = (uid, "main", WIDGET, Allotment({0: ("w1",)}, answer))
    expect_equal(node, entry, wanted, "row")
    expect_equal(node, found.registered, {WIDGET: ["w1"]}, "registered devices")


@conformance(id="device-checkpoint-read", rules=["CG-084"], needs=[*NEEDS, Feature.RESTART])
async def a_kubelet_believes_the_checkpoint_of_another(node: Node) -> None:
    """A resource that only the checkpoint knows is registered and has no healthy devices; with a
    wrong checksum the file is not believed, and the resource is unknown."""
    text = checkpoint.write((), {WIDGET: ["w1"]})
    await node.stop_kubelet()
    node.plugins_dir.mkdir(exist_ok=True)
    (node.plugins_dir / CHECKPOINT).write_text(text)
    await node.start_kubelet()
    await node.create_pod(pod("first", with_widgets(1)))
    status = await rejected(node, "first")
    expect(node, "no healthy devices present" in status["message"], "no healthy devices", status)
    await node.stop_kubelet()
    (node.plugins_dir / CHECKPOINT).write_text(text.replace('"w1"', '"w2"'))
    await node.start_kubelet()
    await node.create_pod(pod("second", with_widgets(1)))
    await node.run_for(limits.NOTICE_S)
    said = [e["message"] for e in node.events("UnexpectedAdmissionError", pod="second")]
    expect_equal(node, said, [], "rejections by the device manager")


@conformance(id="pod-resources-list", rules=["CG-085"], needs=NEEDS)
async def the_pod_resources_api_shows_who_has_which_device(node: Node) -> None:
    """List has sidecars and regular containers with their devices, one entry per device and NUMA
    node; init containers that end are left out."""
    await widgets(node, PluginDevice("w1", nodes=(0,)), PluginDevice("w2", nodes=(0,)))
    sidecar = with_widgets(1, "proxy", restartPolicy="Always")
    plan = pod("web", with_widgets(1), init=[with_widgets(1, "setup", exits(0)), sidecar])
    await node.create_pod(plan)
    await node.wait_running("web")
    listed = await node.pod_resources("List")
    (shown,) = [one for one in listed.pod_resources if one.name == "web"]
    seen = [
        (c.name, [(d.resource_name, list(d.device_ids), _nodes(d)) for d in c.devices])
        for c in shown.containers
    ]
    wanted = [("proxy", [(WIDGET, ["w1"], [0])]), ("main", [(WIDGET, ["w2"], [0])])]
    expect_equal(node, [name for name, _ in seen], ["proxy", "main"], "containers")
    given = sorted(d for _, devices in seen for d in devices)
    expect_equal(node, given, sorted(d for _, devices in wanted for d in devices), "devices")


def _nodes(shown: Any) -> list[int]:
    return [one.ID for one in shown.topology.nodes]


@conformance(id="pod-resources-get", rules=["CG-085"], needs=NEEDS)
async def the_pod_resources_api_shows_one_pod_and_what_there_is(node: Node) -> None:
    """Get shows one pod, or says that there is none; GetAllocatableResources shows the healthy
    devices, given or not."""
    plugin = await widgets(node, "w1", "w2")
    await node.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    shown = await node.pod_resources("Get", pod_name="web", pod_namespace="default")
    (main,) = shown.pod_resources.containers
    expect_equal(node, len(main.devices), 1, "devices of the container")
    try:
        said = str(await node.pod_resources("Get", pod_name="no", pod_namespace="default"))
    except LookupError as error:
        said = str(error)
    expect_equal(node, said, "pod no in namespace default not found", "answer")
    plugin.set_health("w2", "Unhealthy")
    await shows(node, "1")
    there = await node.pod_resources("GetAllocatableResources")
    seen = [list(d.device_ids) for d in there.devices]
    expect_equal(node, seen, [["w1"]], "healthy devices")
