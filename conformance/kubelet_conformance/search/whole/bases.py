"""The small worlds, undisturbed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubelet_conformance.search.whole.points import DRIVER

CALM_S: Final = 600
"""So long after the last fault everything must be as it should be."""

Document = dict[str, Any]
POLITE: Final = {"stops": {"code": 0, "after_s": 0.2}}
MAIN: Final = {"name": "main"}
OTHER: Final = {"name": "other"}
HOOKS: Final = {hook: {"exec": {"command": ["hook"]}} for hook in ("postStart", "preStop")}
ANSWERS: Final = {"command": "hook", "answers": [{"exit_code": 0, "delay_s": 0.5}]}
SIDE: Final = {"name": "side", "restartPolicy": "Always"}


def _amounts(cpu: str) -> Document:
    amounts = {"cpu": cpu, "memory": "64Mi"}
    return {"name": "main", "resources": {"requests": amounts, "limits": amounts}}


def _ends(code: int, after_s: float) -> Document:
    return {"exits": {"code": code, "after_s": after_s}}


def _pod(*containers: Document, does: Mapping[str, Any] | None = None, **spec: Any) -> Document:
    polite = {one["name"]: POLITE for one in (*containers, *spec.get("initContainers", ()))}
    whole = {"terminationGracePeriodSeconds": 2, "containers": list(containers), **spec}
    return {"spec": whole, "does": {**polite, **(does or {})}}


def _base(about: str, pod: Document, *steps: Document, **more: Any) -> Document:
    title = f"Whole: {about}"
    return {
        "title": title,
        "needs": ["api"],
        "kubelet": {"evictionPressureTransitionPeriod": "30s"},
        "node": {},
        "pods": {"web": pod},
        "steps": list(steps),
        "calm": CALM_S,
        **more,
    }


def _resize() -> Document:
    change = {"spec": {"containers": [_amounts("200m")]}}
    return {"patch": {"pod": "web", "subresource": "resize", "set": change}}


_EDIT: Final = {"edit": {"pod": "web", "set": {"metadata": {"labels": {"edited": "1"}}}}}
BASES: Final[Mapping[str, Document]] = {
    "one": _base(
        "a pod of one container is made, and deleted",
        _pod(MAIN),
        {"create": "web"},
        {"advance": 6},
        {"delete": "web"},
        {"advance": 8},
    ),
    "two": _base(
        "a pod of two containers is made",
        _pod(MAIN, OTHER),
        {"create": "web"},
        {"advance": 10},
    ),
    "static": _base(
        "a static pod is edited once",
        _pod(MAIN),
        {"apply": "web"},
        {"advance": 6},
        _EDIT,
        {"advance": 12},
    ),
    "resized": _base(
        "a pod is resized once",
        _pod(_amounts("100m")),
        {"create": "web"},
        {"advance": 6},
        _resize(),
        {"advance": 8},
        needs=["api", "cgroups"],
    ),
    "crashes": _base(
        "a container ends twice with an error, then well",
        _pod(
            MAIN, does={"main": [_ends(3, 1), _ends(3, 1), _ends(0, 1)]}, restartPolicy="OnFailure"
        ),
        {"create": "web"},
        {"advance": 25},
    ),
    "first": _base(
        "an init container, a sidecar and a container that ends well",
        _pod(
            MAIN,
            does={"init": _ends(0, 1), "main": _ends(0, 3)},
            initContainers=[{"name": "init"}, SIDE],
            restartPolicy="Never",
        ),
        {"create": "web"},
        {"advance": 14},
    ),
    "hooks": _base(
        "a container with hooks is started, and stopped",
        _pod({**MAIN, "lifecycle": HOOKS}, does={"main": {**POLITE, "replies": ANSWERS}}),
        {"create": "web"},
        {"advance": 6},
        {"delete": "web"},
        {"advance": 8},
    ),
    "sandbox": _base(
        "the sandbox of a pod of two containers dies",
        _pod(MAIN, OTHER),
        {"create": "web"},
        {"advance": 6},
        {"kill_sandbox": "web"},
        {"advance": 10},
    ),
    "volume": _base(
        "a pod with a volume of a storage driver is made, and deleted",
        _pod(
            {**MAIN, "volumeMounts": [{"name": "disk", "mountPath": "/disk"}]},
            volumes=[{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}],
        ),
        {"create": "web"},
        {"advance": 8},
        {"delete": "web"},
        {"advance": 10},
        csi_drivers={DRIVER: {}},
        csi_volumes={"data": {"driver": DRIVER}},
    ),
}
"""Name -> the scenario, but for its ID."""
