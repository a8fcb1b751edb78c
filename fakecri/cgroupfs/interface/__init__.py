"""Directories, interface files, open files and the values in them: what all controllers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.cgroupfs.interface.tree import Cgroup as Cgroup
    from fakecri.cgroupfs.interface.tree import Process as Process
else:
    __getattr__, __dir__ = face(__name__, {"tree": "Cgroup Process"})
