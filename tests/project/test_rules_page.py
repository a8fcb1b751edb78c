"""docs/rules.md is current, and every MUST rule of the areas that are done has a test."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


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


def test_every_rule_of_the_done_areas_has_a_level(render: ModuleType) -> None:
    rules = render.look().rules
    assert len(rules) > 500
    assert [r.id for r in rules if r.page in render.DONE and not r.level] == []


def test_a_rule_without_a_test_is_a_complaint_and_so_is_a_gap_that_is_none(
    render: ModuleType,
) -> None:
    rules = [render.Rule(f"LIFE-00{n}", "lifecycle", "MUST") for n in (1, 2, 3, 4)]
    rules.append(render.Rule("LIFE-005", "lifecycle", "DETAIL"))
    rules.append(render.Rule("SRV-001", "node-and-server", "MUST"))
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


def test_a_failure_outweighs_what_passed_and_a_skip_says_nothing(
    render: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(
        '<testsuites><testsuite timestamp="2026-11-21T10:00:00">'
        '<testcase name="a"/><testcase name="b"><failure/></testcase>'
        '<testcase name="c"><skipped/></testcase></testsuite></testsuites>'
    )
    results: list[dict[str, object]] = []
    for _ in range(2):
        render.add_run(results, file, "kubelet 1.36.2", "fakecri")
    assert len(results) == 1
    file.write_text(
        '<testsuites><testsuite timestamp="2026-11-22T10:00:00">'
        '<testcase name="c"/></testsuite></testsuites>'
    )
    render.add_run(results, file, "kubelet 1.36.2", "fakecri")  # a few cases only
    assert results[0]["cases"] == {"a": "passed", "b": "failed", "c": "passed"}
    assert results[0]["date"] == "2026-11-22"
    passed = {"kubelet": "kubelet 1.36.2", "runtime": "containerd", "cases": {"a": "passed"}}
    merged = render._outcomes([*results, passed | {"cases": {"b": "passed"}}], r"^kubelet", ".")
    assert merged == {"a": "passed", "b": "failed", "c": "passed"}
    assert render._verified(["a", "b", "d"], merged) == "1/2"
