"""`explain`, the texts of rules that it shows, and what it says of questions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from places import ROOT

from kubelet_conformance.cli import main
from kubelet_conformance.explain import _parts
from kubelet_conformance.rule_places import home_of
from kubelet_conformance.rule_texts import all_rules, rules_in

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


def explain(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["explain", *words.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_a_rule_is_told_with_its_cases(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explain("LIFE-143", capsys)
    assert code == 0
    assert said.startswith("LIFE-143 (MUST)  docs/spec/lifecycle.md#life-143, line ")
    assert "  .5 StopContainer timeout max(2, rest)." in said
    assert "  lifecycle/stop-minimum (LIFE-143)\n" in said
    assert "—" not in said.splitlines()[2]
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


def code_of(said: str) -> list[tuple[str, str, Path, int]]:
    """Module, function, file and line of what is said to be code."""
    lines = re.findall(r"^ *([\w.]+): ([\w.]+)  (\S+):(\d+)$", said, re.M)
    return [(module, name, Path(file), int(line)) for module, name, file, line in lines]


def test_a_rule_is_told_with_its_functions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they are is a file that can be opened from here."""
    home = home_of("refkubelet")
    assert home is not None
    monkeypatch.chdir(home)
    _, said = explain("PROBE-034", capsys)
    (module, name, file, line), *_ = code_of(said)
    assert (module, name) == ("refkubelet.kuberuntime.decisions.actions", "kill_reason")
    assert str(file) == "refkubelet/kuberuntime/decisions/actions.py"
    assert file.read_text().splitlines()[line - 1].startswith("def kill_reason(")
    assert "      The first reason to kill a running container" in said
    assert said.index("\ncode:\n") < said.index("\ncases:\n")
    monkeypatch.chdir(ROOT / "docs")
    assert str(home / file) in explain("PROBE-034", capsys)[1]


def test_a_clause_is_told_with_the_functions_that_name_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = {name for _, name, _, _ in code_of(explain("MIRR-002", capsys)[1])}
    clause = {name for _, name, _, _ in code_of(explain("MIRR-002.2", capsys)[1])}
    assert clause == {"may_start"}
    assert whole > clause


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        ("liveness", "PROBE-034"),
        ("what happens when a liveness probe fails?", "PROBE-034"),
        ("why does my static pod not come back?", "MIRR-002"),
        ("in what order are pods evicted for disk?", "EVIC-081"),
    ],
)
def test_words_lead_to_the_best_rules_cases_and_functions(
    question: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = explain(question, capsys)
    assert code == 0
    answers = re.findall(r"^(\S+)", said, re.M)[:-1]  # the last line says how to go on
    assert 3 < len(answers) <= 10
    assert rule in answers[:5]


def test_words_lead_to_functions(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = explain("reason to kill a running container", capsys)
    found = {name: (file, line) for _, name, file, line in code_of(said)}
    file, line = found["kill_reason"]
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if hasattr(node, "name")]
    assert line in [node.lineno for node in functions]
    assert "The first reason to kill a running container, or None" in said


def test_names_come_before_words(capsys: pytest.CaptureFixture[str]) -> None:
    """`readiness` is a case, too; a rule that is none is no question."""
    assert explain("readiness", capsys)[1].startswith("probes/readiness (")
    assert explain(f"LIFE-{999}", capsys)[0] == 4
    code, said = explain("xyzzy plugh", capsys)
    assert (code, said) == (
        4,
        "kubelet-conformance: explain xyzzy plugh: no rule and no case has this name\n",
    )


STORIES = re.findall(
    r"^\| \[([^]]+)\]\(([\w-]+)\.md\)", (ROOT / "docs/stories/index.md").read_text(), re.M
)


@pytest.mark.parametrize(
    ("question", "story"),
    [
        *((f"what happens when {question}", story) for question, story in STORIES),
        ("liveness", "liveness-probe-fails"),
        ("why was my static pod refused", "static-pod-refused"),
        ("why does my static pod not come back", "static-pod-does-not-come-back"),
    ],
)
def test_a_question_that_a_story_answers_leads_to_it_first(
    question: str, story: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = explain(question, capsys)
    assert said.splitlines()[0] == f"stories/{story}  docs/stories/{story}.md"


def test_why_a_pod_was_refused_leads_to_the_rules_of_it_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, said = explain("why was my static pod refused", capsys)
    assert {"LIFE-225", "SRC-005", "SRC-036"} <= set(re.findall(r"^[A-Z]+-\d+", said, re.M))


def test_no_mark_and_no_lone_dash_is_left_in_the_text_of_a_rule() -> None:
    for rule in all_rules().values():
        for part in (rule.text, *rule.clauses().values()):
            for paragraph in _parts(part):
                plain = re.sub(r"`[^`]*`", "", paragraph)
                assert "**" not in plain, rule.id
                assert not re.search(r"(?<![\w.*])\*\w[^*]*\w\*(?!\w)", plain), rule.id
                assert not re.search(r"(\s|^)[-\u2014|]+$|-{3}", paragraph), rule.id


def test_rows_of_tables_are_lines_without_rulers(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = explain("LIFE-031", capsys)
    assert "  # | if | then\n  .1 runtime-only pod and not kill | ignore\n" in said
    assert "starts as terminated" in said
