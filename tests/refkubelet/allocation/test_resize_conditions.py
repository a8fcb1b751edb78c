"""The two resize conditions of a pod (LIFE-186)."""

from __future__ import annotations

import pytest
from loops import virtual_loop
from pods import make_pod

from refkubelet.allocation.conditions import ResizeConditions

pytestmark = pytest.mark.virtual_time


async def test_every_refusal_but_one_is_deferred_CG_062_LIFE_186() -> None:
    clock = virtual_loop().clock
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


async def test_a_transition_is_a_change_of_the_reason_LIFE_186() -> None:
    clock = virtual_loop().clock
    conditions = ResizeConditions(clock)
    conditions.set_pending("u", "OutOfcpu", "", 2)
    began = clock.now()
    await clock.sleep(10)
    conditions.set_pending("u", "OutOfmemory", "", 3)
    (told,) = conditions.of("u")
    assert (told.lastTransitionTime, told.lastProbeTime) == (began, clock.now())
    conditions.set_pending("u", "Infeasible", "", 3)
    assert conditions.of("u")[0].lastTransitionTime == clock.now()


async def test_an_error_stays_until_the_resize_is_over_CG_063_LIFE_186() -> None:
    conditions = ResizeConditions(virtual_loop().clock)
    assert conditions.set_in_progress("u", 2) == (2, True)
    assert conditions.set_in_progress("u", 3) == (2, False)
    assert conditions.set_in_progress("u", 3, "Error", "busy") == (2, True)
    assert conditions.set_in_progress("u", 3, "Error", "busy") == (2, False)
    assert conditions.set_in_progress("u", 3) == (2, False)
    assert [c.reason for c in conditions.of("u")] == ["Error"]
    assert conditions.clear_in_progress("u") == 2
    assert conditions.clear_in_progress("u") is None


async def test_a_sync_of_an_older_pod_finishes_nothing_CG_063() -> None:
    conditions = ResizeConditions(virtual_loop().clock)
    conditions.set_in_progress("u", 3)
    assert conditions.finish("u", 2) is None
    assert conditions.finish("u", 4) == 3
    assert conditions.of("u") == ()


async def test_conditions_of_an_earlier_kubelet_are_taken_over_LIFE_186() -> None:
    told = [
        {"type": "PodResizeInProgress", "status": "True", "observedGeneration": 4},
        {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "m"},
        {"type": "Ready", "status": "True"},
    ]
    conditions = ResizeConditions(virtual_loop().clock)
    conditions.restore([make_pod(uid="u-1", status={"conditions": told})])
    assert [c.type for c in conditions.of("u-1")] == ["PodResizePending", "PodResizeInProgress"]
    assert conditions.clear_in_progress("u-1") == 4
    conditions.keep_only(["u-2"])
    assert conditions.of("u-1") == ()
    conditions.set_in_progress("u-1", 1)
    conditions.clear("u-1")
    assert conditions.of("u-1") == ()


async def test_what_is_taken_over_is_taken_over_whole_LIFE_186() -> None:
    told = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Infeasible",
        "message": "never",
        "observedGeneration": 7,
    }
    conditions = ResizeConditions(virtual_loop().clock)
    conditions.restore([make_pod(uid="u-1"), make_pod(uid="u-2", phase="Running")])
    assert conditions.of("u-1") == conditions.of("u-2") == ()
    conditions.restore([make_pod(uid="u-1", status={"conditions": [told]})])
    (known,) = conditions.of("u-1")
    assert (known.reason, known.message, known.observedGeneration) == ("Infeasible", "never", 7)
    assert not conditions.set_pending("u-1", "Infeasible", "never", 7)
    conditions.set_in_progress("u-1", 7)
    conditions.clear_pending("u-1")
    assert [c.type for c in conditions.of("u-1")] == ["PodResizeInProgress"]
    conditions.clear("u-3")
