"""Resizes as values: comparing resources, the order of the queue, messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import ResourceRequirements
from loops import virtual_loop
from pods import container, make_pod, sidecar

from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from refkubelet.allocation import messages
from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.allocation.order import PendingResize, in_order
from refkubelet.allocation.resources import (
    asks_for_resize,
    increases_requests,
    resources_of,
    with_resources_of,
)
from refkubelet.model.objects import Pod
from refkubelet.model.resources import requests_in_use

# -- resources -----------------------------------------------------------------------------------


def test_a_pod_has_what_is_allocated_whatever_its_spec_says_CG_060() -> None:
    small = make_pod(container(cpu="1/2"), "other", init=[container("side", cpu="1/1")])
    big = make_pod(container(cpu="3/4"), "other", init=[container("side", cpu="2/2")])
    allocated = with_resources_of(big, resources_of(small))
    assert resources_of(allocated) == resources_of(small)
    assert resources_of(big) != resources_of(small)  # itself unchanged
    assert allocated.spec.containers[1] is big.spec.containers[1]


def test_amounts_that_differ_in_writing_alone_are_the_same_CG_061() -> None:
    main = container(cpu="0.5/1000m", memory="1024Mi/1Gi")
    one = make_pod(main, resources={"limits": {"cpu": "2"}})
    main = container(cpu="500m/1", memory="1Gi/1073741824")
    other = make_pod(main, resources={"limits": {"cpu": "2.0"}})
    assert with_resources_of(other, resources_of(one)) is other
    assert not asks_for_resize(one, other)


def test_empty_and_absent_resources_are_the_same_CG_061() -> None:
    bare, empty = make_pod(), make_pod(container(resources={"limits": {}}))
    assert with_resources_of(empty, resources_of(bare)) is empty
    assert with_resources_of(bare, resources_of(empty)) is bare


@pytest.mark.parametrize(
    ("old", "new", "is_resize"),
    [
        (
            container(cpu="1/2", memory="1Gi/1Gi"),
            container(cpu="1/2", memory="1Gi/1Gi"),
            False,
        ),
        (container(cpu="1/2"), container(cpu="1/3"), True),
        (container(cpu="1/2"), container(cpu="2/2"), True),
        (container(memory="1Gi/2Gi"), container(memory="1Gi/3Gi"), True),
        (container(memory="1Gi/2Gi"), container(memory="2Gi/2Gi"), True),
        (container(), container(cpu="1"), True),
    ],
)
def test_what_counts_as_a_resize_CG_061(
    old: dict[str, Any], new: dict[str, Any], is_resize: bool
) -> None:
    assert asks_for_resize(make_pod(old), make_pod(new)) is is_resize
    inits = make_pod("other", init=[old]), make_pod("other", init=[new])
    assert asks_for_resize(*inits) is is_resize


def test_the_pods_own_resources_count_as_a_resize_CG_061() -> None:
    bare = make_pod()
    assert asks_for_resize(bare, make_pod(resources={"requests": {"cpu": "1"}}))


def test_which_resizes_take_more_of_the_node_CG_061() -> None:
    def pod(main: dict[str, Any], other: str) -> Pod:
        return make_pod(main, container("other", cpu=other))

    now = pod(container(cpu="2/4", memory="2Gi/4Gi"), "2/2")
    assert not increases_requests(now, pod(container(cpu="2/9", memory="2Gi/9Gi"), "2/2"))
    assert not increases_requests(now, pod(container(cpu="1/4", memory="2Gi/4Gi"), "3/3"))
    assert increases_requests(now, pod(container(cpu="2/4", memory="3Gi/4Gi"), "1/1"))
    assert increases_requests(now, pod(container(cpu="3/4", memory="1Gi/4Gi"), "2/2"))


def test_what_is_in_use_is_the_greater_of_allocated_and_actual_CG_061() -> None:
    def told(actual: str, allocated: str) -> dict[str, object]:
        status = {
            "name": "main",
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

    assert in_use(make_pod(container(cpu="1/9"), status=told("3", "2"))) == 3
    assert in_use(make_pod(container(cpu="1/9"), status=told("1", "2"))) == 2
    assert in_use(make_pod(container(cpu="4/9"), status=told("1", "2"))) == 4
    assert in_use(make_pod(container(cpu="4/9"))) == 4


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


# -- messages ------------------------------------------------------------------------------------


def test_messages_carry_the_resources_as_json_CG_063() -> None:
    """The first is recorded in s25."""
    pod = make_pod(
        container(cpu="150m/300m", memory="96Mi/192Mi"),
        container("rst", cpu="100m/200m", memory="64Mi/128Mi"),
    )
    assert messages.started(pod, 2) == (
        'Pod resize started: {"containers":[{"name":"main","resources":{"limits":{"cpu":"300m",'
        '"memory":"192Mi"},"requests":{"cpu":"150m","memory":"96Mi"}}},{"name":"rst","resources":'
        '{"limits":{"cpu":"200m","memory":"128Mi"},"requests":{"cpu":"100m","memory":"64Mi"}}}],'
        '"generation":2}'
    )
    pod = make_pod(init=[container("i", cpu="1")])
    words, _, summary = messages.pending(pod, 3, "OutOfcpu", 'no "<room>"').partition(": ")
    assert words == "Pod resize OutOfcpu"
    assert json.loads(summary) == {
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}],
        "containers": [{"name": "main", "resources": {}}],
        "generation": 3,
        "error": 'no "<room>"',
    }
    assert "<" not in summary
    assert messages.completed(pod, 3).startswith("Pod resize completed: {")
    assert messages.failed(pod, 3, "e").endswith('"generation":3,"error":"e"}')


# -- values that are easily missed ---------------------------------------------------------------


def test_each_part_of_a_pod_follows_its_allocation_alone_CG_060() -> None:
    """The pod's own resources, an init container, a regular one: each with the others unchanged."""
    own = {"limits": {"cpu": "2"}}
    plain = make_pod(container(cpu="1"), init=[container("i", cpu="1")])
    whole = make_pod(container(cpu="1"), init=[container("i", cpu="1")], resources=own)
    assert resources_of(with_resources_of(plain, resources_of(whole))) == resources_of(whole)
    assert resources_of(with_resources_of(whole, resources_of(plain))) == resources_of(plain)
    for other in (
        make_pod(container(cpu="2"), init=[container("i", cpu="1")], resources=own),
        make_pod(container(cpu="1"), init=[container("i", cpu="2")], resources=own),
    ):
        allocated = with_resources_of(whole, resources_of(other))
        assert resources_of(allocated) == resources_of(other)
        assert [c.name for c in allocated.spec.initContainers or ()] == ["i"]


