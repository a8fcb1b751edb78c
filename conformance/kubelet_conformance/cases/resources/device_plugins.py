"""Device plugins that start, answer wrongly, fail and end, and restarts of the kubelet."""

from __future__ import annotations

from typing import Final

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
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.registry import Feature, conformance
from refkubelet.container_manager.devices import checkpoint
from refkubelet.container_manager.devices.types import Allotment


async def gives_the_other_one(node: Node, plugin: FakeDevicePlugin) -> None:
    """Start the plugin again with its two devices, one of which is in use, and expect that the next
    pod gets the other."""
    await node.plugins.plug_in(plugin)
    await shows(node, "2")
    await node.api.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    devices = sorted(device for ids in plugin.allocated for device in ids)
    expect_equal(node, devices, ["w1", "w2"], "devices given")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="device-refused", rules=["CG-084"], needs=NEEDS)
async def a_registration_that_is_wrong_is_answered_with_the_reason(node: Node) -> None:
    """A registration with another API version, or with a name that is no extended resource, is
    refused with the reason; a right one is accepted afterwards."""
    old = FakeDevicePlugin(WIDGET, ["w1"])
    old.version = "v1alpha1"
    await node.plugins.plug_in(old, faithful=False)
    native = FakeDevicePlugin("kubernetes.io/widget", ["w1"])
    await node.plugins.plug_in(native, faithful=False)
    expected = [
        'requested API version "v1alpha1" is not supported by kubelet. '
        'Supported version is ["v1beta1"]',
        'the ResourceName "kubernetes.io/widget" is invalid',
    ]
    expect_equal(node, [*old.refusals, *native.refusals], expected, "the kubelet's refusals")
    await widgets(node, "w1")


@conformance(id="device-unhealthy", rules=["CG-084", "LIFE-005.3"], needs=NEEDS, since="1.36")
async def unhealthy_devices_count_but_are_not_given(node: Node) -> None:
    """An unhealthy device counts for capacity, not for allocatable. When none is healthy a new pod
    is rejected, and one that has the device keeps running."""
    plugin = await widgets(node, "w1")
    await node.api.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.run_for(2 * limits.NOTICE_S)  # no sync of the start is under way any more
    plugin.set_health("w1", "Unhealthy")
    unhealthy = [{"name": WIDGET, "resources": [{"resourceID": "w1", "health": "Unhealthy"}]}]
    await node.run_until(
        lambda: node.api.container("first", "main").get("allocatedResourcesStatus") == unhealthy,
        within_s=limits.NOTICE_S,
        what="the pod's status shows the unhealthy device",
    )
    await shows(node, "0")
    expect_equal(node, node.api.capacity(WIDGET), "1", "capacity")
    await node.api.create_pod(pod("late", with_widgets(1)))
    status = await rejected(node, "late")
    text = (
        "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate "
        f"unhealthy devices {WIDGET}, which is unexpected"
    )
    expect_equal(node, status["message"], text, "message")
    expect_equal(node, node.count("StopContainer", pod="first"), 0, "stops of the running pod")


