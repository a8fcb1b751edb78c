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
        ("pods:", "kubelet: {maxPod: 5}\npods:",
         "3:10: kubelet: maxPod: unknown field; did you mean maxPods?"),
        ("pods:", "kubelet: {maxPods: -5}\npods:",
         "3:10: kubelet: invalid configuration: maxPods (--max-pods) -5 must not be"),
        ("pods:", "kubelet: {evictionHard: {memory.availabl: 5%}}\npods:",
         "3:10: kubelet: unsupported eviction signal memory.availabl"),
        ("pods:", "kubelet: {featureGates: {EventedPleg: true}}\npods:",
         "3:10: kubelet: featureGates: no gate 'EventedPleg'; did you mean EventedPLEG?"),
        ("  - mark: applied", "  - kubelet: {do: restart, set: {maxPod: 5}}",
         "7:14: steps[1].kubelet: set: maxPod: unknown field; did you mean maxPods?"),
        ("  - mark: applied", "  - machine: {memory: 9Gi}",
         "7:14: steps[1].machine: memory: the node has 8589934592 in all, so 9663676416 is never"),
        ("  - mark: applied", "  - machine: {disk: 1Gi, of: images}",
         "7:14: steps[1].machine: of: no step `disks` before gives the images one"),
        ("  - mark: applied", "  - machine: {pids: 10, of: images}",
         "7:29: steps[1].machine.of: wanted disk or inodes beside it"),
        ("  - mark: applied", "  - api: up",
         "7:5: steps[1]: api: up: nothing has begun that it could end"),
        ("  - mark: applied", "  - edit: {pod: web, set: {spec: {contaners: []}}}",
         "7:11: steps[1].edit: set.spec: no field 'contaners' in PodSpec; did you mean"),
        ("  - mark: applied", "  - edit: {pod: web, set: {metadata: {name: web}}}",
         "7:11: steps[1].edit: set: the pod has all of this already"),
        ("  - mark: applied", "  - file: {path: ../x, text: y}",
         "7:11: steps[1].file: path: wanted one below the directory; got '../x'"),
        ("  - mark: applied", "  - file: {path: x}",
         "7:11: steps[1].file: wanted exactly one of text, remove: true"),
        ("  - mark: applied", "  - delete: {pod: web, grace: 500ms}",
         "7:31: steps[1].delete.grace: wanted whole seconds"),
        ("  - mark: applied", "  - oom: false", "7:10: steps[1].oom: wanted true"),
        ("  - mark: applied", "  - unplug: vendor.example/widget",
         "7:5: steps[1]: no step `plug_in` before has 'vendor.example/widget'"),
        ("  - mark: applied", "  - login: {name: cloud}",
         "7:12: steps[1].login: no step `logins` before has 'cloud'"),
        ("  - mark: applied", "  - ask: {label: pods, path: /pods}",
         "7:10: steps[1].ask: no condition `answer` looks at 'pods'"),
        ("  - mark: applied", "  - wait: {answer: {to: pods, status: 200}}",
         "7:20: steps[1].wait.answer: no step `ask` before has 'pods'"),
        ("  - mark: applied", "  - wait: {answer: {ask: {path: pods}, status: 200}}",
         "7:26: steps[1].wait.answer.ask: path: wanted one that begins with /; got 'pods'"),
        ("  - mark: applied", "  - wait: {answer: {ask: {path: /pods}}}",
         "7:20: steps[1].wait.answer: wanted at least one of: status, text, headers, has"),
        ("  web: {}", "  web: {does: {main: {replies: {command: check}}}}",
         "4:8: pods.web: does.main.replies: no probe or hook executes 'check'"),
        ("pod: web}", "pod: web, request: {containerid: x}}",
         "9:12: expect[0].calls: request: no field 'containerid' in StartContainerRequest; did"),
        ("method: StartContainer, pod: web}", "method: ListImages, pod: web}",
         "9:12: expect[0].calls: pod: ListImages is not about one pod"),
        ("method: StartContainer, pod: web}", "method: StopContainer, container: mian}",
         "9:12: expect[0].calls: no container 'mian' in any pod; did you mean main?"),
        ("pod: web}", "pod: web, code: UNKNOWN, failed: false}",
         "9:12: expect[0].calls: code: calls that did not fail have none"),
        ("pod: web}", "pod: web, count: 0}",
         "9:5: expect[0]: this holds at once, before anything could happen: say `during`"),
        ("calls: {method: StartContainer, pod: web}", "pod: {name: web, phase: Runing}",
         "9:10: expect[0].pod: phase: 'Runing' is none of Pending, Running,"),
        ("calls: {method: StartContainer, pod: web}", "pod: {name: web, has: {}}",
         "9:10: expect[0].pod: has: wanted something in it"),
        ("calls: {method: StartContainer, pod: web}", "pod: {name: web, has: {spec: {nod: x}}}",
         "9:10: expect[0].pod: has.spec: no field 'nod' in PodSpec"),
        ("calls: {method: StartContainer, pod: web}",
         "pod: {name: web, there: false, phase: Failed}",
         "9:10: expect[0].pod: there: what is not there has no phase"),
        ("calls: {method: StartContainer, pod: web}", "pod: {name: web, conditions: {Ready: Fals}}",
         "9:42: expect[0].pod.conditions.Ready: wanted 'True', 'False', 'Unknown' or null"),
        ("calls: {method: StartContainer, pod: web}",
         "container: {pod: web, has: {restartCount: [1]}}",
         "9:16: expect[0].container: has.restartCount: wanted no list"),
        ("calls: {method: StartContainer, pod: web}", "history: {pod: web, has_not: [Runing]}",
         "9:14: expect[0].history: has_not: 'Runing' is none of Pending,"),
        ("calls: {method: StartContainer, pod: web}", "files: {path: 'pods/{uid}', count: 0}",
         "9:12: expect[0].files: path: wanted `pod`, whose {uid} and {name} it has"),
        ("calls: {method: StartContainer, pod: web}",
         "requests: {method: DELETE, pod: web, body: {grace: 0}, since: applied}",
         "9:15: expect[0].requests: body: no field 'grace' in DeleteOptions"),
        ("    says: It was not started", "    says: It was not started\n    bug: true",
         "9:5: expect[0]: bug: wanted `affected`, which says who has the bug"),
        ("pods:", "affected: {since: 1.30, fixed: 1.29, source: x}\npods:",
         "3:32: affected.fixed: wanted a version after 1.30"),
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
    """What cannot be read, and what is wrong in the rest, with the places of the file."""
    wrong = GOOD.replace("title:", "titel:").replace("mark: applied", "advance: 5x")
    wrong = wrong.replace("pods:", "kubelet: {maxPod: 5}\npods:").replace(
        "method: StartContainer, pod: web}", "method: StartContainer, pod: wbe, request: {x: 1}}"
    )
    wrong = wrong.replace("  web: {}", "  web: {spec: {nodeNam: x}}\n  two: {spec: 5}")
    places = [error.split(": ")[0] for error in errors_of(tmp_path, wrong)]
    assert places == [
        *("my-bug.yaml:1:1", "my-bug.yaml:2:1", "my-bug.yaml:3:10", "my-bug.yaml:5:8"),
        *("my-bug.yaml:6:15", "my-bug.yaml:9:14", "my-bug.yaml:11:12", "my-bug.yaml:11:12"),
    ]


