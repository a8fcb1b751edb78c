"""What an API server changes in a new pod, with its defaults, before it checks it. Pure, in place.

A kubelet does none of it to its own pods. Selectors get the labels that they name of the pod itself
(`matchLabelKeys`); AppArmor profiles in annotations become fields.
Upstream: pkg/registry/core/pod/strategy.go: PrepareForCreate; pkg/api/pod/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubeobjects.pods.annotations import APPARMOR, LOCAL
from kubeobjects.pods.common.checks import GROUPS
from kubeobjects.pods.common.security import apparmor_causes

_OPERATORS: Final = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_own(pod: dict[str, Any]) -> None:
    """Give selectors the labels that they name, and containers the profiles of annotations."""
    spec = pod["spec"]
    labels = pod["metadata"].get("labels") or {}
    for term in _terms(spec):
        _merge_keys(term, labels)
    if (spec.get("os") or {}).get("name") != "windows":
        _take_profiles(pod)


def _terms(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All that selects other pods by labels that they share with this one."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get(_REQUIRED) or ()
        yield from (
            term["podAffinityTerm"]
            for term in terms.get(_PREFERRED) or ()
            if "podAffinityTerm" in term
        )
    yield from spec.get("topologySpreadConstraints") or ()


def _merge_keys(term: dict[str, Any], labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    merged = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in _OPERATORS.items()
        for key in term.get(field) or ()
        if key in labels
    ]
    if merged:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *merged]


def _take_profiles(pod: dict[str, Any]) -> None:
    """Give containers without an AppArmor profile that of their annotation, if it is one, and not
    the pod's anyway."""
    of_pod = (pod["spec"].get("securityContext") or {}).get("appArmorProfile")
    annotations = pod["metadata"].get("annotations") or {}
    for container in (item for group in GROUPS for item in pod["spec"].get(group) or ()):
        context = container.get("securityContext")
        annotation = annotations.get(APPARMOR + (container.get("name") or ""))
        if annotation is None or (context or {}).get("appArmorProfile") is not None:
            continue
        profile = _profile(annotation)
        if profile is None or profile == of_pod or any(apparmor_causes(profile, "")):
            continue
        container["securityContext"] = {**(context or {}), "appArmorProfile": profile}


def _profile(told: str) -> dict[str, Any] | None:
    """The profile that an annotation tells; None: it tells none."""
    words = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}
    if told in words:
        return {"type": words[told]}
    name = told.removeprefix(LOCAL)
    return {"type": "Localhost", "localhostProfile": name} if name and name != told else None
