"""A CgroupFS for other processes: a FUSE mount (`mount`), or plain files (`project`).

See docs/cgroupfs.md. What must never happen here: the fake file system is touched from another
thread than its loop's, or a mount or a directory is left behind.
"""

from fakecri.cgroupfs.outside.errors import OutsideError
from fakecri.cgroupfs.outside.mount import (
    Mount,
    mount,
    mount_in_background,
    mount_requests,
    why_no_mount,
)
from fakecri.cgroupfs.outside.projection import Projection, Refusal, project

__all__ = [
    "Mount",
    "OutsideError",
    "Projection",
    "Refusal",
    "mount",
    "mount_in_background",
    "mount_requests",
    "project",
    "why_no_mount",
]
