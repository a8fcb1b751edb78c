"""The parts of a real run: a kubelet process, a runtime socket, and an API server over HTTP.

What all cases share is made once: the containerd container, or the connection to a given runtime.
Each case has its own proxy socket, kubelet, API server and directories.
"""

from __future__ import annotations

import json
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.harness import limits
from conformance.harness.api_server import ApiServer
from conformance.harness.certificate import server_context
from conformance.harness.image_registry import ImageRegistries
from conformance.harness.kubelets.base import KubeletDied, NodePaths
from conformance.harness.kubelets.process import (
    PORTS,
    REFKUBELET,
    ProcessKubelet,
    Program,
    external,
    with_bus,
    with_own_cgroups,
    with_own_plugins,
)
from conformance.harness.machines.cgroup_trees import CgroupTrees, own_groups
from conformance.harness.machines.disks import OwnDisk, own_disk, shared_mounts, why_no_disk
from conformance.harness.node import Node
from conformance.harness.parts import NODE_NAME, Parts, kubelet_config
from conformance.harness.runs.choice import (
    CONTAINERD,
    FAKE_SOCKET,
    PROCESS,
    Choice,
    EnvironmentProblem,
)
from conformance.harness.runtimes.fake import FakeRuntime
from conformance.registry import Case, Feature, Level
from fakecri.machine.logind import FakeLogind
from simtime import Ids, RealClock, Rng


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
NO_END_S: Final = 3600.0  # kubelets that want more write into this machine's /etc


@dataclass(frozen=True, slots=True)
class RealEnvironment:
    """What the cases of one real run share. `shared`: the directory below which everything must
    lie that kubelet and runtime both see. `upstream` None: each case has a fake of its own.
    `tls`: what fake pods serve HTTPS with."""

    choice: Choice
    shared: Path
    upstream: Any = None
    registries: ImageRegistries | None = None
    tls: ssl.SSLContext | None = None

    @asynccontextmanager
    async def parts(self, case: Case, paths: NodePaths) -> AsyncIterator[Parts]:
        """Parts for `case` on the running loop; everything is ended and removed afterwards."""
        from fakecri.deviceplugin.serving import ServedPlugins
        from fakecri.server import serve

        clock = RealClock()
        endpoint = f"unix://{paths.base}/cri.sock"
        runtime = self._runtime(clock, endpoint, paths)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(runtime.close)
            await stack.enter_async_context(serve(runtime.target, endpoint))
            api, kubeconfig = await _api_server(case, paths, stack)
            program = self._program()
            plugins = ServedPlugins(paths.base / program.device_plugins)
            stack.push_async_callback(plugins.close)
            if Feature.DEVICE_PLUGINS in case.needs:
                program = with_own_plugins(program, plugins.directory)
            own = await _of_its_own(case, program, paths, stack)
            kubelet = ProcessKubelet(
                own.program,
                paths,
                endpoint,
                node_name=NODE_NAME,
                kubeconfig=kubeconfig,
                pods_asked=api.pod_lists if api is not None else None,
            )
            stack.push_async_callback(kubelet.close)
            config = kubelet_config(paths, case.node_config)
            pace = limits.REAL_LONG if Feature.VIRTUAL_TIME in case.needs else limits.REAL
            yield Parts(
                kubelet=kubelet,
                runtime=runtime,
                api=api,
                clock=clock,
                pace=pace,
                paths=paths,
                config=config,
                logind=own.logind,
                plugins=plugins,
                cgroups=own.cgroups,
                disk=own.disk,
            )

    def _program(self) -> Program:
        if self.choice.kubelet == PROCESS:
            return REFKUBELET
        return external(Path(self.choice.kubelet))

    def _runtime(self, clock: RealClock, endpoint: str, paths: NodePaths) -> Any:
        if self.upstream is None:
            return self._fake_runtime(clock, endpoint, paths)
        from conformance.harness.runtimes.real import RealRuntime

        return RealRuntime(self.upstream, clock, endpoint, self.registries)

    def _fake_runtime(self, clock: RealClock, endpoint: str, paths: NodePaths) -> FakeRuntime:
        """A fake with loopback addresses of its own: cases run side by side, and so may suites."""
        rng = Rng.from_system()
        number = rng.stream("pod network").randint
        runtime = FakeRuntime(
            clock,
            Ids(rng),
            endpoint=endpoint,
            image_root=str(paths.root),
            pod_network=f"127.{number(1, 254)}.{number(0, 255)}",
        )
        if runtime.cri.listening is not None:
            runtime.cri.listening.tls = self.tls
        return runtime


@dataclass(frozen=True, slots=True)
class _Own:
    """What of the machine a case has to itself, and the kubelet that is told of it."""

    program: Program
    disk: OwnDisk | None
    cgroups: CgroupTrees | None
    logind: FakeLogind | None


