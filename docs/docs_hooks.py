"""What mkdocs cannot know: the anchor of each rule, links into the tree, the pages of the API.

mkdocs calls the functions by their names (mkdocs.yml, `hooks`).
"""

from __future__ import annotations

import inspect
import posixpath
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT: Final = Path(__file__).parents[1]
DEFINED: Final = re.compile(r"\*\*([A-Z]{2,5}-\d{3})\*\*")
ROW: Final = re.compile(r"^\| ([A-Z]{2,5}-\d{3})(?= \|)", re.M)
OUTSIDE: Final = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
API: Final = {
    "fakecri": "The fake CRI runtime.",
    "fakekubeapi": "The fake API server.",
    "simclock": "Time, dice and names of tests.",
    "timewarp": "Go programs in a time that jumps.",
    "conformance": "What cases are declared with.",
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Anchors where rules are defined, links from the table of rules to them, and paths instead of
    links to files that are no pages. Raises PluginError for a link to nothing."""
    source = page.file.src_uri
    if source.startswith("spec/"):
        markdown = anchored(markdown)
    if source == "rules.md":
        markdown = linked(markdown, homes())
    return OUTSIDE.sub(lambda found: _outside(found, source), markdown)


def anchored(markdown: str) -> str:
    """The page with an anchor at each rule.

    >>> anchored("- **LIFE-143** MUST")
    '- <a id="life-143"></a>**LIFE-143** MUST'
    """
    return DEFINED.sub(lambda m: f'<a id="{m[1].lower()}"></a>{m[0]}', markdown)


def homes() -> dict[str, str]:
    """Rule -> the page that defines it."""
    pages = sorted((ROOT / "docs" / "spec").glob("*.md"))
    return {rule: page.name for page in pages for rule in DEFINED.findall(page.read_text())}


def linked(markdown: str, pages: dict[str, str]) -> str:
    """The table of rules with links to where they are defined.

    >>> linked("| LIFE-001 | MUST |", {"LIFE-001": "lifecycle.md"})
    '| [LIFE-001](spec/lifecycle.md#life-001) | MUST |'
    """

    def link(found: re.Match[str]) -> str:
        rule = found[1]
        page = pages.get(rule)
        return f"| [{rule}](spec/{page}#{rule.lower()})" if page else found[0]

    return ROW.sub(link, markdown)


def _outside(found: re.Match[str], source: str) -> str:
    """The text of a link with the path of the file it leads to, if that is outside of docs/."""
    text, target = found[1], found[2]
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), target))
    if path.startswith("docs/"):
        return found[0]
    if not (ROOT / path).exists():
        raise PluginError(f"{source}: the link to {target} leads to nothing")
    return text if path in text else f"{text} (`{path}`)"


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add a page for the API of each package, of what its `__all__` names."""
    sys.path[:0] = [str(ROOT), str(ROOT / "protos")]
    for package, what in API.items():
        page = f"# {package}\n\n{what}\n\n" + "\n".join(f"::: {one}\n" for one in public(package))
        files.append(File.generated(config, f"api/{package}.md", content=page))
    return files


def public(package: str) -> list[str]:
    """Where the classes and functions are that a package offers, as mkdocstrings finds them."""
    module = import_module(package)
    found = []
    for name in module.__all__:
        thing = inspect.unwrap(getattr(module, name))
        if inspect.isclass(thing) or inspect.isfunction(thing):
            found.append(f"{thing.__module__}.{thing.__qualname__}")
    return list(dict.fromkeys(found))
