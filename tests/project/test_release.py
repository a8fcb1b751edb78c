"""What a release and the CI of this project are made of says the same everywhere."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import yaml
from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOX = (ROOT / "tox.ini").read_text()
NEWER = {"pytest": "pytest-asyncio of the extra `test` wants a newer one than the suite does"}
"""Libraries that are not tested at their lower bound, and why."""
URL = PROJECT["project"]["urls"]["Repository"]
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


def repository_tool() -> SimpleNamespace:
    return loaded(ROOT / "tools" / "repository.py")


def test_one_place_says_where_the_project_lies() -> None:
    assert repository_tool().main(["--check"]) == 0
    urls = PROJECT["project"]["urls"].values()
    assert {url.split("/refkubelet")[0] for url in urls} == {URL.rpartition("/")[0]}


def test_nothing_else_spells_the_repository() -> None:
    """Whatever has an owner before the project's name is among the files that are written."""
    spelled = re.compile(
        r"(?<![\w.$/-])(?:https?://)?(?:[\w.-]+/){1,2}refkubelet(?:@|\.git\b|/(?:blob|raw|issues|tree)/)"
    )
    folders = (".github", "docs", "examples", "image", "tools")
    places = [*ROOT.glob("*.*"), *(f for name in folders for f in (ROOT / name).rglob("*.*"))]
    found = {
        str(file.relative_to(ROOT)): match[0]
        for file in places
        if file.is_file() and file.suffix not in (".png", ".pyc")
        for match in [spelled.search(file.read_text())]
        if match
    }
    assert found.keys() <= set(repository_tool().FILES), found
    assert len(found) == 3


def test_a_repository_is_written_wherever_it_stands() -> None:
    written = repository_tool().written
    before = "see https://github.com/a/refkubelet/issues\n- uses: b/refkubelet@main\n- uses: ./\n"
    after = "see https://github.com/z/refkubelet/issues\n- uses: z/refkubelet@v1.36.1\n- uses: ./\n"
    assert written(before, "https://github.com/z/refkubelet", "1.36.1") == after


LOOKED_UP: Final = frozenset(
    {"fakecri", "fakekubeapi", "kubecri", "kubelet_conformance", "kubeobjects", "refkubelet"}
    | {"simclock", "kubenodes"}
)
"""Names at the top that no other distribution on PyPI had as its name on 2026-11-30."""
OTHERS: Final = frozenset({"conformance", "timewarp", "fakeapi"})
"""Names that we would like, and that others have there."""


def test_no_name_at_the_top_is_somebody_elses() -> None:
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    top = {package.rpartition("/")[2] for package in packages}
    assert top == LOOKED_UP, "look the new name up on PyPI, then add it to LOOKED_UP"
    assert top.isdisjoint(OTHERS)
    claimed = {top: owners for top, owners in packages_distributions().items() if top in LOOKED_UP}
    assert {name for owners in claimed.values() for name in owners} <= {"refkubelet"}


def test_a_trial_of_the_release_installs_every_extra() -> None:
    trials = loaded(ROOT / ".ci" / "release" / "installs.py").TRIALS
    tried = {extra for trial in trials for extra in trial.extras.split(",")}
    assert tried == {"", *PROJECT["project"]["optional-dependencies"]}
    assert any(trial.from_sdist for trial in trials)


WHEEL: Final = "refkubelet-1.36.0-py3-none-any.whl"


def test_files_of_a_release_are_looked_into() -> None:
    files = loaded(ROOT / ".ci" / "release" / "files.py")
    names = dict.fromkeys(files.IN_WHEEL, 10)
    assert list(files.wrong_content(WHEEL, names, 10)) == []
    odd = {**names, "tests/conftest.py": 1, "fakecri/__pycache__/a.pyc": 1, "big.json": 99}
    del odd["fakecri/py.typed"]
    assert list(files.wrong_content(WHEEL, odd, 10**8)) == [
        f"{WHEEL}: fakecri/py.typed is missing",
        f"{WHEEL}: tests/conftest.py is in it",
        f"{WHEEL}: fakecri/__pycache__/a.pyc is no source",
        f"{WHEEL} has 100000000 bytes, more than 3700000; the largest: big.json, "
        f"{files.IN_WHEEL[0]}, {files.IN_WHEEL[1]}",
    ]


@pytest.mark.parametrize(
    ("page", "nowhere"),
    [
        ("[a](https://a.example/b) ![c](http://d.example/e.png) [f](#g)", []),
        ("[a](docs/a.md) and [b](https://b.example)", ["docs/a.md"]),
        ('<img alt="a" src="docs/a.png"> <a href="https://b.example">', ["docs/a.png"]),
    ],
)
def test_links_to_nowhere_on_the_page_of_pypi_are_noticed(
    page: str, nowhere: list[str], tmp_path: Path
) -> None:
    files = loaded(ROOT / ".ci" / "release" / "files.py")
    wheel = tmp_path / WHEEL
    with zipfile.ZipFile(wheel, "w") as content:
        fields = "".join(f"{field}: some\n" for field in files.FIELDS)
        content.writestr("refkubelet-1.36.0.dist-info/METADATA", f"{fields}\n{page}\n")
    told = [f"{WHEEL}: its page on PyPI has a link to nowhere, {target}" for target in nowhere]
    assert list(files.wrong_metadata(wheel)) == told


def test_the_readme_as_pypi_shows_it_has_no_such_links(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text() + '<img src="docs/timeline.png">'
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for one in hook["substitutions"]:
        page = re.sub(one["pattern"], one["replacement"], page)
    targets = re.findall(r"(?:\]\(|src=\")([^)\"]+)", page)
    assert [target for target in targets if not target.startswith("http")] == []
    assert [t for t in targets if t.endswith(".png") and "/raw/main/" not in t] == []


def test_a_change_log_without_a_fragment_is_noticed(tmp_path: Path) -> None:
    version = loaded(ROOT / ".ci" / "release" / "version.py")
    (tmp_path / "changes").mkdir()
    (tmp_path / "pyproject.toml").write_text('version = "1.36.0.dev0"\n')
    (tmp_path / "CHANGELOG.md").write_text("## 1.36.0 (2026-12-01)\n\n- One thing\n  is new.\n")
    assert list(version.wrong_change_log(tmp_path, ["One thing is new.\n"])) == []
    (tmp_path / "changes" / "other.fixed.md").write_text("Two.\n")
    assert list(version.wrong_change_log(tmp_path, ["Two.\n"])) == [
        "CHANGELOG.md does not say: Two.",
        "changes/ still has other.fixed.md",
    ]


def loaded(file: Path) -> SimpleNamespace:
    """A script beside our packages, with those beside it."""
    kept, sys.path[:0] = list(sys.path), [str(file.parent)]
    try:
        return SimpleNamespace(**runpy.run_path(str(file)))
    finally:
        sys.path[:] = kept


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
