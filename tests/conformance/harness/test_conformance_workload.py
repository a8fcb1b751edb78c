"""The shell rendering of declared workloads, run by a real shell."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from fakecri import serves, stops
from fakecri.behaviors.plan import plan_for
from kubelet_conformance.harness.manifests import ExecProbe, Probe, container, hook, pod
from kubelet_conformance.harness.runtimes.played import behaviors
from kubelet_conformance.harness.workload import (
    exits,
    has_file,
    ignores_term,
    in_turn,
    redirects,
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
    assert run(shell("main", runs(stops(5))), term_after_s=0.2) == 5


def test_ignores_sigterm() -> None:
    assert run(shell("main", ignores_term()), term_after_s=0.2) == -signal.SIGKILL


def test_each_run_does_its_own(tmp_path: Path) -> None:
    script = shell("main", in_turn(exits(7), exits(8), exits(0))).replace("/dev/shm", str(tmp_path))
    assert [run(script) for _ in range(4)] == [7, 8, 0, 0]


def test_flags_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "flag"
    work = exits(0, has_file(str(path), 0.1), after_s=0.2)
    assert run(shell("main", work)) == 0
    assert path.exists()
    gone = exits(0, has_file(str(path), 0, 0.1), after_s=0.3)
    assert run(shell("main", gone)) == 0
    assert not path.exists()


def test_flags_come_and_go_while_it_stops(tmp_path: Path) -> None:
    work = runs(stops(0, after_s=0.4), has_file(str(tmp_path / "flag"), 0, 0.3))
    assert run(shell("main", work), term_after_s=0.1) == 0
    assert not (tmp_path / "flag").exists()


@pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox")
def test_ports_are_served(tmp_path: Path) -> None:
    number = free_port()
    answers = (serves(number, status=204), serves(number, status=503, from_s=1.0))
    away = redirects(number, [("/away", "http://other/")])
    work = exits(0, *answers, *away, after_s=30.0)
    script = (
        shell("main", work).replace("nc -ll", "busybox nc -ll").replace("/tmp/", f"{tmp_path}/")
    )
    process = subprocess.Popen([SH, "-c", script], start_new_session=True)
    try:
        seen = {until(number, "/x", 204), until(number, "/away?x", 302), until(number, "/x", 503)}
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert seen == {204, 302, 503}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def until(port: int, path: str, wanted: int) -> int:
    """Request `path` again and again until its status is the wanted one."""
    status = 0
    for _ in range(500):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", path)
            status = connection.getresponse().status
        except (ConnectionError, http.client.HTTPException):
            status = 0
        finally:
            connection.close()
        if status == wanted:
            break
        subprocess.run(["sleep", "0.02"], check=True)
    return status


def test_a_late_flag_does_not_delay_the_exit(tmp_path: Path) -> None:
    work = exits(4, has_file(str(tmp_path / "x"), 60))
    assert run(shell("main", work)) == 4


def test_a_probe_makes_its_file_and_its_command() -> None:
    made = container("main", probes={"readiness": ExecProbe(from_s=2, period_s=3)})
    assert made.manifest["readinessProbe"]["exec"]["command"] == ["test", "-e", "/tmp/readiness"]
    assert made.manifest["readinessProbe"]["periodSeconds"] == 3
    assert made.workload == runs(has_file("/tmp/readiness", 2))


def test_a_file_of_a_fake_is_there_while_one_of_its_times_says_so() -> None:
    (run,) = runs(has_file("/x", 1, 3), has_file("/x", 5), has_file("/y")).runs
    plan = plan_for([tuple(behaviors(run))])

    def exit_code(path: str, age_s: float) -> int:
        rule = plan.reply_rule(["test", "-e", path], age_s)
        assert rule is not None
        return rule.answers[0].exit_code

    assert [exit_code("/x", age_s) for age_s in (0, 1, 3, 5, 9)] == [1, 0, 1, 0, 0]
    assert exit_code("/y", 0) == 0
    assert plan.stop_delay_s(0) == 0.0
    assert plan.stops.code == 0


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


def test_a_probe_that_does_nothing_is_an_error_that_names_the_kinds_of_probes() -> None:
    with pytest.raises(TypeError, match="Probe: wanted a probe that says what to do: ExecProbe,"):
        container("main", probes={"liveness": Probe()})
