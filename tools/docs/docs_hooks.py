"""What mkdocs cannot know: what unfolds below each rule, links into the tree, the pages of the API.

mkdocs calls the functions by their names (mkdocs.yml, `hooks`).
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))  # those beside it, also with PYTHONSAFEPATH

import public_names
import rule_folds
import source_pages
from rules_in_tree import ROOT, Found, look

OUTSIDE: Final = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
OPTIONS: Final = """\
    options:
      inherited_members: true
      show_if_no_docstring: true
      filters: ["!^_"]
"""
"""How pages of the API show each class."""
OVERVIEW: Final = "<!-- overview, made when the site is built -->"
CODE: Final = "<!-- where the code is, made when the site is built -->"
PICTURE: Final = re.compile(r'\b(src|srcset)="(?=images/)')
SOURCE: Final = '<details class="mkdocstrings-source"'
UNSEARCHED: Final = " data-search-exclude"
LARGEST_RULES: Final = 500_000
"""Bytes of a page of rules: such a page is there in a second."""
LARGEST_SEARCH: Final = 4_000_000
"""Bytes of what each visitor's browser reads for its search."""


def repository() -> str:
    """Where the code is, as pyproject.toml says; "" where it does not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project.get("urls", {}).get("Repository", ""))


def on_config(config: Any, **_: Any) -> None:
    """The link to the code at the top of each page."""
    if repository():
        config.repo_url, config.repo_name = repository(), config.site_name


def on_pre_build(**_: Any) -> None:
    """Forget what the tree said when the site was built before (`mkdocs serve`)."""
    for kept in (_tree, _runs, _contracts, source_pages.defined_in):
        kept.cache_clear()


@cache
def _tree() -> Found:
    return look()


@cache
def _runs() -> list[rule_folds.Run]:
    return rule_folds.runs_of(json.loads((ROOT / "results" / "conformance.json").read_text()))


@cache
def _contracts() -> list[rule_folds.Run]:
    kept = json.loads((ROOT / "results" / "verified.json").read_text())
    return rule_folds.contracts_of(kept, _tree())


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What unfolds below rules, and the overview of them; where pictures and the code are; links
    from functions that a page names to their source, and paths instead of links to files that are
    no pages. Raises PluginError for a link to nothing."""
    source = page.file.src_uri
    if source.startswith("spec/"):
        markdown = rule_folds.unfolded(markdown, source, _tree(), [*_runs(), *_contracts()])
    markdown = PICTURE.sub(rf'\1="{"../" * page.url.count("/")}', markdown)
    where = f"The code: <{repository()}>." if repository() else ""
    markdown = markdown.replace(CODE, where)
    if OVERVIEW in markdown:
        markdown = markdown.replace(OVERVIEW, rule_folds.overview(_tree(), _runs()))
    markdown = OUTSIDE.sub(lambda match: _outside(match, source), markdown)
    return markdown if source.startswith("api/") else source_pages.linked(markdown, source)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Links from the rules that docstrings name to their texts. The search finds what docstrings
    say, not the source."""
    source = page.file.src_uri
    if not source.startswith("api/"):
        return html
    html = html.replace(SOURCE, SOURCE + UNSEARCHED)
    pages = {rule.id: rule.page for rule in _tree().rules}
    return source_pages.with_rules(html, pages, source)


def on_post_build(config: Any, **_: Any) -> None:
    """Raises PluginError when a page of rules, or the index of the search, is too large."""
    site = Path(config.site_dir)
    limits = dict.fromkeys(site.glob("spec/*/index.html"), LARGEST_RULES)
    limits[site / "search" / "search_index.json"] = LARGEST_SEARCH
    for file, most in limits.items():
        if file.stat().st_size > most:
            size = file.stat().st_size
            raise PluginError(f"{file.relative_to(site)} has {size} bytes, wanted at most {most}")


def _outside(match: re.Match[str], source: str) -> str:
    """A link to a file outside of docs/: to the page that shows it, or its text and its path."""
    text, target = match[1], match[2]
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), target))
    if path.startswith("docs/"):
        return match[0]
    if not (ROOT / path).exists():
        raise PluginError(f"{source}: the link to {target} leads to nothing")
    if path.endswith(".py") and path.startswith(source_pages.READABLE):
        return f"[{text}]({source_pages.relative(path, source)})"
    if page := source_pages.file_page(path):
        return f"[{text}]({posixpath.relpath(page, posixpath.dirname(source) or '.')})"
    return text if path in text else f"{text} (`{path}`)"


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add a page for the API of each package, and one for each module that is to be read."""
    sys.path[:0] = [str(ROOT), str(ROOT / "protos")]
    for package, what in source_pages.API.items():
        names = [public_names.path(thing) for thing in public_names.offered(package)]
        text = f"# {package}\n\n{what}\n\n" + "\n".join(f"::: {n}\n{OPTIONS}" for n in names)
        text += "".join(f"\n::: {name}\n" for name in source_pages.BESIDE.get(package, ()))
        files.append(File.generated(config, f"api/{package}.md", content=text))
    for path, text in source_pages.pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> None:
    """Raises PluginError for a page of the API without a name that its package offers."""
    package = page.file.src_uri.removeprefix("api/").removesuffix(".md")
    in_api = page.file.src_uri == f"api/{package}.md" and package in source_pages.API
    if in_api and (lacks := public_names.not_shown(package, output)):
        raise PluginError(f"{page.file.src_uri} does not show {', '.join(lacks)}")
