"""The checks that the scheduler made before, made again on the node (LIFE-224..226).

First come the refusals that ending other pods cannot help against. Then everything that does not
fit is collected: for a critical pod that lacks resources only, other pods end (PREE-001). What is
found first is the reason of the refusal.
Upstream: pkg/kubelet/lifecycle/predicate.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct, field

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
from refkubelet.model.resources import requests_in_use

Failures = tuple[Refusal, ...]


class RecoveryError(Exception):
    """Other pods could not be ended to make room; the text says why."""


class InUse:
    """What pods occupy (`requests_in_use`). It is worked out once for each pod as it is: many pods
    are asked for again and again while one after another is admitted."""

    def __init__(self, *, pod_level_resizes: bool = True) -> None:
        self._pod_level_resizes = pod_level_resizes
        self._known: dict[int, tuple[Pod, dict[str, int]]] = {}  # by identity; values never change

    def of(self, pods: Sequence[Pod]) -> list[dict[str, int]]:
        """`requests_in_use` of each."""
        known = self._known
        self._known = {id(pod): known.get(id(pod)) or self._look(pod) for pod in pods}
        return [self._known[id(pod)][1] for pod in pods]

    def _look(self, pod: Pod) -> tuple[Pod, dict[str, int]]:
        return pod, requests_in_use(pod, pod_level_resizes=self._pod_level_resizes)


class PredicateDeps(Struct, frozen=True):
    """What the checks look at, and what helps pods that do not fit."""

    node: Callable[[], NodeView]
    """The node as the kubelet knows it."""
    allocatable: Callable[[], Mapping[str, int]]
    """Resource name -> nano units."""
    fresh_node: Callable[[], Awaitable[NodeView | None]] | None = None
    """The node as the API server has it now; None if that does not answer."""
    make_room: Callable[[Pod, Failures], Awaitable[Failures]] | None = None
    """Ends other pods and gives back the failures that remain; raises `RecoveryError`."""
    in_use: InUse = field(default_factory=InUse)
    """What the other pods occupy."""


def predicates(deps: PredicateDeps) -> AdmitHandler:
    """The handler (LIFE-224..226). It answers at once for pods that fit."""

    def handler(asked: PodAdmitAttributes) -> Awaitable[Refusal | None] | Refusal | None:
        view = deps.node()
        hopeless = operating_system(asked.pod) or supplemental_groups(asked.pod, view)
        if hopeless is not None:
            return hopeless
        failures = misfits(asked, view, deps)
        return _recover(asked, failures, deps) if failures else None

    return handler


def misfits(asked: PodAdmitAttributes, view: NodeView, deps: PredicateDeps) -> Failures:
    """All that does not fit: resources first, then the node."""
    pod, other_pods = asked.pod, asked.others
    lacks = shortages(pod, other_pods, deps.allocatable(), deps.in_use.of)
    return (*lacks, *mismatches(pod, other_pods, view))


async def _recover(
    asked: PodAdmitAttributes, failures: Failures, deps: PredicateDeps
) -> Refusal | None:
    """A failure of the affinity only may be over on a fresh Node, which has labels that came just
    now; a lack of resources, when other pods have ended."""
    if deps.fresh_node is not None and all(failure.reason == AFFINITY for failure in failures):
        fresh = await deps.fresh_node()
        if fresh is not None:
            failures = misfits(asked, fresh, deps)
    if failures and deps.make_room is not None:
        try:
            failures = await deps.make_room(asked.pod, failures)
        except RecoveryError as error:
            text = f"Unexpected error while attempting to recover from admission failure: {error}"
            return Rejection(UNEXPECTED, text)
    return failures[0] if failures else None
