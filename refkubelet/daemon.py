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
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.certificates.store import CertificateError
from refkubelet.config import (
    ConfigError,
    Given,
    KubeletConfiguration,
    load_config,
)
from refkubelet.config.credentials.files import load_credential_providers
from refkubelet.config.credentials.providers import GATE as SERVICE_ACCOUNT_TOKENS
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
from refkubelet.host.own_process import allow_files, set_oom_score_adj
from refkubelet.host.places import default_pod_logs_dir, logind_config
from refkubelet.host.programs import Processes
from refkubelet.host.real_machine import MachineError, RealMachine, apparmor_enabled
from refkubelet.kubelet import (
    Directories,
    Kubelet,
    KubeletDeps,
    NodePlugins,
    PluginSources,
    ThisNode,
)
from refkubelet.kuberuntime.images.node_credentials import LoginDirs
from refkubelet.node.facts import NodeNameError, node_facts, node_name
from refkubelet.node.labels import NodeLabelError, node_labels
from refkubelet.node.logind import Logind
from refkubelet.node.shutdown import shutdown_groups
from refkubelet.node.versions import runtime_version
from refkubelet.plugin_manager.sockets import GrpcSockets
from refkubelet.server.http import KubeletServers, Ports, ServerError, check_servers
from refkubelet.server.pod_resources.socket import PodResourcesServer
from refkubelet.telemetry.log_format import log_to_stderr, verbosity_of
from refkubelet.telemetry.spans import NO_SPANS, Spans
from refkubelet.volumes.csi.sockets import GrpcCsiSockets
from refkubelet.volumes.mounting import mounts_for
from refkubelet.wiring.api_access import Asked, open_access
from refkubelet.wiring.extras import check_extras
from refkubelet.wiring.own_directories import own_directories, shared_cgroups
from simclock import Clock, Ids, RealClock, Rng

log = logging.getLogger(__name__)

