"""Devices of pods that a kubelet has not heard of yet: before its sources are ready."""

from __future__ import annotations

from kubelet_conformance.cases.resources.widgets import (
    NEEDS,
    UNEXPECTED,
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


@conformance(
    id="device-before-the-sources",
    rules=["CG-084.8", "SRC-071.5"],
    needs=[*NEEDS, Feature.RESTART],
)
async def devices_of_unheard_pods_are_not_given_away(node: Node) -> None:
    """A kubelet that starts while the API server is slow does not know its pods yet: a static pod
    that comes meanwhile gets none of the devices that they have, and no container loses one."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("first", with_widgets(2)))
    await node.wait_running("first")
    await node.kubelet.stop()
    with node.api.slow("GET", "/api/v1/pods", 20):
        await node.kubelet.start()
        await node.plugins.plug_in(plugin)
        await shows(node, "2")
        await node.apply_static(pod("second", with_widgets(1)))
        await node.run_for(8)
        ids_given = sorted(device for ids in plugin.allocated for device in ids)
        expect_equal(node, ids_given, ["w1", "w2"], "devices given before the sources are ready")
        expect_equal(node, node.count("StartContainer", pod="second"), 0, "starts of second")
    await node.run_for(20)
    expect_equal(node, node.count("StopContainer", pod="first"), 0, "stops of first")
    expect_equal(node, node.count("StartContainer", pod="second"), 0, "starts of second")
    rows = await node.kubelet.pod_resources("List")
    owners = {each.name for each in rows.pod_resources if any(c.devices for c in each.containers)}
    expect_equal(node, owners, {"first"}, "pods that have devices")


@conformance(
    id="device-in-back-off-before-the-sources",
    rules=["CG-084.8"],
    needs=[*NEEDS, Feature.RESTART],
)
async def devices_of_unheard_pods_that_do_not_run_are_not_given_away(node: Node) -> None:
    """The same where nothing runs of the pod that the kubelet does not know yet: its container
    waits to be started again."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("first", with_widgets(2, "main", exits(1))))
    await node.run_until(
        lambda: node.count("StartContainer", pod="first") == 2,
        within_s=2 * limits.START_S + 20,
        what="the second start of first",
    )
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    before = len(plugin.allocated)
    with node.api.slow("GET", "/api/v1/pods", 20):
        await node.kubelet.start()
        await node.plugins.plug_in(plugin)
        await shows(node, "2")
        await node.apply_static(pod("second", with_widgets(1)))
        await node.run_for(8)
        expect_equal(
            node, plugin.allocated[before:], [], "devices given before the sources are ready"
        )
        expect_equal(node, node.count("StartContainer", pod="second"), 0, "starts of second")


@conformance(
    id="device-after-the-sources",
    rules=["CG-084.8", "CG-084.6"],
    needs=[*NEEDS, Feature.RESTART],
)
async def devices_of_pods_that_are_gone_are_free(node: Node) -> None:
    """What a pod had that was deleted while the kubelet was away is free once its sources are
    ready; what a pod has that is still there is not."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("first", with_widgets(1)))
    await node.wait_running("first")
    await node.api.create_pod(pod("second", with_widgets(1)))
    await node.wait_running("second")
    await node.kubelet.stop()
    node.api.vanish_pod("first")
    await node.kubelet.start()
    await node.plugins.plug_in(plugin)
    await shows(node, "2")
    await node.run_until(
        lambda: node.count("StopContainer", pod="first"),
        within_s=limits.START_S + limits.STOP_S + 2 * limits.HOUSEKEEPING_S + 10,
        what="first is stopped",
    )
    await node.run_for(limits.NOTICE_S)
    await node.api.create_pod(pod("third", with_widgets(1)))
    await node.wait_running("third")
    expect_equal(node, plugin.allocated[-1], plugin.allocated[0], "the device of the third")
    await node.api.create_pod(pod("fourth", with_widgets(1)))
    status = await rejected(node, "fourth")
    expect(node, status["reason"] in (UNEXPECTED, "OutOfexample.com/widget"), "refused", status)
    expect_equal(node, node.count("StopContainer", pod="second"), 0, "stops of second")
