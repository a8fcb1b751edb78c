"""The kubelet's HTTP servers: the main port, the read-only port, healthz.

Rules: SRV-001, SRV-003, SRV-011. The main port speaks TLS and asks everybody who they are.
`start` binds all ports, so a port in use is an error before anything runs. What must never happen:
pod specs are served to a network without the administrator's consent: where the configuration lets
everybody in (anonymous clients, and AlwaysAllow), the main port keeps to loopback addresses.
aiohttp is imported when a server starts; a kubelet without servers does not need it.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from refkubelet.certificates.store import Pair
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.server.access.authentication import NotConfigured
from refkubelet.server.access.authorization import ALWAYS_ALLOW
from refkubelet.server.port import Port, healthz_port
from refkubelet.server.tls.context import TlsError, server_context
from simclock import Clock
from simclock.start_up import many_imports

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

log = logging.getLogger(__name__)


class ServerError(Exception):
    """A server cannot be started; the text names the field, the address and the reason."""


class _Endpoint(Struct, frozen=True):
    """One listening server of the configuration."""

    field: str
    host: str
    port: int
    answers: Port
    tls: ssl.SSLContext | None = None


class Ports(Struct, frozen=True):
    """What answers on the ports. `main` may raise `NotConfigured`."""

    main: Callable[[], Port]
    read_only: Callable[[], Port]


def check_servers(config: KubeletConfiguration, *, has_api: bool, insecure: bool) -> None:
    """Raise `ServerError` for a main port on which every client of the network could do everything
    (SRV-011), and for one that would have to ask an API server that there is not (SRV-014)."""
    if not config.enable_server:
        return
    if not has_api and config.server_tls_bootstrap:
        raise ServerError(
            "serverTLSBootstrap: there is no API server to ask for a certificate\n"
            "  give --kubeconfig, or set serverTLSBootstrap: false (or enableServer: false)"
        )
    if not has_api and (config.authentication.webhook.enabled or _asks_api(config)):
        webhook = "authentication" if config.authentication.webhook.enabled else "authorization"
        raise ServerError(
            f"no client provided, cannot use webhook {webhook}\n"
            "  give --kubeconfig, or set authentication.webhook.enabled: false, "
            "authentication.anonymous.enabled: true or authentication.x509.clientCAFile, and "
            f"authorization.mode: {ALWAYS_ALLOW} (or enableServer: false)"
        )
    open_to_all = config.authentication.anonymous.enabled and not _asks_api(config)
    if insecure or not open_to_all or is_loopback(config.address):
        return
    raise ServerError(
        f"port: with authentication.anonymous.enabled and authorization.mode {ALWAYS_ALLOW} every "
        f"client that reaches {config.address}:{config.port} could run commands in all pods\n"
        "  set one of both otherwise, or address: 127.0.0.1 (or enableServer: false) in the "
        "configuration, or give --insecure-server to listen there all the same"
    )


def _asks_api(config: KubeletConfiguration) -> bool:
    return config.authorization.mode != ALWAYS_ALLOW


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches the address; False for every host name."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


class KubeletServers:
    """Starts and stops the configured servers. `certificates`: the directory of the certificate
    that is made where none is configured. `asked_for`: where the one is that comes from the API
    server; None: none comes from there."""

    def __init__(
        self,
        config: KubeletConfiguration,
        ports: Ports,
        clock: Clock,
        *,
        certificates: str,
        host_name: str,
        asked_for: Callable[[], Pair | None] | None = None,
    ) -> None:
        self._config = config
        self._ports = ports
        self._clock = clock
        self._certificates = certificates
        self._host_name = host_name
        self._asked_for = asked_for
        self._runners: list[web.ServerRunner] = []

    async def start(self) -> None:
        """Listen on all configured ports. If one cannot be bound, close all and raise
        `ServerError`."""
        try:
            for endpoint in self._endpoints():
                await self._listen(endpoint)
        except (NotConfigured, TlsError) as problem:
            await self.stop()
            raise ServerError(str(problem)) from None
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close all servers that are open."""
        while self._runners:
            await self._runners.pop().cleanup()

    def _endpoints(self) -> list[_Endpoint]:
        """Raises `NotConfigured`, `TlsError`."""
        c = self._config
        places = []
        if c.enable_server:
            main = self._ports.main()
            tls = server_context(
                c, self._certificates, self._host_name, self._clock, asked_for=self._asked_for
            )
            places.append(_Endpoint("port", c.address, c.port, main, tls))
        if c.read_only_port:
            places.append(
                _Endpoint("readOnlyPort", c.address, c.read_only_port, self._ports.read_only())
            )
        if c.healthz_port:
            host = c.healthz_bind_address
            places.append(_Endpoint("healthzPort", host, c.healthz_port, healthz_port(self._clock)))
        return places

    async def _listen(self, endpoint: _Endpoint) -> None:
        """Bind the port and serve. Raises `ServerError`."""
        with many_imports():  # not at the top: a kubelet without servers needs no library for them
            from aiohttp import web

            from refkubelet.server.carrier import Carrier

        runner = web.ServerRunner(Carrier(endpoint.answers), shutdown_timeout=1.0)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, endpoint.host, endpoint.port, ssl_context=endpoint.tls)
        try:
            await site.start()
        except OSError as e:
            raise ServerError(_why_not(endpoint, e)) from None
        log.info("%s: serving on %s:%d", endpoint.field, endpoint.host, endpoint.port)
        if endpoint.field == "readOnlyPort" and not is_loopback(endpoint.host):
            log.warning(
                "readOnlyPort: every client that reaches %s:%d can read all pods with their "
                "variables",
                endpoint.host,
                endpoint.port,
            )


def _why_not(endpoint: _Endpoint, error: OSError) -> str:
    place = f"{endpoint.field}: cannot listen on {endpoint.host}:{endpoint.port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{place}: the address is in use, perhaps by another kubelet; "
            f"stop it or set another {endpoint.field}"
        )
    if error.errno == errno.EACCES:
        return f"{place}: permission denied; ports below 1024 need privileges"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{place}: no interface of this machine has that address"
    return f"{place}: {error.strerror or error}"