LIMIT = "  web: {spec: {containers: [{name: main, resources: {limits: {%s}}}]}}"


def test_a_manifest_that_kubelets_refuse_is_a_mistake(tmp_path: Path) -> None:
    wrong = GOOD.replace("  web: {}", LIMIT % "memory: 64MiB")
    (error,) = errors_of(tmp_path, wrong)
    assert error.startswith(
        "my-bug.yaml:4:8: pods.web: the kubelet refuses this manifest: spec.containers[0].resources"
        ".limits.memory: '64MiB' is no quantity"
    )
    assert error.endswith("; if that is wanted, expect `pod: {name: web, there: false}`")
    refused = "  - {pod: {name: web, there: false}, says: It is a pod}\n"
    assert load_scenario(written(tmp_path, wrong + refused)).id == "my-bug"
    without_mirror = refused.replace("name: web,", "name: web, from: api,")
    assert error in errors_of(tmp_path, wrong + without_mirror)


@pytest.mark.parametrize(
    "step",
    [
        "plug_in: {resource: vendor.example/gpu, devices: [a]}",
        "patch_node: {set: {status: {capacity: {vendor.example/gpu: 2}}}, status: true}",
    ],
)
def test_a_resource_that_nothing_offers_is_a_mistake(tmp_path: Path, step: str) -> None:
    alone = GOOD.replace("  web: {}", LIMIT % "vendor.example/gpu: 1, cpu: 1")
    offered = alone.replace("  - apply: web", f"  - {step}\n  - apply: web")
    assert load_scenario(written(tmp_path, offered)).id == "my-bug"
    text = "no step `plug_in` offers it, and a kubelet takes no account of it"
    assert errors_of(tmp_path, alone) == (f"my-bug.yaml:4:8: pods.web: vendor.example/gpu: {text}",)
    of_no_status = offered.replace(", status: true", "")
    if of_no_status != offered:
        assert any(text in error for error in errors_of(tmp_path, of_no_status))
    mistyped = offered.replace("vendor.example/gpu: 1", "vendor.example/gpuu: 1")
    assert errors_of(tmp_path, mistyped) == (
        f"my-bug.yaml:4:8: pods.web: vendor.example/gpuu: {text}; did you mean vendor.example/gpu?",
    )


def test_the_id_of_a_fixture_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, GOOD.replace("id: my-bug", "id: 104648"))
    assert main(["check", str(file)]) == 2
    said = capsys.readouterr().err
    assert said == f"{file}:1:5: id: 104648 is the ID of a fixture of this package\n"


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
    assert lines[-1].endswith("gone.yaml: no such file")
    assert main(["check"]) == 2
    (tmp_path / "empty").mkdir()
    capsys.readouterr()
    assert main(["check", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.endswith("empty: a directory without scenarios (*.yaml)\n")
