"""docs/promises.md is true: its tables are those of the code, its exit codes are seen."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import promises
import pytest
from places import ROOT

import refkubelet.cli
from fakecri import FakeCRI
from fakekubeapi import FakeApi
from kubelet_conformance import pytest_plugin

TEXT = promises.PAGE.read_text()
CODES = set(re.findall(r"^\| (?:`([\w -]+)`|all) \| (\d+) \|", TEXT, re.M))
MAINS: dict[str, Callable[[Sequence[str]], int]] = {
    **promises.COMMANDS,
    "refkubelet": refkubelet.cli.main,
}


def test_the_tables_are_those_of_the_code() -> None:
    assert promises.current(TEXT) == TEXT, "rewrite it with: python tools/docs/promises.py"


def test_what_is_promised_is_there_and_said_to_be_public() -> None:
    for module, names in promises.promised().items():
        face = importlib.import_module(module)
        assert [name for name in names if not hasattr(face, name)] == [], module
    assert {"FakeCRI", "CriError", "serve"} <= promises.promised()["fakecri"]
    assert "Invocation" in promises.promised()["fakecri.fakesh"]


def test_classes_of_the_faces_have_public_members_that_say_what_they_do() -> None:
    """Attributes of classes are promised, so each has a docstring."""
    silent = [
        f"{kind.__name__}.{name}"
        for kind in (FakeCRI, FakeApi)
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name))
        if not getattr(kind, name).__doc__
    ]
    assert silent == []


def test_every_command_and_every_option_is_found() -> None:
    found = dict(promises.commands())
    assert {"fakecri ctl kill", "fakekubeapi serve", "kubelet-conformance diff"} <= found.keys()
    assert {"--listen", "--script"} <= set(found["fakecri serve"])
    assert found["fakecri"] == ["--version"]


@pytest.mark.parametrize(
    ("command", "words", "code"),
    [
        ("fakecri", "--nothing", 2),
        ("fakecri", "check none.yaml", 2),
        ("fakecri", "ctl --control unix:///nowhere.sock calls", 2),
        ("fakecri", "check --schema", 0),
        ("fakekubeapi", "serve --kubernetes 1.2", 2),
        ("refkubelet", "run --nothing", 2),
        ("refkubelet", "run --config none.yaml", 2),
        ("kubelet-conformance", "list --area backoff", 0),
        ("kubelet-conformance", "list --area none", 4),
        ("kubelet-conformance", "explain none-such-thing-1", 4),
    ],
)
def test_commands_end_with_the_codes_of_the_page(
    command: str, words: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        ended: Any = MAINS[command](words.split())
    except SystemExit as exit_of_argparse:
        ended = exit_of_argparse.code
    assert ended == code
    assert ("", str(code)) in CODES or (command, str(code)) in CODES


def test_the_codes_of_a_run_are_those_of_the_page_and_of_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = {int(code) for command, code in CODES if command == "kubelet-conformance run"}
    assert run == {1, pytest_plugin.EXIT_ENVIRONMENT, pytest_plugin.EXIT_INCONCLUSIVE}
    with pytest.raises(SystemExit):
        promises.COMMANDS["kubelet-conformance"](["--help"])
    told = capsys.readouterr().out.partition("exit codes:")[2]
    assert {int(code) for code in re.findall(r"(?:^|,|\n)\s*(\d) ", told)} == run | {0, 4}


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (row,) = re.findall(r"^\| the \*\*extras\*\* by name: plain, (.+?) \|", TEXT, re.M)
    assert set(re.findall(r"`(\w+)`", row)) == extras.keys() - {"test"}
