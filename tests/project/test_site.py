"""The documentation holds together: every page has its place in the site, every link leads
somewhere, every rule has an anchor. `tox -e docs` builds it with warnings as errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import source_pages
import yaml
from places import ROOT

from kubelet_conformance.rule_texts import DEFINED, rules_in

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


def nav(entries: Any) -> Iterator[str]:
    """The pages that a part of the navigation names."""
    for entry in entries:
        value = entry if isinstance(entry, str) else next(iter(entry.values()))
        yield from nav(value) if isinstance(value, list) else [value]


def test_every_page_has_its_place_in_the_site() -> None:
    named = list(nav(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    made = [name for name in named if name.startswith("api/")]
    pages = [str(page.relative_to(DOCS)) for page in PAGES]
    assert sorted(named) == sorted([*pages, *made])
    assert made == [
        *(f"api/{package}/index.md" for package in source_pages.READABLE),
        *(f"api/{package}.md" for package in source_pages.API),
    ]


def slugs(page: Path) -> set[str]:
    """The anchors of a page: of its headings, as GitHub and mkdocs make them, and of rules."""
    text = FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    plain = (re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", title) for title in titles)
    made = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in plain}
    return made | {rule.lower() for rule in DEFINED.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_to_pages_and_headings_that_there_are(page: Path) -> None:
    made = {DOCS / "api" / f"{name}.md" for name in source_pages.API}
    wrong = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        target, _, anchor = link.partition("#")
        if ":" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        relative = str(file.relative_to(DOCS)) if file.is_relative_to(DOCS) else ""
        if file in made or source_pages.is_there(relative, anchor):
            continue
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in slugs(file)):
            wrong.append(link)
    assert wrong == []


def test_every_rule_is_defined_once_so_its_anchor_is_its_own() -> None:
    pages = [page for page in PAGES if page.parent.name == "spec"]
    rules = [rule.id for page in pages for rule in rules_in(page.stem, page.read_text())]
    assert len(rules) > 600
    assert [rule for rule in set(rules) if rules.count(rule) > 1] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_list_has_an_empty_line_before_it(page: Path) -> None:
    """Without one it is a list on GitHub and none on the site."""
    lists = re.findall(r"^[^-#|\s].*\n- .*", FENCE.sub("", page.read_text()), re.M)
    assert lists == []


def test_fixtures_and_examples_have_pages_that_links_lead_to() -> None:
    made = dict(source_pages.file_pages())
    for top in source_pages.SHOWN_FILES:
        for file in (ROOT / top).rglob("*"):
            if file.suffix != ".md" and "__pycache__" not in file.parts:
                page = source_pages.file_page(str(file.relative_to(ROOT)))
                assert page in made
                assert file.is_dir() or file.read_text() in made[page]
    lists = [page for page in made if page.endswith("/index.md")]
    for page in lists:
        links = re.findall(r"\]\(([^)]+)\)", made[page])
        assert links
        here = page.removesuffix("index.md")
        assert [link for link in links if here + link not in made] == []
    assert "kubelet-conformance run --id 104648" in made["files/fixtures/bugs/104648.yaml.md"]


def test_a_link_to_a_fixture_leads_to_its_page() -> None:
    pytest.importorskip("mkdocs", reason="the hook is mkdocs's, which `tox -e docs` brings")
    import docs_hooks

    found = docs_hooks.OUTSIDE.match("[104648](../fixtures/bugs/104648.yaml)")
    assert found is not None
    assert docs_hooks._outside(found, "kubelets.md") == (
        "[104648](files/fixtures/bugs/104648.yaml.md)"
    )


PICTURE = re.compile(
    r'<picture>\n<source media="\(prefers-color-scheme: dark\)" srcset="images/([\w-]+)-dark.png">'
    r'\n<img src="images/([\w-]+)-light.png" alt="[^"]{20,}">\n</picture>'
)


def test_every_picture_is_there_light_and_dark_and_is_small() -> None:
    shown = {"timeline", "first-page"}  # in the README, where PyPI knows one mode only
    for page in PAGES:
        text = page.read_text()
        pairs = PICTURE.findall(text)
        assert len(pairs) == text.count("<picture>") == text.count("<img "), page
        assert all(dark == light for dark, light in pairs)
        shown |= {light for _, light in pairs}
    there = {file.name for file in (DOCS / "images").iterdir()}
    assert there == {f"{name}-{mode}.png" for name in shown for mode in ("light", "dark")}
    assert max(file.stat().st_size for file in (DOCS / "images").iterdir()) < 150_000


def test_the_first_page_shows_a_picture_code_and_what_it_prints_and_where_the_code_is() -> None:
    text = (DOCS / "index.md").read_text()
    table = text.index("| you want | read |")
    for part in ("<!-- where the code is", "<picture>", "```python", "nearest miss"):
        assert text.index(part) < table


def test_where_the_code_is_stands_in_one_place() -> None:
    """pyproject.toml has it; tools/docs/docs_hooks.py tells the site."""
    settings = (ROOT / "mkdocs.yml").read_text()
    assert not re.search(r"^(repo_url|repo_name|edit_uri|site_url):", settings, re.M)
    assert "github.com" not in settings
