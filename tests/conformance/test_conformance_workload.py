"""The shell rendering of declared workloads, run by a real shell."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conformance.harness.manifests import ExecProbe, container, hook, pod
from conformance.harness.workload import (
    Flag,
    Run,
    Workload,
    exits,
    ignores_term,
    in_turn,
    runs,
    shell,
)

SH = shutil.which("sh") or "/bin/sh"


def run(script: str, *, term_after_s: float | None = None) -> int:
    """Exit code of the script; with `term_after_s` it gets SIGTERM after so many seconds, and
    SIGKILL half a second later."""
    process = subprocess.Popen([SH, "-c", script], start_new_session=True)
    try:
        return process.wait(timeout=term_after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


@pytest.mark.parametrize("code", [0, 3])
def test_exits_with_its_code(code: int) -> None:
    assert run(shell("main", exits(code))) == code


def test_stops_with_its_code_at_once() -> None:
    assert run(shell("main", runs(stop_exit_code=5)), term_after_s=0.2) == 5


def test_ignores_sigterm() -> None:
    assert run(shell("main", ignores_term()), term_after_s=0.2) == -signal.SIGKILL


def test_each_run_does_its_own(tmp_path: Path) -> None:
    script = shell("main", in_turn(exits(7), exits(8), exits(0))).replace("/dev/shm", str(tmp_path))
    assert [run(script) for _ in range(4)] == [7, 8, 0, 0]


def test_flags_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "flag"
    work = Workload((Run(exit_code=0, exit_after_s=0.2, flags=(Flag(str(path), 0.1),)),))
    assert run(shell("main", work)) == 0
    assert path.exists()
    gone = Workload((Run(exit_code=0, exit_after_s=0.3, flags=(Flag(str(path), 0, 0.1),)),))
    assert run(shell("main", gone)) == 0
    assert not path.exists()


def test_a_late_flag_does_not_delay_the_exit(tmp_path: Path) -> None:
    work = Workload((Run(exit_code=4, exit_after_s=0.0, flags=(Flag(str(tmp_path / "x"), 60),)),))
    assert run(shell("main", work)) == 4


def test_a_probe_makes_its_file_and_its_command() -> None:
    made = container("main", probes={"readiness": ExecProbe(from_s=2, period_s=3)})
    assert made.manifest["readinessProbe"]["exec"]["command"] == ["test", "-e", "/tmp/readiness"]
    assert made.manifest["readinessProbe"]["periodSeconds"] == 3
    assert made.workload.runs[0].flags == (Flag("/tmp/readiness", 2, None),)


def test_a_hook_is_command_and_declared_reply() -> None:
    made = container("main", hooks={"preStop": hook(takes_s=1, exit_code=2)})
    command = made.manifest["lifecycle"]["preStop"]["exec"]["command"]
    assert tuple(command) == made.execs[0].command
    assert (made.execs[0].exit_code, made.execs[0].takes_s) == (2, 1)


def test_a_pod_without_containers_gets_one_that_runs() -> None:
    plan = pod("web", restartPolicy="Never")
    assert [c["name"] for c in plan.manifest["spec"]["containers"]] == ["main"]
    assert plan.manifest["spec"]["restartPolicy"] == "Never"
    assert plan.renamed("other").name == "other"
