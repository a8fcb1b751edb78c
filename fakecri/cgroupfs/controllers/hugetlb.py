"""The hugetlb controller, v1 and v2: limits of huge pages per size (CG-127).

Usage is set from outside. What must never happen here: a limit that is not a multiple of its page
size.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fakecri.cgroupfs.interface.machine import Machine
from fakecri.cgroupfs.interface.tree import Cgroup, Controller, InterfaceFile, table
from fakecri.cgroupfs.interface.values import UNLIMITED, refuse, size

HUGETLB: Final = "hugetlb"
_UNITS: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def page_bytes(size_name: str) -> int:
    """The size of pages with a name such as 2MB or 1GB."""
    return int(size_name[:-2]) * _UNITS[size_name[-2:]]


@dataclass(slots=True)
class Pages:
    """Limit and counts of pages of one kind: `2MB` or, for reservations, `2MB.rsvd`."""

    limit_bytes: int = UNLIMITED
    used_bytes: int = 0
    peak_bytes: int = 0
    failures: int = 0
    failures_below: int = 0


@dataclass(slots=True, eq=False)
class Hugetlb:
    cgroup: Cgroup
    pages: dict[str, Pages] = field(default_factory=dict)

    def kind(self, name: str) -> Pages:
        return self.pages.setdefault(name, Pages())

    def use(self, name: str, more_bytes: int) -> None:
        """Take or give back pages, here and above; ENOMEM, and an event, where a limit forbids."""
        for group in self.cgroup.states_up(HUGETLB):
            pages = group.kind(name)
            if more_bytes > 0 and pages.used_bytes + more_bytes > pages.limit_bytes:
                group.refuse(name)
        for group in self.cgroup.states_up(HUGETLB):
            pages = group.kind(name)
            pages.used_bytes += more_bytes
            pages.peak_bytes = max(pages.peak_bytes, pages.used_bytes)

    def refuse(self, name: str) -> None:
        """A limit was hit here: count it, call the watchers, fail."""
        self.kind(name).failures += 1
        self.cgroup.notify(f"hugetlb.{name}.events.local")
        for group in self.cgroup.states_up(HUGETLB):
            group.kind(name).failures_below += 1
            group.cgroup.notify(f"hugetlb.{name}.events")
        raise refuse(errno.ENOMEM)


def of(cgroup: Cgroup) -> Hugetlb:
    state: Hugetlb = cgroup.states[HUGETLB]
    return state


def _shown(field_name: str, name: str, prefix: str = "") -> Callable[[Cgroup], str]:
    return lambda cgroup: f"{prefix}{getattr(of(cgroup).kind(name), field_name)}\n"


def _write_limit(name: str, unlimited: str) -> Callable[[Cgroup, str], None]:
    page = page_bytes(name.removesuffix(".rsvd"))

    def write(cgroup: Cgroup, text: str) -> None:
        value = size(text, unlimited=unlimited)
        of(cgroup).kind(name).limit_bytes = value // page * page

    return write


def _read_max(name: str) -> Callable[[Cgroup], str]:
    """A reader of limits: one that was set to all there is reads `max`; one that was never set is
    shown as its number."""
    page = page_bytes(name.removesuffix(".rsvd"))

    def read(cgroup: Cgroup) -> str:
        limit = of(cgroup).kind(name).limit_bytes
        return "max\n" if limit == UNLIMITED // page * page else f"{limit}\n"

    return read


def _reset(field_name: str, name: str) -> Callable[[Cgroup, str], None]:
    def write(cgroup: Cgroup, _text: str) -> None:
        pages = of(cgroup).kind(name)
        setattr(pages, field_name, pages.used_bytes if field_name == "peak_bytes" else 0)

    return write


def _read_nodes(name: str) -> Callable[[Cgroup], str]:
    """A reader of pages by node; all pages are on the first one."""

    def read(cgroup: Cgroup) -> str:
        used = of(cgroup).kind(name).used_bytes
        other_nodes = "".join(f" N{n}=0" for n in range(1, cgroup.hierarchy.machine.memory_nodes))
        return f"total={used} N0={used}{other_nodes}\n"

    return read


def _v2_files(name: str) -> list[InterfaceFile]:
    files = [
        InterfaceFile(f"hugetlb.{name}.max", _read_max(name), _write_limit(name, "max")),
        InterfaceFile(f"hugetlb.{name}.current", _shown("used_bytes", name)),
    ]
    if not name.endswith(".rsvd"):
        files += [
            InterfaceFile(f"hugetlb.{name}.events", _shown("failures_below", name, "max ")),
            InterfaceFile(f"hugetlb.{name}.events.local", _shown("failures", name, "max ")),
            InterfaceFile(f"hugetlb.{name}.numa_stat", _read_nodes(name)),
        ]
    return files


def _v1_files(name: str) -> list[InterfaceFile]:
    prefix = f"hugetlb.{name}"
    limit = _write_limit(name, "-1")
    peak, failures = _reset("peak_bytes", name), _reset("failures", name)
    files = [
        InterfaceFile(f"{prefix}.limit_in_bytes", _shown("limit_bytes", name), limit),
        InterfaceFile(f"{prefix}.usage_in_bytes", _shown("used_bytes", name)),
        InterfaceFile(f"{prefix}.max_usage_in_bytes", _shown("peak_bytes", name), peak),
        InterfaceFile(f"{prefix}.failcnt", _shown("failures", name), failures),
    ]
    if not name.endswith(".rsvd"):
        files.append(InterfaceFile(f"{prefix}.numa_stat", _read_nodes(name)))
    return files


def controller(machine: Machine, version: int) -> Controller:
    """The controller for the page sizes of a machine."""
    names = [n for size_name in machine.hugepage_sizes for n in (size_name, f"{size_name}.rsvd")]
    files = _v1_files if version == 1 else _v2_files
    return Controller(
        HUGETLB,
        table(*(file for name in names for file in files(name))),
        Hugetlb,
    )
