"""What a kubelet costs while nothing happens: processor time and memory with 60 idle static pods.

python benchmarks/idle_pods.py                                       refkubelet
KUBELET=/usr/bin/kubelet python benchmarks/run.py --only idle_pods    a kubelet binary, too

Each runs beside a `fakecri serve` of its own, in real time, without an API server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from measure import Row, rss_bytes
from start_up import KUBELET, wait_for

from kubelet_conformance.harness.kubelets.mounts import unmount_below
from kubelet_conformance.harness.kubelets.program import own_address

PODS: Final = 60
MOST_CPU_S: Final = 0.32
"""A minute."""
MOST_MIB: Final = 75
SETTLED_S: Final = 15.0
START_WITHIN_S: Final = 180.0
TICKS: Final = os.sysconf("SC_CLK_TCK")


def rows(duration_s: float = 60.0) -> Iterator[Row]:
    """The rows as they are measured, over `duration_s` seconds each."""
    refkubelet = (sys.executable, "-c", KUBELET, "run")
    yield from _of("refkubelet", refkubelet, duration_s, limited=True)
    if kubelet := os.environ.get("KUBELET"):
        command = (kubelet, f"--node-ip={own_address()}")
        yield from _of(Path(kubelet).name, command, duration_s, limited=False)


def _of(name: str, command: Sequence[str], duration_s: float, *, limited: bool) -> Iterator[Row]:
    with _idle(command) as pid:
        time.sleep(SETTLED_S)
        used_s, began = _cpu_s(pid), time.perf_counter()
        time.sleep(duration_s)
        used_s, took_s = _cpu_s(pid) - used_s, time.perf_counter() - began
        mib = rss_bytes(pid) / (1 << 20)
    what, load = f"{name}: {PODS} idle pods", f"load {os.getloadavg()[0]:.1f}"
    yield Row(
        what=f"{what}, processor time a minute",
        value=used_s / took_s * 60,
        unit="s",
        limit=MOST_CPU_S if limited else None,
        remark=load,
    )
    yield Row(f"{what}, memory", mib, "MiB", MOST_MIB if limited else None)


@contextmanager
def _idle(command: Sequence[str]) -> Iterator[int]:
    """A kubelet whose pods all run, until the block ends; its process ID. Raises: RuntimeError when
    the kubelet ends."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(unmount_below, directory, Counter())
        listen = f"unix://{directory}/cri.sock"
        runtime = [sys.executable, "-m", "fakecri", "serve", "--listen", listen]
        stack.enter_context(_program(runtime, directory / "runtime.log"))
        wait_for((directory / "cri.sock").exists)
        words = [
            *(*command, "--config", str(_configured(directory, listen))),
            *("--root-dir", f"{directory}/root", "--cert-dir", f"{directory}/pki"),
        ]
        log = directory / "kubelet.log"
        kubelet = stack.enter_context(_program(words, log))
        wait_for(lambda: kubelet.poll() is not None or _running(directory) == PODS, START_WITHIN_S)
        if kubelet.returncode is not None:
            raise RuntimeError(f"{command[0]} ended: {log.read_text()[-1000:]}")
        yield kubelet.pid


@contextmanager
def _program(words: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run it in an empty directory, its words in the file `log`, until the block ends."""
    empty = log.with_suffix(".empty")
    empty.mkdir()
    with (
        log.open("wb") as file,
        subprocess.Popen(words, stdout=file, stderr=file, cwd=empty) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _configured(directory: Path, listen: str) -> Path:
    """The kubelet's configuration file; the manifests are beside it."""
    manifests = directory / "manifests"
    manifests.mkdir()
    for number in range(PODS):
        (manifests / f"{number}.json").write_text(json.dumps(_pod(f"idle-{number}")))
    config = directory / "kubelet.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "kind": "KubeletConfiguration",
                "containerRuntimeEndpoint": listen,
                "staticPodPath": str(manifests),
                "podLogsDir": str(directory / "logs"),
                "enableServer": False,
                "authentication": {"webhook": {"enabled": False}},
                "authorization": {"mode": "AlwaysAllow"},
                "healthzPort": 0,
                "cgroupsPerQOS": False,
                "enforceNodeAllocatable": [],
                "failSwapOn": False,
                "failCgroupV1": False,
                "oomScoreAdj": 0,
                "makeIPTablesUtilChains": False,
                "featureGates": {"KubeletInUserNamespace": True},
            }
        )
    )
    return config


def _pod(name: str) -> dict[str, Any]:
    main = {"name": "main", "image": "localhost/busybox:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [main]},
    }


def _running(directory: Path) -> int:
    """How many pods have a container with a log."""
    return len(list((directory / "logs").glob("*/main/0.log")))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    for row in rows():
        print(row)
