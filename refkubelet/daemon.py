"""The kubelet as a process: checks what the user gave, opens what is real, runs until a signal.

Everything a kubelet needs from the machine is made here and nowhere else: the real clock, the
runtime's socket, the API client, the servers. The order is by cost of a mistake: files first, then
the host, then sockets and ports, and only then anything that could touch a pod.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.config import (
    ConfigError,
    KubeletConfiguration,
    defaults_without_file,
    load_config,
)
from refkubelet.config.eviction_grammar import ThresholdError
from refkubelet.container_manager.cgroups.manager import ContainerManagerError
from refkubelet.container_manager.devices.manager import DIRECTORY as DEVICE_PLUGINS
from refkubelet.container_manager.devices.sockets import PluginSockets
from refkubelet.container_manager.start_checks import check_driver, check_host
from refkubelet.cri.client import CriClient
from refkubelet.cri.target import CriCallError
from refkubelet.cri.transport import EndpointError, connect
from refkubelet.eviction.cycle import EvictionConfig
from refkubelet.host.network import SocketNetwork
from refkubelet.host.real_machine import MachineError, RealMachine, apparmor_enabled
from refkubelet.kubelet import Kubelet, KubeletDeps
from refkubelet.kuberuntime.images.node_credentials import LoginDirs
from refkubelet.node.facts import NodeNameError, node_facts, node_name
from refkubelet.node.logind import Logind
from refkubelet.node.shutdown import shutdown_groups
from refkubelet.node.versions import runtime_version
from refkubelet.server.http import KubeletServers, ServerError, check_servers
from refkubelet.server.pages import ServerCallbacks
from refkubelet.server.pod_resources_server import PodResourcesServer
from refkubelet.volumes.mounting import mounts_for
from simclock import Clock, Ids, RealClock, Rng

log = logging.getLogger(__name__)

USER_ERRORS: Final = (
    ConfigError,
    ContainerManagerError,
    EndpointError,
    MachineError,
    NodeNameError,
    ServerError,
)
"""What the command line tells in one line, without a traceback."""
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
SYSTEMD: Final = Path("/run/systemd/system")
"""Is there where systemd is the first process."""
CGROUP_DRIVER_TRIES: Final = 3
CGROUP_DRIVER_PAUSE_S: Final = 2.0


async def run(options: argparse.Namespace) -> int:
    """Run until a signal; 0 then. Raises one of `USER_ERRORS` for what the user can set right."""
    config = configuration(options)
    check_servers(config, insecure=options.insecure_server)
    clock = RealClock()
    machine = RealMachine(clock)
    check_host(config, machine)
    rng = Rng.from_system() if options.seed is None else Rng(options.seed)
    async with contextlib.AsyncExitStack() as stack:
        api = _api_client(options.kubeconfig)
        if api is not None:
            stack.push_async_callback(api.aclose)
        runtime = await stack.enter_async_context(_runtime(config))
        config = await with_cgroup_driver(config, runtime.client, clock)
        check_driver(config, systemd_is_here=SYSTEMD.is_dir())
        name, root_dir = node_name(options.hostname_override), _root_dir(options.root_dir)
        ips = host_ips(options.node_ip, standalone=api is None)
        deps = KubeletDeps(
            target=runtime.client.target,
            machine=machine,
            clock=clock,
            rng=rng,
            ids=Ids(rng),
            node_name=name,
            root_dir=root_dir,
            api=api,
            network=SocketNetwork(),
            host_ips=ips,
            node_facts=node_facts(
                config,
                name,
                machine,
                root_dir=str(root_dir),
                node_ip=ips[0] if ips else "",
                runtime_version=runtime.version,
                apparmor=apparmor_enabled(),
            ),
            shutdown_source=Logind() if shutdown_groups(config) else None,
            login_dirs=LoginDirs(Path.cwd(), Path(os.environ.get("HOME") or "/")),
            device_plugins=PluginSockets(root_dir / DEVICE_PLUGINS),
            mounts=mounts_for(config.container_runtime_endpoint),
        )
        return await _serve(config, deps, insecure=options.insecure_server)


async def _serve(config: KubeletConfiguration, deps: KubeletDeps, *, insecure: bool) -> int:
    """The kubelet with its servers around it, until a signal or a failure of a part."""
    kubelet = Kubelet(config, deps)
    callbacks = ServerCallbacks(
        kubelet.pods_with_status,
        kubelet.healthy,
        metrics=kubelet.metrics.text,
        probe_metrics=kubelet.work.probes.metrics.text,
        summary=kubelet.stats.summary.summary,
    )
    servers = KubeletServers(config, callbacks, insecure=insecure)
    await servers.start()
    monitors = PodResourcesServer(deps.root_dir, kubelet.resources.pod_resources, deps.clock)
    await monitors.start()
    try:
        async with _stopped_by_signals(kubelet):
            log.info("kubelet of node %s started, seed %d", deps.node_name, deps.rng.seed)
            await kubelet.run()
        log.info("kubelet stopped; containers are left running")
        return 0
    finally:
        await monitors.stop()
        await servers.stop()


@contextlib.asynccontextmanager
async def _stopped_by_signals(kubelet: Kubelet) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []

    def stop() -> None:
        if not stopping:
            stopping.append(loop.create_task(kubelet.stop(), name="stop"))

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
        await asyncio.gather(*stopping)


def configuration(options: argparse.Namespace) -> KubeletConfiguration:
    """The file's configuration with the flags over it (CFG-001). Raises `ConfigError`."""
    config = load_config(options.config) if options.config else defaults_without_file()
    try:
        EvictionConfig.of(config)
    except ThresholdError as e:
        raise ConfigError(f"{options.config}: {e}") from None
    runtime = options.container_runtime_endpoint
    if runtime:
        config = replace(config, container_runtime_endpoint=runtime, image_service_endpoint=runtime)
    if options.image_service_endpoint:
        config = replace(config, image_service_endpoint=options.image_service_endpoint)
    return config


