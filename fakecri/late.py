"""Modules of the fake that take long to import and that few fakes need, imported at first use.

    from fakecri import late

    def seen(invocation: late.invocation.Invocation) -> None:  # an annotation imports nothing
        late.environment.table_of(container)  # imports `fakecri.programs.environment`, once

Most tests never run a program in a container, open a stream or read a cgroup, and `import fakecri`
must not cost them what those parts cost. This is the one place for it. It is no way around the
order of the folders: a module uses from here only what it might import at its top.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fakecri import cgroupfs as cgroupfs
    from fakecri import fake as fake
    from fakecri.calls import metric_kinds as metric_kinds
    from fakecri.channel import aio as aio
    from fakecri.channel import blocking as blocking
    from fakecri.core import cgroup_dirs as cgroup_dirs
    from fakecri.core import container_cgroup as container_cgroup
    from fakecri.invocations import invocation as invocation
    from fakecri.invocations import pipes as pipes
    from fakecri.machine import node as node
    from fakecri.machine import node_cgroups as node_cgroups
    from fakecri.machine import topology as topology
    from fakecri.programs import environment as environment
    from fakecri.rules import faults as faults
    from fakecri.serving import background as background
    from fakecri.streaming import server as server
    from simclock import distribution as distribution

_HOMES: Final = {
    "aio": "fakecri.channel",
    "background": "fakecri.serving",
    "blocking": "fakecri.channel",
    "cgroup_dirs": "fakecri.core",
    "cgroupfs": "fakecri",
    "container_cgroup": "fakecri.core",
    "distribution": "simclock",
    "environment": "fakecri.programs",
    "fake": "fakecri",
    "faults": "fakecri.rules",
    "invocation": "fakecri.invocations",
    "metric_kinds": "fakecri.calls",
    "node": "fakecri.machine",
    "node_cgroups": "fakecri.machine",
    "pipes": "fakecri.invocations",
    "server": "fakecri.streaming",
    "topology": "fakecri.machine",
    "tree": "fakecri.cgroupfs.interface",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = globals()[name] = import_module(f"{_HOMES[name]}.{name}")
    return module
