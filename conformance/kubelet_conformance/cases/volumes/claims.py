"""Volumes of claims that are on the node: directories of its own, and paths (NODE-215)."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.cases.volumes.common import VOLUME, wait_failed, with_volume
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS: Final = [Feature.API, Feature.STATUS]
GONE_S: Final = limits.STOP_S + limits.STATUS_PASS_S + limits.HOUSEKEEPING_S
AGAIN_S: Final = 20.0
"""Tries to mount a volume come after 0.5, 1, 2, 4 and 8 seconds (NODE-202.2)."""
GROUP: Final = os.getgid() if os.geteuid() else 4321
"""Only root may give a file to a group that is not its own."""
FILE: Final = "kept"


def data(node: Node) -> Path:
    """A directory of the node with a file in it."""
    place = node.machine.host_path("data")
    place.mkdir()
    place.chmod(0o700)
    (place / FILE).write_text("1")
    (place / FILE).chmod(0o644)
    return place


def owner(path: Path) -> tuple[int, str]:
    """The group of a file, and its permissions in octal digits."""
    status = path.stat()
    return status.st_gid, oct(stat.S_IMODE(status.st_mode))


def local(path: Path) -> dict[str, Any]:
    """The source of a local volume; it must say on which nodes it is."""
    rule = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
    terms = [{"matchExpressions": [rule]}]
    return {
        "local": {"path": str(path)},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }


def user(name: str = "web", *, read_only: bool = False, **spec: Any) -> PodPlan:
    """A pod with the claim `data`."""
    claim = {"claimName": "data", **({"readOnly": True} if read_only else {})}
    return with_volume(name, {"persistentVolumeClaim": claim}, **spec)


async def bind(node: Node, source: Mapping[str, Any], **spec: Any) -> None:
    """The claim `data`, bound to a persistent volume `pv` of that source."""
    mode = spec.get("volumeMode", "Filesystem")
    uid = await node.api.create_claim("data", "pv", mode=mode)
    await node.api.create_volume("pv", source, claim={"name": "data", "uid": uid}, **spec)


def given(node: Node, pod: str = "web") -> tuple[str, bool]:
    """The path on the node that the pod's container got at /v, and whether it is read-only."""
    mounts = node.calls("CreateContainer", pod=pod)[0].request.config.mounts
    mount = next(m for m in mounts if m.container_path == "/v")
    return mount.host_path, mount.readonly


def check_message(node: Node, message: str, why: str) -> None:
    """The event told why, and no sandbox was made."""
    expect(node, message.endswith(why), why, message)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")


async def wait_started(node: Node, within_s: float) -> None:
    """Run until the pod's container was started, so much later than usual at most."""
    await node.run_until(
        lambda: node.count("StartContainer", pod="web"),
        within_s=within_s + limits.START_S,
        what="the container is started",
    )


@conformance(id="volume-claim-local", rules=["NODE-215.5", "NODE-215.9"], needs=NEEDS, alone=True)
async def a_local_volume_is_the_directory_of_the_node(node: Node) -> None:
    """A container with a claim of a local volume gets that directory, and when the pod is gone the
    files are still there."""
    place = data(node)
    await bind(node, local(place))
    await node.api.create_pod(user())
    await node.wait_running("web")
    path, read_only = given(node)
    expect(node, os.path.samefile(path, place), f"a mount of {place}", path)
    expect(node, not read_only, "a mount for writing", "read-only")
    pod_directory = node.machine.pod_directory("web")
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.api.pod("web") is None and not pod_directory.exists(),
        within_s=GONE_S + limits.HOUSEKEEPING_S,
        what="the pod and its directory are gone",
    )
    expect_equal(node, (place / FILE).read_text(), "1", "the file of the volume")


@conformance(id="volume-claim-host-path", rules=["NODE-215.4"], needs=NEEDS, alone=True)
async def a_host_path_volume_is_used_where_it_is(node: Node) -> None:
    """A container with a claim of a hostPath volume gets that path."""
    place = data(node)
    await bind(node, {"hostPath": {"path": str(place), "type": "Directory"}})
    await node.api.create_pod(user())
    await node.wait_running("web")
    expect_equal(node, given(node), (str(place), False), "path, read-only")


