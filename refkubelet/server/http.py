"""The kubelet's HTTP servers: the main port, the read-only port, healthz.

Rules: SRV-001, SRV-002, SRV-010 (read-only port). The main port uses TLS if the configuration names
a certificate and key, else plain HTTP (upstream makes a self-signed pair). It does not authenticate
yet, so it listens only on loopback addresses, unless it is told to be insecure (SRV-011). `start`
binds all ports, so a port in use is an error before anything runs. What must never happen: pod
specs are served to a network without the administrator's consent. aiohttp is imported when a server
starts; a kubelet without servers does not need it.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.server.pages import ServerCallbacks, healthz_app, pods_app

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

log = logging.getLogger(__name__)


class ServerError(Exception):
    """A server cannot be started; the text names the field, the address and the reason."""


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One listening server of the configuration."""

    field: str
    host: str
    port: int
    app: web.Application
    tls: ssl.SSLContext | None = None


def check_servers(config: KubeletConfiguration, *, insecure: bool) -> None:
    """Raise `ServerError` for a main port that every client of the network could read (SRV-011)."""
    if not config.enable_server or insecure or is_loopback(config.address):
        return
    raise ServerError(
        f"port: refkubelet does not authenticate yet, so every client that reaches "
        f"{config.address}:{config.port} could read all pods with their variables, whatever the "
        "fields authentication and authorization say\n"
        "  set address: 127.0.0.1 (or enableServer: false) in the configuration, or give "
        "--insecure-server to listen there all the same"
    )


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches the address; False for every host name."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


class KubeletServers:
    """Starts and stops the configured servers. `insecure`: the main port may listen beyond loopback
    although it does not authenticate."""

    def __init__(
        self, config: KubeletConfiguration, callbacks: ServerCallbacks, *, insecure: bool = False
    ) -> None:
        self._config = config
        self._callbacks = callbacks
        self._insecure = insecure
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        """Listen on all configured ports. If one cannot be bound, close all and raise
        `ServerError`."""
        check_servers(self._config, insecure=self._insecure)
        try:
            for endpoint in self._endpoints():
                await self._listen(endpoint)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close all servers that are open."""
        while self._runners:
            await self._runners.pop().cleanup()

    def _endpoints(self) -> list[_Endpoint]:
        c = self._config
        found = []
        if c.enable_server:
            app = pods_app(self._callbacks, debug_paths=False)
            found.append(
                _Endpoint(field="port", host=c.address, port=c.port, app=app, tls=self._tls())
            )
        if c.read_only_port:
            app = pods_app(self._callbacks, debug_paths=True)
            found.append(_Endpoint("readOnlyPort", c.address, c.read_only_port, app))
        if c.healthz_port:
            host = c.healthz_bind_address
            found.append(_Endpoint("healthzPort", host, c.healthz_port, healthz_app()))
        return found

    def _tls(self) -> ssl.SSLContext | None:
        c = self._config
        if not c.tls_cert_file:
            return None
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(c.tls_cert_file, c.tls_private_key_file)
        except (OSError, ssl.SSLError) as e:
            files = f"tlsCertFile {c.tls_cert_file}, tlsPrivateKeyFile {c.tls_private_key_file}"
            raise ServerError(f"{files}: cannot be used: {e.strerror or e}") from None
        return context

    async def _listen(self, endpoint: _Endpoint) -> None:
        """Bind the port and serve. Raises `ServerError`."""
        from aiohttp import web

        runner = web.AppRunner(
            endpoint.app, access_log=None, shutdown_timeout=1.0, logger=_log_of_requests()
        )
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, endpoint.host, endpoint.port, ssl_context=endpoint.tls)
        try:
            await site.start()
        except OSError as e:
            raise ServerError(_why_not(endpoint, e)) from None
        log.info("%s: serving on %s:%d", endpoint.field, endpoint.host, endpoint.port)
        if endpoint.field == "port" and not is_loopback(endpoint.host):
            log.warning(
                "port: every client that reaches %s:%d can read all pods with their variables "
                "(--insecure-server)",
                endpoint.host,
                endpoint.port,
            )


def _log_of_requests() -> logging.Logger:
    """A logger without the errors of malformed requests, with which any client could fill the log;
    the clients get answers."""
    from aiohttp.http_exceptions import HttpProcessingError

    def is_ours(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)

    http = logging.getLogger(f"{__name__}.http")
    http.filters[:] = [is_ours]
    return http


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
