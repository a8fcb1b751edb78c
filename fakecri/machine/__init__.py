"""The fake machine: memory, filesystems, CPUs, cgroups, the kernel's log, logind.

What must never happen here: the machine's own numbers and the statistics of the runtime disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.machine.node_cgroups import NodeCgroups as NodeCgroups
    from fakecri.machine.topology import NO_HUGEPAGES as NO_HUGEPAGES
    from fakecri.machine.topology import uniform_topology as uniform_topology
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "topology": "NO_HUGEPAGES uniform_topology",
            "node_cgroups": "NodeCgroups",
        },
    )