def test_other_claims_are_other_resources_CG_060() -> None:
    def claiming(name: str) -> Pod:
        return make_pod(container(resources={"claims": [{"name": name}]}))

    one, same, other = claiming("gpu"), claiming("gpu"), claiming("fpga")
    assert with_resources_of(same, resources_of(one)) is same
    assert with_resources_of(other, resources_of(one)) is not other


def test_pods_without_a_spec_are_left_alone_CG_060() -> None:
    bare = replace(make_pod(), spec=None)
    assert with_resources_of(bare, resources_of(make_pod(container(cpu="1")))) is bare
    assert resources_of(bare).containers == {}
    assert not asks_for_resize(bare, bare)
    assert requests_in_use(bare) == {}


def test_requests_that_come_or_go_CG_061() -> None:
    nothing, some = make_pod(container()), make_pod(container(cpu="1", memory="1Gi"))
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
    side = sidecar("side", cpu="1")
    pod = make_pod(container(cpu="2"), init=[side], status=status)
    assert requests_in_use(pod)["cpu"] // NANO == 7


@pytest.mark.virtual_time
async def test_pods_without_a_generation_are_resized_too_CG_063() -> None:
    conditions = ResizeConditions(virtual_loop().clock)
    assert conditions.set_in_progress("u", 0) == (0, True)
    assert conditions.set_in_progress("u", 0) == (0, False)
    assert conditions.set_in_progress("u", 0, "Error", "a") == (0, True)
    assert conditions.set_in_progress("u", 0, "", "b") == (0, True)
    assert conditions.finish("u", 0) == 0
    assert conditions.finish("u", 0) is None


def told(name: str, **more: Any) -> dict[str, Any]:
    one = {"name": name, "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    return {**one, **more}


def actual(name: str, cpu: str, allocated: str = "0") -> dict[str, Any]:
    return told(name, resources={"requests": {"cpu": cpu}}, allocatedResources={"cpu": allocated})


def cpus_in_use(pod: Pod) -> int:
    return requests_in_use(pod)["cpu"] // NANO


@pytest.mark.parametrize(("gate", "in_use"), [(True, 2 << 20), (False, 1 << 20)])
def test_what_a_status_says_of_a_pod_counts_with_the_gate_CG_061_7(gate: bool, in_use: int) -> None:
    own = {"resources": {"requests": {"memory": "1Mi"}}, "allocatedResources": {"memory": "2Mi"}}
    pod = make_pod(resources={"requests": {"memory": "1Mi"}}, status=own)
    assert requests_in_use(pod, pod_level_resizes=gate)["memory"] // NANO == in_use


def test_the_spec_holds_without_the_gate_CG_061_7() -> None:
    before = make_pod(container(cpu="1"), resources={"requests": {"cpu": "1"}})
    after = make_pod(container(cpu="2"), resources={"requests": {"cpu": "2"}})
    known = resources_of(before, pod_level=False)
    assert (known.pod_level, list(known.containers)) == (None, ["main"])
    kept = with_resources_of(after, known, pod_level=False).spec
    assert kept.resources == after.spec.resources
    assert kept.containers[0].resources == before.spec.containers[0].resources


def test_a_status_without_resources_says_nothing_CG_061() -> None:
    status = {"containerStatuses": [told("main", allocatedResources={"cpu": "5"})]}
    assert cpus_in_use(make_pod(container(cpu="2"), status=status)) == 2


def test_the_spec_does_not_count_while_a_resize_is_infeasible_CG_061() -> None:
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    status = {"containerStatuses": [actual("main", "2", "1")], "conditions": [pending]}
    assert cpus_in_use(make_pod(container(cpu="9"), status=status)) == 2
    status["conditions"] = [{**pending, "reason": "Deferred"}, pending]
    assert cpus_in_use(make_pod(container(cpu="9"), status=status)) == 9


def test_statuses_of_init_containers_that_end_do_not_count_CG_061() -> None:
    status = {"initContainerStatuses": [actual("setup", "9")]}
    pod = make_pod(container(cpu="2"), init=[container("setup", cpu="1")], status=status)
    assert cpus_in_use(pod) == 2


def test_the_pods_own_requests_are_in_use_by_its_status_CG_061() -> None:
    status = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "3"}}
    pod = make_pod(container(cpu="1"), status=status)
    assert cpus_in_use(pod) == 1  # the pod itself asks for nothing
    pod.spec.resources = ResourceRequirements(requests={"cpu": "4"})
    assert cpus_in_use(pod) == 5
