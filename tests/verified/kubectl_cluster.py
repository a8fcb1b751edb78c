"""A cluster for kubectl: a node that is refkubelet on the fake runtime, with `fakeapi serve` as its
API server or, where REFKUBELET_KUBECTL_CLUSTER names a kubeconfig of an administrator, a real one.

All are processes, in real time, on loopback addresses, and need no privileges. The real server has
to be on this machine, without the admission plug-in ServiceAccount and with
`--kubelet-preferred-address-types=InternalIP`; the node `node-1` is made in it and removed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from process_world import free_port

KUBECTL: Final = os.environ.get("REFKUBELET_KUBECTL", "")
CLUSTER: Final = os.environ.get("REFKUBELET_KUBECTL_CLUSTER", "")
NODE: Final = "node-1"
WAIT_S: Final = 300.0
"""For whatever is waited for: machines may be busy."""


def why_not() -> str:
    """Why no transcript can be made here; "" if it can."""
    if not KUBECTL:
        return "REFKUBELET_KUBECTL names no kubectl"
    if not os.access(KUBECTL, os.X_OK):
        return f"REFKUBELET_KUBECTL: {KUBECTL} is no program"
    return "" if shutil.which("diff") else "kubectl diff needs diff(1)"


@asynccontextmanager
async def cluster(directory: Path) -> AsyncIterator[Path]:
    """A kubeconfig for a cluster whose node is there. Files are put into `directory`."""
    async with AsyncExitStack() as stack:
        endpoint = f"unix://{directory}/cri.sock"
        runtime = await _start(stack, directory, "fakecri.cli", "serve", "--listen", endpoint)
        await _said(runtime, directory / "fakecri.cli.log", "listening")
        config = Path(CLUSTER) if CLUSTER else await _fake(stack, directory)
        kubelet = await _start(
            *(stack, directory, "refkubelet.cli", "run"),
            *("--config", str(_kubelet_config(directory)), "--kubeconfig", str(config)),
            *("--hostname-override", NODE, "--node-ip", "127.0.0.1"),
            *("--container-runtime-endpoint", endpoint, "--root-dir", str(directory / "root")),
        )
        await _until_ready(kubelet, directory, config)
        yield config


async def _fake(stack: AsyncExitStack, directory: Path) -> Path:
    config = directory / "kubeconfig"
    server = await _start(
        *(stack, directory, "fakekubeapi.cli", "serve", "--listen", "127.0.0.1:0", "--tls"),
        *("--kubeconfig-out", str(config)),
    )
    await _said(server, directory / "fakekubeapi.cli.log", "serving on")
    return config


def _kubelet_config(directory: Path) -> Path:
    file = directory / "kubelet.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        f"address: 127.0.0.1\nport: {free_port()}\nhealthzPort: {free_port()}\n"
        "authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}\n"
        "authorization: {mode: AlwaysAllow}\n"
        "failCgroupV1: false\nfailSwapOn: false\n"
        "cgroupsPerQOS: false\nenforceNodeAllocatable: []\n"
        "featureGates: {KubeletInUserNamespace: true}\n"  # runs where there is no /dev/kmsg
        "evictionHard: {memory.available: 1Mi, nodefs.available: 0.01%, imagefs.available: 0.01%}\n"
        f"podLogsDir: {directory}/logs\n"
    )
    return file


async def _start(
    stack: AsyncExitStack, directory: Path, module: str, *words: str
) -> asyncio.subprocess.Process:
    """Start one of our commands; it is ended with the stack."""
    log = stack.enter_context((directory / f"{module}.log").open("wb"))
    program = f"import sys; from {module} import main; sys.exit(main())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, *words), stdout=log, stderr=log
    )
    stack.push_async_callback(_end, process)
    return process


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(60):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _said(process: asyncio.subprocess.Process, log: Path, words: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while words not in log.read_text():
            assert process.returncode is None, log.read_text()
            await asyncio.sleep(0.1)


async def _until_ready(process: asyncio.subprocess.Process, directory: Path, config: Path) -> None:
    """Until the node is ready and holds no pods back."""
    command = (KUBECTL, "--kubeconfig", str(config), "wait", "--for=condition=Ready")
    async with asyncio.timeout(WAIT_S):
        while True:
            asked = await asyncio.create_subprocess_exec(
                *(*command, f"node/{NODE}", "--timeout=10s"),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env={**os.environ, "HOME": str(directory)},
            )
            if await asked.wait() == 0:
                return
            assert process.returncode is None, (directory / "refkubelet.cli.log").read_text()
            await asyncio.sleep(0.5)
