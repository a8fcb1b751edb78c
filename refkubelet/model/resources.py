"""Adds up the requests and limits of a pod's containers, in nano units. Pure.

The functions `*_quantities` return the same as `Quantity`, which keeps the written form, for
statuses. Rules: LIFE-225 (admission), EVIC-080 (ranking), CG-061 (requests in use). Upstream:
component-helpers resource: PodRequests, PodLimits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubeobjects.pods.common.totals import at_most
from kubeobjects.quantity import Quantity, parse
from kubeobjects.resource_names import is_pod_level
from refkubelet.model.objects import Container, ContainerStatus, Pod, PodStatus
from refkubelet.model.pod import is_sidecar

Quantities = Mapping[str, Quantity]


def container_requests(container: Container) -> dict[str, int]:
    """The container's requests: resource -> nano units; a missing request is the limit."""
    return _nano(_of_container(container, "requests"))


def container_limits(container: Container) -> dict[str, int]:
    """The container's limits: resource -> nano units."""
    return _nano(_of_container(container, "limits"))


def pod_requests(pod: Pod, *, with_overhead: bool = True) -> dict[str, int]:
    """The pod's requests: the sum of all containers and sidecars, or the peak of the initialization
    if that is higher; replaced by pod-level requests; plus overhead."""
    return _nano(request_quantities(pod, with_overhead=with_overhead))


def pod_limits(pod: Pod, *, with_overhead: bool = True) -> dict[str, int]:
    """The pod's limits, added up like `pod_requests`; a missing limit counts as 0, and overhead is
    added only to resources with a limit."""
    return _nano(limit_quantities(pod, with_overhead=with_overhead))


def container_total(pod: Pod, which: str) -> dict[str, int]:
    """`requests` or `limits` of the containers alone (upstream: AggregateContainerRequests)."""
    return _nano(container_quantities(pod, which))


def pod_level(pod: Pod, which: str) -> dict[str, int]:
    """The pod-level `requests` or `limits` (spec.resources)."""
    return _nano(_of_pod(pod, which))


def request_quantities(pod: Pod, *, with_overhead: bool = True) -> dict[str, Quantity]:
    """`pod_requests` as quantities."""
    total = container_quantities(pod, "requests") | _of_pod(pod, "requests")
    return _plus(total, _overhead(pod)) if with_overhead else total


def limit_quantities(pod: Pod, *, with_overhead: bool = True) -> dict[str, Quantity]:
    """`pod_limits` as quantities."""
    total = container_quantities(pod, "limits") | _of_pod(pod, "limits")
    if not with_overhead:
        return total
    limited = {name for name, amount in total.items() if amount.nano}
    return _plus(total, {k: v for k, v in _overhead(pod).items() if k in limited})


def requests_in_use(pod: Pod, *, pod_level_resizes: bool = True) -> dict[str, int]:
    """The requests that the pod occupies on the node, by its spec and status (CG-061).

    Of each request the greatest counts among that of the spec, the allocated and the actual one in
    the status; the spec's is left out while a resize is infeasible. Container statuses without
    `resources` are ignored, and so are init containers that end. Pod-level requests are compared
    with status.resources in the same way, unless `pod_level_resizes` is off (the gate
    InPlacePodLevelResourcesVerticalScaling): then the status is of an earlier kubelet."""
    status = pod.status
    if status is None:
        return pod_requests(pod)
    total = container_quantities(pod, "requests", _statuses(status))
    own = _of_pod(pod, "requests")
    if own and pod_level_resizes and status.resources is not None:
        greatest = _in_use(
            own, status.resources.requests, status.allocatedResources, _is_infeasible(status)
        )
        own = {name: greatest.get(name, Quantity()) for name in own}
    return _nano(_plus(total | own, _overhead(pod)))


