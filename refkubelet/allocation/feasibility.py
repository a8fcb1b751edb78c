"""The admission handler that refuses resizes which are impossible on this node (CG-062). Pure.

It is asked first and decides only about resizes: Infeasible. A refusal of another handler is
Deferred.
Upstream: pkg/kubelet/allocation/handlers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from refkubelet.admission.admit_handler import Check, Operation, PodAdmitAttributes, Rejection
from refkubelet.allocation.conditions import INFEASIBLE
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import (
    containers,
    is_critical,
)
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import container_limits, container_requests

LIMITED_SWAP: Final = "LimitedSwap"
RESTART: Final = "RestartContainer"
SWAP_MESSAGE: Final = "In-place resize of containers with swap is not supported."
OTHER: Final = "unknown"
DETAILS: Final = {
    "swap": "swap_limitation",
    "CPU Manager": "guaranteed_pod_cpu_manager_static_policy",
    "Memory Manager": "guaranteed_pod_memory_manager_static_policy",
}
"""What metrics call the obstacle that a message tells of, by words in it."""
_EXCLUSIVE: Final = (  # resource, the policy that makes it exclusive, its manager in messages
    ("cpu", "static", "CPU Manager"),
    ("memory", "Static", "Memory Manager"),
)

EXCLUSIVE_CPUS: Final = "InPlacePodVerticalScalingExclusiveCPUs"  # off by default
EXCLUSIVE_MEMORY: Final = "InPlacePodVerticalScalingExclusiveMemory"  # off by default


class ResizeLimits(Struct, frozen=True):
    """The settings of the node that forbid resizes. `swap`: containers may swap (LimitedSwap, on
    cgroup v2)."""

    cpu_manager_policy: str = "none"
    memory_manager_policy: str = "None"
    swap: bool = False

    @classmethod
    def of(cls, config: KubeletConfiguration, cgroup_version: int) -> ResizeLimits:
        """The limits of a configuration on a machine with that cgroup version (CG-062)."""
        swap = config.memory_swap.swap_behavior == LIMITED_SWAP and cgroup_version == 2
        gates = config.feature_gates
        return cls(
            "none" if gates.get(EXCLUSIVE_CPUS, False) else config.cpu_manager_policy,
            "None" if gates.get(EXCLUSIVE_MEMORY, False) else config.memory_manager_policy,
            swap,
        )

    def policy(self, resource: str) -> str:
        """The policy of the manager that gives containers this resource."""
        return self.cpu_manager_policy if resource == "cpu" else self.memory_manager_policy


def feasible_resizes(limits: ResizeLimits, allocated: Callable[[Pod], Pod]) -> Check:
    """Make the handler. `allocated`: returns the pod with its allocated resources."""

    def handler(attributes: PodAdmitAttributes) -> Rejection | None:
        if attributes.operation is not Operation.RESIZE:
            return None
        message = infeasible(attributes.pod, allocated(attributes.pod), limits)
        return Rejection(INFEASIBLE, message) if message is not None else None

    return handler


def infeasible(wanted: Pod, allocated: Pod, limits: ResizeLimits) -> str | None:
    """Why `allocated` can never become `wanted` without a restart; None: it can."""
    if limits.swap and _changes_swap(wanted, allocated):
        return SWAP_MESSAGE
    if qos_class(wanted) != "Guaranteed":
        return None
    for resource, policy, manager in _EXCLUSIVE:
        if limits.policy(resource) == policy and _changes(wanted, allocated, resource):
            return f'Resize is infeasible for Guaranteed Pods alongside {manager} policy "{policy}"'
    return None


def detail_of(message: str) -> str:
    """What metrics call the reason of a refusal.

    >>> detail_of(SWAP_MESSAGE)
    'swap_limitation'
    """
    return next((detail for words, detail in DETAILS.items() if words in message), OTHER)


def counted(check: Check, count: Callable[[str], None]) -> Check:
    """The handler, with `count` told of each refusal by what metrics call it."""

    def handler(attributes: PodAdmitAttributes) -> Rejection | None:
        rejection = check(attributes)
        if rejection is not None:
            count(detail_of(rejection.message))
        return rejection

    return handler


def _changes(wanted: Pod, allocated: Pod, resource: str) -> bool:
    """Whether the requests of a container differ; those of a Guaranteed pod equal its limits."""
    return any(
        _request(new, resource) != _request(old, resource) for new, old in _pairs(wanted, allocated)
    )


def _pairs(wanted: Pod, allocated: Pod) -> list[tuple[Container, Container]]:
    old = {c.name: c for c in containers(allocated)}
    return [(c, old[c.name]) for c in containers(wanted) if c.name in old]


def _request(container: Container, resource: str) -> int:
    return container_requests(container).get(resource, 0)


def _changes_swap(wanted: Pod, allocated: Pod) -> bool:
    """Whether the resize would change the swap of a container, which follows from its memory
    request, without restarting it."""
    for new, old in _pairs(wanted, allocated):
        policies = {p.resourceName: p.restartPolicy for p in old.resizePolicy or ()}
        changed = _request(new, "memory") != _request(old, "memory")
        swaps = _may_swap(wanted, new) or _may_swap(allocated, old)
        if changed and policies.get("memory") != RESTART and swaps:
            return True
    return False


def _may_swap(pod: Pod, container: Container) -> bool:
    """Whether the container may swap: in a Burstable pod, with a memory limit above its request."""
    request = _request(container, "memory")
    limit = container_limits(container).get("memory", 0)
    return not is_critical(pod) and qos_class(pod) == "Burstable" and request != limit
