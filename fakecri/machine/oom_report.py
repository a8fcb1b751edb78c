"""What the kernel writes into its log when it kills for memory: the lines that tools look for.

The wording is that of Linux 5.0 and later; tables of tasks and statistics in between are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakecri.cgroupfs import interface
from fakecri.machine.values import Victim


def of_memcg(
    full: interface.Cgroup, victims: Sequence[interface.Process], group: interface.Cgroup | None
) -> list[str]:
    """A cgroup is at its limit; the first victim is taken for the one that asked for memory.
    `group`: whose memory.oom.group makes all of its processes go."""
    victim = victims[0]
    path = victim.leader.at[full.hierarchy.mount].path
    lines = [
        _invoked(victim.name, victim.oom_score_adj),
        _choice("CONSTRAINT_MEMCG", f"oom_memcg={full.path},task_memcg={path}", victim),
    ]
    killed = ["Memory cgroup out of memory: " + _killed(process) for process in victims]
    if group is not None:
        announcement = f"Tasks in {group.path} are going to be killed due to memory.oom.group set"
        return [*lines, killed[0], announcement, *killed]
    return [*lines, *killed]


def of_machine(victim: Victim) -> list[str]:
    """The machine is out of memory."""
    return [
        _invoked(victim.name, victim.oom_score_adj),
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
        f"task_memcg={victim.cgroup},task={victim.name},pid={victim.pid},uid=0",
        "Out of memory: " + _killed(victim),
    ]


def _invoked(name: str, oom_score_adj: int) -> str:
    return (
        f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, "
        f"oom_score_adj={oom_score_adj}"
    )


def _choice(constraint: str, where: str, victim: interface.Process) -> str:
    return (
        f"oom-kill:constraint={constraint},nodemask=(null),cpuset=/,mems_allowed=0,{where},"
        f"task={victim.name},pid={victim.pid},uid=0"
    )


def _killed(victim: Victim | interface.Process) -> str:
    kib = victim.memory_bytes // 1024
    return (
        f"Killed process {victim.pid} ({victim.name}) total-vm:{kib}kB, anon-rss:{kib}kB, "
        "file-rss:0kB, "
        f"shmem-rss:0kB, UID:0 pgtables:{kib // 512 + 40}kB oom_score_adj:{victim.oom_score_adj}"
    )
