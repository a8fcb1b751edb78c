"""What is asked of a node in one run about exclusive things, drawn from a seed. Pure.

A plan has pods that ask for user IDs, exclusive CPUs, memory of NUMA nodes, huge pages, devices and
host ports, and steps: pods come and go, restarts with another configuration, with other CPUs, with
other devices.
"""

from __future__ import annotations

import random  # noqa: TID251 (for its type)
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pods import container, manifest

from simclock import Rng

WIDGET: Final = "vendor.example/widget"
DEVICES: Final = ("a", "b", "c", "d")
PORTS: Final = (8080, 8081)
Draw = Callable[[random.Random], Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """A pod. `cpus`: exclusive ones, 0: it asks for few and shares; `stops_s`: how long it takes to
    stop, `ends_s`: after which it ends by itself, 0: never."""

    name: str
    cpus: int
    memory: str
    hugepages: str
    widgets: int
    own_users: bool
    port: int
    policy: str
    grace_s: int
    stops_s: float
    ends_s: float

    def manifest(self) -> dict[str, Any]:
        """The pod as a user writes it."""
        limits = {WIDGET: str(self.widgets)} if self.widgets else {}
        if self.hugepages:
            limits["hugepages-2Mi"] = self.hugepages
        one = container(
            cpu=f"{self.cpus}/{self.cpus}" if self.cpus else "250m",
            memory=f"{self.memory}/{self.memory}",
            limits=limits,
            requests=limits,
            ports=[{"containerPort": 80, "hostPort": self.port}] if self.port else [],
        )
        return manifest(
            one,
            name=self.name,
            restartPolicy=self.policy,
            terminationGracePeriodSeconds=self.grace_s,
            **({"hostUsers": False} if self.own_users else {}),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happens, `wait_s` after the one before. `kind`: create, delete, force, exit,
    devices, restart; `pod`: which of the plan's. For a restart: the settings that are new, the
    cores of each socket, and whether the node is drained first, as a refusal asks for."""

    wait_s: float
    kind: str
    pod: int = 0
    devices: tuple[str, ...] = ()
    settings: Mapping[str, Any] | None = None
    cores: int = 0
    drained: bool = False


@dataclass(frozen=True, slots=True)
class GivenPlan:
    """One run."""

    seed: int
    settings: Mapping[str, Any]
    pods: tuple[Asking, ...]
    changes: tuple[Change, ...]


def _reservations(dice: random.Random) -> dict[str, Any]:
    memory = dice.choice(("1Gi", "1Gi", "2Gi"))
    return {
        "kubeReserved": {"cpu": dice.choice(("500m", "1", "2")), "memory": memory},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": memory}}],
    }


def _cpu_policy(dice: random.Random) -> dict[str, Any]:
    policy = dice.choice(("static", "static", "static", "none"))
    names = ("full-pcpus-only", "distribute-cpus-across-numa", "strict-cpu-reservation")
    options = {name: "true" for name in names if dice.random() < 0.2}
    return {
        "cpuManagerPolicy": policy,
        "cpuManagerPolicyOptions": options if policy == "static" else {},
    }


def _users(dice: random.Random) -> dict[str, Any]:
    return {"userNamespaces": {"idsPerPod": 65_536 << dice.choice((0, 0, 1, 2))}}


SETTINGS: Final[tuple[Draw, ...]] = (
    _users,
    _cpu_policy,
    _reservations,
    lambda dice: {"reservedSystemCPUs": dice.choice(("", "", "0", "0,4", "6-7"))},
    lambda dice: {"memoryManagerPolicy": dice.choice(("Static", "Static", "None"))},
    lambda dice: {
        "topologyManagerPolicy": dice.choice(
            ("none", "best-effort", "restricted", "single-numa-node")
        ),
        "topologyManagerScope": dice.choice(("container", "pod")),
    },
    lambda dice: {"maxPods": dice.choice((110, 110, 3))},
    lambda dice: {"podPidsLimit": dice.choice((-1, 1000))},
    lambda dice: {"cgroupsPerQOS": True, "enforceNodeAllocatable": ["pods"]},
)


def given_plan(seed: int) -> GivenPlan:
    """The plan that is drawn from that seed."""
    dice = Rng(seed).stream("given once")
    pods = [_pod(dice, f"p{n}") for n in range(dice.randint(4, 8))]
    draws = SETTINGS
    if dice.random() < 0.4:
        draws = (_users,)  # every other thing in short supply would keep pods away
        pods = [_of_users_alone(pod) for pod in pods]
    settings: dict[str, Any] = {}
    for draw in draws:
        settings |= draw(dice)
    changes = tuple(_change(dice, len(pods), draws) for _ in range(dice.randint(12, 24)))
    return GivenPlan(seed, settings, tuple(pods), changes)


def _pod(dice: random.Random, name: str) -> Asking:
    return Asking(
        name=name,
        cpus=dice.choice((0, 1, 1, 2)),
        memory=dice.choice(("256Mi", "1Gi", "2Gi")),
        hugepages=dice.choice(("", "", "64Mi")),
        widgets=dice.choice((0, 1, 2)),
        own_users=dice.random() < 0.6,
        port=dice.choice((0, 0, *PORTS)),
        policy=dice.choice(("Always", "Always", "Never")),
        grace_s=dice.choice((0, 1, 5)),
        stops_s=dice.choice((0.1, 3.0)),
        ends_s=dice.choice((0.0, 0.0, 0.0, 4.0)),
    )


_KINDS: Final = ("create", "create", "create", "delete", "force", "exit", "devices")


def _of_users_alone(pod: Asking) -> Asking:
    return replace(pod, own_users=True, cpus=0, memory="64Mi", hugepages="", widgets=0, port=0)


def _change(dice: random.Random, pods: int, draws: Sequence[Draw]) -> Change:
    kind = dice.choice((*_KINDS, "restart", "restart"))
    wait_s = dice.choice((0.0, 0.3, 2.0, 2.0, 15.0))
    if kind == "devices":
        count = dice.choice((2, len(DEVICES)))
        return Change(wait_s, kind, devices=tuple(sorted(dice.sample(DEVICES, count))))
    if kind != "restart":
        return Change(wait_s, kind, dice.randrange(pods))
    settings: dict[str, Any] = {}
    for draw in dice.sample(draws, min(len(draws), dice.choice((0, 1, 1, 1, 2)))):
        settings |= draw(dice)
    cores = 3 if dice.random() < 0.1 else 4
    return Change(wait_s, kind, settings=settings, cores=cores, drained=dice.random() < 0.3)
