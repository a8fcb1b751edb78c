"""What a sync is going to change, in a line for the log. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from refkubelet.kuberuntime.decisions.pod_actions import PodActions
from refkubelet.model.objects import Container


def told(actions: PodActions) -> str:
    """The changes in the order in which they are made (LIFE-130); "" for a sync without any."""
    parts = [
        "kill the pod (LIFE-111)" if actions.kill_pod else "",
        _listed("restart all of", sorted({record.name for record in actions.resets}), "LIFE-125"),
        *(f"kill {kill.name}: {kill.reason.value} (LIFE-116)" for kill in actions.kills),
        f"new sandbox, attempt {actions.attempt} (LIFE-100)" if actions.create_sandbox else "",
        _listed("start ephemeral", _names(actions.ephemeral_to_start), "LIFE-112"),
        _listed("start init", _names(actions.init_to_start), "LIFE-120"),
        _resize(actions),
        _listed("start", _names(actions.containers_to_start), "LIFE-114"),
    ]
    return "; ".join(part for part in parts if part)


def _names(containers: Iterable[Container]) -> list[str]:
    return [container.name for container in containers]


def _listed(verb: str, names: list[str], rule: str) -> str:
    return f"{verb} {', '.join(names)} ({rule})" if names else ""


def _resize(actions: PodActions) -> str:
    resizes = actions.updates or actions.resizes_by_restart or actions.resizes_pod_level
    return "resize (CG-065)" if resizes else ""
