"""The v2 memory controller's files (CG-134, CG-135), after the kernel's documentation."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from fakecri.cgroupfs.controllers import memory_use
from fakecri.cgroupfs.controllers.memory_use import EVENTS, MEMORY, Memory
from fakecri.cgroupfs.interface.tree import Cgroup, Controller, InterfaceFile, everywhere, table
from fakecri.cgroupfs.interface.values import UNLIMITED, refuse, size, stripped

_SWAP_EVENTS: Final = ("high", "max", "fail")
_STAT: Final = (
    *("anon", "file", "kernel", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock"),
    *("vmalloc", "shmem", "file_mapped", "file_dirty", "file_writeback", "swapcached"),
    *("anon_thp", "file_thp", "shmem_thp", "inactive_anon", "active_anon", "inactive_file"),
    *("active_file", "unevictable", "slab_reclaimable", "slab_unreclaimable", "slab"),
    *("workingset_refault_anon", "workingset_refault_file", "workingset_activate_anon"),
    *("workingset_activate_file", "workingset_restore_anon", "workingset_restore_file"),
    *("workingset_nodereclaim", "pgscan", "pgsteal", "pgfault", "pgmajfault", "pgrefill"),
    *("pgactivate", "pgdeactivate", "pglazyfree", "pglazyfreed"),
)
_ANON: Final = ("anon", "active_anon")
_FILE: Final = ("file", "inactive_file")

_STAT_FORMAT: Final = "".join(
    f"{name} {'{anon}' if name in _ANON else '{file}' if name in _FILE else 0}\n" for name in _STAT
)


def of(cgroup: Cgroup) -> Memory:
    state: Memory = cgroup.states[MEMORY]
    return state


def _text(value: int) -> str:
    return "max\n" if value >= UNLIMITED else f"{value}\n"


def _write_max(cgroup: Cgroup, text: str) -> None:
    """memory.max. The write succeeds whatever is used; reclaim, then OOM kills, make the usage
    fit."""
    memory = of(cgroup)
    memory.limit_bytes = size(text, unlimited="max")
    memory.kill_until(memory.limit_bytes)
    memory.retry()


def _size_file(name: str, default: int) -> InterfaceFile:
    def read(cgroup: Cgroup) -> str:
        return _text(of(cgroup).settings.get(name, default))

    def write(cgroup: Cgroup, text: str) -> None:
        of(cgroup).settings[name] = size(text, unlimited="max")

    return InterfaceFile(name, read, write)


def _write_high(cgroup: Cgroup, text: str) -> None:
    """memory.high. Page cache above it is reclaimed; anonymous memory stays."""
    memory = of(cgroup)
    memory.settings["memory.high"] = size(text, unlimited="max")
    memory.shrink_to(memory.settings["memory.high"])


def _read_high(cgroup: Cgroup) -> str:
    return _text(of(cgroup).settings.get("memory.high", UNLIMITED))


def _events(*, local: bool) -> Callable[[Cgroup], str]:
    def read(cgroup: Cgroup) -> str:
        counts = of(cgroup).events if local else of(cgroup).counted
        return "".join(f"{name} {counts[name]}\n" for name in EVENTS)

    return read


def _read_stat(cgroup: Cgroup) -> str:
    memory = of(cgroup)
    file = memory.cache_bytes
    anon = memory.usage_bytes - file
    return _STAT_FORMAT.format(anon=anon, file=file)


def _read_nodes(cgroup: Cgroup) -> str:
    other_nodes = "".join(f" N{n}=0" for n in range(1, cgroup.hierarchy.machine.memory_nodes))
    rows = (line.split() for line in _read_stat(cgroup).splitlines())
    return "".join(f"{k} N0={v}{other_nodes}\n" for k, v in rows if not k.startswith("pg"))


def _write_group(cgroup: Cgroup, text: str) -> None:
    if stripped(text) not in ("0", "1"):
        raise refuse(errno.EINVAL)
    of(cgroup).settings["memory.oom.group"] = int(stripped(text))


def _write_reclaim(cgroup: Cgroup, text: str) -> None:
    """memory.reclaim. Raises EAGAIN when less can be reclaimed than was asked for."""
    to_reclaim = size(text.split("swappiness=")[0], unlimited="max")
    if of(cgroup).reclaim(to_reclaim) < to_reclaim:
        raise refuse(errno.EAGAIN)


def _zero_text(text: str) -> Callable[[Cgroup], str]:
    return lambda _cgroup: text


def _peak(read: Callable[[Cgroup], str], name: str) -> InterfaceFile:
    """A file with a peak. In the kernel a write resets what the same open file reads; readers that
    open the file anew see no change, and so it is here."""
    return InterfaceFile(name, read, lambda _c, _text: None)


V2: Final = Controller(
    MEMORY,
    table(
        InterfaceFile("memory.current", lambda c: f"{of(c).usage_bytes}\n"),
        _peak(lambda c: f"{of(c).peak_bytes}\n", "memory.peak"),
        _size_file("memory.min", 0),
        _size_file("memory.low", 0),
        InterfaceFile("memory.high", _read_high, _write_high),
        InterfaceFile("memory.max", lambda c: _text(of(c).limit_bytes), _write_max),
        InterfaceFile("memory.events", _events(local=False)),
        InterfaceFile("memory.events.local", _events(local=True)),
        everywhere("memory.stat", _read_stat),
        everywhere("memory.numa_stat", _read_nodes),
        InterfaceFile(
            "memory.oom.group",
            lambda c: f"{of(c).settings.get('memory.oom.group', 0)}\n",
            _write_group,
        ),
        everywhere("memory.reclaim", write=_write_reclaim),
        InterfaceFile("memory.swap.current", _zero_text("0\n")),
        _peak(_zero_text("0\n"), "memory.swap.peak"),
        _size_file("memory.swap.high", UNLIMITED),
        _size_file("memory.swap.max", UNLIMITED),
        InterfaceFile(
            "memory.swap.events", _zero_text("".join(f"{name} 0\n" for name in _SWAP_EVENTS))
        ),
    ),
    memory_use.new_memory,
    removing=memory_use.removing,
)
