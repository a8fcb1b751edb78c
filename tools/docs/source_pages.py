"""The pages on which the kubelet is read: one for each module, with its source, and one for each
room that says what is there. What leads to them is a path and a name: `refkubelet/pleg/compute.py:
compute_events` is `api/refkubelet/pleg/compute.md#refkubelet.pleg.compute.compute_events`.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from kubelet_conformance.rule_places import CITED, Place, definitions

ROOT: Final = Path(__file__).parents[2]
READABLE: Final = ("refkubelet", "kubeobjects")
"""Packages with such pages."""
API: Final = {
    "fakecri": "The fake CRI runtime.",
    "fakekubeapi": "The fake API server.",
    "kubenodes": "Nodes for other people's tests.",
    "simclock": "Time, dice and names of tests.",
    "simclock.timewarp": "Go programs in a time that jumps.",
    "kubelet_conformance": "What cases are declared with.",
}
"""Packages with one page of what their `__all__` names."""
_HARNESS: Final = "kubelet_conformance.harness"
_PARTS: Final = ("api", "kubelet", "runtime", "machine", "cgroups", "plugins", "storage", "logins")
BESIDE: Final = {
    "kubelet_conformance": (
        f"{_HARNESS}.node.node.Node",
        *(f"{_HARNESS}.node.{part}.Node{part.capitalize()}" for part in _PARTS),
        *(f"{_HARNESS}.{module}" for module in ("manifests", "workload", "expect", "limits")),
    ),
    "fakekubeapi": (
        "fakekubeapi.httpx_transport.InProcessTransport",
        "fakekubeapi.kubelets.options.KubeletOptions",
    ),
    "fakecri": (
        "fakecri.proxy.RecordingProxy",
        "fakecri.cgroupfs.filesystem.CgroupFS",
        "fakecri.deviceplugin.plugin.FakeDevicePlugin",
        "fakecri.deviceplugin.in_process.InProcessPlugins",
    ),
}
"""What a page of such a package shows beside: what users import from its modules."""
SHOWN_FILES: Final = ("fixtures", "examples")
"""Directories whose files have pages, so that who has the site alone can read them."""
LANGUAGES: Final = {
    **{".yaml": "yaml", ".yml": "yaml", ".py": "python", ".sh": "sh", ".ts": "ts", ".md": ""},
}
NAMED: Final = re.compile(rf"(?<!\[)`((?:{'|'.join(READABLE)})/[\w/]+\.py)(?:: ([\w.]+))?`")
"""A module, or a function of one, as the pages write it."""
NO_LINKS: Final = re.compile(r"</?(?:pre|code|a|h\d)\b")
"""What begins or ends a part of a page in which rules are no links."""
OPTIONS: Final = """\
    options:
      show_source: true
      filters: []
      show_if_no_docstring: true
      show_root_heading: false
      show_root_toc_entry: false
"""


def page_of(path: str) -> str:
    """The page of a module.

    >>> page_of("refkubelet/pleg/compute.py"), page_of("refkubelet/pleg/__init__.py")
    ('api/refkubelet/pleg/compute.md', 'api/refkubelet/pleg/index.md')
    """
    return f"api/{path.removesuffix('.py').replace('__init__', 'index')}.md"


def is_there(page: str, anchor: str) -> bool:
    """Whether there is such a page, with the source of what the anchor names.

    >>> is_there("api/refkubelet/pleg/compute.md", "refkubelet.pleg.compute.compute_events")
    True
    >>> is_there("api/refkubelet/pleg/compute.md", "refkubelet.pleg.compute.no_such_thing")
    False
    """
    path = page.removeprefix("api/").removesuffix(".md")
    file = f"{path.removesuffix('index')}__init__.py" if path.endswith("/index") else f"{path}.py"
    if not path.startswith(READABLE) or not (ROOT / file).is_file():
        return False
    module = Place(file, "", 1).module
    return not anchor or anchor.removeprefix(f"{module}.") in defined_in(file)


def with_rules(html: str, pages: Mapping[str, str], source: str) -> str:
    """The HTML of the page `source` with links from the rules that it names to their texts, but in
    code. `pages`: rule -> the page that defines it.

    >>> with_rules("<p>As LIFE-001 says.</p><pre>LIFE-001</pre>", {"LIFE-001": "a"}, "api/x.md")
    '<p>As <a href="../../spec/a/#life-001">LIFE-001</a> says.</p><pre>LIFE-001</pre>'
    """
    home = posixpath.relpath("spec", source.removesuffix(".md").removesuffix("/index"))
    inside = 0
    made = []
    for part in re.split(r"(<[^>]*>)", html):
        if NO_LINKS.match(part):
            inside += -1 if part.startswith("</") else 1
        if not part.startswith("<") and not inside:
            part = CITED.sub(lambda match: _to_rule(match, pages, home), part)
        made.append(part)
    return "".join(made)


def _to_rule(match: re.Match[str], pages: Mapping[str, str], home: str) -> str:
    page = pages.get(match[1])
    return f'<a href="{home}/{page}/#{match[1].lower()}">{match[0]}</a>' if page else match[0]


def relative(path: str, source: str, anchor: str = "") -> str:
    """The way to a module's page from the page `source`."""
    return posixpath.relpath(page_of(path), posixpath.dirname(source) or ".") + anchor


