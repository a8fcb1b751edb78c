"""Devices: which container gets which, what happens when none is free, and what a container gets
with them."""

from __future__ import annotations

from kubecri.deviceplugin import api_pb2 as api

from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice
from kubelet_conformance.cases.resources.widgets import (
    NEEDS,
    UNEXPECTED,
    WIDGET,
    rejected,
    shows,
    widgets,
    with_widgets,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance


@conformance(id="device-allocate", rules=["CG-084"], needs=NEEDS)
async def a_container_gets_what_the_plugin_answers(node: Node) -> None:
    """Allocate is called once, at admission, and CreateContainer has the variables, mounts, device
    files and annotations of its answer."""
    plugin = FakeDevicePlugin(WIDGET, ["w1"])
    plugin.answers = lambda ids: api.ContainerAllocateResponse(
        envs={"WIDGET": ",".join(ids)},
        mounts=[api.Mount(container_path="/opt/w", host_path="/usr", read_only=True)],
        devices=[api.DeviceSpec(container_path="/dev/w", host_path="/dev/null", permissions="rw")],
        annotations={"vendor.example/w": "yes"},
    )
    await node.plugins.plug_in(plugin)
    await shows(node, "1")
    await node.api.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    expect_equal(node, plugin.allocated, [("w1",)], "calls of Allocate")
    calls = [c.method for c in plugin.calls if c.method == "PreStartContainer"]
    expect_equal(node, calls, [], "calls of PreStartContainer, which the plugin did not ask for")
    (create,) = node.calls("CreateContainer", pod="web")
    config = create.request.config
    expect_equal(node, [e.value for e in config.envs if e.key == "WIDGET"], [b"w1"], "WIDGET")
    mounts = [(m.host_path, m.container_path, m.readonly) for m in config.mounts]
    expect(node, ("/usr", "/opt/w", True) in mounts, "the plugin's mount", mounts)
    devices = [(d.host_path, d.container_path, d.permissions) for d in config.devices]
    expect_equal(node, devices, [("/dev/null", "/dev/w", "rw")], "device files")
    expect_equal(node, config.annotations["vendor.example/w"], "yes", "annotation")


@conformance(id="device-cdi", rules=["CG-084"], needs=NEEDS)
async def cdi_names_go_to_the_runtime(node: Node) -> None:
    """CreateContainer has the CDI names of Allocate's answer, whatever the runtime does with
    them."""
    plugin = FakeDevicePlugin(WIDGET, ["w1"])
    plugin.answers = lambda ids: api.ContainerAllocateResponse(
        cdi_devices=[api.CDIDevice(name=f"vendor.example/widget={w}") for w in ids]
    )
    await node.plugins.plug_in(plugin)
    await shows(node, "1")
    await node.api.create_pod(pod("web", with_widgets(1)))
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
    """When one of two devices is in use, a pod that requests two is rejected, and one that requests
    one is not."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.api.create_pod(pod("greedy", with_widgets(2)))
    status = await rejected(node, "greedy")
    expect_equal(node, status["reason"], UNEXPECTED, "reason")
    text = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
        f"{WIDGET}. Requested: 2, Available: 1, which is unexpected"
    )
    expect_equal(node, status["message"], text, "message")
    await node.api.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    devices = sorted(w for ids in plugin.allocated for w in ids)
    expect_equal(node, devices, ["w1", "w2"], "devices given")


@conformance(id="device-init", rules=["CG-084"], needs=NEEDS)
async def init_containers_leave_their_devices_to_the_next(node: Node) -> None:
    """The device of a plain init container is given to the next container; that of a sidecar is
    not."""
    plugin = await widgets(node, "w1", "w2")
    plan = pod(
        "web",
        with_widgets(1),
        init=[with_widgets(1, "setup", exits(0)), with_widgets(1, "proxy", restartPolicy="Always")],
    )
    await node.api.create_pod(plan)
    await node.wait_running("web")
    setup, proxy, main = (ids[0] for ids in plugin.allocated)
    expect_equal(node, proxy, setup, "the sidecar's device is the first init container's")
    expect(node, main != proxy, "the main container has a device of its own", main)


@conformance(id="device-freed", rules=["CG-084"], needs=NEEDS)
async def devices_of_a_pod_that_is_gone_are_given_again(node: Node) -> None:
    """When the pod with the only device has been deleted, the next pod gets it."""
    plugin = await widgets(node, "w1")
    await node.api.create_pod(pod("first", with_widgets(1), grace_s=1))
    await node.wait_running("first")
    await node.api.delete_pod("first")
    await node.run_until(
        lambda: node.api.pod("first") is None, within_s=1 + limits.STOP_S, what="the pod is gone"
    )
    await node.api.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    expect_equal(node, plugin.allocated, [("w1",), ("w1",)], "devices given")


@conformance(id="device-prestart", rules=["CG-084"], needs=NEEDS)
async def the_plugin_is_told_before_every_start(node: Node) -> None:
    """With pre_start_required PreStartContainer is called before CreateContainer; while it fails
    the container is not created and waits with the plugin's words."""
    plugin = FakeDevicePlugin(WIDGET, ["w1"])
    plugin.pre_start_required = True
    plugin.fails("PreStartContainer", "not warm yet")
    await node.plugins.plug_in(plugin)
    await shows(node, "1")
    await node.api.create_pod(pod("web", with_widgets(1)))
    await node.run_until(
        lambda: "waiting(CreateContainerConfigError)" in node.states("web", "main"),
        within_s=limits.START_S,
        what="the container waits for its plugin",
    )
    messages = {e["message"] for e in node.events("Failed", pod="web")}
    text = (
        "Error: device plugin PreStartContainer rpc failed with err: "
        "rpc error: code = Unknown desc = not warm yet"
    )
    expect_equal(node, messages, {text}, "events")
    expect_equal(node, node.count("CreateContainer", pod="web"), 0, "containers made")
    plugin.works("PreStartContainer")
    await node.run_until(
        lambda: node.running("web"),
        within_s=limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="the container runs",
    )
    ids_told = {
        tuple(c.request.devices_ids) for c in plugin.calls if c.method == "PreStartContainer"
    }
    expect_equal(node, ids_told, {("w1",)}, "devices of PreStartContainer")


@conformance(id="device-preferred", rules=["CG-084"], needs=NEEDS)
async def the_plugin_may_choose_among_free_devices(node: Node) -> None:
    """The devices that GetPreferredAllocation names are allocated if they are free; its request
    says which are free and how many are wanted."""
    plugin = FakeDevicePlugin(WIDGET, ["w1", "w2", "w3"])
    plugin.preferred_allocation = True
    plugin.prefers = lambda available, must, size: ["w3", "w9", "w2"]
    await node.plugins.plug_in(plugin)
    await shows(node, "3")
    await node.api.create_pod(pod("web", with_widgets(2)))
    await node.wait_running("web")
    expect_equal(node, [sorted(ids) for ids in plugin.allocated], [["w2", "w3"]], "devices given")
    (preference,) = [c.request for c in plugin.calls if c.method == "GetPreferredAllocation"]
    (wish,) = preference.container_requests
    expect_equal(node, sorted(wish.available_deviceIDs), ["w1", "w2", "w3"], "available devices")
    expect_equal(node, wish.allocation_size, 2, "wanted devices")


@conformance(
    id="device-alignment",
    rules=["CG-083", "CG-084"],
    needs=[*NEEDS, Feature.NODE_RESOURCES],
    node_config={"topologyManagerPolicy": "single-numa-node"},
    machine={"sockets": 2, "cores": 4},
)
async def devices_are_given_from_one_numa_node(node: Node) -> None:
    """With single-numa-node all devices of a pod are of one NUMA node; a pod for which no node has
    enough is rejected, even if all nodes together have enough."""
    near = {"a0": 0, "b1": 1, "c1": 1, "d0": 0}
    plugin = await widgets(node, *(PluginDevice(w, nodes=(n,)) for w, n in near.items()))
    await node.api.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.api.create_pod(pod("second", with_widgets(2)))
    await node.wait_running("second")
    (first, *_), second = plugin.allocated[:2]
    expect(node, first in ("a0", "d0"), "first a device of node 0: a0 or d0", first)
    expect_equal(node, sorted(second), ["b1", "c1"], "the devices given next")
    plugin.set_devices(*(PluginDevice(w, nodes=(n,)) for w, n in {**near, "e1": 1}.items()))
    await shows(node, "5")
    await node.api.create_pod(pod("third", with_widgets(2)))
    status = await rejected(node, "third")
    expect_equal(node, status["reason"], "TopologyAffinityError", "reason")
