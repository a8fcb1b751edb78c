"""Resizes as values: comparing resources, the queue's order, conditions, refusals, messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allocation_pods import SetClock, asking, pod_of
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import ResourceRequirements
from msgspec.structs import replace

from refkubelet.admission.admit_handler import Operation, PodAdmitAttributes
from refkubelet.allocation import messages
from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.allocation.feasibility import ResizeLimits, feasible_resizes, infeasible
from refkubelet.allocation.order import PendingResize, in_order
from refkubelet.allocation.resources import (
    asks_for_resize,
    increases_requests,
    resources_of,
    with_resources_of,
)
from refkubelet.model.objects import Pod
from refkubelet.model.quantity import NANO
from refkubelet.model.resources import requests_in_use

MI = 1 << 20


# -- resources -----------------------------------------------------------------------------------


def test_a_pod_has_what_is_allocated_whatever_its_spec_says_CG_060() -> None:
    small = pod_of(asking("main", "1/2"), {"name": "other"}, init=(asking("side", "1/1"),))
    big = pod_of(asking("main", "3/4"), {"name": "other"}, init=(asking("side", "2/2"),))
    allocated = with_resources_of(big, resources_of(small))
    assert resources_of(allocated) == resources_of(small)
    assert resources_of(big) != resources_of(small)  # itself unchanged
    assert allocated.spec is not None
    assert big.spec is not None
    assert allocated.spec.containers[1] is big.spec.containers[1]


def test_amounts_that_differ_in_writing_alone_are_the_same_CG_061() -> None:
    one = pod_of(asking("main", "0.5/1000m", "1024Mi/1Gi"), resources={"limits": {"cpu": "2"}})
    other = pod_of(asking("main", "500m/1", "1Gi/1073741824"), resources={"limits": {"cpu": "2.0"}})
    assert with_resources_of(other, resources_of(one)) is other
    assert not asks_for_resize(one, other)


def test_empty_and_absent_resources_are_the_same_CG_061() -> None:
    assert with_resources_of(pod_of({"name": "a"}), resources_of(pod_of(asking("a")))) is not None
    bare, empty = pod_of({"name": "a"}), pod_of({"name": "a", "resources": {"limits": {}}})
    assert with_resources_of(empty, resources_of(bare)) is empty


@pytest.mark.parametrize(
    ("old", "new", "is_resize"),
    [
        (asking("a", "1/2", "1Gi/1Gi"), asking("a", "1/2", "1Gi/1Gi"), False),
        (asking("a", "1/2"), asking("a", "1/3"), True),
        (asking("a", "1/2"), asking("a", "2/2"), True),
        (asking("a", "", "1Gi/2Gi"), asking("a", "", "1Gi/3Gi"), True),
        (asking("a", "", "1Gi/2Gi"), asking("a", "", "2Gi/2Gi"), True),
        (asking("a"), asking("a", "1"), True),
    ],
)
def test_what_counts_as_a_resize_CG_061(
    old: dict[str, Any], new: dict[str, Any], is_resize: bool
) -> None:
    assert asks_for_resize(pod_of(old), pod_of(new)) is is_resize
    inits = pod_of({"name": "m"}, init=(old,)), pod_of({"name": "m"}, init=(new,))
    assert asks_for_resize(*inits) is is_resize


def test_the_pods_own_resources_count_as_a_resize_CG_061() -> None:
    bare = pod_of({"name": "a"})
    assert asks_for_resize(bare, pod_of({"name": "a"}, resources={"requests": {"cpu": "1"}}))


def test_which_resizes_take_more_of_the_node_CG_061() -> None:
    now = pod_of(asking("a", "2/4", "2Gi/4Gi"), asking("b", "2/2"))
    assert not increases_requests(now, pod_of(asking("a", "2/9", "2Gi/9Gi"), asking("b", "2/2")))
    assert not increases_requests(now, pod_of(asking("a", "1/4", "2Gi/4Gi"), asking("b", "3/3")))
    assert increases_requests(now, pod_of(asking("a", "2/4", "3Gi/4Gi"), asking("b", "1/1")))
    assert increases_requests(now, pod_of(asking("a", "3/4", "1Gi/4Gi"), asking("b", "2/2")))


def test_what_is_in_use_is_the_greater_of_allocated_and_actual_CG_061() -> None:
    def told(actual: str, allocated: str) -> dict[str, object]:
        status = {
            "name": "a",
            "image": "i",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "resources": {"requests": {"cpu": actual}},
            "allocatedResources": {"cpu": allocated},
        }
        return {"containerStatuses": [status]}

    def in_use(pod: Pod) -> int:
        return requests_in_use(pod)["cpu"] // NANO

    assert in_use(pod_of(asking("a", "1/9"), status=told("3", "2"))) == 3
    assert in_use(pod_of(asking("a", "1/9"), status=told("1", "2"))) == 2
    assert in_use(pod_of(asking("a", "4/9"), status=told("1", "2"))) == 4
    assert in_use(pod_of(asking("a", "4/9"))) == 4


# -- the order of the queue ----------------------------------------------------------------------

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def waiting(uid: str, *, since_s: float | None = 0, **fields: object) -> PendingResize:
    values: dict[str, object] = {"increases": True, "priority": 0, "guaranteed": False, **fields}
    since = None if since_s is None else NOON + timedelta(seconds=since_s)
    return PendingResize(uid, since=since, **values)  # type: ignore[arg-type]


ORDERED = (
    waiting("shrinks", increases=False, priority=-5, since_s=99),
    waiting("important", priority=9, since_s=99),
    waiting("guaranteed", guaranteed=True, since_s=99),
    waiting("old", since_s=1),
    waiting("younger", since_s=2),
    waiting("new", since_s=None),
)


@given(st.permutations(ORDERED))
def test_the_order_of_pending_resizes_CG_061(pending: list[PendingResize]) -> None:
    assert in_order(pending) == [resize.uid for resize in ORDERED]


def test_equals_keep_their_turn_CG_061() -> None:
    rows = [waiting(name, increases=False, priority=number) for number, name in enumerate("cab")]
    assert in_order(rows) == ["c", "a", "b"]
    assert in_order([waiting(name, since_s=None) for name in "cab"]) == ["c", "a", "b"]


# -- conditions ----------------------------------------------------------------------------------


def test_every_refusal_but_one_is_deferred_CG_062_LIFE_186() -> None:
    clock = SetClock()
    conditions = ResizeConditions(clock)
    assert conditions.set_pending("u", "OutOfcpu", "no room", 2)
    (told,) = conditions.of("u")
    assert (told.type, told.status, told.reason, told.message, told.observedGeneration) == (
        "PodResizePending", "True", "Deferred", "no room", 2,
    )  # fmt: skip
    assert not conditions.set_pending("u", "Evicted", "pressure", 2)
    assert conditions.set_pending("u", "Evicted", "pressure", 3)
    assert conditions.set_pending("u", "Infeasible", "never", 3)
    conditions.clear_pending("u")
    assert conditions.of("u") == ()


def test_a_transition_is_a_change_of_the_reason_LIFE_186() -> None:
    clock = SetClock()
    conditions = ResizeConditions(clock)
    conditions.set_pending("u", "OutOfcpu", "", 2)
    began = clock.now()
    clock.advance(10)
    conditions.set_pending("u", "OutOfmemory", "", 3)
    (told,) = conditions.of("u")
    assert (told.lastTransitionTime, told.lastProbeTime) == (began, clock.now())
    conditions.set_pending("u", "Infeasible", "", 3)
    assert conditions.of("u")[0].lastTransitionTime == clock.now()


def test_an_error_stays_until_the_resize_is_over_CG_063_LIFE_186() -> None:
    conditions = ResizeConditions(SetClock())
    assert conditions.set_in_progress("u", 2) == (2, True)
    assert conditions.set_in_progress("u", 3) == (2, False)
    assert conditions.set_in_progress("u", 3, "Error", "busy") == (2, True)
    assert conditions.set_in_progress("u", 3, "Error", "busy") == (2, False)
    assert conditions.set_in_progress("u", 3) == (2, False)
    assert [c.reason for c in conditions.of("u")] == ["Error"]
    assert conditions.clear_in_progress("u") == 2
    assert conditions.clear_in_progress("u") is None


def test_a_sync_of_an_older_pod_finishes_nothing_CG_063() -> None:
    conditions = ResizeConditions(SetClock())
    conditions.set_in_progress("u", 3)
    assert conditions.finish("u", 2) is None
    assert conditions.finish("u", 4) == 3
    assert conditions.of("u") == ()


def test_conditions_of_an_earlier_kubelet_are_taken_over_LIFE_186() -> None:
    told = [
        {"type": "PodResizeInProgress", "status": "True", "observedGeneration": 4},
        {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "m"},
        {"type": "Ready", "status": "True"},
    ]
    conditions = ResizeConditions(SetClock())
    conditions.restore([pod_of({"name": "a"}, status={"conditions": told})])
    assert [c.type for c in conditions.of("u-1")] == ["PodResizePending", "PodResizeInProgress"]
    assert conditions.clear_in_progress("u-1") == 4
    conditions.keep_only(["u-2"])
    assert conditions.of("u-1") == ()
    conditions.set_in_progress("u-1", 1)
    conditions.clear("u-1")
    assert conditions.of("u-1") == ()


# -- refusals ------------------------------------------------------------------------------------

GUARANTEED = pod_of(asking("a", "1/1", "1Gi/1Gi"))
MORE_CPU = pod_of(asking("a", "2/2", "1Gi/1Gi"))
MORE_MEMORY = pod_of(asking("a", "1/1", "2Gi/2Gi"))
CPU_TEXT = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
MEMORY_TEXT = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
EXCLUSIVE = ResizeLimits("static", "Static")


@pytest.mark.parametrize(
    ("wanted", "limits", "message"),
    [
        (MORE_CPU, ResizeLimits(), None),
        (MORE_CPU, EXCLUSIVE, CPU_TEXT),
        (MORE_MEMORY, EXCLUSIVE, MEMORY_TEXT),
        (MORE_MEMORY, ResizeLimits(cpu_manager_policy="static"), None),
        (MORE_CPU, ResizeLimits(memory_manager_policy="Static"), None),
    ],
)
def test_exclusive_resources_are_not_resized_CG_062(
    wanted: Pod, limits: ResizeLimits, message: str | None
) -> None:
    assert infeasible(wanted, GUARANTEED, limits) == message


def test_other_classes_are_resized_under_any_policy_CG_062() -> None:
    now, wanted = pod_of(asking("a", "1/2", "1Gi/2Gi")), pod_of(asking("a", "2/3", "2Gi/3Gi"))
    assert infeasible(wanted, now, EXCLUSIVE) is None


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        (asking("a", "", "1Gi/4Gi"), asking("a", "", "2Gi/4Gi"), True),
        (asking("a", "", "1Gi/4Gi"), asking("a", "1", "1Gi/4Gi"), False),
        (asking("a", "1", "4Gi/4Gi"), asking("a", "1", "5Gi/5Gi"), False),  # no share of the swap
        (asking("a", "1", "4Gi/4Gi"), asking("a", "1", "5Gi/6Gi"), True),
        (asking("a", "1", "4Gi/6Gi"), asking("a", "1", "6Gi/6Gi"), True),
        (asking("a", "1"), asking("a", "2"), False),
    ],
)
def test_memory_of_containers_with_swap_is_not_resized_CG_062(
    old: dict,
    new: dict,
    refused: bool,
) -> None:
    swap = ResizeLimits(swap=True)
    text = "In-place resize of containers with swap is not supported."
    assert infeasible(pod_of(new), pod_of(old), swap) == (text if refused else None)
    assert infeasible(pod_of(new), pod_of(old), ResizeLimits()) is None
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    restarts = [pod_of({**c, "resizePolicy": policy}) for c in (new, old)]
    assert infeasible(*restarts, swap) is None


def test_critical_pods_do_not_swap_CG_062() -> None:
    old, new = asking("a", "", "1Gi/4Gi"), asking("a", "", "2Gi/4Gi")
    pods = [pod_of(c, priority=2_000_000_000) for c in (new, old)]
    assert infeasible(*pods, ResizeLimits(swap=True)) is None


def test_only_resizes_can_be_infeasible_CG_062() -> None:
    handler = feasible_resizes(EXCLUSIVE, lambda pod: GUARANTEED)
    assert handler(PodAdmitAttributes(MORE_CPU)) is None
    refusal = handler(PodAdmitAttributes(MORE_CPU, (), Operation.RESIZE))
    assert refusal is not None
    assert (refusal.reason, refusal.message) == ("Infeasible", CPU_TEXT)


# -- messages ------------------------------------------------------------------------------------


def test_messages_carry_the_resources_as_json_CG_063() -> None:
    """The first is recorded in s25."""
    pod = pod_of(
        asking("main", "150m/300m", "96Mi/192Mi"), asking("rst", "100m/200m", "64Mi/128Mi")
    )
    assert messages.started(pod, 2) == (
        'Pod resize started: {"containers":[{"name":"main","resources":{"limits":{"cpu":"300m",'
        '"memory":"192Mi"},"requests":{"cpu":"150m","memory":"96Mi"}}},{"name":"rst","resources":'
        '{"limits":{"cpu":"200m","memory":"128Mi"},"requests":{"cpu":"100m","memory":"64Mi"}}}],'
        '"generation":2}'
    )
    pod = pod_of({"name": "a"}, init=(asking("i", "1"),))
    words, _, summary = messages.pending(pod, 3, "OutOfcpu", 'no "<room>"').partition(": ")
    assert words == "Pod resize OutOfcpu"
    assert json.loads(summary) == {
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}],
        "containers": [{"name": "a", "resources": {}}],
        "generation": 3,
        "error": 'no "<room>"',
    }
    assert "<" not in summary
    assert messages.completed(pod, 3).startswith("Pod resize completed: {")
    assert messages.failed(pod, 3, "e").endswith('"generation":3,"error":"e"}')


def test_statuses_class_counts_for_refusals_CG_062() -> None:
    burstable = replace(
        MORE_CPU, status=pod_of(asking("a"), status={"qosClass": "Burstable"}).status
    )
    assert infeasible(burstable, GUARANTEED, EXCLUSIVE) is None


# -- values that are easily missed ---------------------------------------------------------------


def test_each_part_of_a_pod_follows_its_allocation_alone_CG_060() -> None:
    """The pod's own resources, an init container, a regular one: each with the others unchanged."""
    own = {"limits": {"cpu": "2"}}
    plain = pod_of(asking("a", "1"), init=(asking("i", "1"),))
    whole = pod_of(asking("a", "1"), init=(asking("i", "1"),), resources=own)
    assert resources_of(with_resources_of(plain, resources_of(whole))) == resources_of(whole)
    assert resources_of(with_resources_of(whole, resources_of(plain))) == resources_of(plain)
    for other in (
        pod_of(asking("a", "2"), init=(asking("i", "1"),), resources=own),
        pod_of(asking("a", "1"), init=(asking("i", "2"),), resources=own),
    ):
        allocated = with_resources_of(whole, resources_of(other))
        assert resources_of(allocated) == resources_of(other)
        assert allocated.spec is not None
        assert [c.name for c in allocated.spec.initContainers or ()] == ["i"]


