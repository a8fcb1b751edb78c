"""Volumes that must be attached before a driver is asked for them; the case plays the controller
that attaches (NODE-217.1, NODE-217.2)."""

from typing import Final

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.cases.volumes.csi.common import (
    DISKS,
    END_S,
    HANDLE,
    IN,
    NEEDS,
    OUT,
    STAGE,
    a_driver,
    bind,
    end_pod,
    expect_calls,
    expect_no_failure,
    run_pod,
    source,
    user,
    wait_calls,
    wait_runs,
    wait_told,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance

IN_USE_S: Final = limits.NODE_STATUS_S + limits.START_S
WAITED_S: Final = 45.0
"""Tries that failed for half a minute are repeated within as long a time."""


async def an_attaching_driver(node: Node) -> FakeCsiDriver:
    """The registered driver, whose volumes must be attached, with the claim `data`."""
    driver = await a_driver(node, STAGE, attachRequired=True)
    await bind(node, source())
    return driver


async def wait_in_use(node: Node, *handles: str) -> None:
    """Run until the Node's status says that exactly these volumes are in use, in this order."""
    expected_names = [node.storage.unique_name(DISKS, handle) for handle in handles]
    await node.run_until(
        lambda: node.storage.in_use() == expected_names,
        within_s=IN_USE_S,
        what=f"volumesInUse is {expected_names}",
    )


async def attach(node: Node, handle: str = HANDLE) -> None:
    """Say in the Node's status that the volume is attached."""
    await node.storage.tell_attached(node.storage.unique_name(DISKS, handle))


def failed(why: str) -> str:
    """The message of the event."""
    return f'MountVolume.WaitForAttach failed for volume "pv" : {why}'


@conformance(id="csi-attach", rules=["NODE-217.1", "NODE-217.2"], needs=NEEDS)
async def a_volume_is_used_when_it_is_attached(node: Node) -> None:
    """The Node's status says that a volume is wanted; without an event the kubelet waits until it
    says, too, that it is attached. What came of attaching it is given to the driver."""
    driver = await an_attaching_driver(node)
    await node.api.create_pod(user())
    await wait_in_use(node, HANDLE)
    context = {"device": "/dev/sdx"}
    await node.storage.create_attachment(DISKS, HANDLE, attached=True, attachmentMetadata=context)
    await node.run_for(20)
    expect_calls(node, driver, (), "early calls")
    expect_no_failure(node)
    await attach(node)
    await wait_runs(node, "web")
    expect_calls(node, driver, IN)
    contexts = [dict(driver.requests(method)[0].publish_context) for method in IN]
    expect_equal(node, contexts, [context] * 2, "publish contexts")


@conformance(id="csi-attach-in-use-first", rules=["NODE-217.2"], needs=NEEDS)
async def a_volume_is_used_when_the_node_says_so(node: Node) -> None:
    """A volume that is attached already is not touched before the Node's status says that it is in
    use."""
    driver = await an_attaching_driver(node)
    await attach(node)
    await node.storage.create_attachment(DISKS, HANDLE, attached=True)
    with node.api.fails("PATCH", r"/nodes/[^/]+/status$"):
        await node.api.create_pod(user())
        await node.run_for(25)
        expect_calls(node, driver, (), "early calls")
    await wait_runs(node, "web", within_s=IN_USE_S)
    expect_calls(node, driver, IN)


@conformance(id="csi-attach-not-wanted", rules=["NODE-217.1"], needs=NEEDS)
async def a_volume_that_needs_no_attaching_is_not_in_use(node: Node) -> None:
    """Volumes whose driver attaches nothing are not among those that the Node says are in use."""
    await a_driver(node, STAGE)
    await bind(node, source())
    await run_pod(node, user())
    await node.run_for(2 * limits.NODE_STATUS_S)
    expect_equal(node, node.storage.in_use(), [], "volumesInUse")


@conformance(id="csi-attach-without-object", rules=["NODE-217.1"], needs=NEEDS)
async def a_driver_that_says_nothing_attaches(node: Node) -> None:
    """Volumes of a driver without a CSIDriver object must be attached; the Node's status has those
    that are wanted in order."""
    handles = ("vol-3", "vol-1", "vol-5", "vol-2", "vol-4")
    for handle in handles:
        await bind(node, source(handle), handle)
        await node.api.create_pod(user(handle, claim=handle))
    await wait_in_use(node, *sorted(handles))


@conformance(id="csi-in-use", rules=["NODE-217.1", "NODE-219.2"], needs=NEEDS)
async def volumes_are_in_use_until_they_are_unstaged(node: Node) -> None:
    """The volumes in use are in order, and one is in use until it was unstaged."""
    driver = await an_attaching_driver(node)
    await bind(node, source("vol-0"), "other")
    names = [node.storage.unique_name(DISKS, handle) for handle in (HANDLE, "vol-0")]
    await node.storage.tell_attached(*names)
    for handle in (HANDLE, "vol-0"):
        await node.storage.create_attachment(DISKS, handle, attached=True)
    await node.api.create_pod(user())
    await wait_in_use(node, HANDLE)
    await node.api.create_pod(user("other", claim="other"))
    await wait_in_use(node, "vol-0", HANDLE)
    await wait_runs(node, "web")
    await wait_runs(node, "other")
    driver.fails("NodeUnstageVolume", "busy")
    await end_pod(node)
    await wait_calls(node, driver, "NodeUnstageVolume")
    await node.run_for(2 * limits.NODE_STATUS_S)
    expect_equal(node, node.storage.in_use(), names[::-1], "volumesInUse, before it is unstaged")
    driver.works("NodeUnstageVolume")
    await node.run_until(
        lambda: node.storage.in_use() == names[1:],
        within_s=WAITED_S + IN_USE_S + END_S,
        what="the volume is not in use",
    )
    expect_equal(node, driver.methods(*OUT)[0], OUT[0], "first call of the end")


@conformance(id="csi-attachment-missing", rules=["NODE-217.2"], needs=NEEDS, since="1.32")
async def an_attachment_must_be_there(node: Node) -> None:
    """A volume that the Node says is attached needs a VolumeAttachment that says so; what is
    missing is told by events, and then the pod starts."""
    driver = await an_attaching_driver(node)
    name = node.storage.attachment_name(DISKS, HANDLE)
    await attach(node)
    await node.api.create_pod(user())
    missing = f'volumeattachments.storage.k8s.io "{name}" not found'
    why = f"volume {HANDLE} has GET error for volume attachment {name}: {missing}"
    await wait_told(node, failed(why), within_s=WAITED_S)
    await node.storage.create_attachment(DISKS, HANDLE)
    why = f"volume {HANDLE} is not attached for volume attachment {name}"
    await wait_told(node, failed(why), within_s=WAITED_S)
    expect_calls(node, driver, (), "early calls")
    await node.storage.change_attachment(DISKS, HANDLE, attached=True)
    await wait_runs(node, "web", within_s=WAITED_S)
    expect_calls(node, driver, IN)


@conformance(id="csi-attachment-fails", rules=["NODE-217.2"], needs=NEEDS)
async def an_attachment_that_failed_is_told(node: Node) -> None:
    """Why a volume could not be attached is told by an event, and that its VolumeAttachment is
    about to go."""
    driver = await an_attaching_driver(node)
    await attach(node)
    await node.storage.create_attachment(
        DISKS, HANDLE, finalizer="disks.example/attached", attachError="no slot is free"
    )
    await node.api.create_pod(user())
    await wait_told(node, failed("no slot is free"), within_s=WAITED_S)
    await node.storage.change_attachment(DISKS, HANDLE, attached=True, attachError=None)
    await node.storage.delete_attachment(DISKS, HANDLE)
    await wait_told(node, failed("volume attachment is being deleted"), within_s=WAITED_S)
    expect_calls(node, driver, (), "early calls")
    await node.storage.free_attachment(DISKS, HANDLE)
    await node.storage.create_attachment(DISKS, HANDLE, attached=True)
    await wait_runs(node, "web", within_s=WAITED_S)
