"""The annotation in which `kubectl apply` keeps what it applied last, where kubectl applies on the
server what it had applied itself before. Pure.

Upstream: apimachinery/pkg/util/managedfields/internal/lastappliedupdater.go.
"""

from __future__ import annotations

import json
from typing import Any, Final

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL: Final = "kubectl"

Object = dict[str, Any]


def with_last_applied(new: Object, applied: Object, manager: str) -> Object:
    """`new`, the result of an apply by that manager, with the annotation brought up to date: only
    where it is there, and only for kubectl. `applied` is what was sent."""
    metadata = new["metadata"]
    annotations = metadata.get("annotations") or {}
    if manager != _KUBECTL or not annotations.get(LAST_APPLIED):
        return new
    with_note = {**annotations, LAST_APPLIED: _text(applied)}
    return {**new, "metadata": {**metadata, "annotations": with_note}}


def _text(applied: Object) -> str:
    """What was sent, but for the annotation itself: as JSON with sorted names and a line end."""
    metadata = dict(applied.get("metadata") or {})
    if (own_annotations := metadata.get("annotations")) is not None:
        metadata["annotations"] = {k: v for k, v in own_annotations.items() if k != LAST_APPLIED}
    text = json.dumps(
        {**applied, "metadata": metadata},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    for sign, escape in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(sign, escape)  # as Go writes JSON
    return f"{text}\n"
