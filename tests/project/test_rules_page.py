"""docs/rules.md is current, and every MUST rule has a test or a reason why not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from places import DOCS


@pytest.fixture(scope="module")
def render() -> ModuleType:
    spec = importlib.util.spec_from_file_location("render_rules", DOCS / "render_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["render_rules"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current_and_no_must_rule_lacks_a_test(
    render: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert render.main(["--check"]) == 0, capsys.readouterr().err


def test_every_rule_has_a_level(render: ModuleType) -> None:
    rules = render.look().rules
    assert len(rules) > 500
    assert [r.id for r in rules if not r.level] == []


def test_a_rule_without_a_test_is_a_complaint_and_so_is_a_gap_that_is_none(
    render: ModuleType,
) -> None:
    rules = [render.Rule(f"LIFE-00{n}", "lifecycle", "MUST") for n in (1, 2, 3, 4)]
    rules.append(render.Rule("LIFE-005", "lifecycle", "DETAIL"))
    tests, cases = {"LIFE-001": ["test_x.py: test_a"]}, {"LIFE-002": ["a-case"]}
    found = render.Found(rules, {}, tests, cases)
    gaps = "| LIFE-003 | because |\n| LIFE-002 | because |\n"
    told = [line.partition(":")[0] for line in render.complaints(found, gaps)]
    assert told == ["LIFE-004", "LIFE-002"]


def test_only_what_stands_in_a_test_counts_as_tested(render: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(
        '"""Rules: LIFE-001."""\n'
        "def helper():\n"
        '    """LIFE-002"""\n'
        "def test_names_LIFE_003():\n"
        "    def body():\n"
        "        pass  # LIFE-004\n"
        "def test_range():\n"
        '    """LIFE-051..053"""\n'
    )
    render.ROOT, root = tmp_path, render.ROOT
    try:
        found = render.places([file], tests=True)
    finally:
        render.ROOT = root
    assert sorted(found) == ["LIFE-003", "LIFE-004", "LIFE-051", "LIFE-052", "LIFE-053"]
    assert found["LIFE-004"] == ["test_it.py: test_names_LIFE_003"]


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


def test_a_run_of_a_few_cases_leaves_what_is_known_of_the_others(render: ModuleType) -> None:
    record: list[dict[str, object]] = []
    for _ in range(2):
        first = results("2026-11-21", a="passed", b="failed", c="skipped")
        render.add_run(record, first, "kubelet 1.36.2", "fakecri")
    assert len(record) == 1
    render.add_run(record, results("2026-11-22", c="passed"), "kubelet 1.36.2", "fakecri")
    assert render.outcomes_of(record[0]) == {"a": "passed", "b": "failed", "c": "passed"}
    assert record[0]["date"] == "2026-11-22"
    assert "whole" not in record[0]


def test_a_whole_run_is_kept_with_its_times(render: ModuleType) -> None:
    record: list[dict[str, object]] = []
    whole = results("2026-11-21", a="passed", b="failed") | {"whole": True}
    render.add_run(record, whole, "refkubelet", "fakecri")
    assert record[0]["whole"]["areas"]["backoff"] == {
        "case_s": 60.0,
        "real_s": 1.0,
        "outcomes": {"passed": 1, "failed": 1},
    }


def test_a_failure_outweighs_what_passed_and_a_skip_says_nothing(render: ModuleType) -> None:
    record: list[dict[str, object]] = []
    first = results("2026-11-21", a="passed", b="failed", c="skipped")
    render.add_run(record, first, "kubelet 1.36.2", "fakecri")
    second = results("2026-11-21", b="passed", c="passed")
    render.add_run(record, second, "kubelet 1.36.2", "containerd")
    merged = render._outcomes(record, r"^kubelet", ".")
    assert merged == {"a": "passed", "b": "failed", "c": "passed"}
    assert render._verified(["a", "b", "d"], merged) == "1/2"
