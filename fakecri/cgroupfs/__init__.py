"""The kernel's cgroup file system in memory, v1 and v2, for tests of code that uses cgroups.

`CgroupFS` has paths that behave like pathlib's: directories with the interface files and defaults
of a Linux kernel, its grammar for what is written, its errno for what is refused, its rules for
moving processes; usage is set from outside. `interface` has directories and files, `controllers`
what each controller's files say and do. See docs/cgroupfs.md. What must never happen here: the
fake takes what a kernel refuses (`tests/verified/test_cgroupfs_machine.py` compares them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.cgroupfs.filesystem import V1_CONTROLLERS as V1_CONTROLLERS
    from fakecri.cgroupfs.filesystem import V2_CONTROLLERS as V2_CONTROLLERS
    from fakecri.cgroupfs.filesystem import CgroupFS as CgroupFS
    from fakecri.cgroupfs.interface.machine import Machine as Machine
    from fakecri.cgroupfs.interface.open_file import EventFd as EventFd
    from fakecri.cgroupfs.interface.open_file import OpenFile as OpenFile
    from fakecri.cgroupfs.path import CgroupPath as CgroupPath
    from fakecri.cgroupfs.processes import Process as Process
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "filesystem": "V1_CONTROLLERS V2_CONTROLLERS CgroupFS",
            "interface.machine": "Machine",
            "interface.open_file": "EventFd OpenFile",
            "path": "CgroupPath",
            "processes": "Process",
        },
    )

__all__ = [
    "V1_CONTROLLERS",
    "V2_CONTROLLERS",
    "CgroupFS",
    "CgroupPath",
    "EventFd",
    "Machine",
    "OpenFile",
    "Process",
]