def link(place: Place, source: str) -> str:
    """A place with its line, as a link from the page `source`, if there is a page with its source.

    >>> link(Place("refkubelet/pleg/compute.py", "compute_events", 30), "spec/cri.md")[:40]
    '[`pleg/compute.py:30 compute_events`](..'
    """
    text = f"`{place.path.removeprefix('refkubelet/')}:{place.line} {place.name}".rstrip() + "`"
    if not place.path.startswith(READABLE):
        return text
    anchor = f"#{place.module}.{place.name}" if place.name else ""
    return f"[{text}]({relative(place.path, source, anchor)})"


def linked(markdown: str, source: str) -> str:
    """The page with links from the modules and functions that it names to their source. Raises
    ValueError for a function that the module has not got.

    >>> linked("See `refkubelet/pleg/compute.py`.", "index.md")
    'See [`refkubelet/pleg/compute.py`](api/refkubelet/pleg/compute.md).'
    """

    def to_source(match: re.Match[str]) -> str:
        path, name = match[1], match[2] or ""
        names = defined_in(path)
        if name and name not in names:
            raise ValueError(f"{source}: {path} defines no {name}")
        anchor = f"#{Place(path, name, 1).module}.{name}" if name else ""
        return f"[{match[0]}]({relative(path, source, anchor)})"

    return NAMED.sub(to_source, markdown)


@cache
def defined_in(path: str) -> frozenset[str]:
    """What a module defines. Raises OSError if there is none."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(place.name for _, place in definitions(path, tree))


def file_page(path: str) -> str:
    """The page of a file or of a directory of `SHOWN_FILES`; "" for others.

    >>> file_page("fixtures/bugs/104648.yaml"), file_page("fixtures/bugs"), file_page("tox.ini")
    ('files/fixtures/bugs/104648.yaml.md', 'files/fixtures/bugs/index.md', '')
    """
    if path.partition("/")[0] not in SHOWN_FILES or path.endswith(".md"):
        return ""
    return f"files/{path}/index.md" if (ROOT / path).is_dir() else f"files/{path}.md"


def file_pages() -> Iterator[tuple[str, str]]:
    """The pages of files by their paths, with their texts. The search leaves them out."""
    for top in SHOWN_FILES:
        for path in sorted([ROOT / top, *(ROOT / top).rglob("*")]):
            name = str(path.relative_to(ROOT))
            known = path.is_dir() or path.suffix in LANGUAGES
            if known and "__pycache__" not in name and (page := file_page(name)):
                text = _list_of(path) if path.is_dir() else _text_of(path)
                yield page, f"---\nsearch: {{exclude: true}}\n---\n# {name}\n\n{text}"


def _list_of(directory: Path) -> str:
    """What is in a directory, each a link to its page."""
    inside = (file for file in sorted(directory.iterdir()) if file.name != "__pycache__")
    links = [
        f"- [{file.name}]({file.name}{'/index' if file.is_dir() else ''}.md)"
        for file in inside
        if file.suffix != ".md"
    ]
    return "\n".join(links) + "\n"


def _text_of(file: Path) -> str:
    """A file, and how one comes by it."""
    top = file.relative_to(ROOT).parts[0]
    ways = [f"`kubelet-conformance copy {top}` copies it out of the package."]
    if file.parent.name in ("bugs", "stories"):
        run = f"kubelet-conformance run --id {file.stem}"
        ways.append(f"`{run}` plays it, `{run} --kubelet PATH --time jump` on a kubelet of yours.")
    text = file.read_text()
    return f"{' '.join(ways)}\n\n````{LANGUAGES[file.suffix]}\n{text}````\n"


def pages() -> Iterator[tuple[str, str]]:
    """Each page by its path, with its text."""
    yield from file_pages()
    for package in READABLE:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = str(file.relative_to(ROOT))
            yield page_of(path), _page(path)


def _page(path: str) -> str:
    module = Place(path, "", 1).module
    text = f"# {module}\n\n::: {module}\n{OPTIONS}"
    if path.endswith("__init__.py"):
        text += _inside(ROOT / path)
    return text


def _inside(head: Path) -> str:
    """What is in a folder: its modules and folders, each with its first sentence."""
    lines = []
    for file in sorted([*head.parent.glob("*.py"), *head.parent.glob("*/__init__.py")]):
        if file == head:
            continue
        name = str(file.relative_to(head.parent))
        page = name.removesuffix(".py").replace("__init__", "index") + ".md"
        shown = name.removesuffix("/__init__.py").removesuffix(".py")
        said = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split())
        first = re.split(r"(?<=\.) (?=[A-Z`])", said, maxsplit=1)[0]
        lines.append(f"- [{shown}]({page}): {first}")
    return "\n## Inside\n\n" + "\n".join(lines) + "\n" if lines else ""