def test_other_claims_are_other_resources_CG_060() -> None:
    def claiming(name: str) -> Pod:
        return pod_of({"name": "a", "resources": {"claims": [{"name": name}]}})

    one, same, other = claiming("gpu"), claiming("gpu"), claiming("fpga")
    assert with_resources_of(same, resources_of(one)) is same
    assert with_resources_of(other, resources_of(one)) is not other


def test_pods_without_a_spec_are_left_alone_CG_060() -> None:
    bare = replace(pod_of({"name": "a"}), spec=None)
    assert with_resources_of(bare, resources_of(pod_of(asking("a", "1")))) is bare
    assert resources_of(bare).containers == {}
    assert not asks_for_resize(bare, bare)
    assert requests_in_use(bare) == {}


def test_requests_that_come_or_go_CG_061() -> None:
    nothing, some = pod_of(asking("a")), pod_of(asking("a", "1", "1Gi"))
    assert increases_requests(nothing, some)
    assert not increases_requests(some, nothing)
    assert not increases_requests(nothing, nothing)


def test_containers_without_a_status_count_with_their_spec_CG_061() -> None:
    status = {
        "initContainerStatuses": [
            {
                "name": "side",
                "image": "i",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "resources": {},
                "allocatedResources": {"cpu": "5"},
            }
        ]
    }
    side = {**asking("side", "1"), "restartPolicy": "Always"}
    pod = pod_of(asking("a", "2"), init=(side,), status=status)
    assert requests_in_use(pod)["cpu"] // NANO == 7


