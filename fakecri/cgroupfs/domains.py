"""Which groups may hold processes and controllers in v2: domains and threaded groups (CG-112,
CG-113).

A group is a domain, the root of a threaded subtree, threaded, or a domain below a threaded one,
which can do nothing until it becomes threaded itself. The root of the hierarchy may do everything.
What must never happen here: a process and an enabled domain controller are in one group that is not
the root.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from fakecri.cgroupfs.interface.tree import Cgroup
from fakecri.cgroupfs.interface.values import refuse


def _domain_controllers(cgroup: Cgroup, names: Iterable[str]) -> list[str]:
    return [n for n in names if not cgroup.hierarchy.controllers[n].threaded]


def _has_tasks(cgroup: Cgroup) -> bool:
    return cgroup.live_here


def is_thread_root(cgroup: Cgroup) -> bool:
    """Whether it is the root of a threaded subtree: it has threaded groups below, or threaded
    controllers beside tasks."""
    if cgroup.threaded:
        return False
    below = cgroup.children.values() if cgroup.hierarchy.has_threaded else ()
    if any(child.threaded for child in below):
        return True
    threaded = len(cgroup.enabled) > len(_domain_controllers(cgroup, cgroup.enabled))
    return _has_tasks(cgroup) and threaded


def can_be_thread_root(cgroup: Cgroup) -> bool:
    """Whether no domain below it has processes, and no domain controller is enabled in it."""
    if cgroup.parent is None:
        return True
    if any(child.live and not child.threaded for child in cgroup.children.values()):
        return False
    return not _domain_controllers(cgroup, cgroup.enabled)


def is_valid_domain(cgroup: Cgroup) -> bool:
    """Whether it is neither threaded nor below a threaded group."""
    if cgroup.threaded:
        return False
    return not any(
        above.threaded or (above.parent is not None and is_thread_root(above))
        for above in cgroup.up()
        if above is not cgroup
    )


def domain_of(cgroup: Cgroup) -> Cgroup:
    """The group in which the resources of its processes are counted."""
    return next(c for c in cgroup.up() if not c.threaded)


def type_text(cgroup: Cgroup) -> str:
    """The text of cgroup.type."""
    if cgroup.threaded:
        return "threaded"
    if not is_valid_domain(cgroup):
        return "domain invalid"
    return "domain threaded" if is_thread_root(cgroup) else "domain"


def make_threaded(cgroup: Cgroup) -> None:
    """Make a group threaded, for good. Raises EOPNOTSUPP with processes below, or where the parent
    cannot have threaded groups."""
    if cgroup.threaded:
        return
    assert cgroup.parent is not None
    domain = domain_of(cgroup.parent)
    if (
        cgroup.live
        or _domain_controllers(cgroup, cgroup.enabled)
        or not is_valid_domain(domain)
        or not can_be_thread_root(domain)
    ):
        raise refuse(errno.EOPNOTSUPP)
    cgroup.threaded = cgroup.hierarchy.has_threaded = True


def need_room_for_processes(cgroup: Cgroup) -> None:
    """Check that a group may have processes. Raises EBUSY with controllers enabled, EOPNOTSUPP for
    an invalid domain."""
    if not is_valid_domain(domain_of(cgroup)):
        raise refuse(errno.EOPNOTSUPP)
    if can_be_thread_root(cgroup) or cgroup.threaded:
        return
    if cgroup.enabled:
        raise refuse(errno.EBUSY)


def need_room_for_controllers(cgroup: Cgroup, names: list[str]) -> None:
    """Check that controllers may be enabled in a group. Raises EBUSY with processes in it,
    EOPNOTSUPP for domain controllers beside threads."""
    if cgroup.parent is None:
        return
    domain_controllers = _domain_controllers(cgroup, names)
    if not is_valid_domain(domain_of(cgroup)):
        raise refuse(errno.EOPNOTSUPP)
    if is_thread_root(cgroup) or cgroup.threaded:
        if domain_controllers:
            raise refuse(errno.EOPNOTSUPP)
        return
    if can_be_thread_root(cgroup) and not domain_controllers:
        return
    if _has_tasks(cgroup):
        raise refuse(errno.EBUSY)
