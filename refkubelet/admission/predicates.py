"""The checks that the scheduler made before, made again on the node (LIFE-224..226).

What no preemption can help against comes first. Then everything that does not fit is collected:
a critical pod that is short of resources, and of nothing else, gets room made for it (PREE-001).
The first thing found is what the pod is refused for.
Upstream: pkg/kubelet/lifecycle/predicate.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from refkubelet.admission.admit_handler import (
    UNEXPECTED,
    AdmitHandler,
    PodAdmitAttributes,
    Refusal,
    Rejection,
)
from refkubelet.admission.node_fit import (
    AFFINITY,
    NodeView,
    mismatches,
    operating_system,
    supplemental_groups,
)
from refkubelet.admission.resource_fit import shortages
from refkubelet.model.objects import Pod

Failures = tuple[Refusal, ...]


class RecoveryError(Exception):
    """Making room went wrong."""


@dataclass(frozen=True, slots=True)
class PredicateDeps:
    """What the checks look at, and who helps.

    `node`: as known. `fresh_node`: asked of the API server now; None if it does not answer.
    `allocatable`: resource name -> nano units. `make_room`: what is left of the failures after it
    has done what it can; raises `RecoveryError`.
    """

    node: Callable[[], NodeView]
    allocatable: Callable[[], Mapping[str, int]]
    fresh_node: Callable[[], Awaitable[NodeView | None]] | None = None
    make_room: Callable[[Pod, Failures], Awaitable[Failures]] | None = None


def predicates(deps: PredicateDeps) -> AdmitHandler:
    """The handler. It is awaited only for pods that do not fit."""

    def handler(asked: PodAdmitAttributes) -> Awaitable[Refusal | None] | Refusal | None:
        view = deps.node()
        hopeless = operating_system(asked.pod) or supplemental_groups(asked.pod, view)
        if hopeless is not None:
            return hopeless
        failures = misfits(asked, view, deps.allocatable())
        return _recover(asked, failures, deps) if failures else None

    return handler


def misfits(asked: PodAdmitAttributes, view: NodeView, allocatable: Mapping[str, int]) -> Failures:
    """All that does not fit: resources first, then the node."""
    pod, others = asked.pod, asked.others
    return (*shortages(pod, others, allocatable), *mismatches(pod, others, view))


async def _recover(
    asked: PodAdmitAttributes, failures: Failures, deps: PredicateDeps
) -> Refusal | None:
    """Affinity alone may be a matter of labels that have just come; resources, of other pods."""
    if deps.fresh_node is not None and all(one.reason == AFFINITY for one in failures):
        fresh = await deps.fresh_node()
        if fresh is not None:
            failures = misfits(asked, fresh, deps.allocatable())
    if failures and deps.make_room is not None:
        try:
            failures = await deps.make_room(asked.pod, failures)
        except RecoveryError as error:
            text = f"Unexpected error while attempting to recover from admission failure: {error}"
            return Rejection(UNEXPECTED, text)
    return failures[0] if failures else None
