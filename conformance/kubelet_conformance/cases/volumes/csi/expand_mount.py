"""Volumes that are made larger when they are mounted, before their pod starts, and volumes that are
only read (NODE-222.7, NODE-222.8)."""

from kubelet_conformance.cases.volumes.csi.common import (
    AGAIN_S,
    IN,
    LONG,
    OUT,
    SLOW_S,
    STAGE,
    a_driver,
    expect_no_failure,
    run_pod,
    user,
    wait_calls,
    wait_end,
    wait_runs,
)
from kubelet_conformance.cases.volumes.csi.expanding import (
    EXPAND,
    GI,
    KINDS,
    METHOD,
    OFFLINE_FAILED,
    claim_of_2gi,
    enlarge,
    expect_asked,
    messages,
    resize_status,
    size,
    wait_asked,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance


@conformance(id="csi-expand-mount", rules=["NODE-222.7"], needs=LONG)
async def a_volume_gets_larger_before_its_pod_starts(node: Node) -> None:
    """What is left to do when a pod comes is done once its volume is published, and before it
    starts: a driver that fails holds it up."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node)
    await enlarge(node)
    driver.fails(METHOD, "out of paper")
    await node.api.create_pod(user())
    why = (
        'MountVolume.Setup failed while expanding volume for volume "pv" : Expander.NodeExpand '
        "failed to expand the volume : rpc error: code = Internal desc = out of paper"
    )
    await node.run_until(
        lambda: why in messages(node, "FailedMount"),
        within_s=AGAIN_S + limits.START_S,
        what="an event that says so",
    )
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")
    expect_equal(node, driver.methods(*IN, METHOD)[:3], [*IN, METHOD], "first calls")
    driver.works(METHOD)
    await wait_runs(node, "web", within_s=2 * AGAIN_S)
    expect_equal(node, (size(node), resize_status(node)), ("2Gi", ""), "the claim")
    request = driver.requests(METHOD)[0]
    expect_equal(node, request.capacity_range.required_bytes, 2 * GI, "required_bytes")
    request_count = len(driver.requests(METHOD))
    await expect_asked(node, driver, request_count)


@conformance(id="csi-expand-mount-in-use", rules=["NODE-222.6", "NODE-222.7"], needs=LONG)
async def a_volume_that_is_in_use_elsewhere_holds_up_no_pod(node: Node) -> None:
    """A pod starts although the driver cannot make its volume larger while it is in use."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node)
    await enlarge(node)
    driver.fails(METHOD, "in use", code="FAILED_PRECONDITION")
    await run_pod(node, user())
    await expect_asked(node, driver, 1)
    expect_no_failure(node)


@conformance(id="csi-expand-mount-deleted", rules=["NODE-219.6", "NODE-222.7"], needs=LONG)
async def a_pod_that_goes_waits_for_its_driver(node: Node) -> None:
    """A pod is deleted while its volume is made larger before it starts: the driver comes to its
    end, the claim is told, and then the volume is taken away."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node)
    await enlarge(node)
    driver.delays(METHOD, SLOW_S)
    await node.api.create_pod(user())
    await wait_asked(node, driver)
    await node.api.delete_pod("web")
    await node.run_for(SLOW_S / 2)
    expect_equal(node, driver.methods(*OUT), [], "calls that end the volume")
    await wait_end(node, driver, within_s=SLOW_S)
    expect_equal(node, (size(node), resize_status(node)), ("2Gi", ""), "the claim")
    expect_equal(node, driver.methods(*IN, METHOD, *OUT), [*IN, METHOD, *OUT], "calls")


@conformance(id="csi-expand-one-pod", rules=["NODE-217.9", "NODE-222.7"], needs=LONG)
async def a_volume_that_fails_to_grow_is_its_pods(node: Node) -> None:
    """A volume for one pod alone stays that pod's while it cannot be made larger."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node, access="ReadWriteOncePod")
    await enlarge(node)
    driver.fails(METHOD, "out of paper")
    await node.api.create_pod(user("first"))
    await wait_asked(node, driver)
    await node.api.create_pod(user("second"))
    await node.run_for(2 * AGAIN_S)
    expect_equal(node, len(driver.published), 1, "published volumes")


@conformance(id="csi-expand-meanwhile", rules=["NODE-222.1", "NODE-222.2"], needs=LONG)
async def a_volume_that_grows_while_it_is_mounted_is_noticed(node: Node) -> None:
    """A shared volume that is made larger while it is published here is made larger on this node,
    too, once the pod runs."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node, access="ReadWriteMany")
    driver.delays(IN[1], SLOW_S, times=1)
    await node.api.create_pod(user())
    await wait_calls(node, driver, IN[1])
    resized = {"allocatedResources": {"storage": "2Gi"}, "capacity": {"storage": "2Gi"}}
    await node.storage.tell_claim("data", **resized)
    await node.storage.enlarge("pv", "2Gi")
    await wait_runs(node, "web", within_s=SLOW_S + AGAIN_S)
    await wait_asked(node, driver)
    await expect_asked(node, driver, 1)


@conformance(id="csi-expand-read-only", rules=["NODE-222.8"], needs=LONG)
async def a_volume_that_is_only_read_stays_as_it_is(node: Node) -> None:
    """For a pod that may only read its claim the driver is not asked; events of pod and claim say
    so when it is mounted."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node)
    await enlarge(node)
    await run_pod(node, user(read_only=True))
    await expect_asked(node, driver, 0)
    why = 'MountVolume.NodeExpandVolume failed for volume "pv" requested read-only file system'
    for kind in KINDS:
        expect_equal(node, messages(node, OFFLINE_FAILED, kind), [why], f"events of the {kind}")
    await node.storage.enlarge("pv", "3Gi")
    await expect_asked(node, driver, 0)
    for kind in KINDS:
        expect_equal(node, len(messages(node, OFFLINE_FAILED, kind)), 1, f"events of the {kind}")
