"""What happens on a node in one run of chaos, drawn from a seed. Pure.

A plan has pods, whose containers run, work and end, or crash, and steps: calls that fail in all the
ways a runtime has, crashes, restarts, changes to containers and sandboxes behind the kubelet's
back, manifests that come back at once, an API server that cannot be reached.
"""

from __future__ import annotations

import random  # noqa: TID251 (for its type)
from dataclasses import dataclass
from typing import Any, Final

from fakecri import exits, replies, stops
from simclock import Rng

CALLS: Final = (
    *("RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "StopPodSandbox"),
    *("RemoveContainer", "RemovePodSandbox", "ListPodSandbox", "ListContainers", "Status"),
    *("PodSandboxStatus", "ContainerStatus", "ImageStatus", "PullImage", "ExecSync"),
)
HALVES: Final = (
    *("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "StartContainer", "StopContainer"),
)
FAULTS: Final = ("fails", "loses", "hangs", "delays", "late", "half", "cut")
WORK: Final = "work"
RUN: Final = "run"
CRASH: Final = "crash"
NAMES: Final = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class PodPlan:
    """One pod of a run."""

    name: str
    """As in its manifest."""
    static: bool
    """Whether it comes from a manifest; else from the API server."""
    policy: str
    """Its restartPolicy."""
    kinds: tuple[str, ...]
    """What each regular container does: RUN, WORK or CRASH."""
    ends_s: float
    """Seconds after which the working and the crashing ones end."""
    init: bool
    """Whether it has an init container."""
    sidecar: bool
    """Whether it has a sidecar."""
    hook: bool
    """Whether its containers of the kind RUN have a preStop hook."""
    grace_s: int
    """Its grace period in seconds."""

    def manifest(self) -> dict[str, Any]:
        """The pod as a manifest."""
        containers = [self._container(f"{kind}-{NAMES[n]}") for n, kind in enumerate(self.kinds)]
        first = [self._container("init")] if self.init else []
        if self.sidecar:
            first.append(self._container("side") | {"restartPolicy": "Always"})
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "restartPolicy": self.policy,
                "terminationGracePeriodSeconds": self.grace_s,
                "initContainers": first,
                "containers": containers,
            },
        }

    def _container(self, name: str) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "image": "localhost/busybox:1", "command": ["/x"]}
        if self.hook and name.startswith(RUN):
            made["lifecycle"] = {"preStop": {"exec": {"command": ["stop"]}}}
        return made

    def behaviors(self) -> list[tuple[str, Any]]:
        """The fake's behaviours of the pod's containers, each with the pattern of names that it
        holds for."""
        return [
            ("*", stops(143, after_s=0.2)),
            ("*", replies(["stop"], delay_s=0.7)),
            ("init", exits(0, after_s=0.5)),
            (f"{WORK}-*", exits(0, after_s=self.ends_s)),
            (f"{CRASH}-*", exits(1, after_s=self.ends_s)),
        ]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, `wait_s` seconds after the one before. `pod`, `call`, `fault`,
    `for_s` and `times` are for the kinds that need them."""

    wait_s: float
    kind: str
    pod: int = 0
    call: str = ""
    fault: str = ""
    for_s: float = 0.0
    times: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. `takes_s`: how many seconds each call takes that changes something."""

    seed: int
    evented: bool
    api: bool
    takes_s: float
    pods: tuple[PodPlan, ...]
    steps: tuple[Step, ...]


def plan_of(seed: int) -> Plan:
    """The plan that is drawn from that seed."""
    dice = Rng(seed).stream("chaos")
    api = dice.random() < 0.8
    pods = tuple(_pod(dice, number, static=not api) for number in range(dice.randint(2, 5)))
    return Plan(
        seed=seed,
        evented=dice.random() < 0.6,
        api=api,
        takes_s=dice.choice((0.0, 0.0, 0.01, 0.3)),
        pods=pods,
        steps=tuple(_step(dice, pods, api=api) for _ in range(dice.randint(5, 14))),
    )


def _pod(dice: random.Random, number: int, *, static: bool) -> PodPlan:
    return PodPlan(
        name=f"p{number}",
        static=static or dice.random() < 0.4,
        policy=dice.choice(("Always", "OnFailure", "Never")),
        kinds=tuple(dice.choice((RUN, RUN, WORK, CRASH)) for _ in range(dice.randint(1, 3))),
        ends_s=dice.choice((0.0, 0.5, 3.0, 8.0)),
        init=dice.random() < 0.3,
        sidecar=dice.random() < 0.2,
        hook=dice.random() < 0.3,
        grace_s=dice.choice((0, 1, 4)),
    )


_STEPS: Final = (
    *(("fault", 8), ("crash", 2), ("kill kubelet", 2), ("restart kubelet", 1)),
    *(("stop sandbox", 3), ("kill sandbox", 2), ("kill container", 2), ("again", 4), ("end", 2)),
)
_OF_API: Final = (("api down", 2), ("api loses", 1))


def _step(dice: random.Random, pods: tuple[PodPlan, ...], *, api: bool) -> Step:
    kinds = (*_STEPS, *_OF_API) if api else _STEPS
    (kind,) = dice.choices([k for k, _ in kinds], [weight for _, weight in kinds])
    fault = dice.choice(FAULTS)
    return Step(
        wait_s=dice.choice((0.0, 0.05, 0.4, 1.0, 2.5, 7.0, 20.0)),
        kind=kind,
        pod=dice.randrange(len(pods)),
        call=dice.choice(HALVES if fault == "half" else CALLS),
        fault=fault,
        for_s=dice.choice((0.0, 0.3, 1.5, 4.0, 12.0)),
        times=dice.choice((1, 1, 2, 5)),
    )
