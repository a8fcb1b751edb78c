"""A given machine: everything that a kubelet process reads of its machine comes from a fake node.

`given_machine` makes files, mounts, disks and sockets for one case; `Program.command` behind
`GivenMachine.prefix` then is a kubelet on that machine. Numbers of the node may change at any time;
CPUs, NUMA nodes and huge pages are read when the kubelet starts.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from fakecri import FakeNode
from fakecri.cgroupfs.outside import mount_requests, why_no_mount
from kubelet_conformance.harness.machines import fake_machine
from kubelet_conformance.harness.machines.given import launcher, proc_files, sys_files
from kubelet_conformance.harness.machines.given.answers import CallAnswers
from kubelet_conformance.harness.machines.given.disks import (
    CGROUP_PLACE,
    KernelOfNode,
    disks_in_memory,
)
from kubelet_conformance.harness.machines.given.kernel_log import KernelLogPipes
from kubelet_conformance.harness.machines.given.live_files import LiveFiles
from simclock import Clock

SYS_PLACES: Final = {
    "cpu": "/sys/devices/system/cpu",
    "node": "/sys/devices/system/node",
    "hugepages": "/sys/kernel/mm/hugepages",
}
PROC: Final = "/proc/"
LIVE_TEXTS: Final = ("meminfo", "loadavg")
SERVICE: Final = "/system.slice/kubelet.service"
"""The kubelet's own cgroup with v2, as systemd makes it: the root has no memory.swap.max, by which
kubelets see whether swap can be limited."""
DEVICES: Final = "/dev"
KERNEL_LOG: Final = "kmsg"
"""In DEVICES."""
SYSTEMD: Final = "/etc/systemd"
"""Where a kubelet writes that shutdowns may be delayed for longer."""
SECOND_NS: Final = 1_000_000_000


def why_no_machine() -> str:
    """Why this machine cannot give a kubelet another one; "" when it can."""
    if os.geteuid() != 0:
        return "needs root"
    try:
        launcher.numbers_of_this_machine()
    except launcher.Refused as problem:
        return str(problem)
    if not _tells_calls():
        return "the kernel tells no other process of system calls; wanted Linux 5.5 or newer"
    return why_no_mount()


def why_no_cgroup_v1() -> str:
    """Why such a machine cannot have cgroup v1: kubelets look for its trees in the list of mounts,
    which is the kernel's."""
    with open("/proc/self/mountinfo") as file:
        mounted = {line.split(" - ")[1].split()[0] for line in file}
    return "" if "cgroup" in mounted else "no cgroup v1 is mounted on this machine"


def _tells_calls() -> bool:
    try:
        release = os.uname().release.split(".")
        return (int(release[0]), int(release[1].split("-")[0])) >= (5, 5)
    except (ValueError, IndexError):
        return False


