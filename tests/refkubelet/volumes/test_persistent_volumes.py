"""Persistent volumes that are on the node: bound, shared, and never emptied (NODE-215)."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from lightkube.models.core_v1 import PersistentVolume, PersistentVolumeClaim, Volume
from pods import container, make_pod

from refkubelet.api.client import ApiError
from refkubelet.api.kinds import CLAIMS, Kind
from refkubelet.events.recorder import EventRecorder
from refkubelet.host.directories import mount_points_below
from refkubelet.model.objects import Pod
from refkubelet.volumes.claim_reader import claimed_volumes
from refkubelet.volumes.claims import ClaimedVolume
from refkubelet.volumes.mount_errors import MountFailed
from refkubelet.volumes.mounting import Mounts, NoMounts, RealMounts
from refkubelet.volumes.persistent import PersistentVolumes

CLAIM = Volume.from_dict({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
MOUNTED_AT = "volumes/kubernetes.io~local-volume/pv"


class Events(EventRecorder):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def pod_event(self, pod: Pod, kind: str, reason: str, message: str, **_: Any) -> None:
        self.messages.append(message)


def web(uid: str = "uid-web", **context: Any) -> Pod:
    main = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return make_pod(main, uid=uid, volumes=[CLAIM.to_dict()], securityContext=context)


def claimed(path: Path, *, read_only: bool = False, **spec: Any) -> ClaimedVolume:
    spec = {"local": {"path": str(path)}, **spec}
    volume = PersistentVolume.from_dict({"metadata": {"name": "pv"}, "spec": spec})
    return ClaimedVolume(CLAIM, volume, read_only)


def volumes(root: Path, mounts: Mounts) -> PersistentVolumes:
    return PersistentVolumes(str(root), mounts, recorder=Events(), fits=lambda terms: False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory of the node with a file in it."""
    place = tmp_path / "data"
    place.mkdir()
    (place / "file").write_text("kept")
    return place


@pytest.mark.virtual_time
async def test_the_directory_is_bound_and_unbound_NODE_215(
    tmp_path: Path, data: Path, real_mounts: RealMounts
) -> None:
    root = tmp_path / "root"
    ours = volumes(root, real_mounts)
    place = await ours.set_up(web(), claimed(data, read_only=True))
    target = root / "pods/uid-web" / MOUNTED_AT
    assert (place.path, place.read_only) == (str(target), True)
    assert (target / "file").read_text() == "kept"
    ours.tear_down(web())
    assert not target.parent.exists()
    assert mount_points_below(root) == []
    assert (data / "file").read_text() == "kept"


@pytest.mark.virtual_time
async def test_a_new_kubelet_takes_what_is_mounted_NODE_215(
    tmp_path: Path, data: Path, real_mounts: RealMounts
) -> None:
    pod = web(fsGroup=4321)
    await volumes(tmp_path / "root", real_mounts).set_up(pod, claimed(data))
    os.chown(data / "file", -1, 0)
    again = volumes(tmp_path / "root", real_mounts)
    place = await again.set_up(pod, claimed(data))
    assert place.path.endswith(MOUNTED_AT)
    assert len(mount_points_below(tmp_path / "root")) == 1
    assert (data / "file").stat().st_gid == 0  # given to the group at the first mount only
    again.tear_down(pod)


def test_what_is_not_unmounted_is_not_deleted_NODE_215(tmp_path: Path) -> None:
    left = tmp_path / "pods/uid-web" / MOUNTED_AT
    left.mkdir(parents=True)
    (left / "file").write_text("kept")
    with pytest.raises(OSError, match="not empty"):
        volumes(tmp_path, NoMounts()).tear_down(web())
    assert (left / "file").read_text() == "kept"


@pytest.mark.virtual_time
async def test_without_mounts_the_directory_itself_is_used_NODE_215(
    tmp_path: Path, data: Path
) -> None:
    ours = volumes(tmp_path, NoMounts())
    place = await ours.set_up(web(), claimed(data))
    assert place.path == str(data)
    ours.tear_down(web())
    assert (data / "file").exists()


@pytest.mark.virtual_time
async def test_what_cannot_be_mounted_NODE_215(tmp_path: Path, data: Path) -> None:
    ours = volumes(tmp_path, NoMounts())
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    wrong = {
        "no matching NodeSelectorTerms": claimed(data, nodeAffinity=affinity),
        f'path "{tmp_path}/none" does not exist': claimed(tmp_path / "none"),
        f'path "{data}/file/x" does not exist': claimed(data / "file/x"),
        "only directory and block device are supported": claimed(data / "file"),
        "local volume source is nil or local path is not set": claimed(data, local={"path": ""}),
        f"invalid path: {data}/../data must not contain '..'": claimed(data / "../data"),
    }
    for text, volume in wrong.items():
        with pytest.raises(MountFailed) as caught:
            await ours.set_up(web(), volume)
        assert str(caught.value) == text