def _api_client(kubeconfig: str | None) -> LightkubeApiClient | None:
    return LightkubeApiClient.from_kubeconfig(kubeconfig) if kubeconfig else None


def _root_dir(path: str) -> Path:
    root = Path(path).absolute()
    try:
        (root / "pods").mkdir(parents=True, exist_ok=True, mode=0o750)
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise ConfigError(f"--root-dir {path}: cannot be used: {reason}") from None
    return root


def host_ips(node_ip: str, *, standalone: bool) -> tuple[str, ...]:
    """The node's addresses: `--node-ip`, else that of the default route, else none (NODE-032).

    Standalone and without `--node-ip` there are none: nothing is asked for them.
    """
    if node_ip:
        try:
            return (str(ipaddress.ip_address(node_ip)),)
        except ValueError:
            raise ConfigError(f"--node-ip {node_ip}: wanted an IP address") from None
    if standalone:
        return ()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: a documentation address, UDP
        except OSError:
            return ()
        return (str(probe.getsockname()[0]),)


@dataclass(frozen=True, slots=True)
class _Runtime:
    """A runtime that has shaken hands; `version`: `<name>://<version>` (NODE-033)."""

    client: CriClient
    version: str


@contextlib.asynccontextmanager
async def _runtime(config: KubeletConfiguration) -> AsyncIterator[_Runtime]:
    """The connected runtime. Raises `EndpointError` when nothing that speaks CRI is there."""
    endpoint = config.container_runtime_endpoint
    client, target, version = await connect(
        endpoint, config.runtime_request_timeout_s, config.image_service_endpoint
    )
    shown = runtime_version(version.runtime_name, version.runtime_version)
    log.info("runtime at %s: %s", endpoint, shown)
    try:
        yield _Runtime(client, shown)
    finally:
        await target.close()


async def with_cgroup_driver(
    config: KubeletConfiguration, client: CriClient, clock: Clock
) -> KubeletConfiguration:
    """The runtime's cgroup driver instead of the configured one, where it tells (CG-013, CRI-133).

    Raises `EndpointError` when it fails three times, 2 s apart.
    """
    failed = 0
    while True:
        try:
            driver = await client.cgroup_driver()
            break
        except CriCallError as error:
            failed += 1
            if failed == CGROUP_DRIVER_TRIES:
                endpoint = config.container_runtime_endpoint
                raise EndpointError(
                    f"the runtime at {endpoint} does not tell its cgroup driver: {error.text}"
                ) from None
        await clock.sleep(CGROUP_DRIVER_PAUSE_S)
    return config if driver is None else replace(config, cgroup_driver=driver)
