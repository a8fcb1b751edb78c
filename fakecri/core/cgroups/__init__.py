"""The cgroups of containers and sandboxes in the machine's cgroup file system.

A container whose sandbox names no cgroup parent has none, so most fakes import nothing of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.core.cgroups.container_cgroup import ContainerCgroup as ContainerCgroup
    from fakecri.core.cgroups.container_cgroup import enter as enter
else:
    __getattr__, __dir__ = face(__name__, {"container_cgroup": "ContainerCgroup enter"})
