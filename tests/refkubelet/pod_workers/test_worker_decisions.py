"""The decisions of the pod workers: state table, grace, start order, retry times, predicates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.pod_workers.predicates import WorkerQuestions
from refkubelet.pod_workers.requeue import StepOutcome, requeue_delay_s, start_retry_s
from refkubelet.pod_workers.start_order import StaticTurns, may_start, still_waiting
from refkubelet.pod_workers.sync_status import PodSyncStatus
from refkubelet.pod_workers.transitions import (
    TRANSITIONS,
    Action,
    IllegalTransition,
    WorkInput,
    WorkState,
    transition,
)
from refkubelet.pod_workers.updates import effective_grace_period
from refkubelet.pod_workers.work_queue import WorkQueue
from simclock import VirtualLoop

ORDER = [WorkState.SYNCING, WorkState.TERMINATING, WorkState.TERMINATED, WorkState.FINISHED]


@pytest.mark.parametrize("state", list(WorkState))
@pytest.mark.parametrize("work_input", list(WorkInput))
def test_every_pair_has_a_row_or_raises_LIFE_031(state: WorkState, work_input: WorkInput) -> None:
    if (state, work_input) in TRANSITIONS:
        assert transition(state, work_input) == TRANSITIONS[state, work_input]
    else:
        with pytest.raises(IllegalTransition, match=state.value):
            transition(state, work_input)


def test_no_row_leads_backwards_LIFE_030() -> None:
    for (state, _), row in TRANSITIONS.items():
        assert ORDER.index(row.to) >= ORDER.index(state), row


def test_every_row_names_its_rule() -> None:
    assert all(row.rule.startswith("LIFE-") for row in TRANSITIONS.values())


def test_a_pod_asked_to_end_takes_every_outside_input_without_coming_back_LIFE_031() -> None:
    outside = (WorkInput.CREATE, WorkInput.CHANGE, WorkInput.END, WorkInput.RUNTIME_END)
    for state in ORDER[1:]:
        assert all(transition(state, i).to is not WorkState.SYNCING for i in outside)
        assert transition(state, WorkInput.CREATE).action is Action.RESTART_LATER


@pytest.mark.parametrize(
    ("stored_s", "deletion_s", "override_s", "spec_s", "expected_s"),
    [
        (0, None, None, 30, 30),
        (0, 5, None, 30, 5),
        (5, 10, None, 30, 5),
        (0, 0, None, 30, 1),
        (0, None, 0, 30, 1),
        (0, 20, 1, 30, 1),
        (0, 20, 40, 30, 20),
        (0, 60, None, 30, 60),
        (0, None, None, None, 1),
        (30, None, None, 5, 30),
    ],
)
def test_grace_period_LIFE_033(
    stored_s: int,
    deletion_s: int | None,
    override_s: int | None,
    spec_s: int | None,
    expected_s: int,
) -> None:
    assert effective_grace_period(stored_s, deletion_s, override_s, spec_s) == expected_s


WISH = st.none() | st.integers(0, 1000)


@given(st.lists(st.tuples(WISH, WISH), min_size=1), WISH)
def test_grace_only_decreases_LIFE_033(
    updates: list[tuple[int | None, int | None]], spec_s: int | None
) -> None:
    grace_s = 0
    for deletion_s, override_s in updates:
        before_s = grace_s
        grace_s = effective_grace_period(before_s, deletion_s, override_s, spec_s)
        assert grace_s >= 1
        assert before_s == 0 or grace_s <= before_s


@pytest.mark.parametrize(
    ("uid", "started", "waiting", "ending", "expected"),
    [
        ("a", None, ["a"], [], True),
        ("b", "a", ["b"], [], False),
        ("b", "b", [], [], True),
        ("c", None, ["b", "c"], [], False),
        ("c", None, ["b", "c"], ["b"], True),
    ],
)
def test_static_pods_of_one_name_take_turns_LIFE_034_MIRR_002(
    uid: str, started: str | None, waiting: list[str], ending: list[str], expected: bool
) -> None:
    assert may_start(uid, started, waiting, lambda u: u not in ending) is expected


def test_who_can_never_start_leaves_the_queue_MIRR_004() -> None:
    assert still_waiting(["b", "c", "d"], "d", lambda u: u != "b") == ("c",)


@pytest.mark.parametrize(
    ("outcome", "low_s", "high_s"),
    [
        (StepOutcome(phase_changed=True), 0, 0),
        (StepOutcome(), 60, 90),
        (StepOutcome(error="network is not ready: no cni"), 1, 1.5),
        (StepOutcome(error="back-off", backoff_expiry_s=120), 20, 30),
        (StepOutcome(error="back-off", backoff_expiry_s=400), 60, 90),
        (StepOutcome(error="back-off", backoff_expiry_s=50), 0, 0),
        (StepOutcome(error="boom"), 10, 15),
    ],
)
def test_next_sync_LIFE_037_BACK_011(outcome: StepOutcome, low_s: float, high_s: float) -> None:
    assert requeue_delay_s(outcome, 100.0, 60.0, lambda: 0.0) == pytest.approx(low_s)
    assert requeue_delay_s(outcome, 100.0, 60.0, lambda: 1.0) == pytest.approx(high_s)


def test_a_waiting_static_pod_asks_again_in_10_to_15_s_LIFE_034() -> None:
    assert start_retry_s(lambda: 0.0) == 10.0
    assert start_retry_s(lambda: 1.0) == 15.0


QUESTIONS = [
    # rule, method, unknown before the first housekeeping, after it
    ("LIFE-051", "is_pod_known_terminated", False, False),
    ("LIFE-052", "could_have_running_containers", True, False),
    ("LIFE-053", "should_pod_be_finished", False, True),
    ("LIFE-054", "is_pod_termination_requested", False, False),
    ("LIFE-056", "should_pod_runtime_be_removed", False, True),
    ("LIFE-057", "should_pod_content_be_removed", False, True),
]


@pytest.mark.parametrize(("rule", "method", "before", "after"), QUESTIONS)
def test_questions_about_an_unknown_uid_LIFE_051_057(
    rule: str, method: str, before: bool, after: bool
) -> None:
    workers = WorkerQuestions()
    assert getattr(workers, method)("x") is before, rule
    workers._synced = True
    assert getattr(workers, method)("x") is after, rule


@pytest.mark.parametrize(
    ("state", "flags", "yes"),
    [
        (WorkState.SYNCING, {}, {"could_have_running_containers"}),
        (
            WorkState.TERMINATING,
            {},
            {"could_have_running_containers", "is_pod_termination_requested"},
        ),
        (
            WorkState.TERMINATING,
            {"evicted": True},
            {
                "could_have_running_containers",
                "is_pod_termination_requested",
                "should_pod_content_be_removed",
            },
        ),
        (
            WorkState.TERMINATED,
            {"deleted": True},
            {
                "is_pod_known_terminated",
                "is_pod_termination_requested",
                "should_pod_runtime_be_removed",
                "should_pod_content_be_removed",
            },
        ),
        (
            WorkState.FINISHED,
            {},
            {
                "is_pod_known_terminated",
                "should_pod_be_finished",
                "is_pod_termination_requested",
                "should_pod_runtime_be_removed",
            },
        ),
    ],
)
def test_questions_about_a_known_record_LIFE_051_057(
    state: WorkState, flags: dict[str, bool], yes: set[str]
) -> None:
    workers = WorkerQuestions()
    workers._records["x"] = PodSyncStatus("x", "x_default", state=state, **flags)
    assert {method for _, method, _, _ in QUESTIONS if getattr(workers, method)("x")} == yes


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (WorkState.SYNCING, False),
        (WorkState.TERMINATING, True),
        (WorkState.TERMINATED, False),
        (WorkState.FINISHED, False),
    ],
)
def test_a_static_pod_is_terminating_until_it_has_terminated_MIRR_031(
    state: WorkState, wanted: bool
) -> None:
    workers = WorkerQuestions()
    record = PodSyncStatus("x", "x_default", state=state)
    workers._records["x"] = record
    assert workers.records() == (record,)
    assert not workers.is_terminating_by_full_name("x_default")
    workers._turns.take("x_default", "x", lambda uid: True)
    assert workers.is_terminating_by_full_name("x_default") is wanted
    assert not workers.is_terminating_by_full_name("y_default")
    workers._turns.leave("x_default", "x")
    assert not workers.is_terminating_by_full_name("x_default")


def test_turns_are_taken_left_and_passed_on_LIFE_034_MIRR_003() -> None:
    turns, ended = StaticTurns(), set[str]()

    def take(uid: str, full_name: str = "x") -> bool:
        return turns.take(full_name, uid, lambda waiting: waiting not in ended)

    for uid in "abcd":
        turns.arrive("x", uid)
    turns.arrive("y", "e")
    assert [take(uid) for uid in "bacd"] == [False, True, False, False]
    assert take("a")
    assert take("e", "y")
    turns.leave("x", "c")
    assert turns.started("x") == "a"
    turns.leave("x", "a")
    assert turns.started("x") is None
    assert turns.started("y") == "e"
    ended.add("b")
    assert [take("d"), take("c"), take("d")] == [False, True, False]
    turns.leave("x", "c")
    assert [take("c"), take("d")] == [False, True]
    turns.leave("x", "d")
    assert take("f")


def test_no_worker_has_no_record_LIFE_051() -> None:
    workers = WorkerQuestions()
    assert workers.records() == ()
    assert workers.record("x") is None


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=6), st.integers(0, 6)
)
def test_nothing_is_taken_from_a_queue_of_which_nothing_may_be_due_LIFE_004(
    wishes: list[tuple[str, int]], at_s: int
) -> None:
    loop = VirtualLoop()
    queue = WorkQueue(loop.clock)
    for uid, delay_s in wishes:
        queue.enqueue(uid, delay_s)
    loop.call_at(at_s, loop.stop)
    loop.run_forever()
    loop.close()
    due = {uid for uid, delay_s in dict(wishes).items() if delay_s <= at_s}
    assert due == set() if at_s < queue.next_s else True
    assert set(queue.take_due()) == due
    assert at_s < queue.next_s
