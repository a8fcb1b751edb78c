"""What the tree says of the rules: every MUST rule has a test or a reason why not, and what unfolds
below a rule on the site is what there is of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import rule_folds
import rules_in_tree
from places import DOCS, SPEC
from rules_in_tree import Found, complaints, look, parts, proved_by, untested

from kubelet_conformance.rule_places import Place, cited, closest, places
from kubelet_conformance.rule_texts import RuleText, all_rules, rules_in


@pytest.fixture(scope="module")
def tree() -> Found:
    return look()


def rule(name: str, level: str = "MUST", text: str = "") -> RuleText:
    return RuleText(name, "lifecycle", 1, level, text)


def test_no_must_rule_lacks_a_test(tree: Found) -> None:
    assert complaints(tree, (DOCS / "gaps.md").read_text()) == []


def test_every_rule_has_a_level() -> None:
    rules = all_rules()
    assert len(rules) > 500
    assert [name for name, text in rules.items() if not text.level] == []


def test_a_rule_without_a_test_is_a_complaint_and_so_is_a_gap_that_is_none() -> None:
    rules = [rule(f"LIFE-00{n}") for n in (1, 2, 3, 4)]
    rules.append(rule("LIFE-005", "DETAIL"))
    tests = {"LIFE-001": [Place("test_x.py", "test_a", 1)]}
    tree = Found(rules, {}, tests, {"LIFE-002": ["a-case"]})
    assert untested(tree) == ["LIFE-003", "LIFE-004"]
    gaps = "| LIFE-003 | because |\n| LIFE-002 | because |\n"
    named = [line.partition(":")[0] for line in complaints(tree, gaps)]
    assert named == ["LIFE-004", "LIFE-002"]


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
        "class TestMore:\n"
        "    def test_range(self):\n"
        '        """LIFE-051..053"""\n'
    )
    monkeypatch.setattr(rules_in_tree, "ROOT", tmp_path)
    tests = rules_in_tree.test_places([file])
    assert sorted(tests) == ["LIFE-003", "LIFE-004", "LIFE-051", "LIFE-052", "LIFE-053"]
    assert [str(place) for place in tests["LIFE-004"]] == ["test_it.py: test_names_LIFE_003"]
    assert [str(place) for place in tests["LIFE-052"]] == ["test_it.py: TestMore.test_range"]


def test_functions_come_first_and_heads_only_where_nothing_else_is(tmp_path: Path) -> None:
    files = {
        "a.py": '"""LIFE-002"""\nTABLE = {}\n"""LIFE-002: rows."""\n',
        "b.py": '"""LIFE-002"""\n\n@deco\ndef f():\n    """Does it.\n\n    More: LIFE-002.2"""\n',
        "c.py": '"""\nLIFE-002"""\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    cited_at = places(sorted(tmp_path.glob("*.py")), tmp_path)
    ordered = closest(cited_at["LIFE-002"])
    assert [f"{place}, {place.line}" for place in ordered] == [
        *("b.py: f, 4", "a.py: TABLE, 2", "c.py, 2"),
    ]
    assert ordered[0].first == "Does it."
    assert [str(place) for place in cited_at["LIFE-002.2"]] == ["b.py: f"]


def test_a_citation_is_proved_by_a_mutant_that_it_notices(tmp_path: Path) -> None:
    kept = tmp_path / "mutants.json"
    answer = {"rules": ["BACK-003.2"], "noticed": ["reset", "by-chance"], "tests": ["t.py: test_a"]}
    kept.write_text(json.dumps({"backoff/late": answer}))
    cases = {"BACK-003": ["reset", "other"], "BACK-003.2": ["reset"]}
    assert proved_by(kept, cases) == {"BACK-003.2": ["reset", "t.py: test_a"]}


def test_clauses_stand_in_the_text_of_their_rule() -> None:
    text = (
        "- **BACK-001** MUST **.1** One. **.2** Two,\n  **.3** three.\n- **BACK-002** MUST One.\n"
    )
    assert [parts(each) for each in rules_in("page", text)] == [
        ["BACK-001.1", "BACK-001.2", "BACK-001.3"],
        ["BACK-002"],
    ]
    assert list(cited("a BACK-001.2 b\nBACK_002")) == [
        (1, "BACK-001"),
        (1, "BACK-001.2"),
        (2, "BACK-002"),
    ]


# What unfolds

FOLD = '<details class="quote" data-search-exclude>'
PAGE = """\
A list:

- **BACK-001** MUST **.1** One. **.2** Two,
  that goes on.
- **BACK-002** MUST In order:

  | a | b |
  | - | - |

