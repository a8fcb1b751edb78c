"""`explain`, and the texts of rules that it shows."""

from __future__ import annotations

import pytest

from conformance.cli import main
from conformance.rule_texts import rules_in

PAGE = """\
## 1. Stops (MUST:)

- **LIFE-001** **.1** One
  thing; **.2** another. `[KL]`
- **LIFE-002** SHOULD Steps, in order:

| # | then |
|---|---|
| **.1** | wait |

Some words.

DETAIL two: **LIFE-003** this. **LIFE-004** that.

| **LIFE-005** MUST | a | b |
"""


def test_a_rule_ends_where_the_next_one_or_its_paragraph_does() -> None:
    found = {rule.id: rule for rule in rules_in("page", PAGE)}
    levels = {name: rule.level for name, rule in found.items()}
    assert list(levels.values()) == ["MUST", "SHOULD", "DETAIL", "DETAIL", "MUST"]
    assert found["LIFE-001"].clauses() == {1: "One\n  thing", 2: "another. `[KL]`"}
    assert found["LIFE-002"].clauses() == {1: "wait"}
    assert (found["LIFE-003"].text, found["LIFE-004"].text) == ("this.", "that.")
    assert (found["LIFE-005"].text, found["LIFE-005"].line) == ("a | b", 15)


def explain(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["explain", name])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_a_rule_is_told_with_its_cases(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explain("LIFE-143", capsys)
    assert code == 0
    assert said.startswith("LIFE-143 (MUST)  docs/spec/lifecycle.md#life-143, line ")
    assert "  .5 StopContainer timeout max(2, rest)." in said
    assert "  lifecycle/stop-minimum (LIFE-143)\n" in said
    assert said.endswith("run them:  kubelet-conformance run --rule LIFE-143\n")


def test_a_clause_is_told_alone(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = explain("life-143.5", capsys)
    assert ".5 StopContainer timeout" in said
    assert ".6 NotFound" not in said
    assert explain(f"LIFE-143.{99}", capsys)[0] == 4  # no such clause


def test_a_case_is_told_with_its_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explain("stop-minimum", capsys)
    assert code == 0
    assert "A grace period of one second still gives StopContainer two." in said
    assert ".5 StopContainer timeout max(2, rest)." in said
    assert "needs:     a readable pod status" in said
    assert "run it:    kubelet-conformance run --id stop-minimum" in said


def test_a_name_that_is_not_there_shows_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explain("stop-minimun", capsys)
    assert code == 4
    assert "no rule and no case has this name; near it: stop-minimum" in said
