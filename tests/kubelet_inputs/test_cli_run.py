"""`refkubelet run` as a process on a fake runtime: bad input beside good, a port that is taken."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakecri import FakeCRI
from fakecri.core.objects import State
from fakecri.machine.node import FakeNode
from fakecri.server import serve

PROGRAM = "import sys; from refkubelet.cli import main; sys.exit(main())"
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec: {{containers: [{{name: main, image: "localhost/busybox:1"}}]}}
"""
SECOND_KIND = "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: twice}\n"


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


async def test_bad_manifests_are_named_and_the_good_ones_run_SRC_005(tmp_path: Path) -> None:
    config = write_config(tmp_path, healthz_port=0)
    manifests = tmp_path / "manifests"
    (manifests / "a-binary.yaml").write_bytes(b"#!\n\x7fELF\x00\x01")
    (manifests / "b-good.yaml").write_text(POD.format(name="good"))
    (manifests / "c-twice.yaml").write_text(SECOND_KIND)
    (manifests / "d-dangling.yaml").symlink_to("/nowhere/pod.yaml")
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint) as process,
    ):
        lines = [await process.line(lambda line: "static pod file" in line) for _ in range(3)]
        await until_runs(cri, "good-n1")
        process.stop()
        code, rest = await process.end()
    texts = [line.partition("static pod file ")[2].replace(str(manifests), "DIR") for line in lines]
    assert texts == [
        "DIR/a-binary.yaml: line 2: the control character 0x7f is no text",
        "DIR/c-twice.yaml: line 3: duplicate key 'kind', first on line 2",
        "DIR/d-dangling.yaml: no such file or directory",
    ]
    assert "Traceback" not in rest
    assert code == 0
    assert running(cri) == ["good-n1"]  # the kubelet has stopped, its pod has not


async def test_a_second_kubelet_on_a_used_port_leaves_the_first_alone(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(tmp_path, healthz_port=port)
    (tmp_path / "manifests" / "pod.yaml").write_text(POD.format(name="first"))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint),
    ):
        await until_runs(cri, "first-n1")
        async with kubelet(config, server.endpoint) as second:
            code, text = await second.end()
        assert (code, text) == (
            2,
            f"refkubelet: healthzPort: cannot listen on 127.0.0.1:{port}: the address is in use, "
            "perhaps by another kubelet; stop it or set another healthzPort",
        )
        assert cri.count("RunPodSandbox") == 1


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ("cgroupsPerQOS: true\ncgroupRoot: /nowhere\n", "cgroup"),
        (
            'cgroupsPerQOS: false\nkubeReserved: {cpu: "99999"}\n',
            'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 99999',
        ),
    ],
)
async def test_a_machine_that_does_not_fit_is_one_clear_error_CG_015_CG_034(
    tmp_path: Path, fields: str, wanted: str
) -> None:
    config = write_config(tmp_path, healthz_port=0)
    config.write_text(config.read_text().replace("cgroupsPerQOS: false\n", fields))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint) as process,
    ):
        code, rest = await process.end()
    assert code == 2
    assert "Traceback" not in rest
    assert wanted in rest.splitlines()[-1]
    assert cri.count("RunPodSandbox") == 0
