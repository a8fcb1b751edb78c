"""The cgroup of a container or sandbox: its directories, its processes, and what is charged there.

One source of truth: what a container uses is charged to its process in `FakeNode.cgroups`, and
statistics, cgroup files and the machine's own numbers are read from there. A limit, its own or one
above, has the kernel's consequences. What must never happen here: a container has ended and its
directory or a process of it is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from kubecri.v1 import api_pb2 as pb

from fakecri.behaviors.plan import Plan
from fakecri.cgroupfs import CgroupFS
from fakecri.cgroupfs.controllers import memory_use
from fakecri.cgroupfs.interface.tree import Cgroup
from fakecri.cgroupfs.interface.values import PAGE_BYTES, UNLIMITED
from fakecri.cgroupfs.processes import Process
from fakecri.core.cgroups import directories
from fakecri.core.cgroups.resources import complete, copied, settings
from fakecri.errors import CgroupRefused, unknown
from fakecri.words.curves import area, whole_ns

NextPid: TypeAlias = Callable[[Mapping[int, object]], int]
"""Gives a process id that is not among these."""


def enter(
    fs: CgroupFS,
    parent: str,
    object_id: str,
    resources: pb.LinuxContainerResources,
    *,
    next_pid: NextPid,
    name: str,
    oom_score_adj: int,
    died: Callable[[Process], None],
) -> ContainerCgroup:
    """Make the directories, start the process `name` there and write the limits.

    `parent`: the sandbox's cgroup_parent, `object_id`: of the container or sandbox (see
    `directory_of`). `died` is called when the process ends by itself. Raises CgroupRefused, and
    then nothing of it is left.
    """
    directory, places = directories.directory_of(parent, object_id), dict[str, Cgroup]()
    try:
        directories.make(fs, directory, places)
        main = fs.processes.start_in(places, next_pid(fs.processes.tasks))
    except OSError as error:
        directories.remove(places)
        why = (error.strerror or "").lower()
        at = f"mkdir {error.filename}: " if error.filename else ""
        raise CgroupRefused(f"unable to apply cgroup configuration: {at}{why}") from None
    try:
        directories.write_all(places, settings(fs.version, resources))
    except CgroupRefused as refused:
        directories.remove(places)
        at = "error during container init: error setting cgroup config for procHooks process"
        raise CgroupRefused(f"{at}: {refused}") from None
    main.name, main.oom_score_adj = name[:15], oom_score_adj
    main.on_exit.append(died)
    return ContainerCgroup(places, main, next_pid)


@dataclass(slots=True, eq=False)
class ContainerCgroup:
    """The directories by mount, the main process and the others."""

    places: dict[str, Cgroup]
    main: Process
    next_pid: NextPid
    others: list[Process] = field(default_factory=list)
    cpu_ns: int = 0
    """CPU time that was charged."""

    @property
    def memory(self) -> memory_use.Memory | None:
        """Of the directory; None on a machine without that controller."""
        memories = (c.states.get(memory_use.MEMORY) for c in self.places.values())
        return next((memory for memory in memories if memory is not None), None)

    @property
    def pids(self) -> int:
        """Tasks that live in it."""
        return next(iter(self.places.values())).live

    def leave(self) -> None:
        """Its processes die, wherever they were moved to, and its directories go with their page
        cache; its CPU time stays with those above."""
        if (memory := self.memory) is not None:
            memory_use.set_cache(memory, 0)
        self.main.on_exit.clear()
        directories.remove(self.places)
        for process in (self.main, *self.others):
            directories.end(process)

    def limit(self, resources: pb.LinuxContainerResources) -> None:
        """UpdateContainerResources: write the limits. Raises CriError in runc's words."""
        version = next(iter(self.places.values())).hierarchy.version
        resources = copied(resources)
        complete(resources)
        current = self.memory.limit_bytes if self.memory is not None else None
        try:
            directories.write_all(self.places, settings(version, resources, current))
        except CgroupRefused as refused:
            raise unknown(
                "failed to update resources: failed to update resources: runc did not terminate "
                f"successfully: exit status 1: {refused}\n: unknown"
            ) from None

    def use(self, plan: Plan, age_s: float, out_of_memory: Callable[[Process], None]) -> None:
        """Charge what `plan` says of that age; limits may kill it, or others. `out_of_memory`: what
        the machine does to a process that no limit holds back."""
        self.charge_cpu(plan, age_s)
        self._fork(plan.pids(age_s))
        memory = self.memory
        if memory is not None:
            memory_use.set_cache(memory, plan.cache_bytes(age_s))
        with suppress(OSError):  # no process can be killed for it: it has what fits
            if self.main.alive and self.main.memory_bytes != plan.memory_bytes(age_s):
                memory_use.set_process(self.main, plan.memory_bytes(age_s))
            if self.main.alive and plan.oom_at is not None and whole_ns(plan.oom_at.at_s) <= age_s:
                self._exhaust(out_of_memory)

    def charge_cpu(self, plan: Plan, age_s: float) -> None:
        """The CPU time since it was last charged."""
        if plan.uses.cpu_millicores:
            used_ns = area(plan.uses.cpu_millicores, age_s)
            for cgroup in self.places.values():
                cgroup.use_cpu(used_ns - self.cpu_ns, 0)
            self.cpu_ns = used_ns

    def kill_child(self) -> None:
        """The kernel kills a child process for memory; the others go on."""
        child = self._child()
        if self.memory is not None:
            child.table.tell_oom(self.memory.cgroup, [child], None)
        memory_use.oom_kill(child)

    def _exhaust(self, out_of_memory: Callable[[Process], None]) -> None:
        """Its main process wants a page more than there is."""
        memory = self.memory
        limited = () if memory is None else memory.cgroup.states_up(memory_use.MEMORY)
        for above in limited:
            if above.limit_bytes < UNLIMITED:
                above.reclaim(above.cache_bytes)
                room = max(0, above.limit_bytes - above.usage_bytes)
                memory_use.set_process(self.main, self.main.memory_bytes + room + PAGE_BYTES)
                return
        out_of_memory(self.main)

    def _fork(self, wanted: int) -> None:
        """Have that many processes, or as many as pids.max allows."""
        for child in self.others[max(0, wanted - 1) :]:
            child.kill()
        while 1 + len(self.others) < wanted and self.main.alive:
            try:
                self._child()
            except OSError:
                return

    def _child(self) -> Process:
        table = self.main.table
        child = table.start(self.main.leader, self.next_pid(table.tasks))
        child.name, child.oom_score_adj = self.main.name, self.main.oom_score_adj
        child.on_exit.append(self._gone)
        self.others.append(child)
        return child

    def _gone(self, child: Process) -> None:
        self.others.remove(child)
        child.reap()
