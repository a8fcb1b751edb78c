"""Flags and configuration of one's own for the kubelet under test, as whole runs and in words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubelet_conformance.harness.kubelets.base import NodePaths
from kubelet_conformance.harness.kubelets.own_options import (
    FLAGS,
    OptionRefused,
    check_flag,
    read_config,
)
from kubelet_conformance.harness.kubelets.process import ProcessKubelet
from kubelet_conformance.harness.kubelets.program import external
from kubelet_conformance.harness.node.parts import kubelet_config
from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem
from kubelet_conformance.harness.runs.real_parts import RealEnvironment
from kubelet_conformance.registry import load_cases

GIVES_UP = """\
#!/bin/sh
[ "$1" = --version ] && echo Kubernetes v1.36.2 && exit
printf '%s\\n' "$@" > {seen}/flags
for flag; do case $flag in --config=*) cp "${{flag#*=}}" {seen}/config;; esac; done
echo 'Flag --old has been deprecated, use the file' >&2
echo 'E1129 19:21:58.055913 31272 run.go:72] "command failed" err="no \\"such\\" flag: --x"' >&2
exit 1
"""


def script(tmp_path: Path) -> Path:
    """A kubelet that notes what it was given, and ends as one does that knows a flag not."""
    program = tmp_path / "kubelet"
    program.write_text(GIVES_UP.format(seen=tmp_path))
    program.chmod(0o755)
    return program


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubelet_conformance.cli", "run", "--id", "stop-minimum"]
    line = [*command, "--kubelet", str(script(tmp_path)), "--runtime", "fake-socket", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)


def test_the_kubelet_gets_them_and_what_it_says_of_a_wrong_one_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("kind: KubeletConfiguration\nsyncFrequency: 20s\n")
    flags = ["--kubelet-flag=--v=4", "--kubelet-flag=--x"]
    done = run(tmp_path, *flags, "--kubelet-config", "own.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert f'\n--kubelet {tmp_path}/kubelet: no "such" flag: --x\n' in done.stdout
    assert "outcomes.Exit" not in done.stdout + done.stderr
    assert "deprecated" not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    collected = next(n for n, line in enumerate(lines) if line.startswith("collected"))
    assert lines[collected + 1] == "trying the kubelet: it is started once, without pods"
    assert {"--v=4", "--x"} <= set((tmp_path / "flags").read_text().splitlines())
    assert json.loads((tmp_path / "config").read_text())["syncFrequency"] == "20s"


def test_refkubelet_as_a_process_says_it_as_shortly(tmp_path: Path) -> None:
    words = ["--kubelet", "refkubelet-process", "--kubelet-flag=--no-such"]
    said = run(tmp_path, *words).stdout
    assert "\n--kubelet refkubelet-process: unrecognized arguments: --no-such\n" in said


def test_with_q_nothing_is_said_but_the_problem(tmp_path: Path) -> None:
    assert "trying" not in run(tmp_path, "-q").stdout


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--root-dir=/x", "--root-dir is set by the suite"),
        ("--read-only-port=1", "--read-only-port is set by the suite"),
        ("v=4", "wanted one flag with its value, such as --kubelet-flag=--v=4"),
        ("--v 4", "wanted one flag with its value"),
    ],
)
def test_a_flag_that_cannot_be_given_is_told(flag: str, said: str) -> None:
    with pytest.raises(OptionRefused, match=said):
        check_flag(flag)
    with pytest.raises(EnvironmentProblem, match=said):
        Choice(kubelet="refkubelet-process", runtime="fake-socket", kubelet_flags=(flag,)).check()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file"),
        ("- a", "wanted the fields of a KubeletConfiguration"),
        ("kind: Pod", "wanted the fields of a KubeletConfiguration"),
        ("a: [", "no YAML"),
        ("port: 1\nstaticPodPath: /x", "port, staticPodPath: set by the suite"),
        ("maxPodz: 3", r"maxPodz: unknown field; did you mean maxPods\?"),
        ("logging: {verbosty: 4}", r"logging.verbosty: unknown field; did you mean verbosity\?"),
    ],
)
def test_a_configuration_that_cannot_be_given_is_told(
    text: str | None, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(OptionRefused, match=rf"--kubelet-config .*own\.yaml: {said}"):
        read_config(file)


def test_every_flag_that_the_suite_gives_is_refused(tmp_path: Path) -> None:
    """So that a new one is not forgotten."""
    paths = NodePaths(tmp_path)
    paths.login_config.touch()
    program = external(Path("/usr/bin/kubelet"), node_ip="192.0.2.1")
    kubelet = ProcessKubelet(
        program, paths, "unix:///x.sock", node_name="node", kubeconfig=tmp_path / "kubeconfig"
    )
    given = {re.match(r"--([a-z-]+)=", word) for word in kubelet._command()}
    names = {found[1] for found in given if found}
    assert {"root-dir", "node-ip", "kubeconfig", "image-credential-provider-bin-dir"} <= names
    assert names <= FLAGS


def test_a_kubelet_in_this_process_takes_none() -> None:
    with pytest.raises(EnvironmentProblem, match="choose --kubelet refkubelet-process, or"):
        Choice(kubelet_flags=("--v=4",)).check()


def test_the_line_that_repeats_a_case_has_them() -> None:
    choice = Choice(
        kubelet="/k", runtime="fake-socket", kubelet_flags=("--v=4", "--a=b c"),
        kubelet_config="own.yaml",
    )  # fmt: skip
    words = "--kubelet-flag=--v=4 '--kubelet-flag=--a=b c' --kubelet-config own.yaml"
    assert choice.repeat("one").endswith(words)


def test_a_case_may_set_what_the_user_sets_otherwise(tmp_path: Path) -> None:
    """Of feature gates, one by one."""
    from kubelet_conformance.harness.runs.real_parts import _config

    own = {"syncFrequency": "20s", "maxPods": 3, "featureGates": {"A": True, "B": True}}
    case = next(case for case in load_cases() if case.node_config.get("featureGates"))
    config = _config(case, NodePaths(tmp_path), own)
    gates = {**own["featureGates"], **case.node_config["featureGates"]}  # type: ignore[dict-item]
    assert {**config["featureGates"], **gates} == config["featureGates"]
    assert config["maxPods"] == case.node_config.get("maxPods", 3)
    alone = kubelet_config(NodePaths(tmp_path), case.node_config)
    assert config.keys() == alone.keys() | own.keys()


def test_a_script_in_jumping_time_is_told_what_to_do_instead(tmp_path: Path) -> None:
    choice = Choice(kubelet=str(script(tmp_path)), time="jump")
    with pytest.raises(EnvironmentProblem, match=r"is a script; .*--kubelet-flag.*fake-socket"):
        choice.check()


def test_the_file_of_the_user_is_read_for_each_case(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("maxPods: 3\n")
    choice = Choice(kubelet_config=str(tmp_path / "own.yaml"))
    assert RealEnvironment(choice, tmp_path)._own_config() == {"maxPods": 3}
