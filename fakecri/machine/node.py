"""The fake machine: memory, filesystems, CPUs, cgroups, and what the containers take of them.

`tenant` says what the containers use; `memory()` and `filesystem()` add that to the base load, so
CRI statistics and the machine's own numbers always agree. The methods have the shape that a kubelet
under test wants of its machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from fakecri import cgroupfs, machine
from fakecri.cgroupfs import interface
from fakecri.machine import oom_report
from fakecri.machine.kernel_log import KernelLog, KernelLogReader
from fakecri.machine.logind import FakeLogind
from fakecri.machine.values import GIB, Filesystem, InterfaceTraffic, Tenant, Usage, Victim
from kubeobjects.arguments import arguments_told
from kubeobjects.machine import FilesystemStats, MemoryStats, PidStats
from simclock import Clock

if TYPE_CHECKING:  # only a node with a layout of its own needs it at run time
    from kubeobjects.topology import MachineTopology

_OTHER_PID: Final = 700
_SETTINGS: Final = (
    *("memory_bytes", "base_memory_used_bytes", "cpus", "boot", "booted_ns", "traffic"),
    *("filesystems", "image_root", "address", "container_root", "image_fs_time_ns", "layout"),
    *("swap_total_bytes", "pid_limit", "base_pids"),
)
"""The fields of a node that are values."""


def _copied(filesystems: dict[str, Filesystem]) -> dict[str, Filesystem]:
    return {path: replace(filesystem) for path, filesystem in filesystems.items()}


@arguments_told
@dataclass(slots=True)
class FakeNode:
    """A machine. Change its fields while a test runs: they count at once."""

    memory_bytes: int = 8 * GIB
    """All RAM."""
    base_memory_used_bytes: int = 1 * GIB
    """RAM that is used by others than containers; see `use_memory`."""
    cpus: int = 4
    """The number of CPUs, unless `layout` says it."""
    boot: str = "00000000-0000-4000-8000-000000000001"
    """The boot id."""
    booted_ns: int | None = None
    """When it was booted, in ns since 1970; None: it does not say."""
    traffic: tuple[InterfaceTraffic, ...] = (InterfaceTraffic("eth0"),)
    """What its network interfaces have carried."""
    filesystems: dict[str, Filesystem] = field(default_factory=lambda: {"/": Filesystem("disk0")})
    """What is mounted, by path prefix; the longest prefix of a path counts."""
    image_root: str = "/var/lib/containerd"
    """The directory of the images, on one of the `filesystems`."""
    address: str = ""
    """Where pods on the host's network can be reached, beside 127.0.0.1."""
    container_root: str = ""
    """Where writable layers are, if not with the images: ImageFsInfo then tells of both."""
    image_fs_time_ns: int | None = None
    """A time stamp at which ImageFsInfo stands still; None: it is always now (EVIC-054)."""
    tenant: Tenant = field(default_factory=lambda: Tenant())
    """What runs on it: the fake runtime that was given this node."""
    clock: Clock | None = None
    """What the cgroup files read time from; the runtime of this node gives it its own."""
    cgroups_version: Literal[1, 2] = 2
    """The version of cgroups at /sys/fs/cgroup."""
    layout: MachineTopology | None = None
    """CPUs and NUMA nodes; None: a socket with one core for each of `cpus`, and huge pages of the
    usual sizes, none of them set aside. Overrides `cpus`."""
    swap_total_bytes: int = 0
    """0: the machine has no swap."""
    pid_limit: int = 32_768
    """The most tasks that there can be."""
    base_pids: int = 100
    """The number of tasks of others than containers."""
    log: KernelLog = field(default_factory=KernelLog)
    """The kernel's log."""
    logind: FakeLogind = field(default_factory=FakeLogind)
    """Holds up shutdowns, and tells kubelets of them."""
    _cgroups: machine.NodeCgroups | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def settings(self) -> dict[str, Any]:
        """What it was given, for `restore`: sizes, filesystems, image directories, layout."""
        settings = {name: getattr(self, name) for name in _SETTINGS}
        return settings | {"filesystems": _copied(self.filesystems)}

    def as_given(self) -> FakeNode:
        """Another machine with the same settings."""
        return FakeNode(cgroups_version=self.cgroups_version, **self.settings())

    def restore(self, settings: dict[str, Any]) -> None:
        """As it was when it gave these settings; its log and cgroups are empty."""
        for name, value in settings.items():
            setattr(self, name, value)
        self.filesystems = _copied(self.filesystems)
        self.log, self.logind = KernelLog(), FakeLogind()
        self.forget_cgroups()

    def now_ns(self) -> int:
        """The time of its tenant, nanoseconds since 1970."""
        return self.tenant.now_ns()

    def usage(self) -> Usage:
        """What containers and images use of the machine now."""
        return self.tenant.usage()

    def tasks(self) -> int:
        """The number of processes of containers and sandboxes."""
        return self.tenant.tasks()

    def memory(self) -> MemoryStats:
        """Total and used memory, base load and containers together."""
        used = self.base_memory_used_bytes + self.containers_memory_bytes()
        return MemoryStats(self.memory_bytes, min(used, self.memory_bytes), self.now_ns())

    def containers_memory_bytes(self) -> int:
        """The working set of all containers, and of whatever else is in a cgroup."""
        if self._cgroups is None:
            return self.usage().memory_bytes
        self.tenant.settle()
        return self.usage().memory_bytes + self._cgroups.charged_bytes()

    def use_memory(self, base_used_bytes: int) -> None:
        """Let others than containers use so much from now on. Thresholds on the root cgroup may
        fire."""
        self.base_memory_used_bytes = base_used_bytes
        if self._cgroups is not None:
            self._cgroups.fs.before_use()

    def filesystem(self, path: str) -> FilesystemStats:
        """The filesystem that holds `path`. Raises FileNotFoundError when none is mounted there."""
        mounts = [m for m in self.filesystems if _below(path, m)]
        if not mounts:
            raise FileNotFoundError(f"{path} is on no filesystem of the fake node")
        fs = self.filesystems[max(mounts, key=len)]
        usage = self.usage()
        used = fs.base_used_bytes
        used += usage.writable_bytes if fs.holds_containers else 0
        used += usage.image_bytes if fs.holds_images else 0
        used_inodes = fs.base_used_inodes
        used_inodes += usage.writable_inodes if fs.holds_containers else 0
        used_inodes += usage.image_inodes if fs.holds_images else 0
        free_inodes = max(0, fs.inodes - used_inodes)
        available = max(0, fs.capacity_bytes - used)
        return FilesystemStats(
            device=fs.device,
            capacity_bytes=fs.capacity_bytes,
            available_bytes=available,
            inodes=fs.inodes,
            inodes_free=free_inodes,
            time_ns=self.now_ns(),
        )

    def cpu_count(self) -> int:
        """The number of CPUs."""
        return self.cpus if self.layout is None else len(self.layout.cpus)

    def boot_id(self) -> str:
        return self.boot

    def boot_time_ns(self) -> int | None:
        return self.booted_ns

    def interfaces(self) -> tuple[InterfaceTraffic, ...]:
        """The network interfaces of the machine, and what they have carried."""
        return self.traffic

    @property
    def cgroups(self) -> cgroupfs.CgroupFS:
        """The file system at /sys/fs/cgroup. It is made when it is first asked for; set it to have
        another."""
        if self._cgroups is None:
            made = machine.NodeCgroups.of(self.topology(), self.cgroups_version, self.clock)
            self.cgroups = made.fs
            return made.fs
        return self._cgroups.fs

    @cgroups.setter
    def cgroups(self, cgroups: cgroupfs.CgroupFS) -> None:
        self._cgroups = machine.NodeCgroups(cgroups)
        self.cgroups_version = 1 if cgroups.version == 1 else 2
        cgroups.belongs_to(self)

    def forget_cgroups(self) -> None:
        """Empty the cgroup file system, as a reboot does."""
        if self._cgroups is not None:
            self._cgroups.clear()

    def before_use(self) -> None:
        """Charge what was used up to now: a cgroup file is about to be opened."""
        self.tenant.settle()

    def out_of_memory(
        self,
        full: interface.Cgroup,
        victims: Sequence[interface.Process],
        group: interface.Cgroup | None,
    ) -> None:
        """Say in the kernel's log which processes die because the group `full` has no room."""
        for line in oom_report.of_memcg(full, victims, group):
            self.kernel_says(line)

    def cgroup_root(self) -> cgroupfs.CgroupPath:
        return self.cgroups.path()

    def cgroup_version(self) -> Literal[1, 2]:
        return self.cgroups_version

    def watch_memory(
        self, cgroup: str, usage_bytes: int, passed: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `passed` each time the memory of a cgroup v1 passes so many bytes. Returns a
        function that ends that (CG-133)."""
        directory = self.cgroups.path("/memory") / cgroup
        event = self.cgroups.eventfd()
        event.on_signal.append(passed)
        with (directory / "memory.usage_in_bytes").open() as usage:
            text = f"{event.fd} {usage.fd} {usage_bytes}"
            (directory / "cgroup.event_control").write_text(text)
        return event.close

    def kill_process(self, pid: int) -> None:
        """Send a process SIGKILL; one that is gone is no error."""
        process = self.cgroups.processes.processes.get(pid)
        if process is not None and process.alive:
            process.kill()

    def pids(self) -> PidStats:
        """How many tasks there can be, and how many there are."""
        return PidStats(self.pid_limit, self.base_pids + self.tasks(), self.now_ns())

    def limits_swap(self) -> bool:
        """Whether cgroups can be limited in their use of swap."""
        return True

    def swap_bytes(self) -> int:
        return self.swap_total_bytes

    def topology(self) -> MachineTopology:
        """CPUs, NUMA nodes and huge pages: `layout`, or one made for `cpus` and `memory_bytes`."""
        if self.layout is not None:
            return self.layout
        return machine.uniform_topology(
            cores=self.cpus, memory_bytes=self.memory_bytes, hugepages=machine.NO_HUGEPAGES
        )

    def oom(self, process: str = "", pid: int = 0) -> Victim:
        """Run out of memory: the kernel kills the process with the highest score in any cgroup, and
        says so in its log. Returns that process.

        With `process` a process with that name outside of cgroups dies instead. Raises LookupError
        when no process may be killed.
        """
        if process:
            return self._kill_outside(process, pid)
        scored = [*self.tenant.candidates(), *self._candidates_in_cgroups()]
        if not scored:
            raise LookupError("no process may be killed: none is in a cgroup and none was named")
        best = max(scored, key=lambda victim: victim.score(self.memory_bytes))
        self._say_killed(best)
        best.kill()
        return best

    def kill_for_memory(self, process: cgroupfs.Process) -> None:
        """Kill a process in a cgroup: the machine is out of memory."""
        assert self._cgroups is not None, "the process is in a cgroup"
        victim = self._cgroups.victim(process)
        self._say_killed(victim)
        victim.kill()

    def _kill_outside(self, name: str, pid: int) -> Victim:
        victim = Victim(name[:15], pid or _OTHER_PID, self.base_memory_used_bytes)
        self._say_killed(victim)
        return victim

    def _say_killed(self, victim: Victim) -> None:
        for line in oom_report.of_machine(victim):
            self.kernel_says(line)

    def _candidates_in_cgroups(self) -> list[Victim]:
        if self._cgroups is None:
            return []
        self.tenant.settle()
        return self._cgroups.candidates()

    def kernel_says(self, text: str) -> None:
        """Write a line into the kernel's log."""
        self.log.say(self.now_ns(), text)

    def kernel_log(self) -> KernelLogReader:
        """A reader of what the kernel says from now on. Raises `log.error` if that is set."""
        return self.log.reader()


def _below(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip("/") + "/")
