"""docs/rules.md is current, and every MUST rule has a test or a reason why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import render_rules as render
import rules_in_tree


def test_the_page_is_current_and_no_must_rule_lacks_a_test(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert render.main(["--check"]) == 0, capsys.readouterr().err


def test_every_rule_has_a_level() -> None:
    rules = render.look().rules
    assert len(rules) > 500
    assert [r.id for r in rules if not r.level] == []


def test_a_rule_without_a_test_is_a_complaint_and_so_is_a_gap_that_is_none() -> None:
    rules = [render.Rule(f"LIFE-00{n}", "lifecycle", "MUST") for n in (1, 2, 3, 4)]
    rules.append(render.Rule("LIFE-005", "lifecycle", "DETAIL"))
    tests, cases = {"LIFE-001": ["test_x.py: test_a"]}, {"LIFE-002": ["a-case"]}
    found = render.Found(rules, {}, tests, cases)
    gaps = "| LIFE-003 | because |\n| LIFE-002 | because |\n"
    told = [line.partition(":")[0] for line in render.complaints(found, gaps)]
    assert told == ["LIFE-004", "LIFE-002"]


def test_only_what_stands_in_a_test_counts_as_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setattr(rules_in_tree, "ROOT", tmp_path)
    found = rules_in_tree.places([file], tests=True)
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


def test_a_run_of_a_few_cases_leaves_what_is_known_of_the_others() -> None:
    record: list[dict[str, object]] = []
    for _ in range(2):
        first = results("2026-11-21", a="passed", b="failed", c="skipped")
        render.add_run(record, first, "kubelet 1.36.2", "fakecri")
    assert len(record) == 1
    render.add_run(record, results("2026-11-22", c="passed"), "kubelet 1.36.2", "fakecri")
    assert render.outcomes_of(record[0]) == {"a": "passed", "b": "failed", "c": "passed"}
    assert record[0]["date"] == "2026-11-22"
    assert "whole" not in record[0]


def test_a_whole_run_is_kept_with_its_times() -> None:
    record: list[dict[str, object]] = []
    whole = results("2026-11-21", a="passed", b="failed") | {"whole": True}
    render.add_run(record, whole, "refkubelet", "fakecri")
    assert record[0]["whole"]["areas"]["backoff"] == {
        "case_s": 60.0,
        "real_s": 1.0,
        "outcomes": {"passed": 1, "failed": 1},
    }


def test_a_failure_outweighs_what_passed_and_a_skip_says_nothing() -> None:
    record: list[dict[str, object]] = []
    first = results("2026-11-21", a="passed", b="failed", c="skipped")
    render.add_run(record, first, "kubelet 1.36.2", "fakecri")
    second = results("2026-11-21", b="passed", c="passed")
    render.add_run(record, second, "kubelet 1.36.2", "containerd")
    merged = render._outcomes(record, r"^kubelet", ".")
    assert merged == {"a": "passed", "b": "failed", "c": "passed"}
    assert render._verified(["a", "b", "d"], merged) == "1/2"


def test_a_citation_is_proved_by_a_mutant_that_it_notices(tmp_path: Path) -> None:
    kept = tmp_path / "mutants.json"
    answer = {"rules": ["BACK-003.2"], "noticed": ["reset", "by-chance"], "tests": ["t.py: test_a"]}
    kept.write_text(json.dumps({"backoff/late": answer}))
    cases = {"BACK-003": ["reset", "other"], "BACK-003.2": ["reset"]}
    proved = rules_in_tree.proved_by(kept, cases)
    assert proved == {"BACK-003.2": ["reset", "t.py: test_a"]}
    rule = render.Rule("BACK-003", "restart-and-pleg", "MUST", (1, 2))
    found = render.Found([rule], {}, {}, cases, proved)
    whole, first, second = render._rows(rule, found, [{"reset": "passed"}])
    assert whole[:5] == ("BACK-003", "MUST", "", "", "reset, other")
    assert first[3:5] == ("", "")
    assert second[3:] == ("**`t.py: test_a`**", "**reset**", "1/1")


def test_clauses_stand_in_the_text_of_their_rule(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "- **BACK-001** MUST **.1** One. **.2** Two,\n  **.3** three.\n- **BACK-002** MUST One.\n"
    )
    assert [rule.clauses for rule in rules_in_tree.rules_of(page)] == [(1, 2, 3), ()]
    assert list(rules_in_tree.cited("a BACK-001.2 b\nBACK_002")) == [
        (1, "BACK-001"),
        (1, "BACK-001.2"),
        (2, "BACK-002"),
    ]
