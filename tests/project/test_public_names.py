"""The pages of the API show all that users may name: each class and function that a package offers
or gives back, with its public members, inherited ones too. `tox -e docs` holds the pages themselves
to that; here it is held to what users write, and to what griffe finds, of which pages are made."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest
from places import DOCS, ROOT
from public_names import expected, members, not_shown, offered, path
from source_pages import API

import fakecri

needs_griffe = pytest.mark.skipif(
    not importlib.util.find_spec("griffe"), reason="not installed: griffe (tox -e docs has it)"
)


def test_every_public_name_of_the_fake_is_expected_on_its_page() -> None:
    anchors = {anchor.rpartition(".")[2] for anchor in expected("fakecri")}
    for kind in (fakecri.FakeCRI, fakecri.ServedFake, fakecri.FakeNode):
        assert {name for name in dir(kind) if not name.startswith("_")} <= anchors
    assert {"on", "fails", "hangs", "call", "channel", "assert_called", "crash"} <= anchors


def test_classes_that_are_given_back_have_their_place() -> None:
    shown = {kind.__name__ for kind in offered("fakecri")}
    assert {"On", "Rule", "Call", "Container", "Sandbox", "ImageStore", "BlockingChannel"} <= shown
    assert {"AccessPolicy", "Users"} <= {kind.__name__ for kind in offered("fakekubeapi")}


def test_what_a_page_lacks_is_told() -> None:
    page = "".join(f'<h2 id="{name}">' for name in expected("fakekubeapi"))
    assert not_shown("fakekubeapi", page) == []
    lacking = page.replace("FakeApi.fails", "FakeApi.fail")
    assert [name.rpartition(".")[2] for name in not_shown("fakekubeapi", lacking)] == ["fails"]


@pytest.fixture(scope="module")
def found() -> Any:
    import griffe

    loader = griffe.GriffeLoader(search_paths=[ROOT, ROOT / "conformance", ROOT / "protos"])
    for package in {name.partition(".")[0] for name in API} | {"kubeobjects"}:
        loader.load(package)
    loader.resolve_aliases()
    return loader.modules_collection


@needs_griffe
@pytest.mark.slow
@pytest.mark.parametrize("package", API)
def test_griffe_finds_every_public_name(package: str, found: Any) -> None:
    lacking = []
    for thing in offered(package):
        shown = found[path(thing)]
        names = members(thing) if isinstance(thing, type) else []
        lacking += [f"{path(thing)}.{name}" for name in names if name not in shown.all_members]
    assert lacking == []


def test_names_beside_a_link_to_the_api_are_there() -> None:
    """`fails`, `hangs`, ... in a sentence or line that sends its reader there."""
    checked = 0
    for page in sorted(DOCS.rglob("*.md")):
        for line in page.read_text().splitlines():
            for package in re.findall(r"\]\([./]*api/(fakecri|fakekubeapi|simclock)\.md", line):
                known = {anchor.rpartition(".")[2] for anchor in expected(package)}
                words = re.findall(r"`(\w+)(?:\([^`]*\))?`", line)
                assert [word for word in words if word not in {*known, package}] == [], page
                checked += len(words)
    assert checked >= 4
