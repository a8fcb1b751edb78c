"""Real runs: cases side by side on one loop, against kubelet processes.

What all cases share is made once: the containerd container, or the connection to a given runtime.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc
from kubecri.v1 import api_pb2 as cri

from fakecri.server import GrpcUpstream
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.containerd.docker_host import NodeError
from kubelet_conformance.harness.containerd.image_registries import NodeRegistries
from kubelet_conformance.harness.containerd.node import NodeDirs
from kubelet_conformance.harness.containerd.start import start_containerd
from kubelet_conformance.harness.kubelets.base import KubeletDied, NodePaths
from kubelet_conformance.harness.kubelets.last_words import own_error
from kubelet_conformance.harness.kubelets.process import PORTS
from kubelet_conformance.harness.kubelets.watches import MachineLacks
from kubelet_conformance.harness.machines.disks import shared_mounts, why_no_disk
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome, Result, run_case
from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem
from kubelet_conformance.harness.runs.offered import CONTAINERD, FAKE, FAKE_SOCKET
from kubelet_conformance.harness.runs.real_parts import RealEnvironment
from kubelet_conformance.harness.runtimes.fake import server_context
from kubelet_conformance.registry import Case, Level

END_WITHIN_S: Final = 30.0
AGAIN_S: Final = 1.0
QUIET_WITHIN_S: Final = 120
CLEAN_UP_STEPS: Final = 10
"""How many steps of a clean-up may hang one after the other."""


async def _no_body(_: Node) -> None:
    return


SIGN_OF_LIFE: Final = Case(
    id="sign-of-life",
    area="harness",
    title="The kubelet starts, answers, and ends.",
    rules=(),
    level=Level.MUST,
    needs=frozenset(),
    body=_no_body,
)


@asynccontextmanager
async def real_environment(choice: Choice) -> AsyncIterator[RealEnvironment]:
    """What all cases share, until the block ends. Raises EnvironmentProblem."""
    # Short: a unix socket address holds 107 bytes.
    base = Path(tempfile.mkdtemp(prefix="kc-", dir="/tmp"))
    try:
        async with AsyncExitStack() as stack:
            if choice.runtime in (FAKE, FAKE_SOCKET):
                yield RealEnvironment(choice, base, tls=server_context())
            elif choice.runtime == CONTAINERD:
                yield await _with_containerd(choice, base, stack)
            else:
                upstream, product = await _upstream(choice.runtime, stack)
                yield RealEnvironment(choice, base, upstream, told=product)
    finally:
        PORTS.close()
        shutil.rmtree(base, ignore_errors=True)


async def _with_containerd(choice: Choice, base: Path, stack: AsyncExitStack) -> RealEnvironment:
    """Start containerd and connect to it."""
    if not why_no_disk():
        await stack.enter_async_context(shared_mounts(NodeDirs(base).kubelet))
    try:
        node = await stack.enter_async_context(
            start_containerd(base, version=choice.containerd_version or None)
        )
    except NodeError as error:
        raise EnvironmentProblem(str(error)) from None
    upstream, product = await _upstream(node.endpoint, stack)
    registries = NodeRegistries(node)
    return RealEnvironment(choice, node.kubelet_root, upstream, registries=registries, told=product)


async def _upstream(endpoint: str, stack: AsyncExitStack) -> tuple[Any, tuple[str, str]]:
    """One connection for all cases, and name and version of the runtime, which is asked once."""
    upstream = await stack.enter_async_context(GrpcUpstream(endpoint))
    try:
        version: Any = await upstream.call("Version", cri.VersionRequest(), timeout_s=10)
    except grpc.RpcError as error:
        raise EnvironmentProblem(
            f"{endpoint} does not answer the CRI call Version: {error.code().name}: "
            f"{error.details()}\n  wanted: the socket of a container runtime"
        ) from None
    return upstream, (version.runtime_name, version.runtime_version)


async def require_kubelet(environment: RealEnvironment) -> None:
    """Start the kubelet once, without pods, and stop it. Raises EnvironmentProblem when it does not
    run: every case would fail for that."""
    chosen = environment.choice.kubelet
    with tempfile.TemporaryDirectory(prefix="life-", dir=environment.shared) as directory:
        paths = NodePaths(Path(directory))
        paths.make()
        try:
            async with environment.parts(SIGN_OF_LIFE, paths) as parts:
                await parts.kubelet.start(parts.config)
                await parts.kubelet.stop()
        except MachineLacks as problem:
            raise EnvironmentProblem(str(problem)) from None
        except (KubeletDied, OSError) as problem:
            why = str(problem).strip().rstrip(":")
            wanted = "wanted a kubelet that takes --config and answers on its healthz and its "
            raise EnvironmentProblem(
                f"--kubelet {chosen}: {own_error(why) or f'{wanted}read-only port; {why}'}"
            ) from None


async def run_real_cases(
    cases: Sequence[Case], environment: RealEnvironment, jobs: int
) -> AsyncGenerator[Result, None]:
    """Run the cases side by side, at most `jobs` at a time; yields results as they come.

    A case that was inconclusive beside others is run once more, alone, when all others have ended.
    """
    gate = asyncio.Semaphore(jobs)

    async def one(case: Case) -> Result:
        async with gate, case_directory(environment.shared) as directory:
            traces = environment.choice.traces
            return await run_case(case, environment.parts, directory, traces)

    tasks = [asyncio.create_task(one(case)) for case in cases]
    again: list[Case] = []
    try:
        for ended in asyncio.as_completed(tasks):
            result = await ended
            if result.outcome is Outcome.INCONCLUSIVE:
                again.append(result.case)
            else:
                yield result
    finally:
        await end_all(tasks)
    if again:
        await _until_quiet()
    for case in again:
        yield await one(case)


async def _until_quiet() -> None:
    """Wait until the load of the cases before has left the load average, two minutes at most."""
    for _ in range(QUIET_WITHIN_S):
        if not limits.overload_now():
            return
        await asyncio.sleep(1)


async def end_all(
    tasks: Sequence[asyncio.Task[Any]], within_s: float = END_WITHIN_S, again_s: float = AGAIN_S
) -> None:
    """Cancel the tasks and wait while they clean up.

    After `within_s` seconds a clean-up that hangs (a runtime that does not answer) is cancelled,
    too, step by step, every `again_s` seconds.
    """
    running = {task for task in tasks if not task.done()}
    for wait_s in (within_s, *[again_s] * CLEAN_UP_STEPS):
        for task in running:
            task.cancel()
        if not running:
            break
        _, running = await asyncio.wait(running, timeout=wait_s)
    await asyncio.gather(*(task for task in tasks if task not in running), return_exceptions=True)


@asynccontextmanager
async def case_directory(base: Path) -> AsyncIterator[Path]:
    """A new directory below `base`, until the block ends."""
    # Removed with errors ignored: a real runtime may leave files of other users behind.
    with tempfile.TemporaryDirectory(
        prefix="case-", dir=base, ignore_cleanup_errors=True
    ) as directory:
        yield Path(directory)
