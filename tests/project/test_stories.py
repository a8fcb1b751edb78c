"""Stories (docs/stories) are what a run shows: `tools/docs/stories.py --check`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import stories
from places import DOCS, ROOT

PAGES = DOCS / "stories"
STORY = "container-crashes"


def test_every_story_has_a_scenario_and_the_index_names_it() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    assert sorted(pages) == stories.stories()
    assert len(pages) >= 10
    index = (PAGES / "index.md").read_text()
    assert set(re.findall(r"^\| \[[^]]+\]\(([\w-]+)\.md\)", index, re.M)) == pages


@pytest.mark.parametrize("name", stories.stories())
def test_a_story_is_what_a_run_shows(name: str) -> None:
    assert stories.main(["--check", name]) == 0


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A story that a test may change."""
    monkeypatch.setattr(stories, "PAGES", tmp_path)
    return Path(shutil.copy(PAGES / f"{STORY}.md", tmp_path))


@pytest.mark.parametrize("shown", [r"^\| \d.*\n", r"^1\. .*\n"])
def test_a_story_that_lacks_what_was_seen_or_ran_is_stale_until_it_is_written_again(
    copy: Path, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    current = copy.read_text()
    copy.write_text(re.sub(shown, "", current, count=1, flags=re.M))
    assert stories.main(["--check", STORY]) == 1
    assert f"python tools/docs/stories.py {STORY}" in capsys.readouterr().err
    assert stories.main([STORY]) == 0
    assert copy.read_text() == current


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("; PLEG-003 ", "; EVIC-081 ", "no function ran whose docstring cites EVIC-081"),
        ("; PLEG-003 ", "; NO-999 ", "no function ran whose docstring cites NO-999"),
        ("end: the-first-crash", "end: another", "wanted markers for the marks the-first-crash,"),
    ],
)
def test_a_story_cannot_cite_what_did_not_run(
    copy: Path, before: str, after: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    copy.write_text(copy.read_text().replace(before, after))
    assert stories.main(["--check", STORY]) == 2
    assert told in capsys.readouterr().err


def test_a_scenario_that_refkubelet_does_not_pass_is_no_story(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stories, "SCENARIOS", tmp_path)
    text = (ROOT / "fixtures" / "stories" / f"{STORY}.yaml").read_text()
    (tmp_path / f"{STORY}.yaml").write_text(text.replace('"20s..32s"', '"1s..2s"'))
    assert stories.main(["--check", STORY]) == 2
    assert "The delays do not double" in capsys.readouterr().err