def test_what_is_taken_over_is_taken_over_whole_LIFE_186() -> None:
    told = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Infeasible",
        "message": "never",
        "observedGeneration": 7,
    }
    conditions = ResizeConditions(SetClock())
    conditions.restore([pod_of({"name": "a"}), pod_of({"name": "a"}, uid="u-2", status={})])
    assert conditions.of("u-1") == conditions.of("u-2") == ()
    conditions.restore([pod_of({"name": "a"}, status={"conditions": [told]})])
    (known,) = conditions.of("u-1")
    assert (known.reason, known.message, known.observedGeneration) == ("Infeasible", "never", 7)
    assert not conditions.set_pending("u-1", "Infeasible", "never", 7)
    conditions.set_in_progress("u-1", 7)
    conditions.clear_pending("u-1")
    assert [c.type for c in conditions.of("u-1")] == ["PodResizeInProgress"]
    conditions.clear("u-3")


def test_pods_without_a_generation_are_resized_too_CG_063() -> None:
    conditions = ResizeConditions(SetClock())
    assert conditions.set_in_progress("u", 0) == (0, True)
    assert conditions.set_in_progress("u", 0) == (0, False)
    assert conditions.set_in_progress("u", 0, "Error", "a") == (0, True)
    assert conditions.set_in_progress("u", 0, "", "b") == (0, True)
    assert conditions.finish("u", 0) == 0
    assert conditions.finish("u", 0) is None


