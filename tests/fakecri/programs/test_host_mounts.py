"""Mounts of host paths: programs see the files of this machine there, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import run_exec, started

from fakecri import FakeCRI
from fakecri.fakesh import HostDirectory
from fakecri.process.identity import ROOT, Identity

pytestmark = pytest.mark.virtual_time


@pytest.fixture(name="volume")
def made_volume(tmp_path: Path) -> Path:
    volume = tmp_path / "volume"
    (volume / "sub").mkdir(parents=True)
    (volume / "greeting").write_text("hello\n")
    (tmp_path / "secret").write_text("not yours\n")
    (volume / "way-out").symlink_to(tmp_path / "secret")
    (volume / "up").symlink_to(tmp_path)
    return volume


async def said(volume: Path, script: str, *, host_mounts: bool = True, **fields: object) -> str:
    """What a script says, of output and errors together, with the volume at /v."""
    fake = FakeCRI(host_mounts=host_mounts)
    mount = cri.Mount(container_path="/v", host_path=str(volume), **fields)  # type: ignore[arg-type]
    container = await started(fake, mounts=[mount])
    answer = await run_exec(fake, container, "sh", "-c", f"exec 2>&1; {script}")
    return str(answer.stdout.decode())


async def test_files_of_a_volume_are_read_and_written_CRI_084(volume: Path) -> None:
    script = (
        "ls /v; cat /v/greeting; echo bye >>/v/greeting; mkdir -p /v/a/b; touch /v/a/b/c; ls /v/a/b"
    )
    assert await said(volume, script) == "greeting\nsub\nup\nway-out\nhello\nc\n"
    assert (volume / "greeting").read_text() == "hello\nbye\n"
    assert (volume / "a/b/c").is_file()
    assert await said(volume, "rm /v/greeting; rm -r /v/a; ls /v") == "sub\nup\nway-out\n"
    assert not (volume / "greeting").exists()
    assert not (volume / "a").exists()


async def test_a_single_file_is_mounted_CRI_084(volume: Path) -> None:
    script = "cat /v; echo more >/v; ls -d /v/; rm /v"
    assert (
        await said(volume / "greeting", script)
        == "hello\n/v/\nrm: can't remove '/v': Device or resource busy\n"
    )
    assert (volume / "greeting").read_text() == "more\n"


async def test_a_volume_by_a_symbolic_link_CRI_084(volume: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(volume)
    assert await said(tmp_path / "link", "cat /v/greeting") == "hello\n"


@pytest.mark.parametrize("name", ["way-out", "up/secret", "../secret", "sub/../../secret"])
async def test_nothing_outside_the_volume_is_reached(volume: Path, name: str) -> None:
    text = await said(volume, f"cat /v/{name}; echo mine >/v/{name}; ls /v/up")
    assert "not yours" not in text
    assert "secret" not in text.replace(name, "")
    assert (volume.parent / "secret").read_text() == "not yours\n"


async def test_a_read_only_mount_refuses_to_be_written_CRI_084(volume: Path) -> None:
    text = await said(volume, "touch /v/new; rm /v/greeting; cat /v/greeting", readonly=True)
    assert text == (
        "touch: /v/new: Read-only file system\n"
        "rm: can't remove '/v/greeting': Read-only file system\nhello\n"
    )


async def test_without_the_option_a_volume_is_empty(volume: Path) -> None:
    assert await said(volume, "ls /v; echo 1 >/v/x; ls /v", host_mounts=False) == "x\n"
    assert not (volume / "x").exists()


@pytest.mark.parametrize(("uid", "gid", "code"), [(0, 0, 0), (1, 7, 0), (1, 8, 13)])
async def test_owner_group_and_mode_count(volume: Path, uid: int, gid: int, code: int) -> None:
    file = volume / "greeting"
    file.chmod(0o640)
    group = file.stat().st_gid
    groups = (group if gid == 7 else group + 1,)
    found = HostDirectory(str(volume), Identity(uid + (uid and file.stat().st_uid), gid, groups))
    if code:
        with pytest.raises(PermissionError):
            found.read("greeting")
    else:
        assert found.read("greeting") == b"hello\n"


async def test_a_pipe_keeps_nobody_waiting(volume: Path) -> None:
    os.mkfifo(volume / "pipe")
    with pytest.raises(PermissionError):
        HostDirectory(str(volume), ROOT).read("pipe")
