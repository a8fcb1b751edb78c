"""The cgroup file system of a machine, as the machine uses it.

It is made for the machine's CPUs, nodes and huge pages; what is charged there counts as used; the
OOM killer may take processes there; a reboot empties it.
"""

from __future__ import annotations

from typing import Final, Literal

from fakecri.cgroupfs import CgroupFS, Machine
from fakecri.cgroupfs.processes import Process
from fakecri.machine.values import NEVER_A_VICTIM, Victim
from kubeobjects.topology import MachineTopology, page_size_name
from simclock import Clock

_FIRST_FREE_PID: Final = 1 << 20
"""Processes that tests start in cgroups have higher ids; a runtime numbers its own."""


class NodeCgroups:
    """What a machine asks of its cgroup file system `fs`, and does with it."""

    def __init__(self, fs: CgroupFS) -> None:
        self.fs = fs

    @classmethod
    def of(
        cls, topology: MachineTopology, version: Literal[1, 2], clock: Clock | None
    ) -> NodeCgroups:
        """The file system of a machine with these CPUs, nodes and huge pages."""
        sizes = {pages.page_bytes for node in topology.nodes for pages in node.hugepages}
        machine = Machine(
            cpus=len(topology.cpus),
            memory_nodes=len(topology.nodes),
            hugepage_sizes=tuple(map(page_size_name, sorted(sizes, reverse=True))),
        )
        fs = CgroupFS(version, machine=machine, clock=clock)
        fs.processes.next_id = _FIRST_FREE_PID
        return cls(fs)

    def charged_bytes(self) -> int:
        """The working set of all cgroups, without process 1, which stands for what is in none."""
        for hierarchy in self.fs.mounts.values():
            memory = hierarchy.root.states.get("memory")
            if memory is not None:
                init = self.fs.init
                return int(memory.usage_bytes - memory.cache_bytes - init.memory_bytes)
        return 0

    def candidates(self) -> list[Victim]:
        """The processes that the kernel may kill when the machine is out of memory."""
        return [
            self.victim(process)
            for process in self.fs.processes.processes.values()
            if process.alive
            and process not in (self.fs.init, self.fs.writer)
            and process.oom_score_adj > NEVER_A_VICTIM
        ]

    def victim(self, process: Process) -> Victim:
        """A process, as one to be killed since the machine is out of memory."""
        leaf = next(iter(process.leader.at.values()))
        return Victim(
            name=process.name,
            pid=process.pid,
            memory_bytes=process.memory_bytes,
            oom_score_adj=process.oom_score_adj,
            cgroup=leaf.path,
            kill=lambda: process.oom_kill(noticed=self.fs.version == 2),
        )

    def clear(self) -> None:
        """Kill all processes and remove all groups, as a reboot does."""
        for process in list(self.fs.processes.processes.values()):
            if process not in (self.fs.init, self.fs.writer):
                process.kill()
                process.reap()
        for hierarchy in self.fs.mounts.values():
            for cgroup in reversed(list(hierarchy.root.down())[1:]):
                cgroup.rmdir()
