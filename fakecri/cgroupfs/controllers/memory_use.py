"""Memory that is charged to groups: limits, reclaim, the OOM killer, thresholds.

A charge goes up the tree. Where it does not fit, page cache below that group is reclaimed; if that
is not enough the OOM killer takes processes there, the biggest first (CG-131, CG-132, CG-134,
CG-135). Whole amounts are exact here; the kernel charges in batches of pages. What must never
happen here: the usage of a group is not the sum of its own anonymous memory and page cache and of
its children's usage.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fakecri.cgroupfs.interface.tree import Cgroup, Process
from fakecri.cgroupfs.interface.values import UNLIMITED, refuse

MEMORY: Final = "memory"
NEVER_A_VICTIM: Final = -1000
EVENTS: Final = ("low", "high", "max", "oom", "oom_kill", "oom_group_kill", "sock_throttled")


@dataclass(slots=True)
class Threshold:
    """Calls `fire` when the usage crosses `at_bytes`, up or down (CG-133)."""

    at_bytes: int
    fire: Callable[[], None]
    above: bool


@dataclass(slots=True, eq=False)
class Memory:
    """A group's memory. Amounts are bytes; UNLIMITED for no limit."""

    cgroup: Cgroup
    """The group whose memory it is."""
    limit_bytes: int = UNLIMITED
    """memory.max, memory.limit_in_bytes."""
    with_swap_limit_bytes: int = UNLIMITED
    """v1: memory.memsw.limit_in_bytes."""
    anon_bytes: int = 0
    """Held by processes and charged to this very group."""
    file_bytes: int = 0
    """Page cache charged to this very group."""
    usage_bytes: int = 0
    """All of the subtree: anonymous memory and page cache."""
    cache_bytes: int = 0
    """Page cache of the subtree, a part of `usage_bytes`."""
    peak_bytes: int = 0
    """The most that `usage_bytes` has been since the counter was reset."""
    swappiness: int = 60
    """memory.swappiness, 0 to 200; without effect here."""
    oom_kill_disable: int = 0
    """v1: 1 where processes wait for memory and are not killed (CG-132)."""
    settings: dict[str, int] = field(default_factory=dict)
    """Files that hold a size and do nothing else here: soft limit, memory.low, ..."""
    failures: int = 0
    """How often the limit was hit (memory.failcnt)."""
    events: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EVENTS, 0))
    """What happened here; `counted` has what happened below, too."""
    counted: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EVENTS, 0))
    """What happened here and below."""
    holders: dict[Process, None] = field(default_factory=dict)
    """The processes with memory charged here; an ordered set."""
    waiting: list[tuple[Process, int]] = field(default_factory=list)
    """Processes that hang for memory, and how much each wants to have."""
    thresholds: list[Threshold] = field(default_factory=list)
    """v1: what is to be called when usage crosses a number of bytes."""

    @property
    def below(self) -> Iterator[Memory]:
        """The memory of the group and of all groups below it."""
        return (c.states[MEMORY] for c in self.cgroup.down() if MEMORY in c.states)

    @property
    def effective_limit_bytes(self) -> int:
        """The smallest limit of the group and those above (CG-131)."""
        limits: list[int] = [m.limit_bytes for m in self.cgroup.states_up(MEMORY)]
        return min(limits)

    def add(self, anon_bytes: int, file_bytes: int) -> None:
        """Charge so much more to the group, and count it above."""
        self.anon_bytes += anon_bytes
        self.file_bytes += file_bytes
        for memory in self.cgroup.states_up(MEMORY):
            memory.usage_bytes += anon_bytes + file_bytes
            memory.cache_bytes += file_bytes
            memory.peak_bytes = max(memory.peak_bytes, memory.usage_bytes)
            memory._cross()

    def _cross(self) -> None:
        for threshold in self.thresholds:
            above = self.usage_bytes > threshold.at_bytes
            if above != threshold.above:
                threshold.above = above
                threshold.fire()

    def happened(self, event: str) -> None:
        """Count an event here and above, and call what watches it (CG-135)."""
        self.events[event] += 1
        self.cgroup.notify("memory.events.local")
        for memory in self.cgroup.states_up(MEMORY):
            memory.counted[event] += 1
            memory.cgroup.notify("memory.events")

    def reclaim(self, wanted_bytes: int) -> int:
        """Drop page cache of the subtree; returns how many bytes."""
        freed = 0
        for memory in self.below:
            some = min(memory.file_bytes, wanted_bytes - freed)
            if some > 0:
                memory.add(0, -some)
                freed += some
        return freed

    def shrink_to(self, limit_bytes: int) -> bool:
        """Reclaim until the usage is within the limit; False when it cannot be."""
        over = self.usage_bytes - limit_bytes
        return over <= 0 or self.reclaim(over) >= over

    def retry(self) -> None:
        """Let the processes try again that wait for memory here or below."""
        for memory in self.below:
            waiting, memory.waiting = memory.waiting, []
            for process, wanted_bytes in waiting:
                process.hung = False
                if process.alive:
                    set_process(process, wanted_bytes)

    def kill_until(self, limit_bytes: int) -> None:
        """Bring the usage below the limit, as v2 does it: reclaim, then OOM kills (CG-134)."""
        while not self.shrink_to(limit_bytes):
            self.happened("oom")
            if not _oom_kill(self):
                return


def new_memory(cgroup: Cgroup) -> Memory:
    """The memory of a new directory; it takes two settings from its parent."""
    memory = Memory(cgroup)
    for above in cgroup.states_up(MEMORY):
        memory.swappiness = above.swappiness
        memory.oom_kill_disable = above.oom_kill_disable
        break
    return memory


