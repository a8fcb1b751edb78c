"""Volumes of storage drivers whose calls failed, and pods that end then: what may have been done is
undone, what was not is not (NODE-219), and what runs is not disturbed."""

from fakecri.csi import FakeCsiDriver
from fakecri.csi.driver import ID_FILE
from kubelet_conformance.cases.volumes.csi.common import (
    DISKS,
    END_S,
    HANDLE,
    IN,
    NEEDS,
    OUT,
    RESTART,
    RESTARTED_S,
    STAGE,
    a_driver,
    bind,
    end_pod,
    expect_calls,
    run_pod,
    running,
    source,
    user,
    wait_calls,
    wait_end,
    wait_runs,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.registry import conformance


async def fails_and_ends(node: Node, method: str, *codes: str) -> FakeCsiDriver:
    """For each code a pod whose volume fails at that method with it, and that is deleted then."""
    driver = await a_driver(node, STAGE)
    for number, code in enumerate(codes):
        claim = f"claim-{number}"
        driver.fails(method, "no", code=code)
        before = len(driver.requests(method))
        await bind(node, source(code.lower()), claim)
        await node.api.create_pod(user(claim=claim))
        await wait_calls(node, driver, method, before + 1)
        await end_pod(node, within_s=2 * END_S)
        await node.run_for(END_S)
        driver.works(method)
    return driver


def ended(driver: FakeCsiDriver) -> list[tuple[str, str]]:
    """The calls that end a volume, without repetitions: method and volume."""
    calls = [(call.method, call.request.volume_id) for call in driver.calls if call.method in OUT]
    return list(dict.fromkeys(calls))


@conformance(id="csi-stage-failed", rules=["NODE-219.5", "NODE-217.3"], needs=NEEDS)
async def a_volume_that_was_not_staged_is_not_unstaged(node: Node) -> None:
    """When a driver said that it could not stage a volume, it is not asked to unstage it."""
    driver = await fails_and_ends(node, IN[0], "INTERNAL", "FAILED_PRECONDITION")
    expect_equal(node, set(driver.methods(*IN, *OUT)), {IN[0]}, "calls of the driver")
    place = node.storage.staging_path(DISKS, "internal").parent
    expect(node, not place.exists(), "no directory of the volume", place)


@conformance(id="csi-stage-in-doubt", rules=["NODE-219.5", "NODE-217.3"], needs=NEEDS)
async def a_volume_that_may_be_staged_is_unstaged(node: Node) -> None:
    """When nobody knows whether a volume was staged, the driver is asked to unstage it."""
    codes = ("DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED")
    driver = await fails_and_ends(node, IN[0], *codes)
    expected_calls = [(OUT[1], code.lower()) for code in codes]
    expect_equal(node, ended(driver), expected_calls, "calls of the end")
    expect_equal(node, driver.methods(IN[1]), [], "calls to publish")


@conformance(id="csi-publish-failed", rules=["NODE-219.5", "NODE-217.4"], needs=NEEDS)
async def a_volume_that_was_not_published_is_not_unpublished(node: Node) -> None:
    """When a driver said that it could not publish a volume, it is only asked to unstage it."""
    driver = await fails_and_ends(node, IN[1], "INTERNAL", "NOT_FOUND")
    expected_calls = [(OUT[1], "internal"), (OUT[1], "not_found")]
    expect_equal(node, ended(driver), expected_calls, "calls of the end")


@conformance(id="csi-publish-in-doubt", rules=["NODE-219.5", "NODE-217.4"], needs=NEEDS)
async def a_volume_that_may_be_published_is_unpublished(node: Node) -> None:
    """When nobody knows whether a volume was published, it is unpublished, and then unstaged."""
    codes = ("ABORTED", "RESOURCE_EXHAUSTED")
    driver = await fails_and_ends(node, IN[1], *codes)
    expected_calls = [(method, code.lower()) for code in codes for method in OUT]
    expect_equal(node, ended(driver), expected_calls, "calls of the end")


@conformance(id="csi-doubt-resolved", rules=["NODE-219.5"], needs=NEEDS)
async def the_last_failure_tells_whether_something_was_done(node: Node) -> None:
    """When nobody knows whether a volume was published, and the driver says at the next try that it
    could not do it, it is not unpublished; so with staging."""
    driver = await a_driver(node, STAGE)
    for method, claim in zip(IN, ("first", "second"), strict=True):
        driver.fails(method, "perhaps", code="ABORTED", times=1)
        await bind(node, source(claim), claim)
        before = len(driver.requests(method))
        await node.api.create_pod(user(claim=claim))
        await wait_calls(node, driver, method, before + 1)
        driver.fails(method, "no")
        await wait_calls(node, driver, method, before + 2)
        await end_pod(node, within_s=2 * END_S)
        await node.run_for(END_S)
        driver.works(method)
    expect_equal(node, ended(driver), [(OUT[1], "second")], "calls of the end")


@conformance(
    id="csi-restart-fails",
    rules=["NODE-219.4"],
    needs=RESTART,
    bugs=[KnownBug("", "A mount that a new kubelet cannot renew is removed.", fixed="1.36")],
)
async def a_volume_that_cannot_be_published_again_stays(node: Node) -> None:
    """When a new kubelet cannot publish the volume of a running pod again, pod and volume stay as
    they are, and the end of the pod is the usual one."""
    driver = await running(node, STAGE)
    target = node.storage.target_path("web", "pv")
    driver.fails("NodePublishVolume", "not now")
    (target / ID_FILE).unlink()  # a volume may be empty
    await node.kubelet.restart()
    await wait_calls(node, driver, IN[1], 3, within_s=RESTARTED_S)
    await node.run_for(limits.START_S)
    files_exist = target.exists(), (target.parent / "vol_data.json").exists()
    expect_equal(node, files_exist, (True, True), "the volume and its file are there")
    expect_equal(node, driver.methods(*OUT), [], "calls of the end")
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    await end_pod(node)
    await wait_end(node, driver)
    expect_equal(node, driver.methods(*OUT), list(OUT), "calls of the end")


@conformance(id="csi-in-use-restart", rules=["NODE-217.1", "NODE-219.3"], needs=RESTART)
async def a_volume_stays_in_use_over_a_restart(node: Node) -> None:
    """A new kubelet never says that the volume of a running pod is not in use."""
    driver = await a_driver(node, STAGE, attachRequired=True)
    await bind(node, source())
    name = node.storage.unique_name(DISKS, HANDLE)
    await node.storage.tell_attached(name)
    await node.storage.create_attachment(DISKS, HANDLE, attached=True)
    await run_pod(node, user(), within_s=limits.NODE_STATUS_S)
    await node.kubelet.restart()
    lists: list[list[str]] = []

    def published_again() -> bool:
        lists.append(node.storage.in_use())
        return len(driver.requests(IN[1])) > 1

    await node.run_until(
        published_again, within_s=RESTARTED_S, what="the volume is published again"
    )
    for _ in range(30):
        await node.run_for(1)
        lists.append(node.storage.in_use())
    expect(node, all(names == [name] for names in lists), "the volume is always in use", lists)
    expect_calls(node, driver, IN * 2)
    await wait_runs(node, "web")


@conformance(id="csi-before-the-pods", rules=["SRC-071.3", "NODE-219.4"], needs=RESTART)
async def volumes_of_pods_that_are_not_known_yet_stay(node: Node) -> None:
    """While a restarted kubelet waits for the list of its pods, and the driver is registered again,
    their volumes are neither unpublished nor unstaged; nor are they when the list has come."""
    driver = await running(node, STAGE)
    await node.kubelet.stop()
    with node.api.slow("GET", "/api/v1/pods", 40):
        await node.kubelet.start()
        await node.run_for(35)
        expect_equal(node, driver.methods(*OUT), [], "ends of volumes before the pods are known")
    await wait_calls(node, driver, IN[1], 2, within_s=RESTARTED_S)
    await node.run_for(limits.START_S)
    expect_calls(node, driver, IN * 2)
    expect_equal(node, node.count("StopContainer"), 0, "stops")
