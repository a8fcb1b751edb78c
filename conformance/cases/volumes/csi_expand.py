"""Volumes of storage drivers that were made larger: what is left to do on the node (NODE-222).

There is no controller that makes volumes larger: the cases play it. It gives the persistent volume
its new capacity, and tells the claim that the node has to do its part."""

from typing import Any, Final

from conformance.cases.volumes.common import UPDATE_S, secret
from conformance.cases.volumes.disks import (
    AGAIN_S,
    DISKS,
    FOUND_S,
    HANDLE,
    IN,
    LONG,
    NOT_FOUND,
    OUT,
    SOCKET,
    STAGE,
    a_driver,
    end_pod,
    expect_no_failure,
    mode,
    register,
    run_pod,
    source,
    user,
    volume_of,
    wait_calls,
    wait_end,
    wait_runs,
)
from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.node import Node
from conformance.registry import conformance
from fakecri.csi import FakeCsiDriver
from fakecri.csi.driver import CsiCall

EXPAND: Final = "EXPAND_VOLUME"
METHOD: Final = "NodeExpandVolume"
GI: Final = 1 << 30
PENDING: Final = "NodeResizePending"
IN_PROGRESS: Final = "NodeResizeInProgress"
INFEASIBLE: Final = "NodeResizeInfeasible"
RESIZE_ERROR: Final = "NodeResizeError"
KINDS: Final = ("Pod", "PersistentVolumeClaim")
SUCCESS, FAILED = "FileSystemResizeSuccessful", "VolumeResizeFailed"
OFFLINE_FAILED: Final = "FileSystemResizeFailed"
SLOW_S: Final = 40.0
"""How long a call may take that something else happens in."""
NOT_LONGER_S: Final = 300.0
"""How long a case looks whether something is not done again: longer than the longest pause."""
DONE: Final = 'MountVolume.NodeExpandVolume succeeded for volume "pv" '
NOT_DONE: Final = (
    'NodeExpandVolume.NodeExpandVolume failed for volume "pv" : '
    "Expander.NodeExpand failed to expand the volume"
)


async def claim_of_2gi(
    node: Node, *, request: str = "2Gi", access: str = "ReadWriteOnce", **fields: Any
) -> None:
    """A claim of 2Gi that has 1Gi so far, bound to a persistent volume of the driver."""
    name, volume = "data", volume_of("data")
    uid = await node.api.create_claim(name, volume, request=request, access=access)
    bound = {"name": name, "uid": uid}
    options = {"mountOptions": ["noatime"], "accessModes": [access]}
    await node.api.create_volume(volume, source(**fields), claim=bound, **options)


def condition(kind: str, **fields: str) -> dict[str, str]:
    """A condition of a claim."""
    return {"type": kind, "status": "True", **fields}


async def enlarge(node: Node, status: str = PENDING, *, size: str = "2Gi") -> None:
    """Play the controller that has made the volume larger."""
    await node.storage.tell_claim(
        "data",
        allocatedResources={"storage": size},
        allocatedResourceStatuses={"storage": status} if status else None,
        conditions=[condition("FileSystemResizePending"), condition("ModifyingVolume")],
    )
    await node.storage.enlarge("pv", size)


def conditions(node: Node) -> dict[str, str]:
    """The claim's conditions: type -> message."""
    found = node.storage.claim("data").get("conditions") or []
    return {one["type"]: one.get("message", "") for one in found}


def size(node: Node) -> str:
    """What the claim has."""
    return str((node.storage.claim("data").get("capacity") or {}).get("storage", ""))


def resize_status(node: Node) -> str:
    """How far the claim is; "": nothing is going on."""
    statuses = node.storage.claim("data").get("allocatedResourceStatuses") or {}
    return str(statuses.get("storage", ""))


async def wait_size(node: Node, wanted: str = "2Gi", *, within_s: float = UPDATE_S) -> None:
    """Run until the claim has that size."""
    await node.run_until(
        lambda: size(node) == wanted,
        within_s=within_s + limits.START_S,
        what=f"the claim has {wanted}",
    )


async def wait_asked(node: Node, driver: FakeCsiDriver, times: int = 1) -> Any:
    """Run until the driver was asked so often to make the volume larger: the last request."""
    await node.run_until(
        lambda: len(driver.requests(METHOD)) >= times,
        within_s=UPDATE_S + AGAIN_S + limits.START_S,
        what=f"{times} calls of {METHOD}",
    )
    return driver.requests(METHOD)[times - 1]


async def expect_asked(node: Node, driver: FakeCsiDriver, times: int) -> None:
    """Expect that the driver is not asked more often in the next minutes."""
    await node.run_for(NOT_LONGER_S)
    expect_equal(node, len(driver.requests(METHOD)), times, f"calls of {METHOD}")


def messages(node: Node, reason: str, kind: str = "Pod") -> list[str]:
    """What events say of the pod, or of the claim, for that reason."""
    found = node.events(reason)
    return [event["message"] for event in found if event["involvedObject"]["kind"] == kind]


async def running(node: Node, **fields: Any) -> FakeCsiDriver:
    """The driver, and the pod `web` that runs with its volume of 1Gi."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node, **fields)
    await run_pod(node, user())
    return driver


@conformance(id="csi-expand", rules=["NODE-222.1", "NODE-222.2", "NODE-222.3"], needs=LONG)
async def a_volume_in_use_gets_larger(node: Node) -> None:
    """When the persistent volume of a running pod has become larger, the driver is asked once to do
    its part, and the claim tells how far that is: in progress, then done, with the new size."""
    await node.api.create_secret(secret("grow", key="value"))
    reference = {"nodeExpandSecretRef": {"name": "grow", "namespace": "default"}}
    driver = await running(node, fsType="xfs", **reference)
    seen: list[str] = []

    def look(call: CsiCall) -> None:
        if call.method == METHOD:
            seen.append(resize_status(node))

    driver.on_call = look
    await enlarge(node)
    request = await wait_asked(node, driver)
    await wait_size(node)
    expect_equal(node, seen, [IN_PROGRESS], "status of the claim while the driver works")
    places = request.volume_path, request.staging_target_path
    wanted = node.storage.target_path("web", "pv"), node.storage.staging_path(DISKS, HANDLE)
    expect_equal(node, places, tuple(map(str, wanted)), "places of the volume")
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
        told = messages(node, SUCCESS, kind)
        expect_equal(node, [text[: len(DONE)] for text in told], [DONE], f"events of the {kind}")
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
    told = [body for body in patches if IN_PROGRESS in str(body)]
    expect_equal(node, told, [], "patches that tell of progress")
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
    found = conditions(node).get(RESIZE_ERROR)
    expect_equal(node, found, f"failed to expand pvc with {cause}", "message of the condition")
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
    done = {"allocatedResources": {"storage": "2Gi"}, "capacity": {"storage": "2Gi"}}
    await node.storage.tell_claim("data", **done)
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
    found = conditions(node).get(RESIZE_ERROR)
    expect_equal(node, found, f"failed to expand pvc with {cause}", "message of the condition")
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
    asked = len(driver.requests(METHOD))
    await expect_asked(node, driver, asked)


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
    done = {"allocatedResources": {"storage": "2Gi"}, "capacity": {"storage": "2Gi"}}
    await node.storage.tell_claim("data", **done)
    await node.storage.enlarge("pv", "2Gi")
    await wait_runs(node, "web", within_s=SLOW_S + AGAIN_S)
    await wait_asked(node, driver)
    await expect_asked(node, driver, 1)


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