def test_the_handler_compares_with_what_is_allocated_CG_062() -> None:
    asked: list[Pod] = []

    def allocated(pod: Pod) -> Pod:
        asked.append(pod)
        return pod

    handler = feasible_resizes(EXCLUSIVE, allocated)
    assert handler(PodAdmitAttributes(MORE_CPU, (), Operation.RESIZE)) is None
    assert asked == [MORE_CPU]


def told(name: str, **more: Any) -> dict[str, Any]:
    one = {"name": name, "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    return {**one, **more}


def actual(name: str, cpu: str, allocated: str = "0") -> dict[str, Any]:
    return told(name, resources={"requests": {"cpu": cpu}}, allocatedResources={"cpu": allocated})


def cpus_in_use(pod: Pod) -> int:
    return requests_in_use(pod)["cpu"] // NANO


def test_a_status_without_resources_says_nothing_CG_061() -> None:
    status = {"containerStatuses": [told("a", allocatedResources={"cpu": "5"})]}
    assert cpus_in_use(pod_of(asking("a", "2"), status=status)) == 2


def test_the_spec_does_not_count_while_a_resize_is_infeasible_CG_061() -> None:
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    status = {"containerStatuses": [actual("a", "2", "1")], "conditions": [pending]}
    assert cpus_in_use(pod_of(asking("a", "9"), status=status)) == 2
    status["conditions"] = [{**pending, "reason": "Deferred"}, pending]
    assert cpus_in_use(pod_of(asking("a", "9"), status=status)) == 9


def test_statuses_of_init_containers_that_end_do_not_count_CG_061() -> None:
    status = {"initContainerStatuses": [actual("setup", "9")]}
    pod = pod_of(asking("a", "2"), init=(asking("setup", "1"),), status=status)
    assert cpus_in_use(pod) == 2


def test_the_pods_own_requests_are_in_use_by_its_status_CG_061() -> None:
    status = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "3"}}
    pod = pod_of(asking("a", "1"), status=status)
    assert cpus_in_use(pod) == 1  # the pod itself asks for nothing
    assert pod.spec is not None
    pod.spec.resources = ResourceRequirements(requests={"cpu": "4"})
    assert cpus_in_use(pod) == 5
