"""Which plug-ins are registered and let go, and when failed ones are tried again (CG-086)."""

from __future__ import annotations

import pytest

from refkubelet.operation_backoff import Retry, failed
from refkubelet.plugin_manager.plan import Plan, plan

A, B = (1, 10), (1, 20)


@pytest.mark.parametrize(
    ("desired", "actual", "wanted"),
    [
        ({}, {}, Plan()),
        ({"a": A}, {}, Plan(register=("a",))),
        ({"a": A}, {"a": A}, Plan()),
        ({}, {"a": A}, Plan(let_go=("a",))),
        ({"a": B}, {"a": A}, Plan(let_go=("a",))),
        ({"a": A, "b": A}, {"c": A}, Plan(let_go=("c",), register=("a", "b"))),
    ],
)
def test_what_is_done_CG_086(desired: dict, actual: dict, wanted: Plan) -> None:  # type: ignore[type-arg]
    assert plan(desired, actual, retries={}, now_s=0.0) == wanted
    assert plan(desired, actual, busy={"a", "b", "c"}, retries={}, now_s=0.0) == Plan()


def test_a_failed_one_waits_CG_086() -> None:
    retries = {"a": Retry(1.0, 5.0)}
    assert plan({"a": A}, {}, retries=retries, now_s=4.9) == Plan()
    assert plan({"a": A}, {}, retries=retries, now_s=5.0) == Plan(register=("a",))


def test_waits_double_up_to_two_minutes_CG_086() -> None:
    delays, retry = [], None
    for _ in range(10):
        retry = failed(retry, 100.0)
        assert retry.not_before_s == 100.0 + retry.delay_s
        delays.append(retry.delay_s)
    assert delays == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]