USER_ERRORS: Final = (
    CertificateError,
    ConfigError,
    ContainerManagerError,
    EndpointError,
    MachineError,
    NodeLabelError,
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
    _log_as_configured(config, options)
    check_extras(config)
    labels = node_labels(options.node_labels)
    logins = credential_plugins(config, options)
    check_servers(config, has_api=bool(options.kubeconfig), insecure=options.insecure_server)
    clock = RealClock()
    machine = _machine(config, clock)
    rng = Rng.from_system() if options.seed is None else Rng(options.seed)
    name = node_name(options.hostname_override)
    async with contextlib.AsyncExitStack() as stack:
        spans = stack.enter_context(_spans(config, name, clock, rng))
        access = await open_access(_asked(options, config, name), clock, rng, stack)
        if access.api is not None:
            access.api.trace(spans)
        runtime = await stack.enter_async_context(_runtime(config, spans))
        config, has_runtime_config = await with_cgroup_driver(config, runtime.client, clock)
        check_driver(config, systemd_is_here=SYSTEMD.is_dir())
        directories = _directories(options, config)
        ips = host_ips(options.node_ip, standalone=access.api is None)
        facts = node_facts(
            config,
            name,
            machine,
            root_dir=str(directories.root),
            node_ips=ips,
            runtime_version=runtime.version,
            apparmor=apparmor_enabled(),
            labels=labels,
        )
        deps = KubeletDeps(
            target=runtime.client.target,
            machine=machine,
            clock=clock,
            rng=rng,
            ids=Ids(rng),
            has_runtime_config=has_runtime_config,
            node=ThisNode(name, ips, facts),
            directories=directories,
            api=access.api,
            network=SocketNetwork(),
            plugins=_plugin_sources(directories, logins),
            shutdown_source=_shutdown_source(config, directories),
            mounts=mounts_for(config.container_runtime_endpoint),
            certificates=access.certificates,
            spans=spans,
        )
        return await _serve(config, deps, str(certificate_directory(options)))


def _machine(config: KubeletConfiguration, clock: Clock) -> RealMachine:
    """This machine, with this process's limits set. Raises `MachineError` if no kubelet with that
    configuration can run here."""
    machine = RealMachine(clock)
    check_host(config, machine)
    _limit_this_process(config)
    return machine


def _asked(options: argparse.Namespace, config: KubeletConfiguration, name: str) -> Asked:
    return Asked(
        kubeconfig=options.kubeconfig or "",
        bootstrap=options.bootstrap_kubeconfig,
        directory=certificate_directory(options),
        node_name=name,
        rotate=config.rotate_certificates,
    )


def _directories(options: argparse.Namespace, config: KubeletConfiguration) -> Directories:
    root, links = own_directories(options.root_dir, config)
    if problem := shared_cgroups(root, config):
        log.warning("%s", problem)
    return Directories(root, links, LoginDirs(Path.cwd(), Path(os.environ.get("HOME") or "/")))


def _plugin_sources(directories: Directories, logins: NodePlugins | None) -> PluginSources:
    devices = PluginSockets(directories.root / DEVICE_PLUGINS)
    return PluginSources(devices, GrpcSockets(), GrpcCsiSockets(), logins)


def _shutdown_source(config: KubeletConfiguration, directories: Directories) -> Logind | None:
    """None: nothing is to be done at a shutdown."""
    return Logind(logind_config(directories.root)) if shutdown_groups(config) else None


def certificate_directory(options: argparse.Namespace) -> Path:
    """`--cert-dir`, or its default."""
    return Path(options.cert_dir or Path(options.root_dir) / "pki").absolute()


async def _serve(config: KubeletConfiguration, deps: KubeletDeps, certificates: str) -> int:
    """The kubelet with its servers around it, until a signal or a failure of a part."""
    kubelet = Kubelet(config, deps)
    serving = kubelet.certificates.serving
    ports = Ports(lambda: kubelet.servers.main, lambda: kubelet.servers.read_only)
    servers = KubeletServers(
        config,
        ports,
        deps.clock,
        certificates=certificates,
        host_name=deps.node.name,
        asked_for=serving.pair if serving is not None else None,
    )
    await servers.start()
    monitors = PodResourcesServer(
        deps.directories.root,
        kubelet.resources.pod_resources,
        deps.clock,
        all_known=kubelet.sources.seen.ready,
        metrics=kubelet.counted.pod_resources,
    )
    await monitors.start()
    try:
        async with _stopped_by_signals(kubelet):
            log.info("kubelet of node %s started, seed %d", deps.node.name, deps.rng.seed)
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
    """File, drop-ins and flags as one configuration (CFG-001). Raises `ConfigError`."""
    config = load_config(
        options.config or None,
        drop_ins=options.config_dir or None,
        flags=[Given(*words) for words in options.fields],
        pod_logs_dir=default_pod_logs_dir(Path(options.root_dir).absolute()),
    )
    try:
        EvictionConfig.of(config)
    except ThresholdError as e:
        raise ConfigError(f"{options.config or 'configuration'}: {e}") from None
    return replace(config, seccomp_default=True) if options.seccomp_default else config


def credential_plugins(
    config: KubeletConfiguration, options: argparse.Namespace
) -> NodePlugins | None:
    """The credential provider plug-ins that the flags name (CFG-014). Raises `ConfigErrors`."""
    providers = load_credential_providers(
        options.image_credential_provider_config,
        options.image_credential_provider_bin_dir,
        tokens_on=config.feature_gates.get(SERVICE_ACCOUNT_TOKENS, True),
    )
    return NodePlugins(providers, Processes(), dict(os.environ)) if providers else None


def _log_as_configured(config: KubeletConfiguration, options: argparse.Namespace) -> None:
    """Write the log as `logging` says, where no flag says otherwise (CFG-001, CFG-012)."""
    log_config = config.logging
    verbosity = verbosity_of(log_config.verbosity) if options.v is None else options.v
    log_to_stderr(verbosity, options.logging_format or log_config.format)


def _limit_this_process(config: KubeletConfiguration) -> None:
    """Set what the kernel lets this process do. What it refuses is logged, as a warning if another
    value than the default is wanted; the kubelet goes on."""
    default = KubeletConfiguration()
    for name, value, usual, failed in (
        (
            "maxOpenFiles",
            config.max_open_files,
            default.max_open_files,
            allow_files(config.max_open_files),
        ),
        (
            "oomScoreAdj",
            config.oom_score_adj,
            default.oom_score_adj,
            set_oom_score_adj(config.oom_score_adj),
        ),
    ):
        if failed:
            level = logging.INFO if value == usual else logging.WARNING
            log.log(level, "%s %d: cannot be set: %s", name, value, failed)


@contextlib.contextmanager
def _spans(config: KubeletConfiguration, host: str, clock: Clock, rng: Rng) -> Iterator[Spans]:
    """Spans that go where `tracing` says. `check_extras` has seen that their library is there."""
    if config.tracing is None:
        yield NO_SPANS
        return
    from refkubelet.telemetry.otel import OtelSpans, collector, sampler

    spans = OtelSpans(
        sampler(config.tracing.sampling_rate_per_million),
        collector(config.tracing.endpoint),
        host=host,
        clock=clock,
        rng=rng,
    )
    try:
        yield spans
    finally:
        spans.close()


def host_ips(node_ip: str, *, standalone: bool) -> tuple[str, ...]:
    """The node's addresses: `--node-ip`, one or one of each family with a comma between them, else
    that of the default route, else none (NODE-032). Raises `ConfigError`.

    Standalone and without `--node-ip` there are none: nothing is asked for them.
    """
    if node_ip:
        try:
            addresses = [ipaddress.ip_address(text.strip()) for text in node_ip.split(",")]
        except ValueError:
            raise ConfigError(f"--node-ip {node_ip}: wanted an IP address") from None
        if len(addresses) > len({address.version for address in addresses}):
            raise ConfigError(
                f"--node-ip {node_ip}: must contain either a single IP or a dual-stack pair of IPs"
            )
        return tuple(map(str, addresses))
    if standalone:
        return ()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: a documentation address, UDP
        except OSError:
            return ()
        return (str(probe.getsockname()[0]),)


class _Runtime(Struct, frozen=True):
    """A runtime that has shaken hands; `version`: `<name>://<version>` (NODE-033)."""

    client: CriClient
    version: str


@contextlib.asynccontextmanager
async def _runtime(config: KubeletConfiguration, spans: Spans) -> AsyncIterator[_Runtime]:
    """The connected runtime. Raises `EndpointError` when nothing that speaks CRI is there."""
    endpoint = config.container_runtime_endpoint
    client, target, version = await connect(
        endpoint, config.runtime_request_timeout_s, config.image_service_endpoint, spans.headers
    )
    product = runtime_version(version.runtime_name, version.runtime_version)
    log.info("runtime at %s: %s", endpoint, product)
    try:
        yield _Runtime(client, product)
    finally:
        await target.close()


async def with_cgroup_driver(
    config: KubeletConfiguration, client: CriClient, clock: Clock
) -> tuple[KubeletConfiguration, bool]:
    """The runtime's cgroup driver instead of the configured one, where it tells, and whether it
    has the call for it (CG-013, CRI-133).

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
    if driver is None:
        log.info("the runtime lacks RuntimeConfig; the configured cgroup driver is taken")
        return config, False
    return replace(config, cgroup_driver=driver) if driver else config, True
