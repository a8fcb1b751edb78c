"""A CgroupFS for other processes: mounted, as plain files, and from the command line."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fakecri.cgroupfs import CgroupFS
from fakecri.cgroupfs.outside import (
    OutsideError,
    Projection,
    Refusal,
    mount,
    mount_in_background,
    project,
    why_no_mount,
)
from fakecri.cli import main

CLI = "import sys; from fakecri.cli import main; sys.exit(main())"
LACKS = why_no_mount() or ("" if os.geteuid() == 0 else "needs root")
mountable = pytest.mark.skipif(bool(LACKS), reason=LACKS)


async def shell(script: str, at: Path) -> tuple[int, str]:
    """Exit code and output of another process that goes to that directory."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", f"cd {at} && {{ {script}; }}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def settled(wanted: Callable[[], object]) -> None:
    """Until what others did has been taken in."""
    async with asyncio.timeout(200):
        while not wanted():  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(0.002)


def enabled() -> CgroupFS:
    fs = CgroupFS(2)
    fs.path("/cgroup.subtree_control").write_text("+memory +pids")
    fs.path("/web").mkdir()
    return fs


# -- the mount -----------------------------------------------------------------------------------


@mountable
async def test_another_process_uses_the_mount_while_the_loop_goes_on(tmp_path: Path) -> None:
    fs = enabled()
    async with mount(fs, tmp_path):
        code, output = await shell("echo 64M >web/memory.max && cat web/memory.max", tmp_path)
        assert (code, output) == (0, "67108864\n")
        assert fs.path("/web/memory.max").read_text() == "67108864\n"
        code, output = await shell("echo x >web/memory.max", tmp_path)
        assert code != 0
        assert "Invalid argument" in output
        fs.path("/web/memory.max").write_text("max")
        assert await shell("cat web/memory.max; mkdir web/a; rmdir web", tmp_path) == (
            1,
            f"max\nrmdir: failed to remove 'web': {os.strerror(errno.EBUSY)}\n",
        )
        assert fs.path("/web/a").is_dir()
    assert list(tmp_path.iterdir()) == []


@mountable
async def test_long_files_come_whole_CG_104(tmp_path: Path) -> None:
    fs = enabled()
    for _ in range(14000):
        fs.spawn("/web")
    async with mount(fs, tmp_path):
        _, output = await shell("cat web/cgroup.procs", tmp_path)
        assert output == fs.path("/web/cgroup.procs").read_text()
        assert len(output) > 1 << 16


@mountable
async def test_directories_of_thousands_of_groups_are_listed_whole_CG_100(tmp_path: Path) -> None:
    fs = enabled()
    names = [f"{number:05}-{'long' * 30}" for number in range(2500)]
    for name in names:
        fs.path(f"/web/{name}").mkdir()
    async with mount(fs, tmp_path):
        code, output = await shell("find web -mindepth 1 -type d -printf '%f\\n'", tmp_path)
        assert code == 0
        assert sorted(output.split()) == names
        fs.path(f"/web/{names[0]}").rmdir()
        _, output = await shell("ls web | grep -c long", tmp_path)
        assert output == "2499\n"


@mountable
async def test_real_processes_are_adopted_and_killed_for_real_CG_124(tmp_path: Path) -> None:
    fs = enabled()
    async with mount(fs, tmp_path, real_processes=True):
        sleeper = await asyncio.create_subprocess_exec("sleep", "600")
        script = f"echo {sleeper.pid} >web/cgroup.procs; cat web/cgroup.procs web/pids.current"
        assert await shell(script, tmp_path) == (0, f"{sleeper.pid}\n1\n")
        assert (await shell("echo 1 >web/cgroup.kill", tmp_path))[0] == 0
        assert await sleeper.wait() == -signal.SIGKILL
        # A process that ends by itself leaves; 0 is the one that writes.
        assert await shell("echo 0 >web/cgroup.procs; cat web/pids.current", tmp_path) == (0, "1\n")
        await settled(lambda: not fs.path("/web/cgroup.procs").read_text())
        assert fs.path("/web/pids.current").read_text() == "0\n"
        _, output = await shell("echo 99999999 >web/cgroup.procs", tmp_path)
        assert "No such process" in output


