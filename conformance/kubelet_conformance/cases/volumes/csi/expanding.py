"""What the cases of volumes that get larger share (NODE-222): a claim, and the controller.

There is no controller that makes volumes larger: the cases play it. It gives the persistent volume
its new capacity, and tells the claim that the node has to do its part."""

from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.cases.volumes.common import UPDATE_S
from kubelet_conformance.cases.volumes.csi.common import (
    AGAIN_S,
    STAGE,
    a_driver,
    run_pod,
    source,
    user,
    volume_of,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node

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
NOT_LONGER_S: Final = 122.0 + UPDATE_S
"""How long a case looks whether something is not done again: the longest pause (NODE-202.2), and
until the next sync."""
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


def condition(kind: str) -> dict[str, str]:
    """A condition of a claim."""
    return {"type": kind, "status": "True"}


async def enlarge(node: Node, status: str = PENDING, *, size: str = "2Gi") -> None:
    """Play the controller that has made the volume larger."""
    await node.storage.tell_claim(
        "data",
        allocatedResources={"storage": size},
        allocatedResourceStatuses={"storage": status},
        conditions=[condition("FileSystemResizePending"), condition("ModifyingVolume")],
    )
    await node.storage.enlarge("pv", size)


def conditions(node: Node) -> dict[str, str]:
    """The claim's conditions: type -> message."""
    conditions_of_claim = node.storage.claim("data").get("conditions") or []
    return {row["type"]: row.get("message", "") for row in conditions_of_claim}


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
    events = node.events(reason)
    return [event["message"] for event in events if event["involvedObject"]["kind"] == kind]


async def running(node: Node, **fields: Any) -> FakeCsiDriver:
    """The driver, and the pod `web` that runs with its volume of 1Gi."""
    driver = await a_driver(node, STAGE, EXPAND)
    await claim_of_2gi(node, **fields)
    await run_pod(node, user())
    return driver
