"""The handlers that may refuse a pod, in their order."""

from __future__ import annotations

from refkubelet.admission.admit_handler import AdmitHandler
from refkubelet.admission.apparmor import apparmor_enforceable
from refkubelet.admission.features import POD_LEVEL_RESIZES, features_supported
from refkubelet.admission.predicates import InUse, PredicateDeps, predicates
from refkubelet.admission.sysctls import sysctls_allowed
from refkubelet.allocation.feasibility import ResizeLimits, counted, feasible_resizes
from refkubelet.container_manager.topology.manager import allocated
from refkubelet.wiring.base import Base
from refkubelet.wiring.node import Node
from refkubelet.wiring.resources import Resources
from refkubelet.wiring.upkeep import Upkeep
from refkubelet.wiring.work import Work


def build_admission(
    base: Base, resources: Resources, work: Work, upkeep: Upkeep, node: Node
) -> tuple[AdmitHandler, ...]:
    """In the order of LIFE-221..229."""
    config, facts = base.config, base.deps.node.facts
    return (
        counted(
            feasible_resizes(
                ResizeLimits.of(config, base.deps.machine.cgroup_version()),
                resources.allocation.manager.allocated,
            ),
            base.metrics.resizes.infeasible.inc,
        ),
        lambda attributes: upkeep.eviction.admit(attributes.pod),
        sysctls_allowed(config.allowed_unsafe_sysctls),
        allocated(resources.managers.topology),
        predicates(
            PredicateDeps(
                node.cached.view,
                node.cached.allocatable,
                node.cached.fresh_view if base.deps.api else None,
                work.preemptor.make_room,
                InUse(pod_level_resizes=base.gate(POD_LEVEL_RESIZES, default=True)),
            )
        ),
        apparmor_enforceable(facts.apparmor if facts else True),
        features_supported(config.feature_gates),
        *([node.shutdown.admit] if node.shutdown is not None else []),
    )
