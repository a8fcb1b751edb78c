"""What a group uses, as tests set it from outside: memory, CPU time, disks, throttling."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import Final

from fakecri.cgroupfs import blkio, memory_use
from fakecri.cgroupfs.tree import Cgroup
from fakecri.cgroupfs.values import refuse, require_amounts

_DEVICE: Final = re.compile(r"\d+:\d+")


def use(
    cgroup: Cgroup,
    memory_bytes: int | None,
    cache_bytes: int | None,
    cpu_user_ns: int,
    cpu_system_ns: int,
) -> None:
    """Memory and page cache from now on, None for no change; CPU time more. Raises OSError."""
    cgroup.use_cpu(cpu_user_ns, cpu_system_ns)
    if cache_bytes is not None:
        memory_use.set_cache(_memory(cgroup), cache_bytes)
    if memory_bytes is not None:
        _share_memory(cgroup, _memory(cgroup), memory_bytes)


def _memory(cgroup: Cgroup) -> memory_use.Memory:
    found = cgroup.states.get(memory_use.MEMORY)
    if not isinstance(found, memory_use.Memory):
        raise refuse(errno.EOPNOTSUPP)
    return found


def _share_memory(cgroup: Cgroup, memory: memory_use.Memory, wanted_bytes: int) -> None:
    """Give or take the difference: all of it to the first process, from one after the other."""
    live = [t.process for _, t in sorted(cgroup.members.items()) if t.process.alive]
    if not live:
        raise refuse(errno.ESRCH)
    more = wanted_bytes - memory.anon_bytes
    if more >= 0:
        memory_use.set_process(live[0], live[0].memory_bytes + more)
        return
    for process in live:
        less = min(-more, process.charges.get(cgroup, 0))
        memory_use.set_process(process, process.memory_bytes - less)
        more += less


def throttle(cgroup: Cgroup, counts: Mapping[str, int]) -> None:
    """Set counters of cpu.stat. Raises: ValueError for one that it does not have."""
    throttling = cgroup.states["cpu"].throttling
    unknown = sorted(set(counts) - set(throttling))
    if unknown:
        raise ValueError(f"{unknown[0]}: cpu.stat counts {', '.join(throttling)}")
    throttling.update(counts)


def disk_use(
    device: str, read_bytes: int, written_bytes: int, reads: int, writes: int
) -> blkio.Done:
    """What was done on a disk (`8:0`). Raises: ValueError for what no disk is, or below 0."""
    if not _DEVICE.fullmatch(device):
        raise ValueError(f"device: wanted a number such as 8:0, got {device!r}")
    require_amounts(read_bytes=read_bytes, written_bytes=written_bytes, reads=reads, writes=writes)
    return blkio.Done(read_bytes, written_bytes, reads, writes)


def use_disk(cgroup: Cgroup, device: str, done: blkio.Done) -> None:
    """Count that much more, in io.stat or blkio.throttle.*. Raises OSError without either."""
    for state in cgroup.states_up("io"):
        state.done.setdefault(device, blkio.Done()).add(done)
        return
    for state in cgroup.states_up(blkio.BLKIO):
        state.row(device).add(done)
        return
    raise refuse(errno.EOPNOTSUPP)
