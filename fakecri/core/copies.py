"""What a runtime remembers: a copy of a core as it is now, and the ways to lose something of it."""

from __future__ import annotations

import copy

from fakecri.core.file_work import CloseLog
from fakecri.core.lookups.listed import ListedTable
from fakecri.core.objects import State
from fakecri.core.resources import copied
from fakecri.core.runtime import LOST, Core


def snapshot(core: Core) -> Core:
    """A core that knows what this one knows now, and in which no time passes."""
    frozen = copy.copy(core)
    now_ns = core.now_ns()
    frozen.now_ns = lambda: now_ns
    frozen.watch, frozen.news, frozen.writes, frozen.due = None, [], [], []
    frozen.used = core.used.as_of(now_ns)
    frozen.burning = {}
    frozen.images = copy.copy(core.images)
    frozen.images.images = dict(core.images.images)
    frozen.sandboxes = ListedTable((key, copy.copy(s)) for key, s in core.sandboxes.items())
    frozen.containers = ListedTable((key, copy.copy(c)) for key, c in core.containers.items())
    for sandbox in frozen.sandboxes.values():
        sandbox.containers = {key: frozen.containers[key] for key in sandbox.containers}
    for container in frozen.containers.values():
        container.sandbox = frozen.sandboxes[container.sandbox.id]
        container.resources = copied(container.resources)
        container.cgroup = None  # what is charged there goes on changing; the plan says the same
    return frozen


def forget(core: Core) -> None:
    """Lose all sandboxes and containers, and their names; images stay."""
    core.writes += [CloseLog(c.log_path) for c in core.containers.values() if c.log_path]
    cgroups = [c.cgroup for c in core.containers.values()]
    cgroups += [s.cgroup for s in core.sandboxes.values()]
    for cgroup in cgroups:
        if cgroup is not None:
            cgroup.leave()
    for table in (core.sandboxes, core.containers, core.names, core.due, core.used, core.burning):
        table.clear()


def lose_exits(core: Core, since_ns: int) -> None:
    """What ended from then on ended unseen: 255 `Unknown`, as of now (CRI-161)."""
    for container in core.containers.values():
        if container.state is State.EXITED and container.finished_at_ns >= since_ns:
            container.finished_at_ns = core.stamp_ns()
            container.exit_code, container.reason, container.message = LOST, "Unknown", ""
