"""Places in the fake file system and what their groups use, as tests set it from outside.

Memory, CPU time, disks, huge pages, stalls and throttling. `path.CgroupPath` adds what pathlib has.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from fakecri.cgroupfs.controllers import blkio, memory_use
from fakecri.cgroupfs.interface import pressure
from fakecri.cgroupfs.interface.open_file import Descriptors
from fakecri.cgroupfs.interface.tree import Cgroup, Hierarchy, InterfaceFile
from fakecri.cgroupfs.interface.values import named, refuse, require_amounts
from kubeobjects.arguments import arguments_told, called_often

_DEVICE: Final = re.compile(r"\d+:\d+")


class Places(Descriptors, Protocol):
    """What a place needs of its file system."""

    @property
    def mounts(self) -> Mapping[str, Hierarchy]: ...

    def before_use(self) -> None:
        """A file is about to be opened: charge what is used by now."""

    def look_up(self, parts: tuple[str, ...]) -> Cgroup | InterfaceFile | Places | None:
        """What is at that path; the file system itself at the top of v1."""

    def file_at(self, parts: tuple[str, ...]) -> tuple[Cgroup, InterfaceFile] | None:
        """A file and the directory that has it."""


F = TypeVar("F", bound=Places)


@arguments_told
class UsedPlace(Generic[F]):
    """A place in a file system, and what its group uses. F: the type of the file system."""

    __slots__ = ("fs", "parts")

    @called_often
    def __init__(self, fs: F, parts: tuple[str, ...]) -> None:
        """`parts`: the names from the root on."""
        self.fs = fs
        self.parts = parts

    def __str__(self) -> str:
        return "/" + "/".join(self.parts)

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else ""

    def set_usage(
        self,
        *,
        memory_bytes: int | None = None,
        cache_bytes: int | None = None,
        cpu_user_ns: int = 0,
        cpu_system_ns: int = 0,
    ) -> None:
        """Set what this very cgroup uses from now on; CPU time is added to what it has used.

        Anonymous memory belongs to processes, so `memory_bytes` is given to the first process in it
        (ESRCH when there is none). `cache_bytes` is clean page cache, of which limits may leave
        less. None: no change. Raises ValueError for a negative number, EOPNOTSUPP without the
        memory controller.
        """
        require_amounts(
            memory_bytes=memory_bytes or 0,
            cache_bytes=cache_bytes or 0,
            cpu_user_ns=cpu_user_ns,
            cpu_system_ns=cpu_system_ns,
        )
        with self._errors():
            _use(
                cgroup=self._cgroup(),
                memory_bytes=memory_bytes,
                cache_bytes=cache_bytes,
                cpu_user_ns=cpu_user_ns,
                cpu_system_ns=cpu_system_ns,
            )

    def set_throttling(self, **counts: int) -> None:
        """Set counters of cpu.stat: nr_periods, nr_throttled, throttled_ns, nr_bursts, burst_ns.
        Raises ValueError for another name."""
        _throttle(self._cgroup(), counts)

    def use_hugepages(self, size_name: str, more_bytes: int) -> None:
        """Take so much more of pages such as 2MB, or, negative, give it back. At a limit ENOMEM,
        and an event."""
        with self._errors():
            self._cgroup().states["hugetlb"].use(size_name, more_bytes)

    def use_io(
        self,
        device: str,
        *,
        read_bytes: int = 0,
        written_bytes: int = 0,
        reads: int = 0,
        writes: int = 0,
    ) -> None:
        """Add to what was read from and written to a disk (`8:0`), as io.stat or blkio.throttle.*
        show it."""
        disk_use = _disk_use(
            device=device,
            read_bytes=read_bytes,
            written_bytes=written_bytes,
            reads=reads,
            writes=writes,
        )
        with self._errors():
            _use_disk(self._cgroup(), device, disk_use)

    def stall(self, resource: str, *, some_us: int = 0, full_us: int = 0) -> None:
        """Tasks waited for `cpu`, `memory` or `io`, in microseconds: totals grow, and triggers may
        fire (CG-126)."""
        pressure.require_resource(resource)
        require_amounts(some_us=some_us, full_us=full_us)
        pressure.stall(self._cgroup(), resource, some_us, full_us)

    def set_pressure(self, resource: str, kind: str, avg: tuple[float, float, float]) -> None:
        """Set the averages over 10, 60 and 300 s, in percent, of `some` or `full`, in this group
        only. Raises ValueError for another resource or kind."""
        pressure.require_resource(resource)
        if kind not in pressure.KINDS:
            raise ValueError(f"kind: wanted one of {', '.join(pressure.KINDS)}, got {kind!r}")
        pressure.of(self._cgroup(), resource).averages[kind] = avg

    def _found(self) -> Cgroup | InterfaceFile | Places | None:
        return self.fs.look_up(self.parts)

    def _need(self) -> Cgroup | InterfaceFile | Places:
        entity = self._found()
        if entity is None:
            above = self.fs.look_up(self.parts[:-1])
            raise refuse(errno.ENOTDIR if isinstance(above, InterfaceFile) else errno.ENOENT)
        return entity

    def _cgroup(self) -> Cgroup:
        entity = self._need()
        if isinstance(entity, InterfaceFile):
            raise refuse(errno.ENOTDIR)
        if not isinstance(entity, Cgroup):
            raise refuse(errno.EPERM)
        return entity

    def _parent(self) -> Cgroup:
        if not self.parts:
            raise refuse(errno.EEXIST)
        return type(self)(self.fs, self.parts[:-1])._cgroup()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise named(error, str(self)) from None


def _use(
    cgroup: Cgroup,
    memory_bytes: int | None,
    cache_bytes: int | None,
    cpu_user_ns: int,
    cpu_system_ns: int,
) -> None:
    """Set memory and page cache (None: no change), and add CPU time. Raises OSError."""
    cgroup.use_cpu(cpu_user_ns, cpu_system_ns)
    if cache_bytes is not None:
        memory_use.set_cache(_memory(cgroup), cache_bytes)
    if memory_bytes is not None:
        _share_memory(cgroup, _memory(cgroup), memory_bytes)


def _memory(cgroup: Cgroup) -> memory_use.Memory:
    state = cgroup.states.get(memory_use.MEMORY)
    if not isinstance(state, memory_use.Memory):
        raise refuse(errno.EOPNOTSUPP)
    return state


def _share_memory(cgroup: Cgroup, memory: memory_use.Memory, wanted_bytes: int) -> None:
    """Give what is more to the first process; take what is less from one process after the
    other."""
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


def _throttle(cgroup: Cgroup, counts: Mapping[str, int]) -> None:
    """Set counters of cpu.stat. Raises ValueError for one that it does not have."""
    throttling = cgroup.states["cpu"].throttling
    unknown = sorted(set(counts) - set(throttling))
    if unknown:
        raise ValueError(f"{unknown[0]}: cpu.stat counts {', '.join(throttling)}")
    throttling.update(counts)


def _disk_use(
    device: str, read_bytes: int, written_bytes: int, reads: int, writes: int
) -> blkio.Done:
    """What was done with a disk (`8:0`). Raises ValueError for what is no disk, or below 0."""
    if not _DEVICE.fullmatch(device):
        raise ValueError(f"device: wanted a number such as 8:0, got {device!r}")
    require_amounts(read_bytes=read_bytes, written_bytes=written_bytes, reads=reads, writes=writes)
    return blkio.Done(read_bytes, written_bytes, reads, writes)


def _use_disk(cgroup: Cgroup, device: str, done: blkio.Done) -> None:
    """Count so much more, in io.stat or blkio.throttle.*. Raises OSError without either
    controller."""
    for state in cgroup.states_up("io"):
        state.done.setdefault(device, blkio.Done()).add(done)
        return
    for state in cgroup.states_up(blkio.BLKIO):
        state.row(device).add(done)
        return
    raise refuse(errno.EOPNOTSUPP)