async def _of_its_own(
    case: Case, program: Program, paths: NodePaths, stack: AsyncExitStack
) -> _Own:
    disk = cgroups = logind = None
    if Feature.OWN_DISK in case.needs:
        disk = await stack.enter_async_context(own_disk(paths.root))
    if Feature.CGROUPS in case.needs:
        cgroups = await stack.enter_async_context(own_groups(paths.base.name))
        program = with_own_cgroups(program, cgroups.path())
    if Feature.SHUTDOWN in case.needs:
        logind = FakeLogind(delay_s=NO_END_S)
        program = with_bus(program, await _system_bus(logind, paths, stack))
    return _Own(program, disk, cgroups, logind)


async def _system_bus(logind: FakeLogind, paths: NodePaths, stack: AsyncExitStack) -> str:
    from fakecri.machine.logind_bus import serve_logind

    return await stack.enter_async_context(serve_logind(logind, paths.base))


async def _api_server(
    case: Case, paths: NodePaths, stack: AsyncExitStack
) -> tuple[ApiServer | None, Path | None]:
    if Feature.API not in case.needs:
        return None, None
    from fakeapi import FakeApi
    from fakeapi.http import serve

    fake = FakeApi(RealClock(), Ids(Rng.from_system()))
    server = await stack.enter_async_context(await serve(fake, "127.0.0.1", 0))
    kubeconfig = paths.base / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(server.url)))
    return ApiServer(fake), kubeconfig


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": "node", "user": {}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "node"}}],
        "current-context": "fake",
    }


@asynccontextmanager
async def real_environment(choice: Choice) -> AsyncIterator[RealEnvironment]:
    """Start what all cases share. Raises EnvironmentProblem, once, when it cannot be had."""
    # Short: a unix socket address holds 107 bytes.
    base = Path(tempfile.mkdtemp(prefix="kc-", dir="/tmp"))
    try:
        async with AsyncExitStack() as stack:
            if choice.runtime == FAKE_SOCKET:
                yield RealEnvironment(choice, base, tls=server_context(base))
            elif choice.runtime == CONTAINERD:
                yield await _with_containerd(choice, base, stack)
            else:
                upstream = await _upstream(choice.runtime, stack)
                yield RealEnvironment(choice, base, upstream)
    finally:
        PORTS.close()
        shutil.rmtree(base, ignore_errors=True)


async def _with_containerd(choice: Choice, base: Path, stack: AsyncExitStack) -> RealEnvironment:
    from conformance.harness.containerd import NodeError, start_containerd
    from conformance.harness.containerd.image_registries import NodeRegistries
    from conformance.harness.containerd.node import NodeDirs

    if not why_no_disk():
        await stack.enter_async_context(shared_mounts(NodeDirs(base).kubelet))
    try:
        node = await stack.enter_async_context(
            start_containerd(base, version=choice.containerd_version or None)
        )
    except NodeError as error:
        raise EnvironmentProblem(str(error)) from None
    upstream = await _upstream(node.endpoint, stack)
    return RealEnvironment(choice, node.kubelet_root, upstream, registries=NodeRegistries(node))


async def _upstream(endpoint: str, stack: AsyncExitStack) -> Any:
    """One connection for all cases; the runtime is asked for its version once."""
    import grpc
    from criapi.v1 import api_pb2 as cri

    from fakecri.server import GrpcUpstream

    upstream = await stack.enter_async_context(GrpcUpstream(endpoint))
    try:
        await upstream.call("Version", cri.VersionRequest(), timeout_s=10)
    except grpc.RpcError as error:
        raise EnvironmentProblem(
            f"{endpoint} does not answer the CRI call Version: {error.code().name}: "
            f"{error.details()}\n  wanted: the socket of a container runtime"
        ) from None
    return upstream


async def require_kubelet(environment: RealEnvironment) -> None:
    """Start the kubelet once, without pods, and stop it. Raises EnvironmentProblem when it shows
    no sign of life: every case would fail for that."""
    chosen = environment.choice.kubelet
    with tempfile.TemporaryDirectory(prefix="life-", dir=environment.shared) as directory:
        paths = NodePaths(Path(directory))
        paths.make()
        try:
            async with environment.parts(SIGN_OF_LIFE, paths) as parts:
                await parts.kubelet.start(parts.config)
                await parts.kubelet.stop()
        except (KubeletDied, OSError) as problem:
            why = str(problem).strip().rstrip(":")
            raise EnvironmentProblem(
                f"--kubelet {chosen}: wanted a kubelet that takes --config and answers on its "
                f"healthz and its read-only port; {why}"
            ) from None