class GivenMachine:
    """The machine of one case, below the directory `base`. `places`: see `fake_machine.PLACES`."""

    def __init__(self, node: FakeNode, clock: Clock, base: Path, root: Path) -> None:
        self.places: Mapping[str, str] = {
            **fake_machine.PLACES,
            fake_machine.IMAGES: str(base / "images"),
            fake_machine.CONTAINERS: str(base / "containers"),
        }
        self._node = node
        self._clock = clock
        self._base = base
        self.disks = [root, base / "images", base / "containers"]
        self._log: KernelLogPipes | None = None

    @property
    def live(self) -> Path:
        """Where the files that change are mounted."""
        return self._base / "live"

    @property
    def socket(self) -> Path:
        """Where the launcher hands the listener over."""
        return self._base / "calls"

    def texts(self) -> dict[str, str]:
        """The files below /proc as they are now, without those that change."""
        node, topology = self._node, self._node.topology()
        controllers = list(node.cgroups.mounts)
        booted_s = self._booted_ns() // SECOND_NS
        return {
            "cpuinfo": proc_files.cpuinfo(topology),
            "stat": proc_files.stat(topology, booted_s),
            "swaps": proc_files.swaps(node.swap_bytes()),
            "sys/kernel/pid_max": f"{node.pid_limit}\n",
            "sys/kernel/threads-max": f"{node.pid_limit}\n",
            "{pid}/cgroup": proc_files.own_cgroup(node.cgroups_version, controllers, SERVICE),
        }

    def live_texts(self) -> LiveFiles:
        """The files that change, and the cgroups."""
        node = self._node

        def meminfo() -> str:
            memory = node.memory()
            used, swap = memory.working_set_bytes, node.swap_bytes()
            return proc_files.meminfo(memory.total_bytes, used, swap, node.topology())

        texts = {"/meminfo": meminfo, "/loadavg": lambda: proc_files.loadavg(node.pids().running)}
        return LiveFiles(node.cgroups, texts, {f"/{KERNEL_LOG}": self._new_log_reader})

    def _new_log_reader(self) -> str:
        """Where one more program reads the kernel's log."""
        if self._log is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return str(self._log.new())

    def prefix(self, binds: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """The words before the kubelet's. `binds`: further places -> what is to be seen there."""
        plan = self._base / "plan.json"
        plan.write_text(json.dumps(self._plan(binds or {})))
        return (sys.executable, "-I", "-S", str(launcher.__file__), str(plan))

    def prepare(self) -> None:
        """Write the files anew: a kubelet is about to start."""
        files = self._base / "files"
        shutil.rmtree(files, ignore_errors=True)
        for name, text in self.texts().items():
            _write(files / "proc" / name, text)
        topology = self._node.topology()
        trees = {
            "cpu": sys_files.cpu_directory(topology),
            "node": sys_files.node_directory(topology),
            "hugepages": sys_files.hugepages_directory(topology),
        }
        for name, tree in trees.items():
            (files / "sys" / name).mkdir(parents=True)
            for path, content in tree.items():
                _write(files / "sys" / name / path, content)
        (files / "systemd").mkdir()
        self._make_service()
        self.end_log()
        (files / "devices").mkdir()
        self._log = KernelLogPipes(files / "kmsg", self._node.log, self._booted_ns())

    def _make_service(self) -> None:
        """Make the kubelet's own cgroup, with all controllers."""
        if self._node.cgroups_version != 2:
            return
        root = self._node.cgroup_root()
        controllers = (root / "cgroup.controllers").read_text().split()
        enabling = " ".join(f"+{name}" for name in controllers)
        *above, own = SERVICE.strip("/").split("/")
        place = root
        for name in above:
            (place / "cgroup.subtree_control").write_text(enabling)
            place = place / name
            place.mkdir(exist_ok=True)
        (place / "cgroup.subtree_control").write_text(enabling)
        (place / own).mkdir(exist_ok=True)

    def end_log(self) -> None:
        """No more lines of the kernel."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _booted_ns(self) -> int:
        """When this machine was started: kubelets ask it how long it has been up."""
        with open("/proc/uptime") as file:
            up_s = float(file.read().split()[0])
        return self._clock.wall_ns() - round(up_s * SECOND_NS)

    def _plan(self, further: Mapping[str, str]) -> dict[str, object]:
        files = self._base / "files"
        binds = [(str(files / "proc" / name), PROC + name) for name in self.texts()]
        binds += [(str(self.live / name), PROC + name) for name in LIVE_TEXTS]
        present = {name: place for name, place in SYS_PLACES.items() if os.path.isdir(place)}
        binds += [(str(files / "sys" / name), place) for name, place in present.items()]
        if os.path.isdir(SYSTEMD):
            binds.append((str(files / "systemd"), SYSTEMD))
        binds += [(target, place) for place, target in further.items()]
        trees = [tree for tree in self._node.cgroups.mounts if tree]  # of v1
        places = {f"{self.live}/cgroup/{tree}": f"{CGROUP_PLACE}/{tree}" for tree in trees}
        binds += (places or {f"{self.live}/cgroup": CGROUP_PLACE}).items()
        return {
            "empty": [CGROUP_PLACE] if trees else [],
            "directories": list(places.values()),
            "binds": binds,
            "devices": {
                "place": DEVICES,
                "real": str(files / "devices"),
                "links": {KERNEL_LOG: str(self.live / KERNEL_LOG)},
            },
            "shared": [str(disk) for disk in self.disks],
            "socket": str(self.socket),
        }


@asynccontextmanager
async def given_machine(
    node: FakeNode, clock: Clock, base: Path, root: Path
) -> AsyncIterator[GivenMachine]:
    """The machine of `node`, until the block ends. `base`: a directory for it, which is made;
    `root`: the kubelet's root directory, on the node's disk. Raises OutsideError or OSError
    where it cannot be (`why_no_machine`)."""
    machine = GivenMachine(node, clock, base, root)
    for directory in (base, machine.live, *machine.disks):
        directory.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        stack.enter_context(disks_in_memory(machine.disks))
        await stack.enter_async_context(mount_requests(machine.live_texts(), machine.live))
        answers = CallAnswers(machine.socket, KernelOfNode(node, machine.disks))
        stack.callback(answers.close)
        stack.callback(machine.end_log)
        yield machine


def _write(path: Path, content: str | sys_files.Link) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content)
    else:
        path.symlink_to(content.target)
