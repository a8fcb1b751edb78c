"""What happens to one pod while its syncs take their time, drawn from a seed. Pure.

Containers with probes of all kinds, some of which fail in truth; starts, stops and pulls that last
from 0.1 to 30 s; and neighbours that end, are killed, resized, or changed meanwhile.
"""

from __future__ import annotations

import random  # noqa: TID251 (for its type)
from dataclasses import dataclass
from typing import Any, Final

from fakecri import stops
from kubelet_conformance.harness.manifests import (
    OTHER_IMAGE,
    Container,
    ExecProbe,
    PodPlan,
    container,
    pod,
    sidecar,
)
from kubelet_conformance.harness.workload import Workload, exits, in_turn, runs
from simclock import Rng

SLOW: Final = (
    *("StartContainer", "CreateContainer", "StopContainer"),
    *("ContainerStatus", "PodSandboxStatus", "ListContainers"),
)
TAKES_S: Final = (0.1, 0.5, 1.3, 3.0, 8.0, 30.0)
EVENTS: Final = ("kill", "kill", "resize", "resize", "image")
MANY: Final = 100  # failures in a row that no container here reaches


@dataclass(frozen=True, slots=True)
class Slow:
    """Calls of that method for a container take so much longer; `late`: only their answers do."""

    method: str
    container: str | None
    takes_s: float
    late: bool
    times: int


@dataclass(frozen=True, slots=True)
class Event:
    """What happens to a container `wait_s` seconds after the event before."""

    wait_s: float
    kind: str
    container: str
    image: str = OTHER_IMAGE
    cpu: str = "200m"


@dataclass(frozen=True, slots=True)
class BetweenPlan:
    """One run."""

    seed: int
    pod: PodPlan
    slow: tuple[Slow, ...]
    events: tuple[Event, ...]
    restarted_by_resize: frozenset[str]
    """The containers that a resize of their CPU restarts."""

    def probe(self, name: str, kind: str) -> dict[str, Any] | None:
        """The probe of that kind of the container, as in the manifest; None: it has none."""
        made = next(c for c in self.pod.containers if c.name == name)
        found: dict[str, Any] | None = made.manifest.get(f"{kind}Probe")
        return found

    def may_be_stopped(self, name: str) -> bool:
        """Whether the kubelet has a reason of its own to stop the container: another image, or a
        resize that restarts it."""
        changed = any(e.kind == "image" and e.container == name for e in self.events)
        resized = any(e.kind == "resize" and e.container == name for e in self.events)
        return changed or (resized and name in self.restarted_by_resize)


def between_plan(seed: int) -> BetweenPlan:
    """The plan that is drawn from that seed."""
    dice = Rng(seed).stream("between")
    regular = [f"c{n}" for n in range(dice.randint(2, 3))]
    sidecars = [f"s{n}" for n in range(dice.choice((0, 0, 1, 2)))]
    names = [*sidecars, *regular]
    restarted = frozenset(name for name in regular if dice.random() < 0.3)
    plan = pod(
        "web",
        *(_container(dice, name, restarts=name in restarted) for name in regular),
        init=[_container(dice, name, side=True) for name in sidecars],
        grace_s=dice.choice((0, 2, 8)),
        restartPolicy=dice.choice(("Always", "Always", "OnFailure")),
    )
    return BetweenPlan(
        seed=seed,
        pod=plan,
        slow=(_slow_start(dice, names), *(_slow(dice, names) for _ in range(dice.randint(0, 2)))),
        events=tuple(_event(dice, regular, sidecars) for _ in range(dice.randint(1, 5))),
        restarted_by_resize=restarted,
    )


def _container(
    dice: random.Random, name: str, *, side: bool = False, restarts: bool = False
) -> Container:
    probes = {
        kind: _probe(dice, kind)
        for kind in ("startup", "liveness", "readiness")
        if dice.random() < 0.6
    }
    fields: dict[str, Any] = {"resources": {"requests": {"cpu": "100m", "memory": "32Mi"}}}
    if restarts:
        fields["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    make = sidecar if side else container
    return make(name, _work(dice), probes=probes, **fields)


def _work(dice: random.Random) -> Workload:
    """It runs on, or first ends once or twice."""
    lasting = runs(stops(0, after_s=dice.choice((0.0, 0.0, 1.0, 4.0))))
    if dice.random() < 0.5:
        return lasting
    first = exits(dice.choice((0, 1)), after_s=dice.choice((0.5, 2.0, 5.0, 12.0)))
    return in_turn(*(first,) * dice.choice((1, 1, 2)), lasting)


def _probe(dice: random.Random, kind: str) -> ExecProbe:
    fails = dice.random() < 0.35
    slow = dice.choice((0.0, 0.0, 1.5, 4.0))
    return ExecProbe(
        from_s=slow if kind != "liveness" else 0.0,
        until_s=dice.choice((3.0, 8.0)) if fails and kind != "startup" else None,
        period_s=dice.choice((1, 1, 2, 5)),
        failure_threshold=dice.choice((1, 2, 3)) if fails else MANY,
        success_threshold=dice.choice((1, 2)) if kind == "readiness" else 1,
        initial_delay_s=dice.choice((0, 0, 2)),
    )


def _slow_start(dice: random.Random, names: list[str]) -> Slow:
    return Slow(
        method="StartContainer",
        container=dice.choice(names),
        takes_s=dice.choice(TAKES_S),
        late=dice.random() < 0.2,
        times=dice.choice((1, 2, 4)),
    )


def _slow(dice: random.Random, names: list[str]) -> Slow:
    method = dice.choice(SLOW)
    changes = method in ("StartContainer", "CreateContainer", "StopContainer")
    return Slow(
        method=method,
        container=dice.choice(names) if changes else None,
        takes_s=dice.choice(TAKES_S) if changes else 1.5,  # reading is done all the time
        late=dice.random() < 0.3,
        times=dice.choice((1, 1, 2, 4)),
    )


def _event(dice: random.Random, regular: list[str], sidecars: list[str]) -> Event:
    kind = dice.choice(EVENTS)
    return Event(
        wait_s=dice.choice((0.2, 1.0, 2.5, 6.0, 11.0)),
        kind=kind,
        container=dice.choice([*regular, *sidecars] if kind == "kill" else regular),
        cpu=dice.choice(("50m", "150m", "200m", "300m")),
    )
