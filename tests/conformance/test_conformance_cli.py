"""The command line: listing, selection errors, and environments that cannot be used."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kubelet_conformance.cli import EXIT_OPTIONS, READER_GONE, main
from kubelet_conformance.sources import all_cases, written_names


def test_list_shows_id_level_rules_and_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--id", "backoff-maximum"]) == 0
    out = capsys.readouterr().out
    assert "backoff/backoff-maximum  MUST  BACK-013" in out
    assert "every delay after the first is 2 s" in out
    assert out.endswith("\n1 case\n")


def test_list_says_what_is_wrong_with_a_selection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--id", "nope"]) == 4
    assert "no case with ID 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--area", "evicton"], "no case with area 'evicton'; did you mean eviction?"),
        (["--area", "bug"], "no case with area 'bug'; did you mean bugs?"),
        (["--rule=BAKC-009"], "no case with rule 'BAKC-009'; did you mean BACK-009?"),
        (["--rule", "BAK"], "no case with rule 'BAK'; did you mean BACK?"),
        (["--id", "stop-minimun"], "no case with ID 'stop-minimun'; did you mean stop-minimum?"),
        (["--disable", "stop-minimun"], "did you mean stop-minimum?"),
        (["-x", "--level", "mst"], "--level mst; did you mean must? (wanted must, should, detail)"),
        (["--kubelet", "refkublet"], "--kubelet refkublet; did you mean refkubelet?"),
        (["--runtime", "fake-soket"], "--runtime fake-soket; did you mean fake-socket?"),
        (["--time", "jmp"], "--time jmp; did you mean jump?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_run_tells_a_mistyped_word_before_anything_is_loaded(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loads() -> None:
        raise AssertionError("something is loaded")

    monkeypatch.setattr("kubelet_conformance.cli.many_imports", loads)
    assert main(["run", *words]) == EXIT_OPTIONS
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--area", "eviction", "--rule", "BACK-003", "--rule", "EVIC", "--id", "stop-minimum"],
        ["--kubelet", "./refkubelet", "--runtime", "unix:///run/fake", "--level=detail"],
        ["mine.yaml", "--area", "mine", "--id", "a-case-of-mine"],
    ],
)
def test_run_goes_on_with_words_that_may_be_right(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loaded(Exception):
        pass

    def loads() -> None:
        raise Loaded

    monkeypatch.setattr("kubelet_conformance.cli.many_imports", loads)
    with pytest.raises(Loaded):
        main(["run", *words])


def test_names_as_files_have_them_are_those_of_the_cases() -> None:
    names, cases = written_names(), all_cases()
    assert {case.id for case in cases} == names.ids
    assert {case.area for case in cases} == names.areas
    assert {rule for case in cases for rule in case.rules} <= names.rules


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("refkubelet", "refkubelet"),
        ("fakecri", "fakecri"),
        ("fakekubeapi", "fakekubeapi"),
        ("kubelet_conformance", "kubelet-conformance"),
    ],
)
def test_each_package_is_its_command(package: str, command: str) -> None:
    done = subprocess.run([sys.executable, "-m", package, "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[1]) == (0, command)


def test_run_without_pytest_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kubelet_conformance.cli.find_spec", lambda _: None)
    assert main(["run"]) == 2
    assert "pip install 'refkubelet[conformance]'" in capsys.readouterr().err


def test_an_unknown_containerd_version_in_the_environment_ends_with_exit_code_2() -> None:
    done = run_cli(
        "run", "--kubelet", "refkubelet-process", "--runtime", "containerd",
        REFKUBELET_CONTAINERD_VERSION="9.9",
    )  # fmt: skip
    assert done.returncode == 2
    text = "REFKUBELET_CONTAINERD_VERSION '9.9' is not known; wanted 1.6, 1.7, 2.1"
    assert text in done.stdout + done.stderr


def run_cli(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kubelet_conformance.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_an_unusable_runtime_ends_with_exit_code_2() -> None:
    done = run_cli("run", "--kubelet", "refkubelet-process", "--runtime", "unix:///no/such.sock")
    assert done.returncode == 2
    assert "/no/such.sock" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_without_docker_the_containerd_run_ends_with_exit_code_2(tmp_path: Path) -> None:
    """The cases are not skipped, which would look like success: one line says what to start."""
    done = run_cli(
        "run", "--kubelet", "refkubelet-process", "--runtime", "containerd",
        DOCKER_HOST=f"unix://{tmp_path}/no-docker.sock",
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = (done.stdout + done.stderr).strip().splitlines()
    if find_spec("testcontainers") is None:
        assert "pip install 'refkubelet[containers]'" in line
    else:
        assert f"Docker does not answer at unix://{tmp_path}/no-docker.sock (no such file)" in line
        assert "start it" in line


def test_list_into_a_pipe_that_is_closed_early_ends_quietly() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kubelet_conformance.cli", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.readline()
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == READER_GONE


def test_a_program_that_is_no_kubelet_ends_with_exit_code_2() -> None:
    """It is started once, before the first case, and no case is run."""
    done = run_cli("run", "-q", "--kubelet", "/bin/true", "--runtime", "fake-socket")
    assert done.returncode == 2
    said = done.stdout + done.stderr
    assert "--kubelet /bin/true: wanted a kubelet" in said
    assert "the kubelet ended with exit code 0" in said
    assert " failed" not in said.splitlines()[-1]


EVERYTHING_FAILS = """\
from kubelet_conformance.session import run as run_state
from kubelet_conformance.harness.runs import processes, real
from kubelet_conformance.harness.runs.case_run import Outcome, Result

def fails(case, *_):
    return Result(case, Outcome.FAILED, "planted")

async def fails_for_real(case, *_):
    return fails(case)

async def is_there(_):
    return

processes.run_virtual_case = run_state.run_virtual_case = fails
real.run_case = fails_for_real
real.require_kubelet = is_there
"""


@pytest.mark.parametrize(
    "pair",
    [
        ("--jobs", "1"),
        ("--jobs", "2"),
        ("--kubelet", "refkubelet-process", "--runtime", "fake-socket"),
    ],
    ids=["one process", "two processes", "real time"],
)
def test_x_stops_at_the_first_failure(pair: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "everything_fails.py").write_text(EVERYTHING_FAILS)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    words = ("run", "-p", "everything_fails", "--area", "pleg", "-x", *pair)
    done = run_cli(*words, PYTHONPATH=path)
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout
    assert " 1 failed" in done.stdout
