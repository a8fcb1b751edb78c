"""Pods of the allocation tests."""

from __future__ import annotations

from typing import Any

from refkubelet.model.objects import Pod, decode_pod
from simtime import Clock
from simtime.clock import NANOSECONDS


class SetClock(Clock):
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic_s(self) -> float:
        return self.seconds

    def wall_ns(self) -> int:
        return round((1_000_000_000 + self.seconds) * NANOSECONDS)

    def advance(self, duration_s: float) -> None:
        self.seconds += duration_s


def asking(name: str, cpu: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    """A container; amounts are written request/limit, either may be empty."""
    resources: dict[str, Any] = {"requests": {}, "limits": {}}
    for resource, text in (("cpu", cpu), ("memory", memory)):
        for kind, amount in zip(("requests", "limits"), text.split("/"), strict=False):
            if amount:
                resources[kind][resource] = amount
    return {"name": name, "resources": {k: v for k, v in resources.items() if v}, **more}


def pod_of(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    uid: str = "u-1",
    status: dict[str, Any] | None = None,
    generation: int = 1,
    **spec: Any,
) -> Pod:
    return decode_pod(
        {
            "metadata": {
                "name": f"web-{uid}",
                "namespace": "default",
                "uid": uid,
                "generation": generation,
            },
            "spec": {
                "containers": [{"image": "i", **c} for c in containers],
                **({"initContainers": [{"image": "i", **c} for c in init]} if init else {}),
                **spec,
            },
            **({"status": status} if status else {}),
        }
    )