@conformance(id="volume-claim-host-path-type", rules=["NODE-215.4"], needs=NEEDS, alone=True)
async def a_host_path_volume_is_of_its_type(node: Node) -> None:
    """The pod waits while a hostPath volume that must be a directory is none."""
    place = node.machine.host_path("data")
    await bind(node, {"hostPath": {"path": str(place), "type": "Directory"}})
    await node.api.create_pod(user())
    why = f"hostPath type check failed: {place} is not a directory"
    text = f'MountVolume.SetUp failed for volume "pv" : {why}'
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-host-path-options", rules=["NODE-215.4"], needs=NEEDS, alone=True)
async def a_host_path_volume_has_no_mount_options(node: Node) -> None:
    """A hostPath volume with mount options is not mounted."""
    place = data(node)
    await bind(node, {"hostPath": {"path": str(place)}}, mountOptions=["noexec"])
    await node.api.create_pod(user())
    text = (
        'MountVolume.MountOptionSupport check failed for volume "pv" : mount options are not '
        "supported for this volume type"
    )
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-read-only", rules=["NODE-215.6"], needs=NEEDS, alone=True)
async def a_claim_can_be_wanted_read_only(node: Node) -> None:
    """A claim that the pod wants read-only is so in its container."""
    place = data(node)
    await bind(node, {"hostPath": {"path": str(place)}})
    await node.api.create_pod(user(read_only=True))
    await node.wait_running("web")
    expect_equal(node, given(node), (str(place), True), "path, read-only")


