"""What a runtime remembers: a copy of a core as it is now, and the ways to lose something of it."""

from __future__ import annotations

import copy

from fakecri.core.cgroups.resources import copied
from fakecri.core.file_work import CloseLog
from fakecri.core.lookups.listed import ListedTable
from fakecri.core.lookups.named import NamedTable
from fakecri.core.objects import Outcome, State
from fakecri.core.runtime import LOST, Charges, Core, Driver, Outbox, Plans


def snapshot(core: Core) -> Core:
    """A core that knows what this one knows now, and in which no time passes."""
    frozen = copy.copy(core)
    now_ns = core.now_ns()
    frozen.now_ns = lambda: now_ns
    frozen.driver = Driver(core.driver.plan_of, core.driver.stir)
    frozen.outbox, frozen.plans = Outbox(), Plans()
    frozen.charges = Charges(core.charges.used.as_of(now_ns), settled=core.charges.settled)
    frozen.network = copy.copy(core.network)
    frozen.images = copy.copy(core.images)
    frozen.images.images = NamedTable(core.images.images.items())
    frozen.sandboxes = ListedTable((key, copy.copy(s)) for key, s in core.sandboxes.items())
    frozen.containers = ListedTable((key, copy.copy(c)) for key, c in core.containers.items())
    for sandbox in frozen.sandboxes.values():
        sandbox.containers = {key: frozen.containers[key] for key in sandbox.containers}
    for container in frozen.containers.values():
        container.sandbox = frozen.sandboxes[container.sandbox.id]
        container.resources = copied(container.resources)
        for part in ("run", "stop", "output", "inside", "shown"):  # the others are never changed
            setattr(container, part, copy.copy(getattr(container, part)))
        container.run.cgroup = None  # what is charged there goes on; the plan says the same
    return frozen


def forget(core: Core) -> None:
    """Lose all sandboxes and containers, and their names; images stay."""
    core.outbox.writes += [
        CloseLog(c.output.path) for c in core.containers.values() if c.output.path
    ]
    cgroups = [c.run.cgroup for c in core.containers.values()]
    cgroups += [s.cgroup for s in core.sandboxes.values()]
    for cgroup in cgroups:
        if cgroup is not None:
            cgroup.leave()
    for table in (
        core.sandboxes,
        core.containers,
        core.names,
        core.plans.due,
        core.charges.used,
        core.charges.burning,
    ):
        table.clear()


def lose_exits(core: Core, since_ns: int) -> None:
    """What ended from then on ended unseen: 255 `Unknown`, as of now (CRI-161)."""
    for container in core.containers.values():
        if container.state is State.EXITED and container.outcome.finished_at_ns >= since_ns:
            container.outcome = Outcome(core.stamp_ns(), LOST, "Unknown")
