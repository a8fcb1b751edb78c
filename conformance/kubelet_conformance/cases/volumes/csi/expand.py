"""Volumes of running pods that were made larger: what the driver is asked, and what the claim is
told (NODE-222.1 to NODE-222.3)."""

from fakecri.csi.driver import CsiCall
from kubelet_conformance.cases.volumes.common import secret
from kubelet_conformance.cases.volumes.csi.common import (
    DISKS,
    HANDLE,
    IN,
    LONG,
    STAGE,
    a_driver,
    expect_no_failure,
    mode,
    run_pod,
    user,
)
from kubelet_conformance.cases.volumes.csi.expanding import (
    DONE,
    EXPAND,
    GI,
    IN_PROGRESS,
    KINDS,
    METHOD,
    SUCCESS,
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
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance


@conformance(id="csi-expand", rules=["NODE-222.1", "NODE-222.2", "NODE-222.3"], needs=LONG)
async def a_volume_in_use_gets_larger(node: Node) -> None:
    """When the persistent volume of a running pod has become larger, the driver is asked once to do
    its part, and the claim tells how far that is: in progress, then done, with the new size."""
    await node.api.create_secret(secret("grow", key="value"))
    reference = {"nodeExpandSecretRef": {"name": "grow", "namespace": "default"}}
    driver = await running(node, fsType="xfs", **reference)
    statuses: list[str] = []

    def look(call: CsiCall) -> None:
        if call.method == METHOD:
            statuses.append(resize_status(node))

    driver.on_call = look
    await enlarge(node)
    request = await wait_asked(node, driver)
    await wait_size(node)
    expect_equal(node, statuses, [IN_PROGRESS], "status of the claim while the driver works")
    places = request.volume_path, request.staging_target_path
    expected = node.storage.target_path("web", "pv"), node.storage.staging_path(DISKS, HANDLE)
    expect_equal(node, places, tuple(map(str, expected)), "places of the volume")
    expect_equal(node, request.volume_id, HANDLE, "volume_id")
    expect_equal(node, request.capacity_range.required_bytes, 2 * GI, "required_bytes")
    mount = request.volume_capability.mount
    expect_equal(node, (mount.fs_type, list(mount.mount_flags)), ("xfs", ["noatime"]), "mount")
    expect_equal(node, mode(request), "SINGLE_NODE_WRITER", "access mode")
    expect_equal(node, dict(request.secrets), {"key": "value"}, "secrets")
    expect_equal(node, resize_status(node), "", "status of the claim in the end")
    expect_equal(node, list(conditions(node)), ["ModifyingVolume"], "conditions of the claim")
    await expect_asked(node, driver, 1)
    for kind in KINDS:
        texts = messages(node, SUCCESS, kind)
        expect_equal(node, [text[: len(DONE)] for text in texts], [DONE], f"events of the {kind}")
    expect_equal(node, driver.methods(*IN), list(IN), "calls to stage and publish")
    expect_no_failure(node)


@conformance(id="csi-expand-old-controller", rules=["NODE-222.2"], needs=LONG)
async def a_controller_that_tells_nothing_is_believed(node: Node) -> None:
    """A controller of old does not tell the claim what it does: then the capacity of the persistent
    volume is what counts."""
    driver = await running(node)
    await node.storage.enlarge("pv", "3Gi")
    request = await wait_asked(node, driver)
    expect_equal(node, request.capacity_range.required_bytes, 3 * GI, "required_bytes")
    await wait_size(node, "3Gi")
    patches = [r.body for r in node.api.requests("PATCH", "persistentvolumeclaims/data/status")]
    progress_patches = [body for body in patches if IN_PROGRESS in str(body)]
    expect_equal(node, progress_patches, [], "patches that tell of progress")
    await expect_asked(node, driver, 1)


@conformance(id="csi-expand-waits", rules=["NODE-222.2"], needs=LONG, since="1.32")
async def the_controller_comes_first(node: Node) -> None:
    """While the controller has not done its part the driver is not asked; what it allocated counts,
    not the capacity of the persistent volume."""
    driver = await running(node)
    await enlarge(node, "ControllerResizeInProgress")
    await node.storage.enlarge("pv", "5Gi")
    await expect_asked(node, driver, 0)
    await enlarge(node)
    await node.storage.enlarge("pv", "5Gi")
    request = await wait_asked(node, driver)
    expect_equal(node, request.capacity_range.required_bytes, 2 * GI, "required_bytes")
    await wait_size(node)


@conformance(id="csi-expand-done", rules=["NODE-222.2"], needs=LONG, since="1.32")
async def what_the_controller_has_done_is_not_done_again(node: Node) -> None:
    """A controller that needs nothing of the node gives the claim its size: the driver is not
    asked."""
    driver = await running(node)
    await node.storage.tell_claim(
        "data", allocatedResources={"storage": "2Gi"}, capacity={"storage": "2Gi"}
    )
    await node.storage.enlarge("pv", "2Gi")
    await expect_asked(node, driver, 0)


@conformance(id="csi-expand-shared", rules=["NODE-222.2"], needs=LONG)
async def a_shared_volume_gets_larger_on_each_node(node: Node) -> None:
    """A volume that several nodes write to has its part done on each of them: the driver is asked
    although another node has told the claim its size, which nobody changes then."""
    driver = await running(node, access="ReadWriteMany")
    await node.storage.tell_claim(
        "data", allocatedResources={"storage": "2Gi"}, capacity={"storage": "2Gi"}
    )
    before = len(node.api.requests("PATCH", "persistentvolumeclaims/data/status"))
    await node.storage.enlarge("pv", "2Gi")
    await wait_asked(node, driver)
    await expect_asked(node, driver, 1)
    patches = node.api.requests("PATCH", "persistentvolumeclaims/data/status")
    expect_equal(node, len(patches), before, "patches of the claim")


@conformance(id="csi-expand-not-required", rules=["NODE-222.2"], needs=LONG, since="1.34")
async def a_shared_volume_may_need_nothing_of_nodes(node: Node) -> None:
    """The driver of a shared volume is not asked when an annotation of the claim says that the
    nodes have nothing to do."""
    driver = await running(node, access="ReadWriteMany")
    annotations = {"volume.kubernetes.io/node-expansion-not-required": "true"}
    await node.api.change_object(
        "persistentvolumeclaims", "data", {"metadata": {"annotations": annotations}}
    )
    await node.storage.tell_claim(
        "data", allocatedResources={"storage": "2Gi"}, capacity={"storage": "2Gi"}
    )
    await node.storage.enlarge("pv", "2Gi")
    await expect_asked(node, driver, 0)


@conformance(id="csi-expand-cleared", rules=["NODE-222.3"], needs=LONG)
async def a_claim_that_has_its_size_loses_its_status(node: Node) -> None:
    """A claim that has its size, and still says that the node has to do its part, is told the end
    of that as any other."""
    driver = await running(node)
    await node.storage.tell_claim("data", capacity={"storage": "2Gi"})
    await enlarge(node)
    await wait_asked(node, driver)
    await node.run_until(
        lambda: not resize_status(node), within_s=limits.START_S, what="the status is gone"
    )
    expect_equal(node, list(conditions(node)), ["ModifyingVolume"], "conditions of the claim")


@conformance(id="csi-expand-two-pods", rules=["NODE-222.1"], needs=LONG)
async def a_volume_of_two_pods_gets_larger_once(node: Node) -> None:
    """A volume that two pods have is made larger once."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node)
    for name in ("first", "second"):
        await run_pod(node, user(name))
    await enlarge(node)
    await wait_asked(node, driver)
    await expect_asked(node, driver, 1)
    expect_equal(node, size(node), "2Gi", "size of the claim")
