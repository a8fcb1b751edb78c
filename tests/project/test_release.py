"""What a release and the CI of this project are made of says the same everywhere."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml
from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOX = (ROOT / "tox.ini").read_text()
NEWER = {"pytest": "pytest-asyncio of the extra `test` wants a newer one than the suite does"}
"""Libraries that are not tested at their lower bound, and why."""
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def bounds() -> dict[str, str]:
    """Library -> the highest of the lower bounds that pyproject.toml has for it."""
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [
        *PROJECT["project"]["dependencies"],
        *(one for group in extras.values() for one in group),
    ]
    found: dict[str, str] = {}
    for one in wanted:
        match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", one)
        if match is None:
            assert one.startswith("refkubelet["), f"{one}: wanted a lower bound"
            continue
        name = normal(match[1])
        found[name] = max(found.get(name, "0"), match[2], key=numbers)
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def constraints(name: str) -> dict[str, str]:
    lines = (ROOT / "constraints" / name).read_text().splitlines()
    pairs = (re.match(r"([\w.-]+)==([\w.]+)", line) for line in lines if not line.startswith("#"))
    return {normal(pair[1]): pair[2] for pair in pairs if pair}


def test_the_lowest_versions_are_those_of_pyproject() -> None:
    lowest = constraints("lowest.txt")
    wrong = {
        name: (bound, lowest.get(name))
        for name, bound in bounds().items()
        if numbers(lowest.get(name, "0"))[: len(numbers(bound))] != numbers(bound)
    }
    assert wrong.keys() == NEWER.keys(), wrong


def test_the_constraints_of_ci_have_every_library_that_is_wanted() -> None:
    newest = constraints("ci.txt")
    assert [name for name in bounds() if name not in newest] == []
    low = [name for name, bound in bounds().items() if numbers(newest[name]) < numbers(bound)]
    assert low == []


def test_fragments_of_changes_have_names_that_the_change_log_knows() -> None:
    kinds = {one["directory"] for one in PROJECT["tool"]["towncrier"]["type"]}
    for file in (ROOT / "changes").iterdir():
        if file.name in ("README.md", ".template.md"):
            continue
        name, kind, suffix = file.name.rsplit(".", 2)
        assert (kind in kinds, suffix) == (True, "md"), file.name
        assert name
        assert file.read_text().strip(), f"{file.name} is empty"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_name_environments_that_there_are(file: Any) -> None:
    text = file.read_text()
    content = yaml.safe_load(text)
    assert content["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in content["jobs"].values())
    named = {env for line in re.findall(r"tox -e ([\w,-]+)", text) for env in line.split(",")}
    named |= set(re.findall(r"^ +- ([\w-]+) -- ", text, re.M))
    known = set(re.findall(r"^\[testenv:([\w-]+)\]", TOX, re.M)) | {"py"}
    assert named - known == set()
    used = re.findall(r"uses: (\S+)", text)
    assert [
        one for one in used if one != "./" and not re.fullmatch(r"actions/[\w-]+@v\d+", one)
    ] == []


def test_the_tests_run_on_every_python_that_is_promised() -> None:
    names = PROJECT["project"]["classifiers"]
    promised = [name.rpartition(" ")[2] for name in names if re.search(r":: 3\.\d+$", name)]
    matrix = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    assert matrix["jobs"]["tests"]["strategy"]["matrix"]["python"] == promised
    assert f"py{{{','.join(one.replace('.', '') for one in promised)}}}" in TOX


@pytest.mark.parametrize(
    "example", ["action.yml", "examples/ci/github.yml", "examples/ci/gitlab.yml"]
)
def test_options_in_the_action_and_the_examples_are_there(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from kubelet_conformance.cli import main

    with pytest.raises(SystemExit):
        main(["run", "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) | {"--junitxml", "--quiet"}
    text = (ROOT / example).read_text()
    assert set(re.findall(r"(?<![\w-])--[a-z-]+", text)) - known == set()


def test_the_inputs_that_examples_give_are_those_of_the_action() -> None:
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    job = yaml.safe_load((ROOT / "examples/ci/github.yml").read_text())["jobs"]["kubelet"]
    own = [s["with"] for s in job["steps"] if "refkubelet" in s.get("uses", "")]
    workflow = yaml.safe_load((ROOT / ".github/workflows/conformance.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    own += [step["with"] for step in steps if step.get("uses") == "./"]
    assert len(own) == 3
    assert {name for given in own for name in given} - inputs.keys() == set()
    text = (ROOT / "action.yml").read_text()
    assert [name for name in inputs if f"inputs.{name}" not in text] == []
