"""What the containers of a pod request together, and the pod's own resources made of it. No I/O.

Upstream: component-helpers resource: AggregateContainerRequests; pkg/apis/core/v1/defaults.go:
defaultPodRequests, defaultHugePagePodLimits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubeobjects.quantity import Quantity, parse
from kubeobjects.resource_names import COMPUTE, HUGE_PAGES, is_pod_level

Amounts = dict[str, Quantity]


def container_totals(spec: Mapping[str, Any], which: str) -> Amounts:
    """The `requests` or `limits` of all containers together, as `at_most` has it."""
    return at_most(
        (_amounts(container, which) for container in spec.get("containers") or ()),
        (
            (container.get("restartPolicy") == "Always", _amounts(container, which))
            for container in spec.get("initContainers") or ()
        ),
    )


def at_most(
    containers: Iterable[Mapping[str, Quantity]],
    init_containers: Iterable[tuple[bool, Mapping[str, Quantity]]],
) -> Amounts:
    """What a pod's containers need at the same time at most: all of `containers` and the sidecars
    together, or an init container with the sidecars before it, if that is more. `init_containers`:
    of each whether it is a sidecar, and its amounts.

    Adds in place: a pod may have thousands of containers with as many resources.
    """
    total: Amounts = {}
    for own in containers:
        _add(total, own)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for is_sidecar, own in init_containers:
        if is_sidecar:
            _add(total, own)
            _add(sidecars, own)
        else:
            _raise(
                peak, {n: more + sidecars[n] if n in sidecars else more for n, more in own.items()}
            )
    _raise(peak, sidecars)
    _raise(total, peak)
    return total


def default_pod_level(spec: dict[str, Any]) -> None:
    """Complete, in place, the pod's own resources if some are written: limits of huge pages with
    those of the containers; requests with the containers' requests, else with the limits."""
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return
    for name, amount in container_totals(spec, "limits").items():
        if name.startswith(HUGE_PAGES) and name not in requests:
            limits = {name: str(amount), **limits}
    if limits:
        of_all = container_totals(spec, "requests")
        of_containers = {name: str(of_all[name]) for name in COMPUTE if name in of_all}
        own_limits = {n: limits[n] for n in limits if is_pod_level(n)}
        requests = {**own_limits, **of_containers, **requests}
    resources.update({"limits": limits} if limits else {})
    resources.update({"requests": requests} if requests else {})


def _amounts(container: Mapping[str, Any], which: str) -> Amounts:
    amounts = (container.get("resources") or {}).get(which) or {}
    return {name: parse(str(text)) for name, text in amounts.items()}


def _add(to: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        to[name] = to[name] + amount if name in to else amount


def _raise(to: Amounts, least: Mapping[str, Quantity]) -> None:
    for name, amount in least.items():
        if name not in to or amount.nano > to[name].nano:
            to[name] = amount
