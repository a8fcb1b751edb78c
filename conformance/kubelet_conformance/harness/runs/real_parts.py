"""The parts of a case in real time: a kubelet process, a runtime socket, an API server over HTTP.

Each case has its own proxy socket, kubelet, API server and directories; what all cases share is a
`RealEnvironment`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fakecri import FakeNode
from fakecri.deviceplugin.registered import ServedRegistry
from fakecri.deviceplugin.serving import ServedPlugins
from fakecri.machine.logind import FakeLogind
from fakecri.machine.logind_bus import serve_logind
from fakecri.server import serve as serve_cri
from fakekubeapi import FakeApi
from fakekubeapi.cli import kubeconfig
from fakekubeapi.http import serve as serve_api
from kubelet_conformance.harness.api_server import ApiServer
from kubelet_conformance.harness.image_registry import ImageRegistries
from kubelet_conformance.harness.kubelets.base import NodePaths
from kubelet_conformance.harness.kubelets.own_options import read_config
from kubelet_conformance.harness.kubelets.process import ProcessKubelet
from kubelet_conformance.harness.kubelets.program import (
    REFKUBELET,
    Program,
    external,
    on_machine,
    own_address,
    own_addresses,
    with_bus,
    with_own_cgroups,
    with_own_plugins,
)
from kubelet_conformance.harness.limits import Pace, of_case
from kubelet_conformance.harness.machines.cgroup_trees import (
    CgroupTrees,
    machine_version,
    own_groups,
    trees_of,
)
from kubelet_conformance.harness.machines.disks import own_disk
from kubelet_conformance.harness.machines.fake_machine import set_up
from kubelet_conformance.harness.machines.given.machine import GivenMachine, given_machine
from kubelet_conformance.harness.manifest_server import ServedManifests
from kubelet_conformance.harness.manifest_url import URL
from kubelet_conformance.harness.node.parts import NODE_NAME, MachineParts, Parts, kubelet_config
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.offered import PROCESS, wants_given_machine
from kubelet_conformance.harness.runs.shared_kubelet import UNHURRIED, SharedKubelet
from kubelet_conformance.harness.runtimes.fake import FakeRuntime
from kubelet_conformance.harness.runtimes.real import RealRuntime
from kubelet_conformance.harness.sharing.router import CriRouter
from kubelet_conformance.registry import Case, Feature
from kubeobjects.structs import replace
from simclock import Clock, Ids, RealClock, Rng
from simclock.timewarp import WarpedLoop

NO_END_S: Final = 3600.0  # kubelets that want more write into this machine's /etc


def running_clock() -> Clock:
    """The clock of the running loop: the machine's, unless the loop is in warped time."""
    loop = asyncio.get_running_loop()
    return loop.clock if isinstance(loop, WarpedLoop) else RealClock()


class RealEnvironment(Struct, frozen=True):
    """What the cases of one real run share. `shared`: the directory below which everything must
    lie that kubelet and runtime both see. `upstream` None: each case has a fake of its own.
    `tls`: what fake pods serve HTTPS with."""

    choice: Choice
    shared: Path
    upstream: Any = None
    registries: ImageRegistries | None = None
    tls: ssl.SSLContext | None = None
    told: tuple[str, str] | None = None
    """Name and version of `upstream`, as it tells them; None without."""

    @asynccontextmanager
    async def parts(self, case: Case, paths: NodePaths) -> AsyncIterator[Parts]:
        """Parts for `case` on the running loop; everything is ended and removed afterwards."""
        clock = running_clock()
        endpoint = f"unix://{paths.base}/cri.sock"
        runtime = self._runtime(clock, endpoint, paths)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(runtime.close)
            await stack.enter_async_context(serve_cri(runtime.target, endpoint))
            api = await _api_server(case, paths, stack)
            program = self._program()
            plugins = ServedPlugins(paths.base / program.device_plugins)
            stack.push_async_callback(plugins.close)
            registry = ServedRegistry()
            stack.push_async_callback(registry.close)
            plugin_directory = plugins.directory if Feature.DEVICE_PLUGINS in case.needs else None
            config = _config(case, paths, self._own_config())
            manifests = await _manifests(case, config, stack)
            machine = None
            if wants_given_machine(case.needs, machine_version()):
                machine = await _given(case, runtime.machine, paths, stack)
                program = on_machine(program, machine, paths.log_links, plugin_directory)
            elif plugin_directory is not None:
                program = with_own_plugins(program, plugin_directory)
            own = await _of_its_own(case, program, paths, stack)
            if machine is not None:
                own = _on_given(own, case, machine, trees_of(runtime.machine, config))
            kubelet = self._kubelet(own.program, paths, endpoint, api)
            stack.push_async_callback(kubelet.close)
            yield Parts(
                kubelet=kubelet,
                runtime=runtime,
                api=api,
                clock=clock,
                pace=self._pace(case),
                paths=paths,
                config=config,
                machine=own.machine,
                plugins=plugins,
                registry=registry,
                manifests=manifests,
                addresses=own_addresses(),
            )

    @asynccontextmanager
    async def shared_kubelet(self, case: Case, paths: NodePaths) -> AsyncIterator[SharedKubelet]:
        """A kubelet that runs, as `case` wants it, for this case and others, until the block ends.
        Raises KubeletDied."""
        clock = running_clock()
        endpoint = f"unix://{paths.base}/cri.sock"
        async with AsyncExitStack() as stack:
            router = CriRouter(self._fake_runtime(clock, endpoint, paths).cri)
            await stack.enter_async_context(serve_cri(router, endpoint))
            api = await _api_server(case, paths, stack)
            config = {**UNHURRIED, **_config(case, paths, self._own_config())}
            kubelet = self._kubelet(self._program(), paths, endpoint, api)
            stack.push_async_callback(kubelet.close)
            await kubelet.start(config)
            yield SharedKubelet(
                kubelet=kubelet,
                router=router,
                make_runtime=partial(self._fake_runtime, clock, endpoint, paths),
                api=api.fake if api is not None else None,
                clock=clock,
                pace=self._pace,
                paths=paths,
                config=config,
            )

    def _kubelet(
        self, program: Program, paths: NodePaths, endpoint: str, api: ApiServer | None
    ) -> ProcessKubelet:
        """A kubelet that does not run yet, of `api` if that is not None."""
        return ProcessKubelet(
            program,
            paths,
            endpoint,
            node_name=NODE_NAME,
            kubeconfig=None if api is None else _kubeconfig(paths),
            pods_asked=None if api is None else api.pod_lists,
            patience=self.choice.patience,
        )

    def _pace(self, case: Case) -> Pace:
        pace = self.choice.pace(long=Feature.VIRTUAL_TIME in case.needs)
        return of_case(pace, case.id)

    def _own_config(self) -> Mapping[str, Any]:
        """The fields that the user gives to the kubelet. Raises OptionRefused."""
        file = self.choice.kubelet_config
        return read_config(Path(file)) if file else {}

    def _program(self) -> Program:
        """The program, with the flags of the user."""
        program = self._program_alone()
        return replace(program, command=(*program.command, *self.choice.kubelet_flags))

    def _program_alone(self) -> Program:
        if self.choice.kubelet == PROCESS:
            return REFKUBELET
        loop = asyncio.get_running_loop()
        prefix = loop.page.prefix if isinstance(loop, WarpedLoop) else ()
        return external(Path(self.choice.kubelet), prefix, own_address())

    def _runtime(self, clock: Clock, endpoint: str, paths: NodePaths) -> Any:
        if self.upstream is None:
            return self._fake_runtime(clock, endpoint, paths)
        return RealRuntime(self.upstream, clock, endpoint, self.registries)

    def _fake_runtime(self, clock: Clock, endpoint: str, paths: NodePaths) -> FakeRuntime:
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


