"""The first block of every page works in the install that the page names.

A page with blocks says above the first one in which: `<!-- first block: plain -->`, with the name
of an extra in place of `plain`, and behind a comma what a user has beside it (`plain, pytest`); or
why it cannot run: `<!-- first block: none: it wants a real containerd -->`. That the page lets
people install what its marker says is checked, too. A block `pip install`, drawings and what was
printed do not count. A block of Python is a test file, one of YAML a script of fakecri, all others
are commands; files with a title are written before.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Final

import pytest
from installs import brought, install
from places import DOCS, ROOT
from test_tutorials import run

MARKER: Final = re.compile(r"<!-- first block: (.+?) -->\n", re.S)
FENCE: Final = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.S | re.M)
NOT_RUN: Final = ("text", "mermaid")
NONE: Final = "none: "


@dataclass(frozen=True, slots=True)
class Block:
    """The first block of a page, with the files before it, and the lines it shall print."""

    language: str
    text: str
    files: tuple[tuple[str, str], ...] = ()
    said: str = ""


def first_block(page: str) -> Block | None:
    """The first block that can be run; None: the page has none."""
    files: list[tuple[str, str]] = []
    blocks = list(FENCE.finditer(page))
    for found, after in zip_longest(blocks, blocks[1:]):
        language, title, text = found.groups()
        if title:
            files.append((title, text))
        elif language not in NOT_RUN and not text.startswith("pip install"):
            said = after[3] if after and after[1] == "text" else ""
            return Block(language, text, tuple(files), said)
    return None


def pages() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield from sorted(DOCS.rglob("*.md"))


BLOCKS: Final = {
    str(path.relative_to(ROOT)): (block, MARKER.findall(text))
    for path in pages()
    if (block := first_block(text := path.read_text()))
}


def test_every_page_with_a_block_says_where_it_runs_or_why_it_does_not() -> None:
    assert [name for name, (_, markers) in BLOCKS.items() if len(markers) != 1] == []
    assert sum(not markers[0].startswith(NONE) for _, markers in BLOCKS.values()) >= 25


@pytest.mark.parametrize("name", BLOCKS)
def test_the_page_says_how_to_install_what_its_marker_names(name: str) -> None:
    _, (marker,) = BLOCKS[name]
    named = re.findall(r"pip install (?:'\.\[([\w,]+)\]'|\.)", (ROOT / name).read_text())
    extra = marker.partition(",")[0].replace("plain", "")
    assert marker.startswith(NONE) or not named or extra in named


RUN: Final = {
    name: (block, tuple(markers[0].split(", ")))
    for name, (block, markers) in BLOCKS.items()
    if markers and not markers[0].startswith(NONE)
}
PYTHON: Final = sorted({words for block, words in RUN.values() if block.language == "python"})
OTHERS: Final = [name for name, (block, _) in RUN.items() if block.language != "python"]
Install = Callable[[tuple[str, ...]], Path]


@pytest.fixture(scope="module")
def commands_of(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """The directory of the commands of an install, made when it is first asked for."""

    @cache
    def made(words: tuple[str, ...]) -> Path:
        extra, *beside = words
        extras = [] if extra == "plain" else [extra]
        return install(tmp_path_factory.mktemp("install") / extra, extras, beside)

    return made


def carry_out(block: Block, commands: Path, directory: Path) -> None:
    """Run the block in `directory`, beside the fixtures of the tree. Raises AssertionError
    with its output when it fails or does not print what it shall."""
    (directory / "fixtures").symlink_to(ROOT / "fixtures")
    for file, text in block.files:
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(text)
    script = block.text
    if block.language == "yaml":
        (directory / "page.yaml").write_text(block.text)
        script = "fakecri check page.yaml"
    for program in ("kubectl", "curl"):
        if not shutil.which(program):
            script = re.sub(rf"^{program} (?:[^'\n]|'[^']*')*\n", "", script, flags=re.M)
    environment = {name: value for name, value in os.environ.items() if "PY" not in name}
    environment |= {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    done = run(script, directory, environment)
    missing = [line for line in block.said.splitlines() if line.strip() not in done.stdout]
    assert (done.returncode, missing) == (0, []), f"{script}\n{done.stdout}"


@pytest.mark.slow
@pytest.mark.parametrize("words", PYTHON, ids=", ".join)
def test_first_blocks_of_python_pass(
    words: tuple[str, ...], commands_of: Install, tmp_path: Path
) -> None:
    """Those of one install in one run of pytest."""
    files = []
    for block, wanted in RUN.values():
        if block.language == "python" and wanted == words:
            title = re.match(r"# (test_\w+\.py)\n", block.text)
            assert title, f"a block without a file name: {block.text[:60]}"
            files.append((title[1], block.text))
    assert len(dict(files)) == len(files)
    command = "pytest -q -p no:cacheprovider -W error"
    if words[0] in ("pytest", "nodes") or "pytest-asyncio" in words:
        command += " -o asyncio_default_fixture_loop_scope=function"  # it warns of its change
    said = (
        f"{sum(len(re.findall(r'^(?:async )?def test_', text, re.M)) for _, text in files)} passed"
    )
    carry_out(Block("sh", command, tuple(files), said), commands_of(words), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_first_block_runs(name: str, commands_of: Install, tmp_path: Path) -> None:
    block, words = RUN[name]
    carry_out(block, commands_of(words), tmp_path)


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (Block("sh", "echo so; exit 3"), "so"),
        (Block("sh", "echo so", said="2 passed"), "2 passed"),
        (Block("yaml", "behaviors: [{container: web, exist: {}}]"), "unknown key 'exist'"),
        (Block("sh", "refkubelet run"), "pip install 'refkubelet[kubelet]'"),
        (Block("sh", "python -c 'import lightkube'"), "No module named 'lightkube'"),
        (Block("sh", "pytest --version"), "pytest"),
    ],
)
def test_a_block_that_fails_in_a_plain_install_is_noticed(
    block: Block, told: str, commands_of: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # not the commands of the environment that tests
    with pytest.raises(AssertionError, match=re.escape(told)):
        carry_out(block, commands_of(("plain",)), tmp_path)


def test_a_plain_install_brings_what_it_needs_and_no_extra() -> None:
    plain = brought([])
    assert {"refkubelet", "grpcio", "protobuf", "aiohttp", "yarl", "msgspec"} <= plain
    assert plain.isdisjoint({"lightkube", "pytest", "rich", "prometheus-client", "cryptography"})
    assert {"pytest", "pytest-asyncio", "time-machine"} <= brought(["pytest"])
    assert {"lightkube", "httpx2", "mfusepy", "pytest", "rich"} <= brought(["conformance"])


def test_pages_with_tests_lead_to_the_lines_that_keep_pytest_asyncio_from_warning() -> None:
    """Pages of a folder have them on the page that leads there."""
    line = "asyncio_default_fixture_loop_scope = function"
    having = {str(page.relative_to(ROOT)) for page in pages() if line in page.read_text()}
    assert {"docs/fakecri.md", "docs/fakekubeapi.md"} <= having
    lacking = [
        name
        for name, (block, words) in RUN.items()
        if (block.language == "python" and "pytest" in words)
        and name not in having
        and not name.startswith("docs/fakecri/")
        and "(fakecri.md)" not in (text := (ROOT / name).read_text())
        and "(../fakecri.md)" not in text
    ]
    assert lacking == []
