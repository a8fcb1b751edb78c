"""A program on a given machine sees the fake node, and what it does to cgroups arrives there."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakecri import FakeNode
from fakecri.machine.kernel_log import KernelLog
from kubelet_conformance.harness.kubelets.mounts import mounted_below
from kubelet_conformance.harness.machines import fake_machine
from kubelet_conformance.harness.machines.given import answers, launcher
from kubelet_conformance.harness.machines.given.kernel_log import KernelLogPipes
from kubelet_conformance.harness.machines.given.live_files import LiveFiles
from kubelet_conformance.harness.machines.given.machine import (
    GivenMachine,
    given_machine,
    why_no_machine,
)
from simclock import RealClock

GIB = 1 << 30
needs_machine = pytest.mark.skipif(bool(why_no_machine()), reason=why_no_machine())
PROGRAM = """
import json, os, sys
def text(path):
    with open(path) as file:
        return file.read()
root, images, victim = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.mkdir("/sys/fs/cgroup/pods")
assert os.path.exists("/sys/fs/cgroup/system.slice/kubelet.service/memory.swap.max")
with open("/sys/fs/cgroup/cgroup.subtree_control", "w") as file:
    file.write("+memory +pids")
with open("/sys/fs/cgroup/pods/memory.max", "w") as file:
    file.write("64M")
os.kill(victim, 9)
if os.path.isdir("/etc/systemd"):
    open("/etc/systemd/" + os.path.basename(os.path.dirname(root)), "w").close()
try:
    os.kill(int(sys.argv[4]), 0)
    stranger = "there"
except ProcessLookupError:
    stranger = "gone"
disks = {}
for name, path in (("root", root), ("images", images)):
    found = os.statvfs(path)
    disks[name] = [found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_ffree]
lines = []
for _ in range(2):  # each reader gets all
    with open("/dev/kmsg", "rb", buffering=0) as log:
        lines.append(log.read(8192).decode())
with open("/dev/null", "w") as nothing:
    nothing.write("a device of the real machine")