@conformance(id="device-plugin-dies", rules=["CG-084"], needs=NEEDS)
async def a_plugin_that_dies_takes_no_pod_along(node: Node) -> None:
    """When a plugin ends its devices are unhealthy at once, and its pods keep running; when it
    comes back its devices can be allocated again."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.plugins.unplug(plugin)
    await shows(node, "0")
    expect_equal(node, node.api.capacity(WIDGET), "2", "capacity")
    await gives_the_other_one(node, plugin)


@conformance(id="device-plugin-gone", rules=["CG-084"], needs=[*NEEDS, Feature.VIRTUAL_TIME])
async def a_resource_is_dropped_five_minutes_after_its_plugin(node: Node) -> None:
    """The capacity of a resource stays for five minutes after its plugin has ended, then it is 0,
    and a pod that requests it is refused."""
    plugin = await widgets(node, "w1")
    await node.plugins.unplug(plugin)
    await shows(node, "0")
    await node.run_for(280)
    expect_equal(node, node.api.capacity(WIDGET), "1", "capacity before five minutes")
    await node.run_for(20)
    await shows(node, "0", "capacity")
    await node.api.create_pod(pod("late", with_widgets(1)))
    status = await rejected(node, "late")
    expect_equal(node, status["reason"], f"OutOf{WIDGET}", "reason")


@conformance(id="device-allocate-fails", rules=["CG-084", "LIFE-223"], needs=NEEDS)
async def a_failing_allocate_rejects_the_pod_and_frees_the_device(node: Node) -> None:
    """When Allocate fails the pod is rejected with the plugin's words, and the next pod gets the
    same device."""
    plugin = await widgets(node, "w1")
    plugin.fails("Allocate", "no power", times=1)
    await node.api.create_pod(pod("first", with_widgets(1)))
    status = await rejected(node, "first")
    text = (
        "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = no power, which "
        "is unexpected"
    )
    expect_equal(node, (status["reason"], status["message"]), (UNEXPECTED, text), "status")
    await node.api.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    expect_equal(node, plugin.allocated, [("w1",), ("w1",)], "calls of Allocate")


@conformance(id="device-no-answer", rules=["CG-084"], needs=NEEDS)
async def an_allocate_without_an_answer_rejects_the_pod(node: Node) -> None:
    """When Allocate answers for no container the pod is rejected; pods that run are left alone."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    plugin.answer_count = 0
    await node.api.create_pod(pod("second", with_widgets(1)))
    status = await rejected(node, "second")
    expect_equal(node, status["reason"], UNEXPECTED, "reason")
    # The answer itself stands in the text as the kubelet's library writes it: nothing, or its type.
    text = "Pod was rejected: Allocate failed due to no containers return in allocation response "
    message = status["message"]
    right = message.startswith(text) and message.endswith(", which is unexpected")
    expect(node, right, f"{text}..., which is unexpected", message)
    expect_equal(node, node.count("StopContainer", pod="first"), 0, "stops of the running pod")


@conformance(id="device-restart", rules=["CG-084"], needs=[*NEEDS, Feature.RESTART])
async def a_restarted_kubelet_knows_which_pod_has_which_device(node: Node) -> None:
    """After a restart of the kubelet a running pod keeps its device without a second Allocate, even
    before its plugin is back, and no other pod gets it."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.kubelet.stop()
    await node.plugins.unplug(plugin)
    await node.kubelet.start()
    await node.run_for(limits.NOTICE_S)
    phase = (node.api.pod("first") or {})["status"]["phase"]
    expect_equal(node, phase, "Running", "phase of the running pod")
    await gives_the_other_one(node, plugin)


@conformance(
    id="device-restart-init",
    rules=["CG-084.7"],
    needs=[*NEEDS, Feature.RESTART],
    bugs=[
        KnownBug(
            "138446",
            "A pod that runs is refused after a restart, because an init container of it that has "
            "ended is given its device anew before the plugin is back.",
        )
    ],
)
async def an_ended_init_container_keeps_its_device_over_a_restart(node: Node) -> None:
    """A pod whose ended init container and whose running container have the same device goes on
    when the kubelet starts again before the plugin is back, and has the device to the end."""
    plugin = await widgets(node, "w1")
    init = with_widgets(1, "setup", exits(0))
    await node.api.create_pod(pod("web", with_widgets(1), init=[init]))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    await restarts_without(node, plugin, "web")
    again = await widgets(node, "w1")
    await node.api.create_pod(pod("next", with_widgets(1)))
    await rejected(node, "next")
    expect_equal(node, again.allocated, [], "devices given again")


@conformance(
    id="device-restart-backoff",
    rules=["CG-084.7"],
    needs=[*NEEDS, Feature.RESTART],
    bugs=[
        KnownBug(
            "138446",
            "A pod that runs is refused after a restart, because a container of it that is in "
            "back-off is given its device anew before the plugin is back.",
        )
    ],
)
async def a_container_in_back_off_keeps_its_device_over_a_restart(node: Node) -> None:
    """A pod with a container in back-off and one that runs, each with a device, goes on when the
    kubelet starts again before the plugin is back, and both keep their devices."""
    plugin = await widgets(node, "w1", "w2")
    crashing = with_widgets(1, "crashing", exits(1))
    await node.api.create_pod(pod("web", with_widgets(1), crashing))
    await node.wait_running("web")
    await node.run_until(
        lambda: (
            node.container("web", "crashing").get("state", {}).get("waiting", {}).get("reason")
            == "CrashLoopBackOff"
        ),
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what="the second container is in back-off",
    )
    await restarts_without(node, plugin, "web")
    again = await widgets(node, "w1", "w2")
    await node.run_for(limits.SYNC_ERROR_S + limits.NOTICE_S)
    expect_equal(node, again.allocated, [], "devices given again")


async def restarts_without(node: Node, plugin: FakeDevicePlugin, name: str) -> None:
    """Restart the kubelet while the plugin is not there, and expect that the pod goes on."""
    await node.kubelet.stop()
    await node.plugins.unplug(plugin)
    await node.kubelet.start()
    await node.run_for(3 * limits.NOTICE_S)
    status = (node.api.pod(name) or {})["status"]
    expect_equal(node, status["phase"], "Running", "phase")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


CHECKPOINT: Final = "kubelet_internal_checkpoint"


@conformance(id="device-checkpoint", rules=["CG-084"], needs=NEEDS)
async def the_checkpoint_tells_which_pod_has_which_device(node: Node) -> None:
    """kubelet_internal_checkpoint has an entry for the container with its devices by NUMA node and
    the plugin's answer, the registered resources, and a valid checksum."""
    plugin = await widgets(node, PluginDevice("w1", nodes=(0,)))
    await node.api.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    content = checkpoint.read((node.plugins.directory / CHECKPOINT).read_text())
    (entry,) = content.entries
    uid = (node.api.pod("web") or {})["metadata"]["uid"]
    answer = plugin.answers(["w1"]).SerializeToString()
    expected_entry = (uid, "main", WIDGET, Allotment({0: ("w1",)}, answer))
    expect_equal(node, entry, expected_entry, "the pod's entry in the checkpoint of devices")
    expect_equal(node, content.registered, {WIDGET: ["w1"]}, "registered devices")


