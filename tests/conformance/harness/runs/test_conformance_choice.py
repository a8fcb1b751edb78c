"""The options of a run: pairs that cannot run are refused in words, and a line repeats a case."""

import sys
from pathlib import Path
from typing import Any

import pytest

from kubelet_conformance.features import Feature
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem


@pytest.mark.parametrize(
    ("kubelet", "runtime", "text"),
    [
        ("refkubelet", "containerd", "choose --kubelet refkubelet-process"),
        ("refkubelet-process", "fake", "choose --runtime fake-socket"),
        ("refkubelet-process", "podman", "wanted fake, fake-socket, containerd or unix://"),
        ("/no/such/kubelet", "fake-socket", "no such program"),
        ("refkubelt", "fake", "no such program"),
        ("refkubelet-process", "unix:///no/such.sock", "/no/such.sock"),
    ],
)
def test_a_pair_that_cannot_run_is_told_in_words(kubelet: str, runtime: str, text: str) -> None:
    with pytest.raises(EnvironmentProblem, match=text.replace("/", "/")):
        Choice(kubelet=kubelet, runtime=runtime).check()


@pytest.mark.parametrize(
    ("runtime", "version", "text"),
    [
        ("containerd", "1.5", "containerd version '1.5' is not known; wanted 1.6, 1.7, 2.1"),
        ("fake-socket", "1.7", "only --runtime containerd has versions to choose"),
    ],
)
def test_a_containerd_version_that_cannot_be_had_is_told_in_words(
    runtime: str, version: str, text: str
) -> None:
    choice = Choice(kubelet="refkubelet-process", runtime=runtime, containerd_version=version)
    with pytest.raises(EnvironmentProblem, match=text):
        choice.check()


def test_at_least_one_case_at_a_time() -> None:
    choice = Choice(kubelet="refkubelet-process", runtime="fake-socket", jobs=0)
    with pytest.raises(EnvironmentProblem, match="--jobs 0: wanted 1 or more"):
        choice.check()


@pytest.mark.parametrize("latency", [-1.0, float("inf"), float("nan")])
def test_a_latency_that_cannot_be_is_told_in_words(latency: float) -> None:
    with pytest.raises(EnvironmentProblem, match=r"--latency .*: wanted a factor from 0"):
        Choice(latency=latency).check()


def test_a_repeat_line_holds_everything_that_matters() -> None:
    assert Choice(seed=7).repeat("x") == "kubelet-conformance run --id x --seed 7"
    slow = Choice(seed=7, latency=2.5).repeat("x")
    assert slow == "kubelet-conformance run --id x --seed 7 --latency 2.5"
    real = Choice(kubelet="refkubelet-process", runtime="containerd")
    assert real.repeat("x") == (
        "kubelet-conformance run --id x --kubelet refkubelet-process --runtime containerd"
    )
    newer = Choice(kubelet="refkubelet-process", runtime="containerd", containerd_version="2.1")
    assert newer.repeat("x") == f"{real.repeat('x')} --containerd-version 2.1"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"time": "fast"}, "--time fast: wanted real or jump"),
        ({"time": "jump"}, "--time jump is for kubelets built by Go"),
        ({"kubelet": "refkubelet-process", "speed": 20.0}, "--speed 20 is for kubelets built by"),
        ({"kubelet": sys.executable, "speed": 1.0}, "--speed 1: wanted more than 1, at most 1024"),
        ({"kubelet": sys.executable, "speed": 2.0, "time": "jump"}, "no --time jump beside it"),
        (
            {"kubelet": sys.executable, "time": "jump", "runtime": "containerd"},
            "--time jump needs --runtime fake: containerd is in real time",
        ),
        ({"kubelet": sys.executable, "time": "jump"}, "--time jump: .* was not built by Go"),
    ],
)
def test_a_time_that_cannot_be_had_is_told_in_words(options: dict[str, Any], text: str) -> None:
    with pytest.raises(EnvironmentProblem, match=text):
        Choice(**options).check()


def test_a_run_in_jumping_time_takes_long_cases_and_repeats_itself() -> None:
    choice = Choice(kubelet="/usr/bin/kubelet", time="jump")
    assert Feature.VIRTUAL_TIME in choice.features
    assert Feature.MEMORY_USE not in choice.features
    assert choice.pace(long=True) == choice.pace(long=False) == limits.JUMPING
    assert choice.repeat("x") == (
        "kubelet-conformance run --id x --kubelet /usr/bin/kubelet --runtime fake --time jump"
    )
    hurried = Choice(kubelet="/usr/bin/kubelet", runtime="fake-socket", speed=20)
    assert hurried.pace(long=False).slack_s == 20 * limits.REAL.slack_s
    assert hurried.repeat("x").endswith("--runtime fake-socket --speed 20")


def test_a_directory_is_no_kubelet(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="no such program"):
        Choice(kubelet=str(tmp_path), runtime="fake-socket").check()
