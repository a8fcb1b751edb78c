"""What is wrong with requests and limits of a pod as a whole, and with its overhead. Pure.

Upstream: validatePodResources, validatePodResourceConsistency; component-helpers resource.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubeobjects.causes import Cause, forbidden_field, invalid_value
from kubeobjects.pods.common.checks import Object
from kubeobjects.pods.common.resources import claim_names, requirement_causes
from kubeobjects.pods.common.totals import container_totals
from kubeobjects.quantity import canonical, parse
from kubeobjects.resource_names import HUGE_PAGES


def overhead_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with what the pod costs beside its containers: limits of a container."""
    if spec.get("overhead") is not None:
        yield from requirement_causes({"limits": spec["overhead"]}, "spec.overhead")


def pod_resource_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with the resources of a pod as a whole."""
    resources, path = spec.get("resources"), "spec.resources"
    if resources is None:
        return
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden_field(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield forbidden_field(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from requirement_causes(resources, path, claims=claim_names(spec), of_pod=True)
    yield from _consistency_causes(spec, resources, path)


def _consistency_causes(spec: Object, resources: Object, path: str) -> Iterator[Cause]:
    """The pod has at least what its containers request together, huge pages as their limits say,
    and no container may use more than the pod."""
    for which, only in (("requests", ""), ("limits", HUGE_PAGES)):
        of_pod = resources.get(which) or {}
        for name, amount in container_totals(spec, which).items():
            if not name.startswith(only) or name not in of_pod:
                continue
            if amount.nano > parse(str(of_pod[name])).nano:
                text = f"must be greater than or equal to aggregate container {which} of {amount}"
                amount_text = canonical(str(of_pod[name]))
                yield invalid_value(f"{path}.{which}[{name}]", amount_text, text)
    limits = resources.get("limits") or {}
    for i, container in enumerate(spec.get("containers") or ()):
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and parse(str(amount)).nano > parse(str(limits[name])).nano:
                text = f"must be less than or equal to pod limits of {canonical(str(limits[name]))}"
                limit_path = f"{path}.containers[{i}][{name}].limits"
                yield invalid_value(limit_path, canonical(str(amount)), text)
