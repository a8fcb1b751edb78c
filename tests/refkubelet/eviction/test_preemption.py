"""Preemption: who may end for whom, who is chosen, and what the shell does with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import container, make_pod

from refkubelet.admission.admit_handler import Rejection
from refkubelet.admission.predicates import Failures, RecoveryError
from refkubelet.admission.resource_fit import Shortage
from refkubelet.eviction import preemption_choice
from refkubelet.eviction.preemption import PreemptionDeps, Preemptor
from refkubelet.eviction.preemption_choice import (
    NoVictims,
    Requirement,
    closest_pods,
    distance,
    pods_to_preempt,
    preemptable,
    request,
    without,
)
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import uid
from refkubelet.model.qos import qos_class
from simclock import Rng

CLUSTER, NODE = 2_000_000_000, 2_000_001_000
MEMORY = "memory"


def pod(
    name: str, memory: int = 0, cpu: str = "", *, guaranteed: bool = False, **fields: Any
) -> Pod:
    """A pod that asks for so much; a guaranteed one is limited to what it asks for."""
    asked = {k: str(v) for k, v in ((MEMORY, memory), ("cpu", cpu)) if v}
    if guaranteed:
        asked = {"cpu": "1m", **asked}
    main = container(requests=asked, limits=asked if guaranteed else {})
    return make_pod(main, name=name, uid=name, **fields)


CRITICAL = pod("critical", priority=CLUSTER)


def need(amount: int, resource: str = MEMORY) -> Requirement:
    return Requirement(resource, amount)


def names(pods: tuple[Pod, ...]) -> list[str]:
    return [uid(one) for one in pods]


@pytest.mark.parametrize(
    ("preemptor", "other", "may"),
    [
        (CRITICAL, pod("a"), True),
        (CRITICAL, pod("a", priority=CLUSTER - 1), True),
        (CRITICAL, pod("a", priority=CLUSTER), False),
        (pod("c", priority=NODE), pod("a", priority=CLUSTER), True),
        (pod("c", priority=CLUSTER), pod("a", priority=NODE), False),
        (pod("c", static=True), pod("a"), True),
        (pod("c", static=True), pod("a", static=True), False),
        (CRITICAL, pod("a", static=True), False),
        (CRITICAL, pod("a", static=True, priority=5), True),  # by number, though it is critical
        (pod("c", priority=2), pod("a", priority=1), True),
        (pod("c", priority=2), pod("a"), False),
    ],
)
def test_who_may_end_for_whom_PREE_003(preemptor: Pod, other: Pod, may: bool) -> None:
    assert preemptable(preemptor, other) is may


@pytest.mark.parametrize(
    ("of", "resource", "amount"),
    [
        (pod("a", 100, "1500m"), MEMORY, 100),
        (pod("a", 100, "1500m"), "cpu", 1500),
        (pod("a"), "pods", 1),
        (pod("a", 100, overhead={"memory": "20", "cpu": "1"}), MEMORY, 120),
        (pod("a", 100, overhead={"memory": "20", "cpu": "1"}), "cpu", 0),
        (pod("a", 100, "1", resources={"requests": {"memory": "300"}}), MEMORY, 300),
        (pod("a", 100, "1", resources={"requests": {"memory": "300"}}), "cpu", 0),
    ],
)
def test_what_the_end_of_a_pod_frees_PREE_002(of: Pod, resource: str, amount: int) -> None:
    assert request(of, resource) == amount


@pytest.mark.parametrize(
    ("of", "requirements", "wanted"),
    [
        (pod("a", 10), (need(10),), 0.0),
        (pod("a", 20), (need(10),), 0.0),
        (pod("a", 5), (need(10),), 0.25),
        (pod("a", 1), (need(2),), 0.25),
        (pod("a"), (need(10), need(1, "pods")), 1.0),
        (pod("a", 5, "1m"), (need(10), need(4, "cpu")), 0.25 + 0.5625),
    ],
)
def test_distance_PREE_006(of: Pod, requirements: Any, wanted: float) -> None:
    assert distance(of, requirements) == wanted


@pytest.mark.parametrize(
    ("pods", "requirements", "chosen"),
    [
        ([pod("a", 30), pod("b", 50), pod("c", 40)], (need(35),), ["c"]),
        ([pod("a", 10), pod("b", 20)], (need(25),), ["b", "a"]),
        ([pod("a", 10, "2"), pod("b", 10, "1")], (need(10),), ["b"]),
        ([pod("b", 10, "1"), pod("a", 10, "2")], (need(10),), ["b"]),
        ([pod("a", 20), pod("b", 10)], (need(1, "pods"),), ["b"]),
        ([pod("b", 10), pod("a", 20)], (need(1, "pods"),), ["b"]),
        ([pod("a", 10), pod("b", 10), pod("c", 10)], (need(10),), ["c"]),  # later in the list
        # the last one has taken the place of the first that was chosen
        ([pod("a", 20), pod("b", 10), pod("c", 10)], (need(30),), ["a", "b"]),
        ([pod("a", 20)], (), []),
    ],
)
def test_the_closest_of_a_class_PREE_006(
    pods: list[Pod], requirements: Any, chosen: list[str]
) -> None:
    """PREE-006.3 among them."""
    assert names(closest_pods(pods, requirements)) == chosen


BEST_EFFORT, BURSTABLE = pod("besteffort"), pod("burstable", 10)
GUARANTEED = pod("guaranteed", 10, guaranteed=True)


@pytest.mark.parametrize(
    ("pods", "requirements", "chosen"),
    [
        ([GUARANTEED, BURSTABLE, BEST_EFFORT], (need(1, "pods"),), ["besteffort"]),
        ([GUARANTEED, BURSTABLE, BEST_EFFORT], (need(10),), ["burstable"]),
        ([GUARANTEED, BURSTABLE, BEST_EFFORT], (need(11),), ["burstable", "guaranteed"]),
        (
            [GUARANTEED, BURSTABLE, BEST_EFFORT],
            (need(3, "pods"),),
            ["besteffort", "burstable", "guaranteed"],
        ),
        # a Guaranteed pod that must go anyway spares the others
        ([pod("big", 100, guaranteed=True), BURSTABLE], (need(50),), ["big"]),
        ([pod("big", 100, guaranteed=True), BEST_EFFORT], (need(50), need(1, "pods")), ["big"]),
    ],
)
def test_lesser_classes_end_first_PREE_005(
    pods: list[Pod], requirements: Any, chosen: list[str]
) -> None:
    assert names(pods_to_preempt(CRITICAL, pods, requirements)) == chosen


def test_what_stays_missing_is_told_PREE_004() -> None:
    pods = [pod("a", 10), pod("b", 50, priority=NODE), pod("s", 50, static=True)]
    wanted = (
        r"^no set of running pods found to reclaim resources: "
        r"\[\(res: memory, q: 20\), \(res: cpu, q: 7\), \]$"
    )
    with pytest.raises(NoVictims, match=wanted):
        pods_to_preempt(CRITICAL, pods, (need(1, "pods"), need(30), need(7, "cpu")))


def test_what_stays_missing_is_what_all_classes_leave_PREE_004() -> None:
    pods = [pod("a"), pod("b", 10), pod("c", 15, guaranteed=True)]
    with pytest.raises(NoVictims, match=r"\[\(res: memory, q: 5\), \]$"):
        pods_to_preempt(CRITICAL, pods, (need(30),))
    with pytest.raises(NoVictims, match=r"\[\(res: memory, q: 20\), \]$"):
        closest_pods([pod("a", 10)], (need(30),))


amounts = st.integers(0, 40)


@st.composite
def some_pods(draw: Any) -> list[Pod]:
    rows = draw(st.lists(st.tuples(amounts, amounts, st.booleans()), max_size=6))
    return [
        pod(f"p{n}", memory, f"{cpu}m" if cpu else "", guaranteed=exact and memory > 0)
        for n, (memory, cpu, exact) in enumerate(rows)
    ]


@given(some_pods(), st.integers(0, 80), st.integers(0, 80), st.integers(0, 4))
def test_the_victims_are_enough_and_no_class_is_wasted_PREE_005(
    pods: list[Pod], memory: int, cpu: int, count: int
) -> None:
    rows = ((MEMORY, memory), ("cpu", cpu), ("pods", count))
    requirements = tuple(need(amount, name) for name, amount in rows if amount)
    try:
        chosen = pods_to_preempt(CRITICAL, pods, requirements)
    except NoVictims:
        assert without(requirements, pods)
        return
    assert without(requirements, chosen) == ()
    assert len({uid(one) for one in chosen}) == len(chosen)
    for name, lesser in (
        ("Guaranteed", ("Burstable", "BestEffort")),
        ("Burstable", ("BestEffort",)),
    ):
        if any(qos_class(one) == name for one in chosen):
            rest = [one for one in pods if qos_class(one) in lesser]
            above = [one for one in chosen if qos_class(one) not in (*lesser, name)]
            assert without(requirements, [*rest, *above]), f"{name} ended for nothing"


# The shell


class World:
    """Writes down what is asked of it, in order; kills of the pods named in `slow` fail."""

    def __init__(self, *pods: Pod, slow: tuple[str, ...] = ()) -> None:
        self.log: list[str] = []
        self.statuses: dict[str, PodStatus] = {}
        self._slow = slow
        self.preemptor = Preemptor(PreemptionDeps(lambda: pods, self.kill, self))

    async def kill(self, pod: Pod, status_fn: Callable[[PodStatus], PodStatus]) -> None:
        self.log.append(f"kill {uid(pod)}")
        self.statuses[uid(pod)] = status_fn(PodStatus(phase="Running"))
        if uid(pod) in self._slow:
            raise TimeoutError("too slow")

    def pod_event(self, pod: Pod, type_: str, reason: str, message: str, **_: Any) -> None:
        self.log.append(f"{type_} {reason} {uid(pod)}: {message}")

    def node_event(self, type_: str, reason: str, message: str) -> None:
        raise AssertionError(reason)

    async def make_room(self, pod: Pod, *failures: Any) -> Failures:
        return await self.preemptor.make_room(pod, failures)


TOO_MANY = Shortage("pods", 1, 2, 2)
AFFINITY = Rejection("NodeAffinity", "no")


async def test_victims_end_one_after_the_other_and_say_why_PREE_007() -> None:
    world = World(pod("b", 10), pod("a"))
    left = await world.make_room(CRITICAL, Shortage("pods", 2, 2, 2))
    assert left == ()
    text = "Preempted in order to admit critical pod"
    assert world.log == [
        f"Warning Preempting a: {text}",
        "kill a",
        f"Warning Preempting b: {text}",
        "kill b",
    ]
    status = world.statuses["a"]
    assert (status.phase, status.reason, status.message) == ("Failed", "Preempting", text)
    (condition,) = status.conditions or ()
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "DisruptionTarget",
        "True",
        "TerminationByKubelet",
        "Pod was preempted by Kubelet to accommodate a critical pod.",
    )
    assert world.preemptor.preempted == {"pods": 2}


async def test_a_kill_that_takes_too_long_changes_nothing_PREE_007() -> None:
    world = World(pod("b", 10), pod("a"), slow=("a",))
    assert await world.make_room(CRITICAL, Shortage("pods", 2, 2, 2)) == ()
    assert [line for line in world.log if line.startswith("kill")] == ["kill a", "kill b"]
    assert world.preemptor.preempted == {"pods": 1}


async def test_only_shortages_are_helped_and_only_for_critical_pods_PREE_001() -> None:
    world = World(pod("a"))
    assert await world.make_room(pod("web"), TOO_MANY, AFFINITY) == (TOO_MANY, AFFINITY)
    assert await world.make_room(CRITICAL, TOO_MANY, AFFINITY) == (AFFINITY,)
    assert world.log == []


async def test_no_room_can_be_made_PREE_004() -> None:
    world = World(pod("a", static=True))
    wanted = r"^preemption: error finding a set of pods to preempt: no set of .*\(res: pods, q: 1\)"
    with pytest.raises(RecoveryError, match=wanted):
        await world.make_room(CRITICAL, TOO_MANY)
    assert world.log == []


def plainly(pods: list[Pod], requirements: tuple[Requirement, ...]) -> list[Pod]:
    """The closest pod again and again, looked for among all; the last takes its place."""
    candidates, chosen = list(pods), []
    while requirements:
        ranks = [
            (distance(p, requirements), request(p, "memory"), request(p, "cpu"), -index)
            for index, p in enumerate(candidates)
        ]
        best = -min(ranks)[-1]
        chosen.append(candidates[best])
        requirements = without(requirements, [candidates[best]])
        candidates[best] = candidates[-1]
        candidates.pop()
    return chosen


@pytest.mark.parametrize("seed", range(60))
def test_pods_that_are_alike_are_chosen_as_if_each_was_looked_at_PREE_006(seed: int) -> None:
    rng = Rng(seed).stream("pods")
    pods = [
        pod(f"p{number}", rng.choice((0, 1, 2)), rng.choice(("", "10m", "20m", "35m")))
        for number in range(30)
    ]
    every = (
        need(max(1, int(sum(request(one, name) for one in pods) * rng.random())), name)
        for name in ("cpu", MEMORY, "pods")
    )
    requirements = tuple(r for r in every if rng.random() < 0.7)
    assert list(closest_pods(pods, requirements)) == plainly(pods, requirements)


def test_pods_that_are_alike_are_looked_at_once_PREE_006(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(pod: Pod, requirements: tuple[Requirement, ...]) -> float:
        nonlocal looks
        looks += 1
        return distance(pod, requirements)

    monkeypatch.setattr(preemption_choice, "distance", counted)
    pods = [pod(f"p{number}", cpu="10m") for number in range(200)]
    assert len(closest_pods(pods, (need(1000, "cpu"),))) == 100
    assert looks == 100
