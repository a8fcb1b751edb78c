"""Wrong scenarios: every mistake is told, with its place and what was wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubelet_conformance.cli import main
from kubelet_conformance.scenarios.reading import load_scenario, load_scenarios
from kubeobjects.strict.errors import ScriptError

GOOD = """\
id: my-bug
title: A pod never starts
pods:
  web: {}
steps:
  - apply: web
  - mark: applied
expect:
  - calls: {method: StartContainer, pod: web}
    says: It was not started
"""


def written(folder: Path, text: str, name: str = "my-bug.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def errors_of(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(ScriptError) as caught:
        load_scenario(written(folder, text))
    return tuple(error.replace(f"{folder}/", "") for error in caught.value.errors)


def test_the_good_one_is_good(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, GOOD)).id == "my-bug"


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        ("title:", "titel:", "1:1: key 'title' is missing, wanted a text"),
        ("title:", "titel:", "2:1: unknown key 'titel', wanted one of: id,"),
        ("  - mark: applied", "  - advance: 5x",
         "7:14: steps[1].advance: wanted seconds: 2, 1.5s, 500ms, 5m or 1h; got '5x'"),
        ("  - mark: applied", "  - machine: {memory: 5MB}",
         "7:23: steps[1].machine.memory: wanted bytes: 4096, 64Mi, 1Gi, ...; got '5MB'"),
        ("method: StartContainer", "method: StartContaner",
         "9:21: expect[0].calls.method: CRI v1 has no method 'StartContaner'; did you mean"),
        ("  - apply: web", "  - apply: wbe",
         "6:5: steps[0]: no pod 'wbe' in `pods`, which has: web; did you mean web?"),
        ("  - apply: web\n", "",
         "4:8: pods.web: no step makes this pod: wanted a step `apply` or `create` with it"),
        ("pod: web}", "pod: web, container: mian}",
         "9:12: expect[0].calls: no container 'mian' in pod web: main; did you mean main?"),
        ("pod: web}", "pod: web, since: aplied}",
         "9:12: expect[0].calls: since: no step before sets a mark 'aplied'; did you mean"),
        ("    says: It was not started\n", "",
         "9:5: expect[0]: key 'says' is missing, wanted the sentence that a failure prints"),
        ("pod: web}", 'pod: web, count: ">=0"}',
         "9:12: expect[0].calls: count: >=0 holds whatever happens"),
        ("pod: web}", "pod: web, count: 3..1}",
         "9:54: expect[0].calls.count: wanted the smaller end first; got '3..1'"),
        ("  - mark: applied", "  - fault: {on: StopContainer, brakes: {}}",
         "7:32: steps[1].fault: unknown key 'brakes', wanted one of: on,"),
        ("  - mark: applied", "  - fault: {on: StopContainer, pod: db, hangs: {}}",
         "7:12: steps[1].fault: pod: 'db' fits no pod of the scenario"),
        ("  - mark: applied", "  - fault: {on: ListContainers, holds_name: {}}",
         "7:12: steps[1].fault: ListContainers takes no name; wanted one of RunPodSandbox,"),
        ("  - mark: applied", "  - release: slow",
         "7:5: steps[1]: release: no fault before has the label 'slow'"),
        ("  - mark: applied", "  - kubelet: start",
         "7:5: steps[1]: kubelet: start: it runs already"),
        ("  - mark: applied", "  - create: web",
         "7:5: steps[1]: pod 'web' is both a static one and one of the API"),
        ("  web: {}", "  web: {spec: {nodeNam: x}}",
         '4:8: pods.web: Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
         'unknown field "spec.nodeNam"'),
        ("  web: {}", "  web: {does: {side: {exits: {}}}}",
         "4:15: pods.web.does: no container 'side' in the pod; it has main"),
        ("  - mark: applied", "  - wait: {never: {pod: {name: web}}, within: 3s}",
         "7:47: steps[1].wait.within: with `never`, wanted `during`"),
        ("  - mark: applied", "  - wait: {within: 3s}",
         "7:11: steps[1].wait: wanted exactly one of calls, order,"),
        ("pods:", "rules: [backoff]\npods:",
         "3:9: rules[0]: wanted a rule, such as BACK-003 or BACK-003.2; got 'backoff'"),
        ("pods:", "needs: [apis]\npods:",
         "3:9: needs[0]: wanted one of: api,"),
        ("pods:", "affected: {fixed: new, source: x}\npods:",
         "3:19: affected.fixed: wanted a version: 1.30 or 1.30.3; got 'new'"),
        ("id: my-bug", "id: My Bug",
         "1:5: id: wanted words of small letters and digits with dashes; got 'My Bug'"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, there: str, instead: str, told: str
) -> None:
    assert there in GOOD
    found = errors_of(tmp_path, GOOD.replace(there, instead, 1))
    assert [error for error in found if error.startswith(f"my-bug.yaml:{told}")], found


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    wrong = GOOD.replace("title:", "titel:").replace("mark: applied", "advance: 5x")
    assert len(errors_of(tmp_path, wrong)) == 3


def test_nothing_expected_is_a_mistake(tmp_path: Path) -> None:
    without = GOOD[: GOOD.index("expect:")]
    (error,) = errors_of(tmp_path, without)
    assert error == "my-bug.yaml:1:1: nothing is expected: wanted `expect` or `never`"


def test_what_is_no_yaml_is_told(tmp_path: Path) -> None:
    (error,) = errors_of(tmp_path, "id: [1\ntitle: x")
    assert error.startswith("my-bug.yaml:2:6: no valid YAML: ")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"^cannot read .*nowhere\.yaml: no such file"):
        load_scenario(tmp_path / "nowhere.yaml")


def test_two_files_with_one_id_are_a_mistake(tmp_path: Path) -> None:
    files = [written(tmp_path, GOOD), written(tmp_path, GOOD, "other.yaml")]
    with pytest.raises(ScriptError, match=r"other\.yaml:1:1: id: my-bug is already that of .*my-"):
        load_scenarios(files)


def test_check_tells_mistakes_and_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = written(tmp_path, GOOD, "good.yaml")
    assert main(["check", str(good)]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["check", "-v", str(good)]) == 0
    assert "my-bug: A pod never starts\n  2 steps, needs nothing\n" in capsys.readouterr().out
    wrong = written(tmp_path, GOOD.replace("apply: web", "apply: wbe"), "wrong.yaml")
    assert main(["check", str(wrong), str(tmp_path / "gone.yaml")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"{wrong}:4:8: pods.web: no step makes this pod")
    assert lines[1].startswith(f"{wrong}:6:5: steps[0]: no pod 'wbe'")
    assert lines[-1].endswith("gone.yaml: no such file or directory")
    assert main(["check"]) == 2
    (tmp_path / "empty").mkdir()
    capsys.readouterr()
    assert main(["check", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.endswith("empty: a directory without scenarios (*.yaml)\n")
