"""Draws what pods want to have alone, and what happens to it: ports of the node, devices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random  # noqa: TID251 (for its type)
from typing import Any, Final

WIDGET: Final = "vendor.example/widget"
DEVICES: Final = ("a", "b", "c", "d")
PORTS: Final = (8080, 8081)

Drawn = list[tuple[float, dict[str, Any]]]


def ask_alone(dice: Random, kinds: Collection[str], spec: dict[str, Any], *, static: bool) -> None:
    """Let the first container of a pod of the API server want a port of the node, or devices."""
    one = spec["containers"][0]
    if "host ports" in kinds and not static and dice.random() < 0.6:
        one["ports"] = [{"containerPort": 80, "hostPort": dice.choice(PORTS)}]
    if "devices" in kinds and not static and dice.random() < 0.6:
        count = {WIDGET: dice.choice(("1", "1", "2"))}
        resources = one.setdefault("resources", {})
        for name in ("requests", "limits"):
            resources[name] = {**resources.get(name, {}), **count}


def plug_in() -> dict[str, Any]:
    """The step that starts the plug-in of the devices."""
    return {"plug_in": {"resource": WIDGET, "devices": list(DEVICES)}}


def _devices(dice: Random, cast: Any) -> Drawn:
    """Some devices are gone for a while."""
    lasts_s = dice.choice((0.3, 4.0, 12.0, 45.0))
    left = sorted(dice.sample(DEVICES, dice.choice((1, 2, 3))))
    return [
        (0.0, {"devices": {"resource": WIDGET, "are": left}}),
        (lasts_s, {"devices": {"resource": WIDGET, "are": list(DEVICES)}}),
    ]


ALONE: Final[Mapping[str, Callable[[Random, Any], Drawn]]] = {
    "fewer devices": _devices,
}
