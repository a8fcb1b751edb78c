"""How long it takes to import the fake, to print `--help`, to a healthy kubelet and to the verdict
of one case, in fresh interpreters."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from measure import Row

IMPORT_MS = 150
HEALTHY_MS = 500
VERDICT_MS = 1000
KUBELET = "import sys; from refkubelet.cli import main; sys.exit(main())"
HELP_MS = 100
PROJECT = ("refkubelet", "fakecri", "fakekubeapi", "kubelet-conformance")


def best_ms(command: Sequence[str], runs: int) -> float:
    """The real time of a command, the best of `runs` runs. Raises: CalledProcessError if it
    fails."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def rows(runs: int = 5) -> list[Row]:
    """Rows for imports (the time of an interpreter that does nothing is subtracted) and for
    `--help` of each command (nothing is subtracted)."""
    empty_ms = best_ms([sys.executable, "-c", "pass"], runs)
    found = []
    for code, limit in (("import fakecri", IMPORT_MS), ("from fakecri import FakeCRI", None)):
        import_ms = best_ms([sys.executable, "-c", code], runs) - empty_ms
        found.append(
            Row(
                what=code,
                value=import_ms,
                unit="ms",
                limit=limit,
                remark=f"python alone {empty_ms:.0f} ms",
            )
        )
    for script in entry_points(group="console_scripts"):
        if script.name not in PROJECT:
            continue
        module, function = script.value.split(":")
        code = f"import sys, {module} as m; sys.exit(m.{function}(['--help']))"
        help_ms = best_ms([sys.executable, "-c", code], runs)
        found.append(Row(f"{script.name} --help", help_ms, "ms", HELP_MS))
    return [*found, healthy_row(runs), verdict_row(runs)]


def cpu_ms_of_children() -> float:
    """The processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def healthy_row(runs: int) -> Row:
    """A standalone refkubelet beside `fakecri serve`, from the start of its process until healthz
    answers 200. The limit is one of processor time: real time is told beside it."""
    with tempfile.TemporaryDirectory() as directory:
        cri_socket = f"unix://{directory}/cri.sock"
        serve = [sys.executable, "-m", "fakecri", "serve", "--listen", cri_socket]
        with subprocess.Popen(serve, stdout=subprocess.DEVNULL) as runtime:
            try:
                wait_for(lambda: Path(directory, "cri.sock").exists())
                tries = [until_healthy(Path(directory), cri_socket) for _ in range(runs)]
            finally:
                runtime.terminate()
    real_ms, cpu_ms = min(t[0] for t in tries), min(t[1] for t in tries)
    return Row(
        what="refkubelet: process start to healthz 200",
        value=cpu_ms,
        unit="ms of CPU",
        limit=HEALTHY_MS,
        remark=f"real {real_ms:.0f} ms",
    )


def until_healthy(directory: Path, cri_socket: str) -> tuple[float, float]:
    """Real and processor milliseconds of one start; the kubelet is stopped then."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = directory / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        f"enableServer: false\nhealthzPort: {port}\ncgroupsPerQOS: false\n"
        "enforceNodeAllocatable: []\nfailSwapOn: false\nfailCgroupV1: false\n"
        "featureGates: {KubeletInUserNamespace: true}\n"
    )
    command = [
        *(sys.executable, "-c", KUBELET, "run", "--config", str(config)),
        *("--root-dir", str(directory / "root"), "--container-runtime-endpoint", cri_socket),
    ]
    began, used_ms = time.perf_counter(), cpu_ms_of_children()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as kubelet:
        try:
            wait_for(lambda: kubelet.poll() is not None or _answers(port))
            real_ms = (time.perf_counter() - began) * 1000
        finally:
            kubelet.kill()
    if kubelet.returncode != -signal.SIGKILL:
        raise subprocess.CalledProcessError(kubelet.returncode, command)
    return real_ms, cpu_ms_of_children() - used_ms


def verdict_row(runs: int) -> Row:
    """`kubelet-conformance run --id` of one case, until the command has ended."""
    command = [sys.executable, "-m", "kubelet_conformance.cli", "run", "-q", "--id", "stop-minimum"]
    used_ms = cpu_ms_of_children()
    real_ms = best_ms(command, runs)
    return Row(
        what="kubelet-conformance run --id: one case",
        value=(cpu_ms_of_children() - used_ms) / runs,
        unit="ms of CPU",
        limit=VERDICT_MS,
        remark=f"real {real_ms:.0f} ms",
    )


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for(done: Callable[[], bool], within_s: float = 60) -> None:
    """Look every 5 ms. Raises: TimeoutError."""
    until = time.perf_counter() + within_s
    while not done():
        if time.perf_counter() > until:
            raise TimeoutError(f"not within {within_s:.0f} s")
        time.sleep(0.005)


if __name__ == "__main__":
    for row in rows():
        print(row)