@pytest.mark.virtual_time
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
async def test_a_block_device_is_refused_NODE_215(tmp_path: Path) -> None:
    device = tmp_path / "device"
    try:
        os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(7, 0))
    except PermissionError:
        pytest.skip("no device can be made here")
    with pytest.raises(MountFailed, match="is a block device"):
        await volumes(tmp_path, NoMounts()).set_up(web(), claimed(device))


@pytest.mark.virtual_time
async def test_a_volume_for_one_pod_is_free_again_when_that_has_ended_NODE_215(
    tmp_path: Path, data: Path
) -> None:
    ours, other = volumes(tmp_path, NoMounts()), web("other")
    for_one = claimed(data, accessModes=["ReadWriteOncePod"])
    await ours.set_up(web(), for_one)
    await ours.set_up(web(), for_one)
    with pytest.raises(MountFailed, match="already in use by another pod"):
        await ours.set_up(other, for_one)
    await ours.set_up(other, claimed(data, accessModes=["ReadWriteOncePod", "ReadWriteMany"]))
    ours.tear_down(other)
    ours.tear_down(web())
    await ours.set_up(other, for_one)


@pytest.mark.virtual_time
async def test_without_drivers_a_drivers_volume_is_refused_NODE_215(tmp_path: Path) -> None:
    source = {"driver": "disks.example", "volumeHandle": "h"}
    with pytest.raises(MountFailed, match=r"driver name disks\.example not found"):
        await volumes(tmp_path, NoMounts()).set_up(web(), claimed(tmp_path, local=None, csi=source))


class Cluster:
    """An API server with one claim and one persistent volume."""

    def __init__(self, volume: dict[str, Any] | None) -> None:
        self._volume = volume

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        if kind is CLAIMS:
            return PersistentVolumeClaim.from_dict(
                {
                    "metadata": {"name": name, "uid": "u1"},
                    "spec": {"volumeName": "pv"},
                    "status": {"phase": "Bound"},
                }
            )
        if self._volume is None:
            raise ApiError(404, "NotFound", f'persistentvolumes "{name}" not found')
        return PersistentVolume.from_dict({"metadata": {"name": name}, "spec": self._volume})


GOOD: dict[str, Any] = {
    "claimRef": {"name": "data", "uid": "u1"},
    "hostPath": {"path": "/data"},
    "volumeMode": "Filesystem",
}
NO_PLUGIN = 'failed to get Plugin from volumeSpec for volume "pv" err=no volume plugin matched'


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("volume", "wanted"),
    [
        (GOOD, None),
        (None, 'failed to fetch PV pv from API server: persistentvolumes "pv" not found'),
        ({**GOOD, "claimRef": None}, "it has a nil pv.Spec.ClaimRef"),
        ({**GOOD, "claimRef": {"uid": "u2"}}, "ClaimRef.UID u2 does not point to claim.UID u1"),
        ({**GOOD, "claimRef": {}}, "ClaimRef.UID  does not point to claim.UID u1"),
        ({**GOOD, "volumeMode": None}, "cannot get volumeMode for volume: pv"),
        ({**GOOD, "volumeMode": "Block"}, "has volumeMode Block, but is specified in volumeMounts"),
        ({**GOOD, "hostPath": None, "nfs": {"server": "s", "path": "/"}}, NO_PLUGIN),
    ],
)
async def test_what_a_claim_is_bound_to_NODE_215(
    volume: dict[str, Any] | None, wanted: str | None
) -> None:
    found, errors = await claimed_volumes(web(), Cluster(volume))
    if wanted is None:
        assert not errors
        assert (found["v"].name, found["v"].path) == ("pv", "/data")
    else:
        assert not found
        assert wanted in errors["v"]


@pytest.mark.virtual_time
async def test_a_group_that_was_not_given_to_the_end_is_given_again_NODE_215(
    tmp_path: Path, data: Path, real_mounts: RealMounts
) -> None:
    root = tmp_path / "root"
    await volumes(root, real_mounts).set_up(web(), claimed(data))  # bound, and ended before more
    assert data.stat().st_gid == 0
    again = volumes(root, real_mounts)
    await again.set_up(web(fsGroup=4321), claimed(data, read_only=True))
    assert data.stat().st_gid == 0
    await again.set_up(web(fsGroup=4321), claimed(data))
    assert (data.stat().st_gid, (data / "file").stat().st_gid) == (4321, 4321)
    again.tear_down(web())