| **BACK-003** | MUST in a table |
In a text **BACK-004** MUST this. **BACK-005** MUST that.
"""


def small_tree() -> Found:
    function = Place("refkubelet/pleg/compute.py", "compute_events", 30)
    test = Place("tests/refkubelet/test_x.py", "test_a", 7)
    elsewhere = "tests/refkubelet/test_y.py: test_b"
    return Found(
        rules=list(rules_in("page", PAGE)),
        code={
            f"BACK-00{n}": [function, Place("fakecri/errors.py", "Gone", 3)] for n in (1, 2, 3, 5)
        },
        tests={"BACK-001": [test], "BACK-001.2": [test]},
        cases={"BACK-001": ["late", "early"], "BACK-001.2": ["late"]},
        proved={"BACK-001.2": ["early", str(test), elsewhere]},
        case_places={
            "late": "conformance/kubelet_conformance/cases/backoff/x.py:9",
            "early": "conformance/kubelet_conformance/cases/backoff/x.py:2",
        },
    )


def small_runs() -> list[rule_folds.Run]:
    cases = {"backoff": {"late": "failed", "early": "passed", "other": "passed", "old": "skipped"}}
    run = {"kubelet": "kubelet 1.2", "runtime": "it", "date": "2030-01-02", "cases": cases}
    skipped = run | {"kubelet": "kubelet 1.1", "cases": {"backoff": {"late": "skipped"}}}
    return rule_folds.runs_of([run, skipped])


def test_each_rule_has_an_anchor_and_unfolds_behind_its_text() -> None:
    tree, rest = small_tree(), ("spec/page.md", small_tree(), small_runs())
    lines = rule_folds.unfolded(PAGE, *rest).splitlines()
    assert lines[2].startswith('- <a id="back-001"></a>**BACK-001** MUST **.1** One.')
    assert lines[3].startswith(f"  that goes on. {FOLD}<summary>2 places in the code, 1 test, 2 ")
    assert lines[4].endswith(f"**BACK-002** MUST In order: {rule_folds.fold(tree.rules[1], *rest)}")
    assert lines[6] == "  | a | b |"
    assert lines[9].startswith(f'| <a id="back-003"></a>**BACK-003** | MUST in a table {FOLD}')
    assert lines[9].endswith("</details> |")
    assert "MUST this. *not yet* ([why](../gaps.md)) <a" in lines[10]
    assert lines[10].endswith("</details>")


def test_what_unfolds_is_code_tests_cases_clauses_and_where_it_was_seen() -> None:
    tree = small_tree()
    text = rule_folds.fold(tree.rules[0], "spec/page.md", tree, small_runs())
    rows = dict(re.findall(r"<br>\*\*([\w.]+)\*\* (.*?)(?=<br>|</details>)", text))
    assert rows == {
        "Code": "[`pleg/compute.py:30 compute_events`](../api/refkubelet/pleg/compute.md"
        "#refkubelet.pleg.compute.compute_events), `fakecri/errors.py:3 Gone`",
        "Tests": "`refkubelet/test_x.py:7 test_a`",
        "Cases": "late (`backoff/x.py:9`), early (`backoff/x.py:2`)",
        ".2": "**early**, late; **`refkubelet/test_x.py:7 test_a`**, "
        "**`tests/refkubelet/test_y.py: test_b`**",
        "Seen": "kubelet 1.2 on it: 1 of 2",
    }


def test_the_overview_counts_what_is_held_and_what_was_run() -> None:
    rows = rule_folds.overview(small_tree(), small_runs()).splitlines()
    assert rows[2] == "| [page](spec/page.md) | 5 | 5 | 1 | 6 | 1 |"
    assert rows[3] == "| all | 5 | 5 | 1 | 6 | 1 |"
    assert rows[-2] == "| kubelet 1.2 on it | 2030-01-02 | 4 | 2 | 1 | 1 |"


def test_contract_tests_were_seen_where_all_of_them_passed() -> None:
    tree = small_tree()
    tree.tests["BACK-005"] = [Place("tests/verified/test_cri_contract.py", "test_c", 9)]
    good, bad = {"passed": 5, "failed": 0}, {"passed": 4, "failed": 1}
    kept = {
        "1.6": {"containerd": "1.6.20", "date": "2030-01-02", "contract": good},
        "1.7": {"containerd": "1.7.24", "date": "2030-01-02", "contract": bad},
        "apiserver": {"version": "v1.36.2", "date": "2030-01-02", "contract": good},
    }
    runs = rule_folds.contracts_of(kept, tree)
    text = rule_folds.fold(tree.rules[4], "spec/page.md", tree, runs)
    assert text.endswith("<br>**Seen** contract tests on containerd 1.6.20: 1 of 1</details>")
    assert "Seen" not in rule_folds.fold(tree.rules[0], "spec/page.md", tree, runs)


def test_every_rule_of_every_page_unfolds_once(tree: Found) -> None:
    for page in sorted(SPEC.glob("*.md")):
        text = page.read_text()
        rules = [each.id for each in rules_in(page.stem, text)]
        made = rule_folds.unfolded(text, f"spec/{page.name}", tree, [])
        assert re.findall(r'<a id="([a-z]+-\d+)"></a>', made) == [name.lower() for name in rules]
        assert made.count(FOLD) + made.count("*not yet*") == len(rules)
        added = r'<a id="[^"]*"></a>|<details.*?</details>|\*not yet\*(?: \(\[why\][^)]*\)\))?'
        assert re.sub(added, "", made).split() == text.split()
