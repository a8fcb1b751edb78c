"""`fakecri check`, and the JSON schema that is published."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from places import ROOT
from plain_words import plain

from fakecri.cli import main
from fakecri.scripts.script import ScriptError, read_script
from fakecri.serving.check import schema_text
from kubeobjects.strict.values import parse_yaml

SCHEMA: dict[str, Any] = json.loads((ROOT / "fakecri/script.schema.json").read_text())
PAGE = (ROOT / "docs/fakecri/script-file.md").read_text()


def script(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "script.yaml"
    file.write_text(text)
    return file


def test_a_good_file_is_silent_or_tells_what_it_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = script(
        tmp_path,
        "runtime: {name: mine}\nimages: [a:1]\nbehaviors: [{container: web, exits: {code: 1}}]\n"
        "faults: [{on: Version, fails: {}}]\n",
    )
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["check", "-v", str(file)]) == 0
    assert capsys.readouterr().out.replace(f"{file}: ", "").splitlines() == [
        "runtime: name mine",
        "images: a:1",
        "containers (container='web'): exits(code=1)",
        "Version (anything) fails UNKNOWN",
    ]


def test_all_mistakes_of_all_files_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = script(tmp_path, "image: []\nfaults:\n- {on: Version, fails: {code: OK}}\n")
    good, late = tmp_path / "good.yaml", tmp_path / "late.yaml"
    good.write_text("images: []\n")
    late.write_text(
        "faults:\n- {on: Version, holds_name: {}}\n- {on: ListImages, holds_name: {}}\n"
    )
    assert main(["check", str(file), str(good), str(late), str(tmp_path / "none.yaml")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0].rpartition("/")[2] for line in lines] == [
        "script.yaml:1:1",
        "script.yaml:3:31",
        "late.yaml:2:3",
        "late.yaml:3:3",
        "none.yaml",
    ]


def test_a_script_for_a_proxy_has_faults_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = script(tmp_path, "node: {cpus: 1}\nfaults: [{on: Version, hangs: {}}]\nprograms: []\n")
    assert main(["check", "--proxy", str(file)]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 2
    assert "script.yaml:1:7: node: a proxy takes only faults" in said
    file.write_text("faults: [{on: Version, hangs: {}}]\n")
    assert main(["check", "--proxy", "-v", str(file)]) == 0
    assert "Version (anything) hangs" in capsys.readouterr().out
    file.write_text("faults: [{on: RunPodSandbox, holds_name: {}}]\n")
    assert main(["check", "--proxy", str(file)]) == 2
    assert "only" in capsys.readouterr().err


def test_the_published_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--schema"]) == 0
    assert capsys.readouterr().out == schema_text()
    assert json.loads(schema_text()) == SCHEMA, "fakecri check --schema >fakecri/script.schema.json"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert main(["check"]) == 2


BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
EXAMPLES = [file.read_text() for file in (ROOT / "examples").glob("*.yaml")]


@pytest.mark.parametrize("text", [BLOCKS[0], *EXAMPLES])
def test_the_schema_takes_what_the_page_shows(text: str) -> None:
    jsonschema.validate(plain(parse_yaml(text, "page")), SCHEMA)


@pytest.mark.parametrize(
    "document",
    [
        {"image": []},
        {"node": {"memory": "1Gb"}},
        {"behaviors": [{"exits": {"code": 256}}]},
        {"behaviors": [{"exits": {"after_s": "soon"}}]},
        {"faults": [{"on": "Versoin", "hangs": {}}]},
        {"faults": [{"hangs": {}}]},
        {"faults": [{"on": "Version"}]},
        {"faults": [{"on": "Version", "hangs": {}, "fails": {}}]},
        {"behaviors": [{"pod": "a"}]},
        {"behaviors": [{"exits": []}]},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(document: dict[str, Any]) -> None:
    with pytest.raises(ScriptError):
        read_script(parse_yaml(json.dumps(document), "document"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)