def _config(case: Case, paths: NodePaths, own: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the kubelet; `own`: the user's fields, which a case may set otherwise.
    Pods of a fake use no memory of this machine: what they use is what the runtime tells. A case
    may switch that off."""
    config = kubelet_config(paths, {**own, **case.node_config})
    if gates := {**own.get("featureGates", {}), **case.node_config.get("featureGates", {})}:
        config["featureGates"] = gates
    if case.needs & {Feature.SHORTAGE, Feature.NODE_RESOURCES}:
        gates = config.get("featureGates", {})
        config["featureGates"] = {"PodAndContainerStatsFromCRI": True, **gates}
    return config


async def _manifests(
    case: Case, config: dict[str, Any], stack: AsyncExitStack
) -> ServedManifests | None:
    """The web server of a case that needs one; the configuration then names its port."""
    if Feature.MANIFEST_URL not in case.needs:
        return None
    server = ServedManifests()
    stack.push_async_callback(server.close)
    await server.start()
    if config.get("staticPodURL") == URL:
        config["staticPodURL"] = server.url
    return server


class _Own(Struct, frozen=True):
    """The parts of the machine that a case has to itself, and the kubelet configured for them."""

    program: Program
    machine: MachineParts


async def _of_its_own(
    case: Case, program: Program, paths: NodePaths, stack: AsyncExitStack
) -> _Own:
    """Make the disk, cgroups and system bus that the case needs to itself, until the stack is
    closed."""
    disk = cgroups = logind = None
    if Feature.OWN_DISK in case.needs:
        disk = await stack.enter_async_context(own_disk(paths.root))
    on_given_machine = wants_given_machine(case.needs, machine_version())
    if Feature.CGROUPS in case.needs and not on_given_machine:
        cgroups = await stack.enter_async_context(own_groups(paths.base.name))
        program = with_own_cgroups(program, cgroups.path())
    if Feature.SHUTDOWN in case.needs:
        logind = FakeLogind(delay_s=NO_END_S)
        program = with_bus(program, await _system_bus(logind, paths, stack))
    return _Own(program, MachineParts(disk=disk, cgroups=cgroups, logind=logind))


def _on_given(own: _Own, case: Case, machine: GivenMachine, trees: CgroupTrees) -> _Own:
    """The same on a given machine, whose numbers can be set, and which has cgroups of its own."""
    cgroups = trees if Feature.CGROUPS in case.needs else own.machine.cgroups
    return replace(
        own,
        machine=replace(own.machine, cgroups=cgroups, numbers_set=True, places=machine.places),
    )


async def _given(
    case: Case, node: FakeNode, paths: NodePaths, stack: AsyncExitStack
) -> GivenMachine:
    """The machine that the case asks for, given to its kubelet until the stack is closed."""
    set_up(node, case.needs, case.machine)
    base = paths.base / "machine"
    return await stack.enter_async_context(given_machine(node, running_clock(), base, paths.root))


async def _system_bus(logind: FakeLogind, paths: NodePaths, stack: AsyncExitStack) -> str:
    return await stack.enter_async_context(serve_logind(logind, paths.base))


async def _api_server(case: Case, paths: NodePaths, stack: AsyncExitStack) -> ApiServer | None:
    """The API server of a case that needs one; the kubeconfig leads to it."""
    if Feature.API not in case.needs:
        return None
    fake = FakeApi(running_clock(), Ids(Rng.from_system()))
    server = await stack.enter_async_context(await serve_api(fake, "127.0.0.1", 0))
    _kubeconfig(paths).write_text(kubeconfig(server.url))
    return ApiServer(fake)


def _kubeconfig(paths: NodePaths) -> Path:
    return paths.base / "kubeconfig"
