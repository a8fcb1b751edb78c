"""The kernel's cgroup file system in memory, v1 and v2, for tests of code that uses cgroups.

`CgroupFS` has paths that behave like pathlib's: directories with the interface files and defaults
of a Linux kernel, its grammar for what is written, its errno for what is refused, its rules for
moving processes; usage is set from outside. `interface` has directories and files, `controllers`
what each controller's files say and do. See docs/cgroupfs.md. What must never happen here: the
fake takes what a kernel refuses (`tests/verified/test_cgroupfs_machine.py` compares them).
"""

from fakecri.cgroupfs.filesystem import V1_CONTROLLERS, V2_CONTROLLERS, CgroupFS
from fakecri.cgroupfs.interface.machine import Machine
from fakecri.cgroupfs.interface.open_file import EventFd, OpenFile
from fakecri.cgroupfs.path import CgroupPath
from fakecri.cgroupfs.processes import Process

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
