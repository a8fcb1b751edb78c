"""What the package brings is in reach of who has the package alone: by its ID, or copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubelet_conformance import packaged
from kubelet_conformance.cli import main
from kubelet_conformance.packaged import BROUGHT, SCENARIOS, area_of, brought, missing, shipped
from kubelet_conformance.scenarios.files import named_cases


def test_every_scenario_has_its_area_and_an_id_of_its_own() -> None:
    files = shipped()
    assert {area_of(file) for file in files} == set(SCENARIOS)
    assert len({file.stem for file in files}) == len(files) > 100
    assert area_of(Path("bugs/104648.yaml")) == ""


def test_an_installed_package_has_them_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged, "PACKAGE", tmp_path / "site" / "kubelet_conformance")
    story = tmp_path / "site" / "kubelet_conformance" / "fixtures" / "stories" / "mine.yaml"
    story.parent.mkdir(parents=True)
    story.touch()
    assert shipped() == [story]
    assert (area_of(story), missing([Path("fixtures/stories/mine.yaml")])) == (
        "stories",
        [
            "fixtures/stories/mine.yaml: no such file; the package has it among its fixtures: "
            "kubelet-conformance run --id mine"
        ],
    )


@pytest.mark.parametrize("name", BROUGHT)
def test_all_of_it_is_copied_and_nothing_is_overwritten(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["copy", name]) == 0
    assert f"{name} of the package are in {name}" in capsys.readouterr().out
    there = {
        file.relative_to(brought(name))
        for file in brought(name).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    copied = {file.relative_to(name) for file in Path(name).rglob("*") if file.is_file()}
    assert copied == there
    assert main(["copy", name]) == 4
    assert f"{name} is there already" in capsys.readouterr().err
    assert main(["copy", name, "elsewhere"]) == 0
    assert Path("elsewhere").is_dir()


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("fixtures/bugs/104648.yaml", "kubelet-conformance run --id 104648"),
        ("fixtures/stories/kubelet-restarts.yaml", "kubelet-conformance run --id kubelet-restarts"),
        ("fixtures/manifests/no.yaml", "`kubelet-conformance copy fixtures`"),
        ("fixtures/bugs", "`kubelet-conformance copy fixtures`"),
        ("examples/test_mine.py", "`kubelet-conformance copy examples`"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_file_that_pages_name_and_that_is_not_here_is_told_how_to_come_by(
    command: str,
    file: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command, file]) in (2, 4)
    said = capsys.readouterr().err
    assert f"{file}: no such file; " in said
    assert told in said


def test_a_name_that_is_nobodys_has_no_advice() -> None:
    assert missing([Path("mine.yaml")]) == ["mine.yaml: no such file"]


def test_which_words_are_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    words = ["--area", "eviction", "-q", "104648", "there", "-k", "name", "x.yaml", "stop-minimum"]
    assert named_cases(words) == ["104648", "stop-minimum"]


def test_a_story_runs_by_its_name(tmp_path: Path) -> None:
    results = tmp_path / "run.json"
    assert main(["run", "-q", "static-pod-edited", "--results", str(results)]) == 0
    assert '"stories"' in results.read_text()


def test_stories_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--area", "stories"]) == 0
    assert "stories/liveness-probe-fails  MUST" in capsys.readouterr().out


def test_a_copy_of_the_fixtures_may_be_checked_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["copy", "fixtures"]) == 0
    for directory in SCENARIOS:
        assert main(["check", f"fixtures/{directory}"]) == 0, capsys.readouterr().err
    assert main(["run", "-q", "fixtures/stories/static-pod-edited.yaml"]) == 0
    Path("mine.yaml").write_text(Path("fixtures/bugs/104648.yaml").read_text())
    assert main(["check", "mine.yaml"]) == 2
    assert "is the ID of a fixture of this package" in capsys.readouterr().err
