"""Volumes that cannot be made larger: what pod and claim are told, and when it is tried again
(NODE-222.4 to NODE-222.6)."""

from kubelet_conformance.cases.volumes.common import UPDATE_S
from kubelet_conformance.cases.volumes.csi.common import (
    DISKS,
    FOUND_S,
    LONG,
    NOT_FOUND,
    SOCKET,
    STAGE,
    a_driver,
    end_pod,
    expect_no_failure,
    register,
    run_pod,
    user,
    wait_end,
)
from kubelet_conformance.cases.volumes.csi.expanding import (
    EXPAND,
    FAILED,
    IN_PROGRESS,
    INFEASIBLE,
    METHOD,
    NOT_DONE,
    RESIZE_ERROR,
    claim_of_2gi,
    conditions,
    enlarge,
    expect_asked,
    messages,
    resize_status,
    running,
    size,
    wait_asked,
    wait_size,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance


@conformance(id="csi-expand-failed", rules=["NODE-222.4"], needs=LONG)
async def a_failure_is_told_and_tried_again(node: Node) -> None:
    """A driver that fails is asked again, after a pause that doubles; an event of the pod and a
    condition of the claim tell why, until it works. The pod runs on."""
    driver = await running(node)
    driver.fails(METHOD, "out of paper", times=3)
    await enlarge(node)
    await wait_asked(node, driver, 2)
    why = f"{NOT_DONE} : rpc error: code = Internal desc = out of paper"
    await node.run_until(
        lambda: why in messages(node, FAILED), within_s=limits.START_S, what="an event that says so"
    )
    cause = why.partition(" : ")[2]
    message = conditions(node).get(RESIZE_ERROR)
    expect_equal(node, message, f"failed to expand pvc with {cause}", "message of the condition")
    expect_equal(node, resize_status(node), IN_PROGRESS, "status of the claim")
    await wait_size(node)
    expect_equal(node, list(conditions(node)), ["ModifyingVolume"], "conditions of the claim")
    await expect_asked(node, driver, 4)
    expect(node, node.running("web"), "the pod runs")
    expect_no_failure(node)


@conformance(
    id="csi-expand-reason-unwritten",
    rules=["NODE-222.4", "NODE-222.6"],
    needs=LONG,
    since="1.32",
)
async def a_claim_that_cannot_be_told_does_not_matter(node: Node) -> None:
    """When the claim cannot be told why the driver failed, the pod is told it all the same; and a
    driver that wants the volume to be free is left alone."""
    driver = await running(node, access="ReadWriteMany")
    driver.fails(METHOD, "out of paper", times=1)
    resized = {"allocatedResources": {"storage": "2Gi"}, "capacity": {"storage": "2Gi"}}
    await node.storage.tell_claim("data", **resized)
    with node.api.fails("PATCH", "persistentvolumeclaims/data/status"):
        await node.storage.enlarge("pv", "2Gi")
        await wait_asked(node, driver)
        driver.fails(METHOD, "in use", code="FAILED_PRECONDITION")
        await expect_asked(node, driver, 2)
    why = f"{NOT_DONE} : rpc error: code = Internal desc = out of paper"
    expect_equal(node, messages(node, FAILED), [why], "events of failures")


@conformance(id="csi-expand-infeasible", rules=["NODE-222.5"], needs=LONG)
async def what_can_never_work_is_left_to_the_controller(node: Node) -> None:
    """When the driver says that it can never be done, the claim tells the controller so, and the
    driver is not asked again."""
    driver = await running(node)
    driver.fails(METHOD, "too large", code="OUT_OF_RANGE")
    await enlarge(node)
    await wait_asked(node, driver)
    await node.run_until(
        lambda: resize_status(node) == INFEASIBLE,
        within_s=limits.START_S,
        what="the claim says that it is infeasible",
    )
    await expect_asked(node, driver, 1)
    cause = f"{NOT_DONE} rpc error: code = OutOfRange desc = too large".partition(" : ")[2]
    message = conditions(node).get(RESIZE_ERROR)
    expect_equal(node, message, f"failed to expand pvc with {cause}", "message of the condition")
    expect_equal(node, size(node), "1Gi", "size of the claim")


@conformance(id="csi-expand-other-wish", rules=["NODE-222.5"], needs=LONG)
async def a_failure_ends_when_the_user_wants_something_else(node: Node) -> None:
    """When the driver has failed, and the user does not want that size any more, the second failure
    is the last: the controller shall begin anew."""
    driver = await running(node)
    driver.fails(METHOD, "out of paper")
    await enlarge(node, size="1500Mi")
    await wait_asked(node, driver, 2)
    await node.run_until(
        lambda: resize_status(node) == INFEASIBLE,
        within_s=limits.START_S,
        what="the claim says that it is infeasible",
    )
    await expect_asked(node, driver, 2)


@conformance(id="csi-expand-same-wish", rules=["NODE-222.5"], needs=LONG)
async def the_same_amount_is_the_same_wish(node: Node) -> None:
    """However often the driver fails, it is asked again while the user wants that size, whatever
    the amount is written like."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node, request="2147483648")
    await run_pod(node, user())
    driver.fails(METHOD, "out of paper")
    await enlarge(node)
    await wait_asked(node, driver, 4)
    expect_equal(node, resize_status(node), IN_PROGRESS, "status of the claim")


@conformance(id="csi-expand-in-use", rules=["NODE-222.6"], needs=LONG, since="1.32")
async def a_driver_may_want_the_volume_to_be_free(node: Node) -> None:
    """A driver that cannot make a volume larger while it is in use is not asked again while that is
    so, and the pod is told nothing. When the volume is mounted anew, it is asked again, and from
    then on as any other."""
    driver = await running(node)
    driver.fails(METHOD, "in use", code="FAILED_PRECONDITION")
    await enlarge(node)
    await wait_asked(node, driver)
    await expect_asked(node, driver, 1)
    expect_equal(node, messages(node, FAILED), [], "events of failures")
    expect(node, "in use" in conditions(node).get(RESIZE_ERROR, ""), "condition", conditions(node))
    driver.works(METHOD)
    await end_pod(node)
    await wait_end(node, driver)
    await run_pod(node, user("next"))
    await wait_size(node, within_s=limits.START_S)
    expect_equal(node, len(driver.requests(METHOD)), 2, f"calls of {METHOD}")
    await enlarge(node, size="3Gi")
    await wait_size(node, "3Gi")


@conformance(id="csi-expand-unable", rules=["NODE-222.4"], needs=LONG)
async def a_driver_without_the_capability_is_not_asked(node: Node) -> None:
    """A driver that cannot make volumes larger is not asked; an event of the pod says so."""
    driver = await a_driver(node, STAGE)
    await claim_of_2gi(node)
    await run_pod(node, user())
    await enlarge(node)
    why = NOT_DONE.partition(" : ")[0]
    why += f" : NodeExpand is not supported by the CSI driver {DISKS}"
    await node.run_until(
        lambda: why in messages(node, FAILED),
        within_s=UPDATE_S + limits.START_S,
        what="an event that says so",
    )
    await expect_asked(node, driver, 0)
    expect(node, node.running("web"), "the pod runs")


@conformance(id="csi-expand-unable-old", rules=["NODE-222.4"], needs=LONG)
async def without_capability_and_controller_nothing_is_left_to_do(node: Node) -> None:
    """With a controller of old, a driver without the capability has nothing to do, and nobody is
    told anything."""
    driver = await a_driver(node, STAGE)
    await claim_of_2gi(node)
    await run_pod(node, user())
    await node.storage.enlarge("pv", "2Gi")
    await expect_asked(node, driver, 0)
    expect_equal(node, messages(node, FAILED), [], "events of failures")
    expect_equal(node, size(node), "1Gi", "size of the claim")


@conformance(id="csi-expand-no-driver", rules=["NODE-222.4"], needs=LONG)
async def a_driver_that_is_away_is_waited_for(node: Node) -> None:
    """A driver that is not there is tried again; the claim is not told of a failure."""
    driver = await running(node)
    await node.plugins.withdraw(SOCKET)
    await node.run_until(
        lambda: not node.storage.listed_driver(DISKS),
        within_s=FOUND_S,
        what="the kubelet knows that the driver is away",
    )
    await enlarge(node)
    why = f"{NOT_DONE.partition(' : ')[0]} : {NOT_FOUND}"
    await node.run_until(
        lambda: why in messages(node, FAILED),
        within_s=UPDATE_S + limits.START_S,
        what="an event of a failure",
    )
    expect(node, RESIZE_ERROR not in conditions(node), "no condition", conditions(node))
    await register(node, driver)
    await wait_size(node)
