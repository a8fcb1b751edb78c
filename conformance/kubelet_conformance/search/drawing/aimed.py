"""Draws what waits for calls, where what is drawn by time mostly meets none: faults for one call of
a pod, kubelets that are killed at a call, callers whose calls come later than those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random  # noqa: TID251 (for its type)
from typing import Any, Final

from kubelet_conformance.search.drawing.faults import CALLS, CHANGING, CODES, HALVES, Drawn

OF_PODS: Final = (*CHANGING, *CHANGING, "PodSandboxStatus", "ContainerStatus", "ExecSync")
"""Calls about one pod; those that change something twice as often."""
NTHS: Final = (1, 1, 1, 2, 2, 3, 5, 8)
"""Which of the calls that fit, from now on."""
WAITS_S: Final = (20.0, 60.0, 130.0)
"""So long it is waited for the call."""
SLOW_S: Final = (0.3, 1.5, 4.0, 12.0)
UNITS_S: Final = (0.05, 0.4, 1.5, 5.0)
"""By so much a call comes later than one of the next higher priority."""


def _aims(dice: Random, cast: Any) -> Drawn:
    """One call of one pod fails, is slow, hangs, loses its answer, or is done by half."""
    on = dice.choice(OF_PODS)
    happens: list[dict[str, Any]] = [
        {"fails": {"code": dice.choice(CODES), "message": "no"}},
        {"delays": {"delay_s": dice.choice(SLOW_S)}},
        {"answers_late": {"after_s": dice.choice(SLOW_S)}},
        {"hangs": {}},
    ]
    if on in CHANGING:
        happens.append({"loses_answer": {}})
    if on in HALVES:
        happens.append({"fails_halfway": {}})
    aim = {"on": on, "pod": dice.choice(cast.keys), "nth": dice.choice(NTHS)}
    fault = {**aim, **dice.choice(happens), "label": "", "maybe": True}
    return [(0.0, {"fault": fault}), (dice.choice(WAITS_S), {"release": ""})]


def _dies(dice: Random, cast: Any) -> Drawn:
    """The kubelet is killed when it makes a call, which reaches the runtime or does not."""
    death = {
        "on": dice.choice((*CALLS, *CHANGING, *CHANGING)),
        "nth": dice.choice(NTHS),
        "answered": dice.choice((True, False)),
        "down": dice.choice((0.7, 0.7, 4.0, 45.0)),
        "maybe": True,
    }
    return [(0.0, {"dies_at": death})]


def _falls_behind(dice: Random, cast: Any) -> Drawn:
    """A priority changes: from now on the calls of one caller come after all those of the others
    that are pending then. A caller is a pod: its calls to the runtime, or requests about it."""
    late_s = round(dice.choice(UNITS_S) * dice.choice((1, 2, 3)), 3)
    key, ends_s = dice.choice(cast.keys), dice.choice(WAITS_S)
    delay = {"delays": {"delay_s": late_s}, "maybe": True}
    if cast.has_server and dice.random() < 0.3:
        request = {"on": "*", "path": f"/pods/{key}", **delay, "label": ""}
        return [(0.0, {"api_fault": request}), (ends_s, {"release": ""})]
    begins = [{"on": on, "pod": key, **delay, "label": f"-{on}"} for on in CHANGING]
    return [
        *((0.0, {"fault": begin}) for begin in begins),
        *((ends_s, {"release": begin["label"]}) for begin in begins),
    ]


AIMED: Final[Mapping[str, Callable[[Random, Any], Drawn]]] = {
    "aimed faults": _aims,
    "killed at calls": _dies,
    "priority changes": _falls_behind,
}
