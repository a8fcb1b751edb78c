"""emptyDirs: mode, group, memory, and what is left of them: NODE-203, LIFE-073."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from pods import container, make_pod

from refkubelet.host.directories import mount_points_below
from refkubelet.model.objects import Pod
from refkubelet.volumes.empty_dirs import EmptyDirs
from refkubelet.volumes.mounting import NoMounts, RealMounts, SimulatedMounts


def web(medium: str = "", **context: Any) -> Pod:
    """A pod with an emptyDir. `context`: its security context."""
    volume = {"name": "v", "emptyDir": {"medium": medium}}
    main = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return make_pod(main, volumes=[volume], securityContext=context)


async def set_up(dirs: EmptyDirs, pod: Pod, size_bytes: int = 0) -> Path:
    (volume,) = pod.spec.volumes or ()
    await dirs.set_up(pod, volume, size_bytes)
    return Path(dirs.path(pod, "v"))


async def test_all_users_may_write_whatever_the_umask_is_NODE_203(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        path = await set_up(EmptyDirs(str(tmp_path), SimulatedMounts()), web())
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777
    assert (tmp_path / "pods/uid-web/plugins/kubernetes.io~empty-dir/v/ready").exists()


async def test_one_that_is_ready_stays_as_it_is_NODE_203(tmp_path: Path) -> None:
    dirs = EmptyDirs(str(tmp_path), SimulatedMounts())
    path = await set_up(dirs, web())
    path.chmod(0o700)
    assert stat.S_IMODE((await set_up(dirs, web())).stat().st_mode) == 0o700


async def test_one_that_is_half_made_is_made_again_NODE_203(tmp_path: Path) -> None:
    path = tmp_path / "pods/uid-web/volumes/kubernetes.io~empty-dir/v"
    path.mkdir(parents=True, mode=0o700)
    await set_up(EmptyDirs(str(tmp_path), SimulatedMounts()), web())
    assert stat.S_IMODE(path.stat().st_mode) == 0o777


async def test_it_belongs_to_the_group_of_the_pod_NODE_203(tmp_path: Path) -> None:
    group = os.getgid() if os.geteuid() else 2000
    path = await set_up(EmptyDirs(str(tmp_path), SimulatedMounts()), web(fsGroup=group))
    assert (path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (group, 0o2777)


async def test_memory_is_a_filesystem_of_that_size_NODE_203(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    dirs = EmptyDirs(str(tmp_path), real_mounts)
    for _ in range(2):
        path = await set_up(dirs, web("Memory", fsGroup=2000), 1 << 20)
    assert mount_points_below(path) == [str(path)]
    found = os.statvfs(path)
    assert found.f_blocks * found.f_frsize == 1 << 20
    assert (path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (2000, 0o3777)


async def test_nothing_stays_mounted_or_there_LIFE_073(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    dirs, pod = EmptyDirs(str(tmp_path), real_mounts), web("Memory")
    (await set_up(dirs, pod, 1 << 20) / "file").touch()
    await dirs.tear_down(pod)
    assert mount_points_below(tmp_path / "pods") == []
    assert list((tmp_path / "pods/uid-web/volumes").iterdir()) == []
    await dirs.tear_down(pod)


async def test_memory_is_an_error_as_long_as_no_runtime_sees_it_NODE_203(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    dirs = EmptyDirs(str(tmp_path), RealMounts(runtime_pid=2**22 + 1))  # beyond all processes
    for _ in range(2):
        with pytest.raises(PermissionError, match="does not see"):
            await set_up(dirs, web("Memory"))
    assert mount_points_below(tmp_path / "pods") == []


async def test_memory_is_an_error_where_nothing_can_be_mounted_NODE_203(tmp_path: Path) -> None:
    with pytest.raises(PermissionError, match="cannot mount"):
        await set_up(EmptyDirs(str(tmp_path), NoMounts()), web("Memory"))