def container_quantities(
    pod: Pod, which: str, statuses: Mapping[str, ContainerStatus] | None = None
) -> dict[str, Quantity]:
    """`container_total` as quantities. With `statuses` (container name -> status) the requests in
    use, as in `requests_in_use`."""
    spec = pod.spec
    infeasible = pod.status is not None and _is_infeasible(pod.status)

    def amounts(container: Container) -> dict[str, Quantity]:
        own = _of_container(container, which)
        status = statuses.get(container.name) if statuses else None
        if status is None or status.resources is None:
            return own
        return _in_use(own, status.resources.requests, status.allocatedResources, infeasible)

    return at_most(
        (amounts(container) for container in spec.containers or ()),
        (
            (True, amounts(container))
            if is_sidecar(container)
            else (False, _of_container(container, which))
            for container in spec.initContainers or ()
        ),
    )


def has_pod_level_resources(pod: Pod) -> bool:
    """Whether the pod has pod-level requests or limits (upstream: IsPodLevelResourcesSet)."""
    return bool(pod_level(pod, "requests") or pod_level(pod, "limits"))


def resource_request(pod: Pod, name: str) -> int:
    """The pod's request of one resource for ranking and preemption, in nano units (EVIC-080,
    PREE-002).

    With pod-level resources only these count, not the containers'; overhead is added only to an
    amount that is not 0. Upstream: pkg/api/v1/resource/helpers.go:
    GetResourceRequestQuantity."""
    level = has_pod_level_resources(pod)
    requests = pod_level(pod, "requests") if level else container_total(pod, "requests")
    amount = requests.get(name, 0)
    return amount + _nano(_overhead(pod)).get(name, 0) if amount else 0


def _of_container(container: Container, which: str) -> dict[str, Quantity]:
    resources = container.resources
    if resources is None:
        return {}
    limits = _parsed(resources.limits)
    return limits | _parsed(resources.requests) if which == "requests" else limits


def _of_pod(pod: Pod, which: str) -> dict[str, Quantity]:
    """The pod-level amounts of CPU, memory and huge pages; others cannot be set."""
    resources = pod.spec.resources
    values = getattr(resources, which) if resources else None
    return {name: amount for name, amount in _parsed(values).items() if is_pod_level(name)}


def _overhead(pod: Pod) -> dict[str, Quantity]:
    return _parsed(pod.spec.overhead)


def _statuses(status: PodStatus) -> dict[str, ContainerStatus]:
    every = (*(status.containerStatuses or ()), *(status.initContainerStatuses or ()))
    return {container.name: container for container in every}


def _is_infeasible(status: PodStatus) -> bool:
    """Whether the pod's first PodResizePending condition is Infeasible."""
    pending = (c for c in status.conditions or () if c.type == "PodResizePending")
    first = next(pending, None)
    return first is not None and first.reason == "Infeasible"


def _in_use(
    spec: Quantities,
    actual: Mapping[str, str] | None,
    allocated: Mapping[str, str] | None,
    infeasible: bool,
) -> dict[str, Quantity]:
    greatest = _maximum({} if infeasible else spec, _parsed(actual))
    return _maximum(greatest, _parsed(allocated))


def _parsed(values: Mapping[str, str] | None) -> dict[str, Quantity]:
    return {name: parse(text) for name, text in (values or {}).items()}


def _nano(amounts: Quantities) -> dict[str, int]:
    return {name: amount.nano for name, amount in amounts.items()}


def _plus(a: Quantities, b: Quantities) -> dict[str, Quantity]:
    return {**a, **{name: a[name] + more if name in a else more for name, more in b.items()}}


def _maximum(a: Quantities, b: Quantities) -> dict[str, Quantity]:
    """The greater amount of each resource; of equal ones that of `a`."""
    greater = {n: more for n, more in b.items() if n not in a or more.nano > a[n].nano}
    return {**a, **greater}


def peak(pod: Pod, amount: Callable[[Container], int]) -> int:
    """The greatest sum of `amount` over containers that run at the same time: all regular
    containers and sidecars, or an init container with the sidecars before it."""
    highest, sidecars = 0, 0
    for container in pod.spec.initContainers or ():
        if is_sidecar(container):
            sidecars += amount(container)
        else:
            highest = max(highest, sidecars + amount(container))
    return max(highest, sidecars + sum(map(amount, pod.spec.containers)))
