"""The README's example runs, and says what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from places import ROOT

from kubelet_conformance.registry import Level, load_cases

README = ROOT / "README.md"
TIMES = re.compile(r"\d+\.\d{3} s")


def blocks(page: Path, *languages: str) -> list[str]:
    """The texts between fences of one of these languages ("": that name none)."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.S | re.M)
    return [text for language, text in found if language in languages]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_example_prints_what_the_page_shows_and_warns_of_nothing(
    page: str, tmp_path: Path
) -> None:
    """With the lines of configuration that the README shows, and no others."""
    shown = next(b for b in blocks(ROOT / page, "", "text") if "nearest miss" in b)
    (tmp_path / "test_agent.py").write_text(blocks(ROOT / page, "python")[0])
    (tmp_path / "pytest.ini").write_text(blocks(README, "ini")[0])
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agent.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "arning" not in run.stdout + run.stderr
    printed = TIMES.sub("#", re.sub(r" +", " ", run.stdout))
    for line in shown.strip().splitlines():
        assert TIMES.sub("#", re.sub(r" +", " ", line)) in printed, run.stdout


def test_pages_that_name_a_mode_of_pytest_asyncio_name_what_keeps_it_quiet() -> None:
    pages = [README, *(ROOT / "docs").rglob("*.md"), *(ROOT / "fixtures").rglob("*.md")]
    naming = [page for page in pages if "asyncio_mode" in page.read_text()]
    assert len(naming) >= 3
    quiet = "asyncio_default_fixture_loop_scope"
    assert [page for page in naming if quiet not in page.read_text()] == []


def test_the_commands_named_in_the_readme_exist() -> None:
    text = README.read_text()
    envs = set(re.findall(r"tox -q -e ([\w-]+)", text))
    assert envs == {"conformance", "conformance-containerd", "py"}
    tox = (README.parent / "tox.ini").read_text()
    assert all(f"[testenv:{env}]" in tox for env in envs - {"py"})


def test_the_table_counts_the_cases_there_are() -> None:
    cases = load_cases()
    must = Counter(case.area for case in cases if case.level is Level.MUST)
    rows = re.findall(r"^\| (\w+) \| (\d+) \| 0 \| 0 \|", README.read_text(), re.M)
    assert {area: int(passed) for area, passed in rows} == {**must, "all": must.total()}


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
