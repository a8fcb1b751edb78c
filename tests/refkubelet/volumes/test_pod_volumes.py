"""A running kubelet and what pods put into its way: links, FIFOs, volumes it does not have."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from node_world import Node, running_node
from pods import container, manifest

from fakecri import exits
from refkubelet.host.directories import mount_points_below
from refkubelet.volumes.mounting import RealMounts

pytestmark = pytest.mark.virtual_time

MOUNT = {"name": "v", "mountPath": "/v"}
EMPTY: dict[str, Any] = {"name": "v", "emptyDir": {}}
SECRET = "line of a file of the host"
LOG_PATH = "/dev/termination-log"


def pod_with(volume: dict[str, Any], *mounts: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return manifest(container(volumeMounts=list(mounts or (MOUNT,))), volumes=[volume], **spec)


def volume_of(node: Node, uid: str, name: str = "v") -> Path:
    return node.paths.root / "pods" / uid / "volumes/kubernetes.io~empty-dir" / name


def uid_of(node: Node) -> str:
    (pod,) = node.shown()
    return pod.metadata.uid or ""


def put_in_first(node: Node, pod: dict[str, Any], make: Any) -> None:
    """The pod, with its emptyDir as an earlier container left it; an explicit UID is its own."""
    pod["metadata"]["uid"] = "u-1"
    above = volume_of(node, "u-1")
    above.mkdir(parents=True)
    above.chmod(0o777)
    make(above)
    node.apply(pod)


async def run_once(
    node: Node, mounts: RealMounts, volume: dict[str, Any], mount: dict[str, Any]
) -> None:
    """A pod that runs for 5 s on a node that really mounts; it has just begun."""
    node.world.mounts = mounts
    await node.start()
    node.cri.behaves(exits(0, after_s=5))
    node.apply(pod_with(volume, mount, restartPolicy="Never"))
    await node.until(lambda: node.phase("web-golden") == "Running")


@pytest.mark.parametrize("sub_path", ["link", "link/x/y", "link/etc"])
async def test_a_link_to_the_host_is_no_sub_path_NODE_211(tmp_path: Path, sub_path: str) -> None:
    host = tmp_path / "host"
    (host / "etc").mkdir(parents=True)

    async with running_node(tmp_path) as node:
        pod = pod_with(EMPTY, MOUNT | {"subPath": sub_path})
        put_in_first(node, pod, lambda volume: (volume / "link").symlink_to(host))
        why = 'failed to prepare subPath for volumeMount "v" of container "main"'
        state = ("CreateContainerConfigError", why)
        await node.until(lambda: node.waiting("web-golden") == state)
        assert "CreateContainer" not in node.write_names()
        assert os.listdir(host) == ["etc"]


async def test_a_sub_path_is_mounted_and_unmounted_NODE_211(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    """NODE-211.6."""
    async with running_node(tmp_path, started=False) as node:
        await run_once(node, real_mounts, EMPTY, MOUNT | {"subPath": "a/b"})
        (given,) = node.cri.calls("CreateContainer")[0].request.config.mounts[:1]
        place = volume_of(node, uid_of(node)) / "a/b"
        assert given.host_path.endswith("/volume-subpaths/v/main/0")
        assert os.path.samefile(given.host_path, place)
        assert stat.S_IMODE(place.stat().st_mode) == 0o777
        await node.until(lambda: node.phase("web-golden") == "Succeeded")
        await node.until(lambda: not Path(given.host_path).exists())
        assert mount_points_below(tmp_path / "kubelet/pods") == []


async def test_mounts_of_a_pod_that_went_meanwhile_are_undone_NODE_211(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    async with running_node(tmp_path, started=False) as node:
        node.world.mounts = real_mounts
        await node.start()
        node.apply(pod_with(EMPTY, MOUNT | {"subPath": "a"}))
        await node.until(lambda: node.phase("web-golden") == "Running")
        directory = tmp_path / "kubelet/pods" / uid_of(node)
        await node.kill()
        node.remove()
        assert mount_points_below(directory)
        await node.start()
        await node.until(lambda: not directory.exists(), 90)
        assert mount_points_below(directory) == []


async def test_the_message_of_a_container_is_none_of_the_host_LIFE_145(tmp_path: Path) -> None:
    """The part of the volume where the message is read becomes a link while the container runs."""
    (tmp_path / "secret").write_text(SECRET)

    async with running_node(tmp_path) as node:
        node.cri.behaves(exits(1, after_s=5))
        mount = {"name": "v", "mountPath": LOG_PATH, "subPath": "message"}
        pod = pod_with(EMPTY, mount, restartPolicy="Never")
        put_in_first(node, pod, lambda volume: (volume / "message").touch())
        await node.until(lambda: node.phase("web-golden") == "Running")
        message = volume_of(node, "u-1") / "message"
        message.unlink()
        message.symlink_to(tmp_path / "secret")
        await node.until(lambda: node.phase("web-golden") == "Failed")
        status = node.status("web-golden")
        assert status is not None
        assert SECRET not in str(status)
        assert "Error on reading termination log" in str(status.containerStatuses)


async def test_a_fifo_as_termination_log_holds_no_pod_up_LIFE_145(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.cri.behaves(exits(1, after_s=5))
        mount = {"name": "v", "mountPath": LOG_PATH, "subPath": "message"}
        pod = pod_with(EMPTY, mount, restartPolicy="Never")
        put_in_first(node, pod, lambda volume: os.mkfifo(volume / "message"))
        await node.until(lambda: node.phase("web-golden") == "Failed")
        assert "Not a regular file" in str(node.status("web-golden"))


async def test_a_fifo_as_file_of_variables_holds_no_pod_up_LIFE_137(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        ref = {"volumeName": "v", "path": "env", "key": "K"}
        pod = pod_with(EMPTY)
        pod["spec"]["containers"][0]["env"] = [{"name": "A", "valueFrom": {"fileKeyRef": ref}}]
        put_in_first(node, pod, lambda volume: os.mkfifo(volume / "env"))
        why = ("CreateContainerConfigError", "couldn't parse env file")
        await node.until(lambda: node.waiting("web-golden") == why)


WITHOUT_PLUGIN = 'failed to get Plugin from volumeSpec for volume "v" err=no volume plugin matched'
NOT_SET_UP = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
UNKNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "nfs": (
        {"server": "s", "path": "/"},
        f"{NOT_SET_UP}failed to process volumes=[v]: {WITHOUT_PLUGIN}",
    ),
    "persistentVolumeClaim": (
        {"claimName": "data"},
        f"{NOT_SET_UP}failed to process volumes=[v]: error processing PVC default/data: failed to "
        'fetch PVC from API server: persistentvolumeclaims "data" not found',
    ),
    "csi": (
        {"driver": "d"},
        'MountVolume.SetUp failed for volume "v" : kubernetes.io/csi: mounter.SetUpAt failed to '
        "get CSI client: driver name d not found in the list of registered CSI drivers",
    ),
    "configMap": (
        {"name": "settings"},
        'MountVolume.SetUp failed for volume "v" : configmap "settings" not found',
    ),
    "secret": (
        {"secretName": "s"},
        'MountVolume.SetUp failed for volume "v" : secret "s" not found',
    ),
}


async def refused(node: Node, pod: dict[str, Any], why: str) -> None:
    """The pod waits without a sandbox, and can be deleted."""
    await node.create(pod)
    await node.until(lambda: len(node.events("FailedMount")) >= 1)
    await node.clock.sleep(60)
    assert why in node.events("FailedMount")[0]
    assert node.waiting("web") == ("ContainerCreating", None)
    assert node.phase("web") == "Pending"
    assert "RunPodSandbox" not in node.write_names()
    await node.delete("web", 5)
    await node.until_gone("web")


@pytest.mark.parametrize("kind", sorted(UNKNOWN))
async def test_a_kind_of_volume_that_is_missing_keeps_the_pod_waiting_NODE_202(
    tmp_path: Path, kind: str
) -> None:
    async with running_node(tmp_path, api=True) as node:
        source, why = UNKNOWN[kind]
        await refused(node, pod_with({"name": "v", kind: source}), why)


async def test_it_waits_two_minutes_and_is_synced_again_NODE_201(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.create(pod_with({"name": "v", "configMap": {"name": "settings"}}))
        await node.clock.sleep(120)
        assert len(node.events("FailedMount")) in range(7, 10)  # after 0.5, 1, 2, ... s
        reads = len(node.events())
        await node.clock.sleep(120)
        assert len(node.events()) - reads <= 3
        assert "RunPodSandbox" not in node.write_names()


async def test_the_content_follows_and_a_failed_update_holds_no_restart_up_NODE_201(
    tmp_path: Path,
) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        body = {"metadata": {"name": "settings"}, "data": {"a": "1"}}
        await node.api.request("POST", path, body=body)
        node.cri.behaves(exits(1, after_s=100))
        await node.create(pod_with({"name": "v", "configMap": {"name": "settings"}}))
        await node.until(lambda: node.phase("web") == "Running")
        file = node.paths.root / "pods" / uid_of(node) / "volumes/kubernetes.io~configmap/v/a"
        assert file.read_text() == "1"
        await node.api.request("DELETE", f"{path}/settings", body={})
        await node.until(lambda: len(node.cri.calls("StartContainer")) == 2, 300)
        assert file.read_text() == "1"
        await node.api.request("POST", path, body=body | {"data": {"a": "2"}})
        await node.until(lambda: file.read_text() == "2", 250)


async def test_huge_pages_keep_the_pod_waiting_NODE_203(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        volume = {"name": "v", "emptyDir": {"medium": "HugePages"}}
        why = "hugePages storage requested, but there is no resource request for huge pages"
        await refused(node, pod_with(volume), f"medium HugePages: {why}")


async def test_a_device_keeps_the_pod_waiting_NODE_202(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        pod = pod_with(volume)
        del pod["spec"]["containers"][0]["volumeMounts"]
        devices = [{"name": "v", "devicePath": "/dev/xvda"}]
        pod["spec"]["containers"][0]["volumeDevices"] = devices
        await refused(
            node, pod, "error processing PVC default/data: failed to fetch PVC from API server"
        )


async def test_a_volume_that_no_container_uses_holds_no_pod_up_NODE_201(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        pod = pod_with({"name": "v", "configMap": {"name": "none"}})
        del pod["spec"]["containers"][0]["volumeMounts"]
        await node.create(pod)
        await node.until(lambda: node.phase("web") == "Running")


async def test_claims_keep_the_pod_without_a_sandbox_LIFE_130(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        pod = manifest(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu-1"}])
        await node.create(pod)
        await node.until(lambda: node.events("FailedPrepareDynamicResources"))
        await node.clock.sleep(30)
        assert "RunPodSandbox" not in node.write_names()
        assert node.phase("web") == "Pending"


async def test_a_host_path_is_tried_again_until_it_is_there_NODE_202(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        path = tmp_path / "data"
        node.apply(pod_with({"name": "v", "hostPath": {"path": str(path), "type": "Directory"}}))
        await node.clock.sleep(20)
        why = f"hostPath type check failed: {path} is not a directory"
        events = node.events("FailedMount")
        assert set(events) == {f'MountVolume.SetUp failed for volume "v" : {why}'}
        assert 4 <= len(events) <= 6  # after 0.5, 1, 2, 4, 8 s, each up to half as long again
        assert "RunPodSandbox" not in node.write_names()
        path.mkdir()
        await node.until(lambda: node.phase("web-golden") == "Running", 30)


async def test_one_pod_that_waits_holds_up_no_other_NODE_202(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        path = {"path": str(tmp_path / "none"), "type": "File"}
        node.apply(pod_with({"name": "v", "hostPath": path}), "a.yaml")
        node.apply(manifest(name="good"), "b.yaml")
        await node.until(lambda: node.phase("good-golden") == "Running", 10)
        assert node.phase("web-golden") == "Pending"


async def test_the_group_of_the_pod_owns_its_empty_dir_NODE_203(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        group = 2000 if os.geteuid() == 0 else os.getgid()
        node.apply(pod_with(EMPTY, securityContext={"fsGroup": group}))
        await node.until(lambda: node.phase("web-golden") == "Running")
        found = volume_of(node, uid_of(node)).stat()
        assert (found.st_gid, stat.S_IMODE(found.st_mode)) == (group, 0o2777)


async def test_memory_is_mounted_before_the_sandbox_and_unmounted_NODE_203(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    async with running_node(tmp_path, started=False) as node:
        volume = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
        await run_once(node, real_mounts, volume, MOUNT)
        path = volume_of(node, uid_of(node))
        found = os.statvfs(path)
        assert found.f_blocks * found.f_frsize == 1 << 20
        await node.until(lambda: not path.exists())
        assert mount_points_below(tmp_path / "kubelet") == []
