"""The resizable resources of a pod: read from a spec, put into a spec, compared. Pure.

What must never happen here: two texts of the same amount (`1024Mi`, `1Gi`) count as a resize.
Rules: CG-060, CG-061. Upstream: pkg/kubelet/allocation/allocation_manager.go: allocationFromPod,
updatePodFromAllocation, isResizeIncreasingRequests; pkg/kubelet/kubelet.go: recordResizeOperations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from lightkube.models.core_v1 import ResourceRequirements
from msgspec import Struct, field

from kubeobjects.quantity import canonical, parse_nano
from kubeobjects.resource_names import COMPUTE
from kubeobjects.structs import replace
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers, is_sidecar, sidecars
from refkubelet.model.resources import pod_requests


class PodResources(Struct, frozen=True):
    """The resources of a pod. `containers`: by name, all that can be resized; `pod_level`:
    spec.resources."""

    containers: Mapping[str, ResourceRequirements] = field(default_factory=dict)
    pod_level: ResourceRequirements | None = None


def resources_of(pod: Pod, *, pod_level: bool = True, init_containers: bool = True) -> PodResources:
    """The resources of the spec, in canonical form; ephemeral containers have none. `pod_level`
    False: without spec.resources, which cannot be resized; `init_containers` False: of these only
    sidecars can (CG-061)."""
    own = pod.spec.resources if pod_level else None
    fixed = {c.name for c in pod.spec.initContainers or () if not is_sidecar(c)}
    return PodResources(
        {
            c.name: canonical_resources(c.resources)
            for c in containers(pod)
            if init_containers or c.name not in fixed
        },
        canonical_resources(own) if own is not None else None,
    )


def canonical_resources(resources: ResourceRequirements | None) -> ResourceRequirements:
    """The resources with canonical amounts, names sorted."""
    if resources is None:
        return ResourceRequirements()
    return ResourceRequirements(
        claims=resources.claims or None,
        limits=_canonical(resources.limits),
        requests=_canonical(resources.requests),
    )


def _canonical(amounts: Mapping[str, str] | None) -> dict[str, str] | None:
    return {name: canonical(amounts[name]) for name in sorted(amounts)} if amounts else None


def with_resources_of(pod: Pod, known: PodResources, *, pod_level: bool = True) -> Pod:
    """`pod` with the resources `known`; the same object if they equal its own. `pod_level` False:
    spec.resources stays as it is."""
    spec = pod.spec
    same_own = not pod_level or same_resources(spec.resources, known.pod_level)
    own = spec.resources if same_own else known.pod_level
    inits = _with_known(spec.initContainers, known)
    regular = _with_known(spec.containers, known)
    if same_own and inits is spec.initContainers and regular is spec.containers:
        return pod
    changed = replace(spec, resources=own, containers=regular or [], initContainers=inits)
    return replace(pod, spec=changed)


def _with_known(containers: list[Container] | None, known: PodResources) -> list[Container] | None:
    """The containers with their `known` resources; the same list if nothing changes."""
    changed = [_with_resources(c, known.containers.get(c.name)) for c in containers or ()]
    same = all(old is new for old, new in zip(containers or (), changed, strict=True))
    return containers if same else changed


def _with_resources(container: Container, known: ResourceRequirements | None) -> Container:
    if known is None or same_resources(container.resources, known):
        return container
    return replace(container, resources=known)


def same_resources(one: ResourceRequirements | None, other: ResourceRequirements | None) -> bool:
    """Whether amounts and claims are equal; None and empty are the same."""
    if one is other:
        return True
    one, other = one or ResourceRequirements(), other or ResourceRequirements()
    return (
        _amounts(one.requests) == _amounts(other.requests)
        and _amounts(one.limits) == _amounts(other.limits)
        and (one.claims or None) == (other.claims or None)
    )


def _amounts(values: Mapping[str, str] | None) -> dict[str, int]:
    return {name: parse_nano(text) for name, text in (values or {}).items()}


def asks_for_resize(old: Pod, new: Pod) -> bool:
    """Whether CPU or memory of a container, or the pod-level resources, have changed."""
    before = {c.name: c.resources for c in containers(old)}
    for container in containers(new):
        if container.name in before and _compute(before[container.name]) != _compute(
            container.resources
        ):
            return True
    specs = (old.spec, new.spec)
    own = [spec.resources for spec in specs]
    return not same_resources(own[0], own[1])


def changes_of(old: Pod, new: Pod) -> Iterator[tuple[str, str, str]]:
    """What an update changes of containers that can be resized: the resource, requests or limits,
    and whether they are added, removed, increased or decreased."""
    before = {c.name: _compute(c.resources) for c in _resizable(old)}
    for container in _resizable(new):
        amounts = zip(
            product(("requests", "limits"), COMPUTE),
            before.get(container.name, ()),
            _compute(container.resources),
            strict=False,
        )
        for (requirement, resource), was, new_amount in amounts:
            if was != new_amount:
                yield resource, requirement, _operation(was, new_amount)


def _resizable(pod: Pod) -> Iterator[Container]:
    yield from sidecars(pod)
    yield from pod.spec.containers


def _operation(was: int, now: int) -> str:
    """The label of a change from one amount to another; 0: there is none.

    >>> _operation(0, 1), _operation(1, 0), _operation(1, 2), _operation(2, 1)
    ('add', 'remove', 'increase', 'decrease')
    """
    if not was or not now:
        return "remove" if was else "add"
    return "increase" if now > was else "decrease"


def _compute(resources: ResourceRequirements | None) -> tuple[int, ...]:
    """The requests, then the limits, of CPU and memory; 0 for those that are missing."""
    if resources is None:
        return (0,) * (2 * len(COMPUTE))
    return tuple(
        parse_nano((values or {}).get(name, "0"))
        for values in (resources.requests, resources.limits)
        for name in COMPUTE
    )


def increases_requests(allocated: Pod, wanted: Pod) -> bool:
    """Whether `wanted` requests more CPU or memory than `allocated`."""
    old, new = pod_requests(allocated), pod_requests(wanted)
    return any(new.get(name, 0) > old.get(name, 0) for name in COMPUTE)
