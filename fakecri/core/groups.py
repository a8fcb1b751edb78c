"""Containers and sandboxes that have a cgroup: their process there, and what it uses.

One source of truth: what a container uses is charged to its process in `FakeNode.cgroups`, and
statistics, cgroup files and the machine's own numbers are read from there. A limit, its own or one
above, has the kernel's consequences. Functions of a core. What must never happen here: a container
has ended and its directory or its process is still there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from criapi.v1 import api_pb2 as pb

from fakecri.cgroupfs import memory_use
from fakecri.cgroupfs.processes import Process
from fakecri.cgroupfs.tree import Cgroup
from fakecri.cgroupfs.values import PAGE_BYTES, UNLIMITED
from fakecri.core import cgroup_dirs
from fakecri.core.cgroup_limits import settings
from fakecri.core.requests import complete, copied
from fakecri.errors import unknown
from fakecri.rules.curves import area

if TYPE_CHECKING:
    from fakecri.core.objects import Container
    from fakecri.core.runtime import Core


@dataclass(slots=True, eq=False)
class Group:
    """The directories of a container or sandbox by mount, its main process and its others."""

    places: dict[str, Cgroup]
    main: Process
    others: list[Process] = field(default_factory=list)
    cpu_ns: int = 0
    """CPU time that was charged."""

    @property
    def memory(self) -> memory_use.Memory | None:
        """Of the directory; None on a machine without that controller."""
        found = (c.states.get(memory_use.MEMORY) for c in self.places.values())
        return next((memory for memory in found if memory is not None), None)

    @property
    def pids(self) -> int:
        """Tasks that live in it."""
        return next(iter(self.places.values())).live


def enter(
    core: Core,
    object_id: str,
    parent: str,
    resources: pb.LinuxContainerResources,
    *,
    name: str,
    oom_score_adj: int,
    died: Callable[[Process], None],
) -> Group:
    """Make the directories, start the process there and write the limits.

    `died` is called when the process ends. Raises OSError, and then nothing of it is left.
    """
    fs = core.node.cgroups
    places = cgroup_dirs.make(fs, cgroup_dirs.directory_of(parent, object_id))
    try:
        main = fs.processes.start_in(places, core.next_pid())
        cgroup_dirs.write_all(places, settings(fs.version, resources))
    except OSError:
        cgroup_dirs.remove(places)
        raise
    main.name, main.oom_score_adj = name[:15], oom_score_adj
    main.on_exit.append(died)
    return Group(places, main)


def leave(group: Group) -> None:
    """Its processes die, and its directories go with their page cache; its CPU time stays with
    those above."""
    if (memory := group.memory) is not None:
        memory_use.set_cache(memory, 0)
    group.main.on_exit.clear()
    cgroup_dirs.remove(group.places)


def limit(group: Group, resources: pb.LinuxContainerResources) -> None:
    """UpdateContainerResources: write the limits. Raises CriError in runc's words."""
    version = next(iter(group.places.values())).hierarchy.version
    resources = copied(resources)
    complete(resources)
    wanted = settings(version, resources)
    if version == 1 and resources.memory_limit_in_bytes > 0:
        memory = group.memory
        if memory is not None and resources.memory_limit_in_bytes > memory.with_swap_limit_bytes:
            wanted.reverse()  # memory is never above memory with swap (CG-131)
    try:
        cgroup_dirs.write_all(group.places, wanted)
    except OSError as error:
        raise unknown(
            f"failed to update resources: failed to update resources: {_of_runc(error)}: unknown"
        ) from None


def failed_start(error: OSError) -> str:
    """What a start says that fails for its cgroup."""
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        f"runc create failed: unable to start container process: {_of_runc(error)}: unknown"
    )


def _of_runc(error: OSError) -> str:
    text = (error.strerror or "").lower()
    return f"unable to apply cgroup configuration: {error.filename}: {text}"


def use(core: Core, container: Container) -> None:
    """Charge what the container uses by now; limits may kill it, or others."""
    group, age_s = container.group, container.age_s(core.now_ns())
    if group is None:
        return
    charge_cpu(core, container)
    plan = container.plan
    _fork(core, group, plan.pids(age_s))
    memory = group.memory
    if memory is not None:
        memory_use.set_cache(memory, plan.cache_bytes(age_s))
    if group.main.alive and group.main.memory_bytes != plan.memory_bytes(age_s):
        memory_use.set_process(group.main, plan.memory_bytes(age_s))
    if group.main.alive and plan.oom_at is not None and plan.oom_at.at_s <= age_s:
        exhaust(core, group)


def exhaust(core: Core, group: Group) -> None:
    """Its main process wants a page more than there is."""
    memory = group.memory
    limited = () if memory is None else memory.cgroup.states_up(memory_use.MEMORY)
    for above in limited:
        if above.limit_bytes < UNLIMITED:
            above.reclaim(above.cache_bytes)
            room = max(0, above.limit_bytes - above.usage_bytes)
            memory_use.set_process(group.main, group.main.memory_bytes + room + PAGE_BYTES)
            return
    core.node.kill_for_memory(group.main)


def kill_child(core: Core, group: Group) -> None:
    """The kernel kills a child process for memory; the others go on."""
    child = group.main.table.start(group.main.leader, core.next_pid())
    child.name, child.oom_score_adj = group.main.name, group.main.oom_score_adj
    if group.memory is not None and group.main.table.on_oom is not None:
        group.main.table.on_oom(group.memory, [child], None)
    memory_use.oom_kill(child)
    child.reap()


def _fork(core: Core, group: Group, wanted: int) -> None:
    """Have that many processes, or as many as pids.max allows."""
    while 1 + len(group.others) > max(1, wanted):
        process = group.others.pop()
        process.kill()
        process.reap()
    table = group.main.table
    while 1 + len(group.others) < wanted and group.main.alive:
        try:
            child = table.start(group.main.leader, core.next_pid())
        except OSError:
            return
        child.name, child.oom_score_adj = group.main.name, group.main.oom_score_adj
        group.others.append(child)


def charge_cpu(core: Core, container: Container) -> None:
    """The CPU time since it was last charged."""
    group = container.group
    if group is None or not container.plan.uses.cpu:
        return
    used_ns = area(container.plan.uses.cpu, container.age_s(core.now_ns()))
    for cgroup in group.places.values():
        cgroup.use_cpu(used_ns - group.cpu_ns, 0)
    group.cpu_ns = used_ns


def settle(core: Core) -> None:
    """Bring up to date what grows with time, and what others than containers use."""
    node = core.node
    wanted = max(0, node.base_memory_used_bytes + core.used.total(core.now_ns()).memory)
    init = node.cgroups.init
    if init.memory_bytes != wanted:
        memory_use.set_process(init, wanted)
    if core.burning and core.settled_ns != core.now_ns():
        core.settled_ns = core.now_ns()
        for container in list(core.burning.values()):
            charge_cpu(core, container)