print(json.dumps({
    "memory": text("/proc/meminfo").split()[1],
    "tasks": text("/proc/loadavg").split()[3],
    "pids": text("/proc/sys/kernel/pid_max").strip(),
    "cpus": text("/sys/devices/system/cpu/online").strip(),
    "cgroup": text("/proc/self/cgroup"),
    "disks": disks, "log": lines, "stranger": stranger,
}))
"""


async def _run(machine: GivenMachine, root: Path, node: FakeNode, stranger: int) -> dict[str, Any]:
    victim = node.cgroups.spawn()
    machine.prepare()
    process = await asyncio.create_subprocess_exec(
        *machine.prefix(),
        *(sys.executable, "-c", PROGRAM, str(root), machine.places[fake_machine.IMAGES]),
        *(str(victim.pid), str(stranger)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    assert victim.exit_status == -9
    return dict(json.loads(out))


@needs_machine
async def test_a_program_sees_the_numbers_of_the_node_and_changes_its_cgroups(
    tmp_path: Path,
) -> None:
    node = FakeNode(memory_bytes=8 * GIB, cpus=3, pid_limit=5000, base_pids=77)
    root = tmp_path / "kubelet"
    memory = Path("/proc/meminfo").read_text().split()[1]
    stranger = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        async with given_machine(node, RealClock(), tmp_path / "machine", root) as machine:
            fake_machine.separate_disks(node, split=False, places=machine.places)
            fake_machine.leave_disk(node, fake_machine.IMAGES, GIB + 1, machine.places)
            node.kernel_says("oom-kill: one")
            seen = await _run(machine, root, node, stranger.pid)
            limit = node.cgroups.path("/pods/memory.max").read_text()
    finally:
        stranger.kill()
        await stranger.wait()
    assert seen["memory"] == str(8 * GIB // 1024)
    assert (seen["tasks"], seen["pids"], seen["cpus"]) == ("1/77", "5000", "0-2")
    assert seen["cgroup"] == "0::/system.slice/kubelet.service\n"
    disks = seen["disks"]
    assert disks["root"] == [100 * GIB, 80 * GIB, 6_553_600 - 500_000]
    assert disks["images"][:2] == [100 * GIB, GIB + 1]
    assert len(seen["log"]) == 2
    assert all(line.endswith(",-;oom-kill: one\n") for line in seen["log"])
    assert seen["stranger"] == "gone", "processes of this machine must not be reached"
    assert limit == f"{64 << 20}\n"
    assert mounted_below(tmp_path) == {}
    assert not Path("/etc/systemd", tmp_path.name).exists()
    assert Path("/proc/meminfo").read_text().split()[1] == memory


def test_without_root_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_no_machine() == "needs root"


def test_another_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher.platform, "machine", lambda: "mips")
    with pytest.raises(launcher.Refused, match="this machine is mips; wanted x86_64 or aarch64"):
        launcher.numbers_of_this_machine()


def test_the_filter_tells_its_four_calls_and_no_other() -> None:
    """The filter, run as the kernel runs it."""
    numbers = launcher.MACHINES["x86_64"]
    told = {
        call
        for call in range(500)
        if _filtered(launcher.filter_program(numbers), numbers.audit, call) == launcher.NOTIFY
    }
    assert told == {62, 137, 138, 434}
    other = _filtered(launcher.filter_program(numbers), 0x40000003, 62)
    assert other == launcher.ALLOW


def _filtered(program: bytes, audit: int, call: int) -> int:
    import struct

    data = {launcher.CALL_AT: call, launcher.MACHINE_AT: audit}
    steps = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == launcher.LOAD:
            accumulator = data[value]
        elif code == launcher.JUMP_IF_EQUAL:
            at += then if accumulator == value else otherwise
        else:
            return int(value)


def test_only_the_caller_and_its_children_may_be_reached() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert answers.is_of(os.getpid(), child.pid)
        assert answers.is_of(os.getpid(), os.getpid())
        assert not answers.is_of(child.pid, os.getpid())
        assert not answers.is_of(os.getpid(), 1)
        assert not answers.is_of(os.getpid(), -1)
    finally:
        child.kill()
        child.wait()


def test_the_log_is_a_record_for_each_read_and_whole_for_each_reader(tmp_path: Path) -> None:
    log = KernelLog()
    log.say(2_000_000, "before")
    pipes = KernelLogPipes(tmp_path / "kmsg", log, booted_ns=1_000_000)
    readers = [os.open(pipes.new(), os.O_RDONLY | os.O_NONBLOCK) for _ in range(2)]
    try:
        log.say(3_000_000, "after")
        for reader in readers:
            assert os.read(reader, 8192) == b"6,1,1000,-;before\n"
            assert os.read(reader, 8192) == b"6,2,2000,-;after\n"
            with pytest.raises(BlockingIOError):
                os.read(reader, 8192)
    finally:
        for reader in readers:
            os.close(reader)
        pipes.close()
    assert log.listeners == []


def test_a_link_may_lead_elsewhere_each_time_it_is_followed() -> None:
    number = iter(range(10))
    files = LiveFiles(FakeNode().cgroups, {}, {"/log": lambda: f"/logs/{next(number)}"})
    assert stat.S_ISLNK(files.answer("getattr", "/log")["st_mode"])
    assert [files.answer("readlink", "/log") for _ in range(2)] == ["/logs/0", "/logs/1"]
    with pytest.raises(PermissionError):
        files.answer("readlink", "/other")


def test_texts_are_made_when_they_are_opened_and_cannot_be_written() -> None:
    node = FakeNode()
    number = iter(range(10))
    files = LiveFiles(node.cgroups, {"/count": lambda: f"{next(number)}\n"})
    first, second = files.answer("open", "/count"), files.answer("open", "/count")
    assert files.answer("read", second, 100, 0) == b"1\n"
    assert files.answer("read", first, 100, 0) == b"0\n"
    assert files.answer("read", first, 100, 2) == b""
    files.answer("release", first)
    assert [name for name, _ in files.answer("readdir", "/", 0)] == ["cgroup", "count"]
    with pytest.raises(PermissionError):
        files.answer("write", second, b"5", 1)
    with pytest.raises(PermissionError):
        files.answer("mkdir", "/new")
    with pytest.raises(FileNotFoundError):
        files.answer("getattr", "/none")


def test_the_cgroups_are_below_their_own_directory() -> None:
    node = FakeNode()
    files = LiveFiles(node.cgroups, {})
    files.answer("mkdir", "/cgroup/pods")
    assert node.cgroups.path("/pods").is_dir()
    opened = files.answer("open", "/cgroup/pods/cgroup.type")
    assert files.answer("read", opened, 100, 0) == b"domain\n"
