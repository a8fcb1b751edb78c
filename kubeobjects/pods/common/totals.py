"""What the containers of a pod request together, and the pod's own resources made of it. No I/O.

Upstream: component-helpers resource: AggregateContainerRequests; pkg/apis/core/v1/defaults.go:
defaultPodRequests, defaultHugePagePodLimits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubeobjects.quantity import Quantity, parse

COMPUTE: Final = ("cpu", "memory")
HUGE_PAGES: Final = "hugepages-"
Amounts = dict[str, Quantity]


def container_totals(spec: Mapping[str, Any], which: str) -> Amounts:
    """The `requests` or `limits` of all containers and sidecars together, or the most that an init
    container and the sidecars before it need, if that is more.

    Adds in place: a pod may have thousands of containers with as many resources.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, which))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, which)
        if container.get("restartPolicy") == "Always":
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
        own_limits = {n: limits[n] for n in limits if n in COMPUTE or n.startswith(HUGE_PAGES)}
        requests = {**own_limits, **of_containers, **requests}
    resources.update({"limits": limits} if limits else {})
    resources.update({"requests": requests} if requests else {})


def _amounts(container: Mapping[str, Any], which: str) -> Amounts:
    amounts = (container.get("resources") or {}).get(which) or {}
    return {name: parse(str(text)) for name, text in amounts.items()}


def _add(to: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        to[name] = to[name] + amount if name in to else amount


def _raise(to: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if name not in to or amount.nano > to[name].nano:
            to[name] = amount
