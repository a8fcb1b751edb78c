"""From a question to the function that answers it: two links, and no search. The page is as the
site has it, with what unfolds below rules."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache

import pytest
import rule_folds
import source_pages
from places import DOCS
from rules_in_tree import look

from kubelet_conformance.rule_places import Place

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)+)\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
QUESTIONS = re.findall(r"^\| (.+\?) \| (.+) \|$", (DOCS / "index.md").read_text(), re.M)
ANSWERS = {
    "What happens when a liveness probe fails, and how long does it take?": (
        "kuberuntime.decisions.actions.kill_reason"
    ),
    "Why does my static pod not come back?": "pod_workers.start_order.may_start",
    "In what order are pods evicted for disk?": "eviction.ranking.disk_key",
}
STORIES = sorted(path.name for path in (DOCS / "stories").glob("*.md") if path.stem != "index")


@cache
def page(source: str) -> str:
    """A page as Markdown, with what the hook of the site adds to it."""
    text = (DOCS / source).read_text()
    if source.startswith("spec/"):
        text = rule_folds.unfolded(text, source, look_once(), [])
    return source_pages.linked(text, source)


look_once = cache(look)


def links(text: str, source: str) -> Iterator[tuple[str, str]]:
    """Where the links of a text of that page lead: page and anchor."""
    for _, target, anchor in LINK.findall(text):
        if ":" not in target:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
            yield (path if target else source), anchor


def functions(text: str, source: str) -> list[str]:
    """The functions that a text leads to, by their names below refkubelet. A link into the source
    that leads to nothing is an error."""
    reached = []
    for path, anchor in links(text, source):
        if not path.startswith(tuple(f"api/{package}/" for package in source_pages.READABLE)):
            continue
        assert source_pages.is_there(path, anchor), f"{source}: {path}#{anchor} leads to nothing"
        module = path.removeprefix("api/").removesuffix(".md").removesuffix("/index")
        name = anchor.removeprefix(module.replace("/", ".")).lstrip(".")
        if Place(path, name, 1).is_function:
            reached.append(anchor.removeprefix("refkubelet."))
    return reached


def rule(source: str, anchor: str) -> str:
    """The text below an anchor of a page of rules, up to the next one; the whole of a story."""
    if source.startswith("stories/"):
        return page(source)
    _, there, after = page(source).partition(f'<a id="{anchor}"></a>')
    assert there, f"no rule {anchor} in {source}"
    return after.partition('<a id="')[0]


@pytest.mark.parametrize(("question", "answer"), QUESTIONS)
def test_a_question_leads_to_a_function(question: str, answer: str) -> None:
    rules = list(links(answer, "index.md"))  # the first link
    assert rules
    for source, anchor in rules:
        assert functions(rule(source, anchor), source)  # the second


def test_the_questions_that_people_ask_lead_to_the_functions_that_decide_them() -> None:
    asked = dict(QUESTIONS)
    for question, answer in ANSWERS.items():
        reached = [
            function
            for source, anchor in links(asked[question], "index.md")
            for function in functions(rule(source, anchor), source)
        ]
        assert answer in reached


@pytest.mark.parametrize("story", STORIES)
def test_a_story_leads_to_its_functions(story: str) -> None:
    """One link; the story is on the first page, or on a page that this one leads to."""
    source = f"stories/{story}"
    assert len(functions(page(source), source)) >= 2
    first = {path for path, _ in links(page("index.md"), "index.md")} | {"index.md"}
    second = [path for path in first if path.endswith(".md") and not path.startswith("api/")]
    assert source in {path for start in second for path, _ in links(page(start), start)}


def test_a_link_to_a_function_that_is_gone_is_noticed() -> None:
    gone = "[x](../api/refkubelet/pleg/compute.md#refkubelet.pleg.compute.gone)"
    with pytest.raises(AssertionError, match="leads to nothing"):
        functions(gone, "spec/cri.md")
    with pytest.raises(
        ValueError, match=r"stories/x\.md: refkubelet/pleg/compute\.py defines no g"
    ):
        source_pages.linked("`refkubelet/pleg/compute.py: gone`", "stories/x.md")


def test_every_link_below_every_rule_leads_to_something() -> None:
    for path in sorted((DOCS / "spec").glob("*.md")):
        source = f"spec/{path.name}"
        functions(page(source), source)
