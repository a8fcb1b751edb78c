"""Draws what happens to calls of the kubelet: to the runtime, and to the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random  # noqa: TID251 (for its type)
from typing import Any, Final

from kubelet_conformance.search.drawing.pods import CLAIMS, DRIVER

CALLS: Final = (
    *("RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "StopPodSandbox"),
    *("RemoveContainer", "RemovePodSandbox", "ListPodSandbox", "ListContainers", "Status"),
    *("PodSandboxStatus", "ContainerStatus", "ImageStatus", "ExecSync"),
)
CHANGING: Final = CALLS[:7]
OFTEN: Final = (*CALLS, *CHANGING)
"""Calls that change something twice as often as others."""
HALVES: Final = (
    *("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "StartContainer", "StopContainer"),
)
TIMES: Final = (1, 1, 2, 5, 500)
LASTS_S: Final = (0.3, 1.5, 4.0, 12.0, 45.0, 130.0)
CODES: Final = ("UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED")
DRIVER_CALLS: Final = (
    *("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"),
)
DRIVER_CODES: Final = (*CODES, "INTERNAL", "NOT_FOUND", "ABORTED")
PATHS: Final = ("/pods/", "/pods$", "/status$", "/nodes", "/leases", "/events", "/configmaps", "")

Drawn = list[tuple[float, dict[str, Any]]]


def _fault(dice: Random, on: str, **what: Any) -> Drawn:
    """A fault of the runtime with a label, and its end."""
    begin = {"fault": {"on": on, **what, "label": "", "maybe": True}}
    return [(0.0, begin), (dice.choice(LASTS_S), {"release": ""})]


def _fails(dice: Random, cast: Any) -> Drawn:
    fails = {"code": dice.choice(CODES), "message": "no", "times": dice.choice(TIMES)}
    return _fault(dice, dice.choice(OFTEN), fails=fails)


def _slow(dice: Random, cast: Any) -> Drawn:
    word = dice.choice(("delays", "answers_late"))
    field = "delay_s" if word == "delays" else "after_s"
    return _fault(dice, dice.choice(OFTEN), **{word: {field: dice.choice((0.3, 1.5, 4.0, 12.0))}})


def _hangs(dice: Random, cast: Any) -> Drawn:
    return _fault(dice, dice.choice(OFTEN), hangs={"times": 1})


def _loses(dice: Random, cast: Any) -> Drawn:
    return _fault(dice, dice.choice(CHANGING), loses_answer={"times": dice.choice(TIMES)})


def _half(dice: Random, cast: Any) -> Drawn:
    return _fault(dice, dice.choice(HALVES), fails_halfway={"times": dice.choice(TIMES)})


def _fails_pulls(dice: Random, cast: Any) -> Drawn:
    """Pulls fail, take their time, or lose their answers."""
    what: dict[str, Any] = dice.choice(
        (
            {"fails": {"code": dice.choice(CODES), "message": "no", "times": dice.choice(TIMES)}},
            {"delays": {"delay_s": 12.0}},
            {"hangs": {"times": 1}},
            {"loses_answer": {"times": 1}},
        )
    )
    return _fault(dice, "PullImage", **what)


def _breaks_streams(dice: Random, cast: Any) -> Drawn:
    """The stream of the runtime's events breaks, again and again for a while."""
    return _fault(dice, "GetContainerEvents", cuts_stream={"after": dice.choice((0, 0, 1, 3))})


CALL_FAULTS: Final[Mapping[str, Callable[[Random, Any], Drawn]]] = {
    "failing calls": _fails,
    "slow calls": _slow,
    "hanging calls": _hangs,
    "lost answers": _loses,
    "half calls": _half,
    "failing pulls": _fails_pulls,
    "broken streams": _breaks_streams,
}


def _of_server(dice: Random, **what: Any) -> Drawn:
    on = dice.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "*"))
    fault = {"on": on, "path": dice.choice(PATHS), **what, "label": "", "maybe": True}
    return [(0.0, {"api_fault": fault}), (dice.choice(LASTS_S), {"release": ""})]


def _refuses(dice: Random, cast: Any) -> Drawn:
    status = dice.choice((409, 429, 500, 503, 504))
    return _of_server(dice, fails={"status": status}, times=dice.choice(TIMES))


def _late(dice: Random, cast: Any) -> Drawn:
    if dice.random() < 0.3:
        return _of_server(dice, hangs={}, times=1)
    return _of_server(dice, delays={"delay_s": dice.choice((0.5, 3.0, 12.0))})


SERVER_FAULTS: Final[Mapping[str, Callable[[Random, Any], Drawn]]] = {
    "server refuses": _refuses,
    "server slow": _late,
}


def driver_faults(dice: Random, cast: Any) -> Drawn:
    """The storage driver is away for a while, or calls to it are disturbed."""
    if dice.random() < 0.3:
        end = {"csi_driver": {"name": DRIVER, "do": dice.choice(("kill", "stop"))}}
        begin = {"csi_driver": {"name": DRIVER, "do": "start"}}
        return [(0.0, end), (dice.choice(LASTS_S), begin)]
    fails = {"code": dice.choice(DRIVER_CODES), "message": "no", "times": dice.choice(TIMES)}
    slow_s = dice.choice((0.3, 1.5, 4.0, 12.0))
    happens: dict[str, Any] = dice.choice(
        (
            {"fails": fails},
            {"fails": fails},
            {"delays": {"delay_s": slow_s}},
            {"answers_late": {"after_s": slow_s}},
            {"hangs": {"times": 1}},
            {"loses_answer": {"times": dice.choice(TIMES)}},
        )
    )
    on = dice.choice(DRIVER_CALLS)
    fault = {"driver": DRIVER, "on": on, **happens, "label": "", "maybe": True}
    return [(0.0, {"csi_fault": fault}), (dice.choice(LASTS_S), {"release": ""})]


def attach_all(dice: Random) -> Drawn:
    """The controller attaches the volumes that pods may share, each in its time."""
    return [(dice.choice((0.0, 2.0, 15.0)), {"attach": claim}) for claim in CLAIMS]


def detaches(dice: Random, cast: Any) -> Drawn:
    """The controller detaches a volume by force, and attaches it again."""
    claim = dice.choice(CLAIMS)
    return [(0.0, {"detach": claim}), (dice.choice(LASTS_S), {"attach": claim})]