@mountable
async def test_only_the_fakes_processes_exist_unless_asked_for(tmp_path: Path) -> None:
    fs = enabled()
    async with mount(fs, tmp_path):
        sleeper = await asyncio.create_subprocess_exec("sleep", "600")
        _, output = await shell(f"echo {sleeper.pid} >web/cgroup.procs", tmp_path)
        assert "No such process" in output
        fs.path("/web/cgroup.kill").write_text("1")
        assert sleeper.returncode is None
        sleeper.kill()
        await sleeper.wait()


@mountable
def test_blocking_code_has_the_loop_in_a_thread(tmp_path: Path) -> None:
    fs = CgroupFS(1, controllers=["pids"])
    with mount_in_background(fs, tmp_path) as run:
        (tmp_path / "pids" / "web").mkdir()
        process = run(lambda: fs.spawn("/web"))
        assert (tmp_path / "pids/web/cgroup.procs").read_text() == f"{process.pid}\n"
        with pytest.raises(OSError) as refused:
            (tmp_path / "pids/web/pids.max").chmod(0o777)
        assert refused.value.errno == errno.ENOSYS
    assert list(tmp_path.iterdir()) == []


@mountable
async def test_who_unmounts_ends_the_wait(tmp_path: Path) -> None:
    async with mount(CgroupFS(2), tmp_path) as mounted:
        assert (await shell(f"umount {tmp_path}", Path("/")))[0] == 0
        await asyncio.wait_for(mounted.wait_unmounted(), 200)


@mountable
async def test_the_mount_goes_with_a_killed_owner(tmp_path: Path) -> None:
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLI, "cgroupfs", "mount", str(tmp_path)),
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None
    line = (await owner.stdout.readline()).decode()
    assert line == f"fakecri cgroupfs: version 2 at {tmp_path}\n"
    assert "cgroup.procs" in (await shell("ls", tmp_path))[1]
    owner.kill()
    await owner.wait()
    await settled(lambda: not os.path.ismount(tmp_path))


