"""The v1 memory controller's files (CG-130 to CG-133)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from fakecri.cgroupfs.controllers import memory_use
from fakecri.cgroupfs.controllers.memory_use import MEMORY, Memory, Threshold
from fakecri.cgroupfs.interface.open_file import OpenFile
from fakecri.cgroupfs.interface.tree import (
    Cgroup,
    Controller,
    InterfaceFile,
    Where,
    everywhere,
    table,
)
from fakecri.cgroupfs.interface.values import UNLIMITED, refuse, size, unsigned

_EVERYWHERE: Final = Where.EVERYWHERE
_LIMIT, _WITH_SWAP = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
_STAT: Final = (
    *("cache", "rss", "rss_huge", "shmem", "mapped_file", "dirty", "writeback"),
    *("workingset_refault_anon", "workingset_refault_file", "swap", "swapcached"),
    *("pgpgin", "pgpgout", "pgfault", "pgmajfault"),
    *("inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable"),
)
_ANON: Final = ("rss", "active_anon")
_FILE: Final = ("cache", "inactive_file")


def of(cgroup: Cgroup) -> Memory:
    state: Memory = cgroup.states[MEMORY]
    return state


def _set_limit(cgroup: Cgroup, text: str, *, with_swap: bool) -> None:
    """Set a limit. Below the usage: reclaim, else EBUSY. The limit of memory never exceeds that of
    memory with swap (CG-131)."""
    memory, value = of(cgroup), size(text, unlimited="-1")
    if cgroup.parent is None:
        raise refuse(errno.EINVAL)
    other = memory.limit_bytes if with_swap else memory.with_swap_limit_bytes
    if (value < other) if with_swap else (value > other):
        raise refuse(errno.EINVAL)
    if not memory.shrink_to(value):
        raise refuse(errno.EBUSY)
    if with_swap:
        memory.with_swap_limit_bytes = value
    else:
        memory.limit_bytes = value
        memory.retry()


def _write_limit(cgroup: Cgroup, text: str) -> None:
    _set_limit(cgroup, text, with_swap=False)


def _write_limit_with_swap(cgroup: Cgroup, text: str) -> None:
    _set_limit(cgroup, text, with_swap=True)


def _size_file(name: str, *, kept: bool = True) -> InterfaceFile:
    """A file with a size that has no effect here. `kept` False: what is written is checked and
    dropped."""

    def write(cgroup: Cgroup, text: str) -> None:
        value = size(text, unlimited="-1")
        if kept:
            of(cgroup).settings[name] = value

    def read(cgroup: Cgroup) -> str:
        return f"{of(cgroup).settings.get(name, UNLIMITED)}\n"

    return everywhere(name, read, write)


def _zero(name: str, *, reset: bool = False) -> InterfaceFile:
    """A file about memory of the kernel itself, of which there is none here: it reads 0; with
    `reset` it may be written."""
    write: Callable[[Cgroup, str], None] | None = (lambda _c, _text: None) if reset else None
    return everywhere(name, lambda _c: "0\n", write)


def _reset_peak(cgroup: Cgroup, _text: str) -> None:
    of(cgroup).peak_bytes = of(cgroup).usage_bytes


def _reset_failures(cgroup: Cgroup, _text: str) -> None:
    of(cgroup).failures = 0


def _empty(cgroup: Cgroup, _text: str) -> None:
    of(cgroup).reclaim(of(cgroup).usage_bytes)


def _read_stat(cgroup: Cgroup) -> str:
    """memory.stat: plain keys count the group itself, `total_` keys its subtree (CG-132)."""
    memory = of(cgroup)
    file = memory.cache_bytes
    anon = memory.usage_bytes - file
    lines = _values("", memory.anon_bytes, memory.file_bytes)
    lines.append(f"hierarchical_memory_limit {memory.effective_limit_bytes}")
    with_swap = min(m.with_swap_limit_bytes for m in cgroup.states_up(MEMORY))
    lines.append(f"hierarchical_memsw_limit {with_swap}")
    return "\n".join(lines + _values("total_", anon, file)) + "\n"


def _values(prefix: str, anon: int, file: int) -> list[str]:
    values = dict.fromkeys(_STAT, 0) | dict.fromkeys(_ANON, anon) | dict.fromkeys(_FILE, file)
    return [f"{prefix}{name} {value}" for name, value in values.items()]


def _read_nodes(cgroup: Cgroup) -> str:
    """memory.numa_stat, in pages; all are on the first node."""
    lines, memory = [], of(cgroup)
    everywhere = list(memory.below)
    for prefix, groups in (("", [memory]), ("hierarchical_", everywhere)):
        anon, file = (sum(getattr(m, n) for m in groups) for n in ("anon_bytes", "file_bytes"))
        pages = {"total": anon + file, "file": file, "anon": anon, "unevictable": 0}
        other_nodes = "".join(f" N{n}=0" for n in range(1, cgroup.hierarchy.machine.memory_nodes))
        lines += [f"{prefix}{k}={v // 4096} N0={v // 4096}{other_nodes}" for k, v in pages.items()]
    return "\n".join(lines) + "\n"


def _read_oom(cgroup: Cgroup) -> str:
    memory = of(cgroup)
    under = any(m.waiting for m in cgroup.states_up(MEMORY))
    return (
        f"oom_kill_disable {memory.oom_kill_disable}\n"
        f"under_oom {int(under)}\noom_kill {memory.events['oom_kill']}\n"
    )


def _write_oom(cgroup: Cgroup, text: str) -> None:
    value = unsigned(text)
    if cgroup.parent is None or value > 1:
        raise refuse(errno.EINVAL)
    of(cgroup).oom_kill_disable = value
    of(cgroup).retry()


def _write_swappiness(cgroup: Cgroup, text: str) -> None:
    value = unsigned(text)
    if value > 200:
        raise refuse(errno.EINVAL)
    of(cgroup).swappiness = value


def _only(wanted: int) -> Callable[[Cgroup, str], None]:
    def write(_cgroup: Cgroup, text: str) -> None:
        if unsigned(text) != wanted:
            raise refuse(errno.EINVAL)

    return write


def _write_event_control(cgroup: Cgroup, text: str, opened: OpenFile) -> None:
    """cgroup.event_control: `<eventfd> <fd of memory.usage_in_bytes> <bytes>` (CG-133)."""
    words = text.split(" ")
    if len(words) < 2 or not all(w.isdigit() for w in words[:2]):
        raise refuse(errno.EINVAL)
    event = opened.fs.eventfds.get(int(words[0]))
    watched = opened.fs.open_files.get(int(words[1]))
    if event is None or watched is None:
        raise refuse(errno.EBADF)
    if watched.cgroup is not cgroup or watched.name not in _WATCHABLE:
        raise refuse(errno.EINVAL)
    memory = of(cgroup)
    at_bytes = size(" ".join(words[2:]), unlimited="-1")
    threshold = Threshold(at_bytes, event.signal, memory.usage_bytes > at_bytes)
    memory.thresholds.append(threshold)
    event.on_close.append(lambda: memory.thresholds.remove(threshold))


_WATCHABLE: Final = ("memory.usage_in_bytes", "memory.memsw.usage_in_bytes")


def _unreadable(_cgroup: Cgroup) -> str:
    raise refuse(errno.EINVAL)


def _usage_files(prefix: str) -> tuple[InterfaceFile, ...]:
    """The files of usage and peak. Usage with swap equals usage: this machine has no swap."""
    return (
        everywhere(f"{prefix}.usage_in_bytes", lambda c: f"{of(c).usage_bytes}\n"),
        everywhere(f"{prefix}.max_usage_in_bytes", lambda c: f"{of(c).peak_bytes}\n", _reset_peak),
        everywhere(f"{prefix}.failcnt", lambda c: f"{of(c).failures}\n", _reset_failures),
    )


V1: Final = Controller(
    MEMORY,
    table(
        *_usage_files("memory"),
        everywhere(_LIMIT, lambda c: f"{of(c).limit_bytes}\n", _write_limit),
        *_usage_files("memory.memsw")[:2],
        _zero("memory.memsw.failcnt", reset=True),
        everywhere(
            _WITH_SWAP, lambda c: f"{of(c).with_swap_limit_bytes}\n", _write_limit_with_swap
        ),
        _size_file("memory.soft_limit_in_bytes"),
        _size_file("memory.kmem.limit_in_bytes", kept=False),
        _size_file("memory.kmem.tcp.limit_in_bytes"),
        *(_zero(f"memory.{k}.usage_in_bytes") for k in ("kmem", "kmem.tcp")),
        *(_zero(f"memory.{k}.max_usage_in_bytes", reset=True) for k in ("kmem", "kmem.tcp")),
        *(_zero(f"memory.{k}.failcnt", reset=True) for k in ("kmem", "kmem.tcp")),
        everywhere("memory.kmem.slabinfo", lambda _c: ""),
        everywhere("memory.force_empty", write=_empty),
        everywhere("memory.stat", _read_stat),
        everywhere("memory.numa_stat", _read_nodes),
        everywhere("memory.oom_control", _read_oom, _write_oom),
        everywhere("memory.swappiness", lambda c: f"{of(c).swappiness}\n", _write_swappiness),
        everywhere("memory.use_hierarchy", lambda _c: "1\n", _only(1)),
        everywhere("memory.move_charge_at_immigrate", lambda _c: "0\n", _only(0)),
        # Reading it gives EINVAL although its mode allows it: only event_control uses it.
        everywhere("memory.pressure_level", _unreadable),
        InterfaceFile("cgroup.event_control", per_open=_write_event_control, where=_EVERYWHERE),
    ),
    memory_use.new_memory,
    removing=memory_use.removing,
)