@conformance(
    id="device-new-machine", rules=["CG-084.4"], needs=[*NEEDS, Feature.RESTART, Feature.FAULTS]
)
async def devices_of_an_earlier_machine_do_not_count(node: Node) -> None:
    """A kubelet that finds a Node with devices, but no file in its directory of plugins, is on a
    new machine: the Node has no devices until a plugin registers them.


    The runtime is not ready meanwhile: a kubelet makes its own socket there when it is.
    """
    plugin = await widgets(node, "w1")
    await node.kubelet.stop()
    await node.plugins.unplug(plugin)
    for file in node.plugins.directory.iterdir():
        file.unlink()
    with node.runtime.on("Status").fails("UNAVAILABLE", "not yet"):
        await node.kubelet.start()
        for kind in ("capacity", "allocatable"):
            await shows(node, "0", kind)


@conformance(id="device-checkpoint-read", rules=["CG-084"], needs=[*NEEDS, Feature.RESTART])
async def a_kubelet_believes_the_checkpoint_of_another(node: Node) -> None:
    """A resource that only the checkpoint has is registered, without healthy devices. A checkpoint
    with a wrong checksum is ignored, and the Node shows 0 of that resource."""
    text = checkpoint.write((), {WIDGET: ["w1"]})
    await node.kubelet.stop()
    node.plugins.directory.mkdir(exist_ok=True)
    (node.plugins.directory / CHECKPOINT).write_text(text)
    await node.kubelet.start()
    await node.api.create_pod(pod("first", with_widgets(1)))
    status = await rejected(node, "first")
    expect(node, "no healthy devices present" in status["message"], "no healthy devices", status)
    await shows(node, "0")
    await node.kubelet.stop()
    (node.plugins.directory / CHECKPOINT).write_text(text.replace('"w1"', '"w2"'))
    await node.kubelet.start()
    await node.api.create_pod(pod("second", with_widgets(1)))
    status = await rejected(node, "second")
    expect_equal(node, status["reason"], f"OutOf{WIDGET}", "reason")