def removing(cgroup: Cgroup) -> None:
    """Move the charges of a directory that goes to its parent, and wake what waits at its
    thresholds (CG-102, CG-133)."""
    memory: Memory = cgroup.states[MEMORY]
    assert cgroup.parent is not None
    above: Memory = next(cgroup.parent.states_up(MEMORY))
    above.anon_bytes += memory.anon_bytes
    above.file_bytes += memory.file_bytes
    for process in memory.holders:
        moved = process.charges.pop(cgroup)
        process.charges[above.cgroup] = process.charges.get(above.cgroup, 0) + moved
        above.holders[process] = None
    for threshold in memory.thresholds:
        threshold.fire()


def home(process: Process) -> Memory | None:
    """The memory to which new use of a process is charged; None: there is no memory controller."""
    for leaf in process.leader.at.values():
        if MEMORY in leaf.hierarchy.controllers:
            memory: Memory = next(leaf.states_up(MEMORY))
            return memory
    return None


def set_process(process: Process, wanted_bytes: int) -> None:
    """Let a process hold so many bytes. If a limit is in the way, that may kill it or others, or
    leave it waiting."""
    more = wanted_bytes - process.memory_bytes
    memory = home(process)
    if memory is None:
        return
    if more < 0:
        _free(process, -more)
    elif more > 0:
        _charge(process, memory, more)


def _free(process: Process, size_bytes: int) -> None:
    for cgroup in reversed(list(process.charges)):
        some = min(size_bytes, process.charges[cgroup])
        memory: Memory = cgroup.states[MEMORY]
        process.charges[cgroup] -= some
        size_bytes -= some
        memory.add(-some, 0)
        if not process.charges[cgroup]:
            del process.charges[cgroup]
            del memory.holders[process]
        for above in list(cgroup.states_up(MEMORY)):
            above.retry()


def _full(memory: Memory, size_bytes: int) -> tuple[Memory, int] | None:
    """The lowest group whose limit is in the way of so much more, and how much is too much; None:
    it fits."""
    for above in memory.cgroup.states_up(MEMORY):
        over: int = above.usage_bytes + size_bytes - above.limit_bytes
        if over > 0 and above.limit_bytes < UNLIMITED:
            return above, over
    return None


def _charge(process: Process, memory: Memory, size_bytes: int) -> None:
    while process.alive and (full_group := _full(memory, size_bytes)):
        full, over = full_group
        full.failures += 1
        full.happened("max")
        if full.reclaim(over) >= over:
            continue
        size_bytes -= _charge_what_fits(process, memory)
        full.happened("oom")
        if full.oom_kill_disable:
            process.hung = True
            full.waiting.append((process, process.memory_bytes + size_bytes))
            return
        if not _oom_kill(full):
            raise refuse(errno.ENOMEM)
    if process.alive:
        _add(process, memory, size_bytes)


def _charge_what_fits(process: Process, memory: Memory) -> int:
    """Charge the part of the wanted memory that fits: pages are taken one by one."""
    limited = (m for m in memory.cgroup.states_up(MEMORY) if m.limit_bytes < UNLIMITED)
    room: int = max(0, min(m.limit_bytes - m.usage_bytes for m in limited))
    if room:
        _add(process, memory, room)
    return room


def _add(process: Process, memory: Memory, size_bytes: int) -> None:
    process.charges[memory.cgroup] = process.charges.get(memory.cgroup, 0) + size_bytes
    memory.holders[process] = None
    memory.add(size_bytes, 0)


def set_cache(memory: Memory, wanted_bytes: int) -> None:
    """Let a group hold so much page cache, or as much as its limits leave room for."""
    more = wanted_bytes - memory.file_bytes
    while more > 0 and (full_group := _full(memory, more)):
        full, over = full_group
        full.failures += 1
        full.happened("max")
        more -= over - full.reclaim(over)
    memory.add(0, max(more, -memory.file_bytes))


def oom_score(process: Process, total_bytes: int) -> int:
    """How much the OOM killer prefers a process, in bytes; the highest score dies. `total_bytes`:
    the memory that is short."""
    return process.memory_bytes + process.oom_score_adj * (total_bytes // 1000)


def _oom_kill(full: Memory) -> bool:
    """Kill the process with the highest score below a full group; with memory.oom.group all
    processes of its group (CG-132, CG-135). False: there is none."""
    candidates = [
        task.process
        for cgroup in full.cgroup.down()
        for tid, task in sorted(cgroup.members.items())
        if tid == task.process.pid
        and task.process.alive
        and task.process.oom_score_adj > NEVER_A_VICTIM
        and not task.process.dies_later
    ]
    if not candidates:
        return False
    victim = max(candidates, key=lambda process: oom_score(process, full.limit_bytes))
    memory = home(victim)
    assert memory is not None
    group = [m for m in memory.cgroup.states_up(MEMORY) if m.settings.get("memory.oom.group")]
    within = [m for m in group if m.cgroup in set(full.cgroup.down())]
    mount = full.cgroup.hierarchy.mount
    whole = within[-1].cgroup if within else None
    victims = [p for p in candidates if any(c is whole for c in p.leader.at[mount].up())]
    victim.table.tell_oom(full.cgroup, victims or [victim], whole)
    for process in victims or [victim]:
        oom_kill(process)
    if within:
        within[-1].happened("oom_group_kill")
    return True


def oom_kill(victim: Process, *, noticed: bool = True) -> None:
    """The OOM killer kills a process. `noticed` False: it looks like any other SIGKILL to a
    runtime, as in v1 when the machine itself was short of memory."""
    memory = home(victim)
    if not victim.alive:  # it went with another one of its group
        return
    if memory is not None:
        memory.happened("oom_kill")
    victim.oom_killed = noticed
    victim.kill()
