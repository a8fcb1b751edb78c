"""Directories of pods that are gone: they are removed, unless something is mounted there."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from node_world import running_node

from refkubelet.host.directories import anything_mounted_below
from refkubelet.sync_loop import orphan_directories

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    "place",
    [
        "volumes/kubernetes.io~nfs/v",
        "volumes/kubernetes.io~csi/v/mount",
        "volume-subpaths/v/main/0",
        "volumes/kubernetes.io~nfs/with a blank",
        "",
    ],
)
async def test_nothing_is_deleted_through_a_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    table = tmp_path / "mountinfo"
    monkeypatch.setattr(
        orphan_directories, "anything_mounted_below", partial(anything_mounted_below, table=table)
    )
    mounted = tmp_path / "kubelet/pods/0123" / place

    async with running_node(tmp_path) as node:
        await node.clock.sleep(5)
        mounted.mkdir(parents=True)
        (mounted / "data").write_text("not the kubelet's")
        shown = str(mounted).replace(" ", r"\040")
        table.write_text(f"36 35 98:0 / {shown} rw - nfs server:/v rw\n")
        await node.clock.sleep(10)
        assert (mounted / "data").exists()
        table.write_text("36 35 98:0 / /elsewhere rw - nfs server:/v rw\n")
        (mounted / "data").unlink()  # it was the server's: the directory below is empty
        if mounted.name == "mount":
            mounted.rmdir()  # as the driver does
        await node.clock.sleep(5)
        assert not (tmp_path / "kubelet/pods/0123").exists()


async def test_without_the_table_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "none"
    monkeypatch.setattr(
        orphan_directories, "anything_mounted_below", partial(anything_mounted_below, table=table)
    )

    async with running_node(tmp_path) as node:
        await node.clock.sleep(5)
        (tmp_path / "kubelet/pods/0123").mkdir(parents=True)
        await node.clock.sleep(10)
        assert (tmp_path / "kubelet/pods/0123").exists()