@pytest.mark.parametrize(
    ("attribute", "answer", "message"),
    [
        ("importlib.util.find_spec", None, r"pip install 'refkubelet\[fuse\]'"),
        ("os.path.exists", False, "has no FUSE, or use plain files"),
        ("os.access", False, "/dev/fuse may not be opened by this user"),
        ("fakecri.cgroupfs.outside.mount.find_library", None, "apt-get install libfuse3-3"),
        ("shutil.which", None, "fusermount is missing; run as root"),
    ],
)
async def test_what_the_machine_lacks_for_a_mount_is_said(
    attribute: str, answer: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {
        "importlib.util.find_spec": object(),
        "os.path.exists": True,
        "os.access": True,
        "fakecri.cgroupfs.outside.mount.find_library": "libfuse3.so.3",
        "shutil.which": "/bin/fusermount3",
        "os.geteuid": 1000,
    }
    for name, value in (here | {attribute: answer}).items():
        place, _, word = name.rpartition(".")
        monkeypatch.setattr(sys.modules[place], word, lambda *_, value=value: value)
    with pytest.raises(OutsideError, match=message):
        async with mount(CgroupFS(2), tmp_path):
            pass


async def test_a_directory_that_cannot_be_mounted_on_is_refused_on_every_machine(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutsideError, match="has file in it; give an empty directory"):
        async with mount(CgroupFS(2), tmp_path):
            pass
    with pytest.raises(OutsideError, match="no such file or directory"):
        async with mount(CgroupFS(2), tmp_path / "missing"):
            pass


@mountable
async def test_what_libfuse_says_is_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSE_LIBRARY_PATH", "/no/such/libfuse.so")
    with pytest.raises(OutsideError, match=r"/no/such/libfuse\.so: cannot open"):
        async with mount(CgroupFS(2), tmp_path):
            pass


# -- plain files ---------------------------------------------------------------------------------


@pytest.fixture
def refusals() -> list[Refusal]:
    return []


@pytest.fixture
async def projected(
    tmp_path: Path, refusals: list[Refusal]
) -> AsyncIterator[tuple[CgroupFS, Projection]]:
    fs = enabled()
    async with project(fs, tmp_path, refused=refusals.append) as projection:
        yield fs, projection
    assert list(tmp_path.iterdir()) == []


async def test_files_follow_the_fake(
    projected: tuple[CgroupFS, Projection], tmp_path: Path
) -> None:
    fs, projection = projected
    file = tmp_path / "web" / "memory.max"
    assert file.read_text() == "max\n"
    assert file.stat().st_mode & 0o777 == 0o644
    fs.path("/web/memory.max").write_text("4096")
    fs.path("/web/inner").mkdir()
    projection.refresh()
    assert file.read_text() == "4096\n"
    assert (tmp_path / "web/inner/cgroup.events").read_text() == "populated 0\nfrozen 0\n"
    fs.path("/web/inner").rmdir()
    fs.path("/cgroup.subtree_control").write_text("-memory")
    await settled(lambda: not (tmp_path / "web/inner").exists())  # by itself
    assert not file.exists()


async def test_the_fake_follows_the_files(
    projected: tuple[CgroupFS, Projection], tmp_path: Path, refusals: list[Refusal]
) -> None:
    fs, _ = projected
    await shell("echo 1M >web/memory.max; mkdir -p new/inner", tmp_path)
    await settled(lambda: fs.path("/new/inner").exists())
    assert fs.path("/web/memory.max").read_text() == "1048576\n"
    assert (tmp_path / "web/memory.max").read_text() == "1048576\n"
    await settled(lambda: (tmp_path / "new/inner/cgroup.procs").exists())
    await shell("rm -r new", tmp_path)
    await settled(lambda: not fs.path("/new").exists())
    assert refusals == []


async def test_what_is_refused_is_undone_and_told(
    projected: tuple[CgroupFS, Projection], tmp_path: Path, refusals: list[Refusal]
) -> None:
    fs, _ = projected
    fs.spawn("/web")
    await shell("echo 12x >web/memory.max", tmp_path)
    await settled(lambda: refusals)
    assert (tmp_path / "web/memory.max").read_text() == "max\n"
    await shell("rm -r web", tmp_path)
    await settled(lambda: len(refusals) > 1)
    assert (tmp_path / "web/cgroup.events").read_text() == "populated 1\nfrozen 0\n"
    fs.path("/cgroup.max.depth").write_text("1")
    (tmp_path / "web/deep").mkdir()
    await settled(lambda: len(refusals) > 2)
    assert not (tmp_path / "web/deep").exists()
    assert [str(r) for r in refusals] == [
        "/web/memory.max: write '12x\\n': invalid argument",
        "/web: rmdir: device or resource busy",
        "/web/deep: mkdir: resource temporarily unavailable",
    ]


async def test_real_processes_in_plain_files(tmp_path: Path) -> None:
    fs = enabled()
    async with project(fs, tmp_path, real_processes=True):
        sleeper = await asyncio.create_subprocess_exec("sleep", "600")
        await shell(f"echo {sleeper.pid} >web/cgroup.procs", tmp_path)
        procs = tmp_path / "web/cgroup.procs"
        await settled(lambda: fs.path("/web/cgroup.procs").read_text())
        assert procs.read_text() == f"{sleeper.pid}\n"
        sleeper.kill()
        await settled(lambda: not procs.read_text())
        await sleeper.wait()


async def test_the_projection_wants_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutsideError, match=r"project .*: has file in it"):
        async with project(CgroupFS(2), tmp_path):
            pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


# -- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mount", "/no/such"], "no such file or directory"),
        (["project", "/no/such"], "no such file or directory"),
        (["project", "/no/such", "--controllers", "cpu,nonsense"], "controller 'nonsense'"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cgroupfs", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fakecri: error: ")
    assert message in error
    assert error.count("\n") == 1


async def test_project_from_the_command_line(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLI, "cgroupfs", "project", str(tmp_path)),
        *("--version", "1", "--controllers", "cpu,cpuacct", "--controllers", "pids"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    await process.stdout.readline()
    assert (tmp_path / "cpu,cpuacct/cpu.shares").read_text() == "1024\n"
    (tmp_path / "pids/cgroup.procs").write_text("x")
    refused = await process.stderr.readline()
    assert (
        refused == b"fakecri cgroupfs: refused: /pids/cgroup.procs: write 'x': invalid argument\n"
    )
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    assert list(tmp_path.iterdir()) == []
