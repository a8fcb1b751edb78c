"""A cluster for kubectl: a node on the fake runtime, with `fakekubeapi serve` as its API server or,
where REFKUBELET_KUBECTL_CLUSTER names a kubeconfig of an administrator, a real one. The node's
kubelet is refkubelet or, where REFKUBELET_KUBECTL_KUBELET names one, a kubelet binary.

All are processes in real time. With refkubelet they use loopback addresses and need no privileges;
a kubelet binary needs root, and has the address of this machine. The real server has to be on this
machine, without the admission plug-in ServiceAccount and with
`--kubelet-preferred-address-types=InternalIP`; the node `node-1` is made in it.
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

from kubelet_conformance.harness.kubelets.program import own_address

KUBECTL: Final = os.environ.get("REFKUBELET_KUBECTL", "")
CLUSTER: Final = os.environ.get("REFKUBELET_KUBECTL_CLUSTER", "")
KUBELET: Final = os.environ.get("REFKUBELET_KUBECTL_KUBELET", "")
ADDRESS: Final = own_address() if KUBELET else "127.0.0.1"
"""The node's: a kubelet binary refuses a loopback address."""
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
        words = (
            *("--config", str(_kubelet_config(directory)), "--kubeconfig", str(config)),
            *("--hostname-override", NODE, "--node-ip", ADDRESS),
            *("--container-runtime-endpoint", endpoint, "--root-dir", str(directory / "root")),
            *("--cert-dir", str(directory / "pki")),
        )
        if KUBELET:
            kubelet = await _run(stack, directory / "kubelet.log", KUBELET, *words)
        else:
            kubelet = await _start(stack, directory, "refkubelet.cli", "run", *words)
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
        f"address: {ADDRESS}\nport: {free_port()}\nhealthzPort: {free_port()}\n"
        "authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}\n"
        "authorization: {mode: AlwaysAllow}\nclusterDNS: [10.96.0.10]\n"
        "failCgroupV1: false\nfailSwapOn: false\noomScoreAdj: 0\nmakeIPTablesUtilChains: false\n"
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
    program = f"import sys; from {module} import main; sys.exit(main())"
    return await _run(stack, directory / f"{module}.log", sys.executable, "-c", program, *words)


async def _run(stack: AsyncExitStack, log: Path, *words: str) -> asyncio.subprocess.Process:
    """Start a program in an empty directory, its words in the file `log`; it is ended with the
    stack."""
    empty = log.parent / "empty"
    empty.mkdir(exist_ok=True)
    written = stack.enter_context(log.open("wb"))
    process = await asyncio.create_subprocess_exec(
        *words, stdout=written, stderr=written, cwd=empty
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
            name = "kubelet.log" if KUBELET else "refkubelet.cli.log"
            assert process.returncode is None, (directory / name).read_text()[-4000:]
            await asyncio.sleep(0.5)