@conformance(id="volume-claim-no-volume", rules=["NODE-215.1"], needs=NEEDS)
async def a_claim_of_a_volume_that_is_not_there_waits(node: Node) -> None:
    """The pod waits for the persistent volume that its claim names."""
    await node.api.create_claim("data", "pv")
    await node.api.create_pod(user())
    text = (
        "error processing PVC default/data: failed to fetch PV pv from API server: "
        'persistentvolumes "pv" not found'
    )
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-not-of-it", rules=["NODE-215.1"], needs=NEEDS, alone=True)
async def a_volume_of_another_claim_is_not_used(node: Node) -> None:
    """A persistent volume that is bound to an earlier claim of the same name is not mounted."""
    uid = await node.api.create_claim("data", "pv")
    claim = {"name": "data", "uid": "earlier"}
    await node.api.create_volume("pv", local(data(node)), claim=claim)
    await node.api.create_pod(user())
    text = (
        "error processing PVC default/data: found PV object pv but its pv.Spec.ClaimRef.UID "
        f"earlier does not point to claim.UID {uid}"
    )
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-of-none", rules=["NODE-215.1"], needs=NEEDS, alone=True)
async def a_volume_that_is_not_bound_is_not_used(node: Node) -> None:
    """A persistent volume that knows of no claim is not mounted."""
    await node.api.create_claim("data", "pv")
    await node.api.create_volume("pv", local(data(node)), claim=None)
    await node.api.create_pod(user())
    text = (
        "error processing PVC default/data: found PV object pv but it has a nil pv.Spec.ClaimRef "
        "indicating it is not yet bound to the claim"
    )
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-block", rules=["NODE-215.2"], needs=NEEDS, alone=True)
async def a_block_volume_is_not_mounted(node: Node) -> None:
    """A volume of mode Block is no file system to mount."""
    await bind(node, local(data(node)), volumeMode="Block")
    await node.api.create_pod(user())
    text = "volume v has volumeMode Block, but is specified in volumeMounts"
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-as-device", rules=["NODE-215.2"], needs=NEEDS, alone=True)
async def a_file_system_is_no_device(node: Node) -> None:
    """A volume of mode Filesystem cannot be a device of a container."""
    await bind(node, local(data(node)))
    device = {"name": VOLUME, "devicePath": "/dev/v"}
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    plan = with_volume("web", source, container("main", volumeDevices=[device]))
    await node.api.create_pod(plan)
    text = "volume v has volumeMode Filesystem, but is specified in volumeDevices"
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-other-node", rules=["NODE-215.3"], needs=NEEDS, alone=True)
async def a_volume_of_another_node_is_not_mounted(node: Node) -> None:
    """A local volume whose node affinity this node does not meet is not mounted."""
    rule = {"key": "kubernetes.io/os", "operator": "In", "values": ["none"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    await bind(node, {"local": {"path": str(data(node))}}, nodeAffinity=affinity)
    await node.api.create_pod(user())
    text = 'MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms'
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-later", rules=["NODE-215.5", "NODE-202.2"], needs=NEEDS, alone=True)
async def a_local_volume_may_come_later(node: Node) -> None:
    """While the directory of a local volume is not there the pod waits, and starts when it is."""
    place = node.machine.host_path("data")
    await bind(node, local(place))
    await node.api.create_pod(user())
    text = (
        'MountVolume.NewMounter initialization failed for volume "pv" : path '
        f'"{place}" does not exist'
    )
    check_message(node, await wait_failed(node, "web"), text)
    place.mkdir()
    await wait_started(node, AGAIN_S)


@conformance(id="volume-claim-file", rules=["NODE-215.5"], needs=NEEDS, alone=True)
async def a_file_is_no_local_volume(node: Node) -> None:
    """A local volume is a directory or a block device."""
    place = node.machine.host_path("data")
    place.write_text("1")
    await bind(node, local(place))
    await node.api.create_pod(user())
    text = (
        'MountVolume.NewMounter initialization failed for volume "pv" : only directory and block '
        "device are supported"
    )
    check_message(node, await wait_failed(node, "web"), text)


@conformance(id="volume-claim-one-pod", rules=["NODE-215.7"], needs=NEEDS, alone=True)
async def a_volume_for_one_pod_is_not_shared(node: Node) -> None:
    """While one pod has a volume that is for one pod, a second one waits, and starts when the first
    is gone."""
    await bind(node, local(data(node)), accessModes=["ReadWriteOncePod"])
    await node.api.create_pod(user("first"))
    await node.wait_running("first")
    await node.api.create_pod(user())
    text = (
        'MountVolume.SetUp failed for volume "pv" : volume uses the ReadWriteOncePod access mode '
        "and is already in use by another pod"
    )
    check_message(node, await wait_failed(node, "web"), text)
    await node.api.delete_pod("first")
    await wait_started(node, GONE_S + AGAIN_S)


@conformance(id="volume-claim-group", rules=["NODE-215.8"], needs=NEEDS, alone=True)
async def a_local_volume_belongs_to_the_group_of_the_pod(node: Node) -> None:
    """All that is in a local volume is given to the pod's fsGroup; a second pod with another group
    is told that it is not its own, and changes nothing."""
    place = data(node)
    await bind(node, local(place))
    await node.api.create_pod(user("first", securityContext={"fsGroup": GROUP}))
    await node.wait_running("first")
    wanted_modes = [(GROUP, "0o2770"), (GROUP, "0o664")]
    expect_equal(node, [owner(p) for p in (place, place / FILE)], wanted_modes, "groups and modes")
    await node.api.create_pod(user(securityContext={"fsGroup": GROUP + 1}))
    await node.wait_running("web")
    expect_equal(node, owner(place / FILE), wanted_modes[1], "group and mode of the file")
    events = node.events("AlreadyMountedVolume", pod="web")
    text = (
        f"The requested fsGroup is {GROUP + 1}, but the volume pv has GID {GROUP}. The volume may "
        "not be shareable."
    )
    expect_equal(node, [event["message"] for event in events], [text], "messages")


@conformance(id="volume-claim-group-mismatch", rules=["NODE-215.8"], needs=NEEDS, alone=True)
async def a_volume_that_has_the_group_already_can_be_spared(node: Node) -> None:
    """With the policy OnRootMismatch files keep group and mode when the directory has the pod's."""
    place = data(node)
    os.chown(place, -1, GROUP)
    place.chmod(0o2770)
    await bind(node, local(place))
    context = {"fsGroup": GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    before = owner(place / FILE)
    await node.api.create_pod(user(securityContext=context))
    await node.wait_running("web")
    expect_equal(node, owner(place / FILE), before, "group and mode of the file")


@conformance(id="volume-claim-group-read-only", rules=["NODE-215.8"], needs=NEEDS, alone=True)
async def a_volume_that_is_only_read_keeps_its_group(node: Node) -> None:
    """A local volume that the pod wants read-only is not given to its group."""
    place = data(node)
    before = owner(place / FILE)
    await bind(node, local(place))
    await node.api.create_pod(user(read_only=True, securityContext={"fsGroup": GROUP}))
    await node.wait_running("web")
    expect_equal(node, owner(place / FILE), before, "group and mode of the file")
    expect(node, given(node)[1], "a read-only mount", "one for writing")


@conformance(id="volume-claim-restart", rules=["NODE-215.5", "NODE-215.9"], needs=NEEDS, alone=True)
async def a_local_volume_outlives_the_kubelet(node: Node) -> None:
    """A pod that is deleted while no kubelet runs leaves the files of its local volume."""
    place = data(node)
    await bind(node, local(place))
    await node.api.create_pod(user())
    await node.wait_running("web")
    pod_directory = node.machine.pod_directory("web")
    await node.kubelet.kill()
    await node.api.delete_pod("web", grace_s=0)
    await node.kubelet.start()
    await node.run_until(
        lambda: not pod_directory.exists(),
        within_s=limits.STOP_S + 2 * limits.STATUS_PASS_S + 30,
        what="the pod's directory is gone",
    )
    expect_equal(node, (place / FILE).read_text(), "1", "the file of the volume")
