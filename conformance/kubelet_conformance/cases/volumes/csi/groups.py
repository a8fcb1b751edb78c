"""Volumes of storage drivers and the group of the pod: whether the driver or the kubelet gives them
to it, and when (NODE-217.7)."""

import os
import stat
from pathlib import Path
from typing import Any, Final

from fakecri.csi.driver import ID_FILE
from kubelet_conformance.cases.volumes.csi.common import (
    IN,
    NEEDS,
    STAGE,
    a_driver,
    bind,
    inline,
    run_pod,
    source,
    user,
)
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance

GROUP: Final = os.getgid() if os.geteuid() else 4321
"""Only root may give a file to a group that is not its own."""
GIVEN: Final = [(GROUP, "0o2770"), (GROUP, "0o660")]
"""Group and mode of a volume, and of its file, when they are the pod's."""
POD: Final[dict[str, Any]] = {"securityContext": {"fsGroup": GROUP}}


def owners(target: Path) -> list[tuple[int, str]]:
    """Group and mode of a published volume and of its file; the owner's part is as it must be."""
    statuses = [path.stat() for path in (target, target / ID_FILE)]
    return [(status.st_gid, oct(stat.S_IMODE(status.st_mode) & 0o7770)) for status in statuses]


def of_the_driver(target: Path) -> bool:
    """Whether the volume is as the driver has made it, given to no group."""
    return not target.stat().st_mode & stat.S_ISGID


async def published(node: Node, name: str, handle: str, /, **fields: Any) -> Path:
    """Run a pod of the group with a persistent volume of that name: where it is published. `pv`:
    fields of the volume's spec; `read_only`: of the pod's claim; others: of its source."""
    spec, read_only = fields.pop("pv", {}), fields.pop("read_only", False)
    await bind(node, source(handle, **fields), name, **spec)
    await run_pod(node, user(name, claim=name, read_only=read_only, **POD))
    return node.storage.target_path(name, f"pv-{name}")


@conformance(id="csi-group-of-driver", rules=["NODE-217.7"], needs=NEEDS)
async def a_driver_can_give_the_volume_to_the_group(node: Node) -> None:
    """A driver that can do it is told the group of the pod, when the volume is staged and when it
    is published; the kubelet does not do it then."""
    driver = await a_driver(node, STAGE, "VOLUME_MOUNT_GROUP", fsGroupPolicy="File")
    target = await published(node, "a", "vol-1", fsType="ext4")
    groups = [
        driver.requests(method)[0].volume_capability.mount.volume_mount_group for method in IN
    ]
    expect_equal(node, groups, [str(GROUP)] * 2, "groups of the calls")
    expect_equal(node, of_the_driver(target), True, "the volume is as the driver made it")


@conformance(id="csi-group-always", rules=["NODE-217.7"], needs=NEEDS)
async def a_volume_of_files_always_belongs_to_the_group(node: Node) -> None:
    """With the policy File the kubelet gives every volume to the group of the pod, unless it is
    read-only; the driver is told nothing of it."""
    driver = await a_driver(
        node, fsGroupPolicy="File", volumeLifecycleModes=["Persistent", "Ephemeral"]
    )
    many = {"accessModes": ["ReadWriteMany"]}
    expect_equal(node, owners(await published(node, "a", "vol-1", pv=many)), GIVEN, "of many")
    target = await published(node, "b", "vol-2", read_only=True)
    expect_equal(node, of_the_driver(target), True, "a read-only volume is left as it is")
    await run_pod(node, inline("c", POD))
    expect_equal(node, owners(node.storage.target_path("c", "v")), GIVEN, "of an inline one")
    mount_groups = {r.volume_capability.mount.volume_mount_group for r in driver.requests(IN[1])}
    expect_equal(node, mount_groups, {""}, "groups of the calls")


@conformance(id="csi-group-usually", rules=["NODE-217.7"], needs=NEEDS)
async def a_volume_of_one_node_with_a_file_system_belongs_to_the_group(node: Node) -> None:
    """Unless the driver says otherwise the kubelet gives a volume to the group if it says which
    file system it has, and one node alone writes to it."""
    await a_driver(node)
    wants = {
        "one": ("ext4", "ReadWriteOnce", True),
        "many": ("ext4", "ReadWriteMany", False),
        "any": ("", "ReadWriteOnce", False),
    }
    for name, (fs_type, mode, is_given) in wants.items():
        fields = {"fsType": fs_type} if fs_type else {}
        target = await published(node, name, name, pv={"accessModes": [mode]}, **fields)
        if is_given:
            expect_equal(node, owners(target), GIVEN, f"the volume {name}")
        else:
            expect_equal(node, of_the_driver(target), True, f"{name} is as the driver made it")


@conformance(id="csi-group-one-pod", rules=["NODE-217.7"], needs=NEEDS, since="1.32")
async def a_volume_of_one_pod_belongs_to_the_group(node: Node) -> None:
    """A volume that one pod alone writes to belongs to the group as one of a single node does."""
    await a_driver(node)
    pv = {"accessModes": ["ReadWriteOncePod"]}
    target = await published(node, "pod", "vol-1", pv=pv, fsType="ext4")
    expect_equal(node, owners(target), GIVEN, "the volume")


@conformance(id="csi-group-never", rules=["NODE-217.7"], needs=NEEDS)
async def a_volume_without_groups_is_left_alone(node: Node) -> None:
    """With the policy None the kubelet gives no volume to a group."""
    await a_driver(node, fsGroupPolicy="None")
    target = await published(node, "a", "vol-1", fsType="ext4")
    expect_equal(node, of_the_driver(target), True, "the volume is as the driver made it")
