"""What a run of the suite leaves in results/conformance.json."""

from __future__ import annotations

from keep_conformance import add_run
from rule_folds import runs_of


def results(date: str, **outcomes: str) -> dict[str, object]:
    """What `kubelet-conformance run --results` writes, as far as it matters here."""
    cases = {case: {"area": "backoff", "outcome": outcome} for case, outcome in outcomes.items()}
    return {
        "date": date,
        "level": "must",
        "whole": False,
        "real_s": 1.0,
        "areas": {"backoff": {"case_s": 60.0, "real_s": 1.0}},
        "cases": cases,
    }


def test_a_run_of_a_few_cases_leaves_what_is_known_of_the_others() -> None:
    record: list[dict[str, object]] = []
    for _ in range(2):
        first = results("2026-11-21", a="passed", b="failed", c="skipped")
        add_run(record, first, "kubelet 1.36.2", "fakecri")
    assert len(record) == 1
    add_run(record, results("2026-11-22", c="passed"), "kubelet 1.36.2", "fakecri")
    assert runs_of(record)[0].outcomes == {"a": "passed", "b": "failed", "c": "passed"}
    assert record[0]["date"] == "2026-11-22"
    assert "whole" not in record[0]


def test_a_whole_run_is_kept_with_its_times() -> None:
    record: list[dict[str, object]] = []
    whole = results("2026-11-21", a="passed", b="failed") | {"whole": True}
    add_run(record, whole, "refkubelet", "fakecri")
    assert record[0]["whole"]["areas"]["backoff"] == {
        "case_s": 60.0,
        "real_s": 1.0,
        "outcomes": {"passed": 1, "failed": 1},
    }
