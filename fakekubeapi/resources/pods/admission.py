"""What admission plug-ins add to every new pod: priority, and tolerations for a while. No I/O.

They run when a pod is created, and when it is changed other than through a subresource; after the
API's own defaults (kubeobjects.pods.defaults).
"""

from __future__ import annotations

from typing import Any, Final

_TOLERATED_FOR_A_WHILE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_S: Final = 300


def admit_pod(pod: dict[str, Any]) -> None:
    """Add the fields in place, where they are absent."""
    spec = pod["spec"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    _add_tolerations(spec)


def _add_tolerations(spec: dict[str, Any]) -> None:
    tolerations = spec.get("tolerations") or []
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _TOLERATION_S,
        }
        for key in _TOLERATED_FOR_A_WHILE
        if not any(_tolerates(toleration, key) for toleration in tolerations)
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _tolerates(toleration: dict[str, Any], key: str) -> bool:
    right_key = toleration.get("key", "") in ("", key)
    return right_key and toleration.get("effect", "") in ("", "NoExecute")
