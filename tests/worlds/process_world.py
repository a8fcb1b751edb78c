"""`refkubelet run` as a process on a fake runtime, as a user starts it."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fakecri import FakeCRI
from fakecri.core.objects import State

PROGRAM = "import sys; from refkubelet.cli import main; sys.exit(main())"
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec: {{containers: [{{name: main, image: "localhost/busybox:1"}}]}}
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def write_config(directory: Path, healthz_port: int) -> Path:
    (directory / "manifests").mkdir()
    file = directory / "kubelet.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "failCgroupV1: false\nfailSwapOn: false\nenableServer: false\n"
        "cgroupsPerQOS: false\nenforceNodeAllocatable: []\n"
        "featureGates: {KubeletInUserNamespace: true}\n"  # runs where there is no /dev/kmsg
        f"healthzPort: {healthz_port}\nstaticPodPath: {directory}/manifests\n"
        f"podLogsDir: {directory}/logs\n"
    )
    return file


class Process:
    """One `refkubelet run`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: list[str] = []

    async def line(self, wanted: Callable[[str], bool]) -> str:
        """The next line on stderr that is wanted."""
        assert self._process.stderr is not None
        async with asyncio.timeout(200):
            while raw := await self._process.stderr.readline():
                self._lines.append(raw.decode().rstrip("\n"))
                if wanted(self._lines[-1]):
                    return self._lines[-1]
        raise AssertionError(f"ended without that line: {self._lines}")

    async def end(self) -> tuple[int, str]:
        """Exit code and the rest of stderr."""
        async with asyncio.timeout(200):
            _, rest = await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode, rest.decode().rstrip("\n")

    def stop(self) -> None:
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)


@asynccontextmanager
async def kubelet(config: Path, endpoint: str, *more: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, "run", "--config", str(config), *more),
        *("--hostname-override", "n1"),
        *("--container-runtime-endpoint", endpoint, "--root-dir", str(config.parent / "root")),
        stderr=asyncio.subprocess.PIPE,
    )
    running = Process(process)
    try:
        yield running
    finally:
        await end(process)


async def end(process: asyncio.subprocess.Process) -> None:
    """Ask it to; one that hangs is killed."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(60):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise


def running(cri: FakeCRI) -> list[str]:
    return [c.pod.name for c in cri.containers() if c.state is State.RUNNING]


async def until_runs(cri: FakeCRI, *names: str) -> None:
    async with asyncio.timeout(200):
        while running(cri) != list(names):  # noqa: ASYNC110 (another process starts them)
            await asyncio.sleep(0.05)
