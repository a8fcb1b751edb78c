"""How a kubelet process reaches the API server: with which client, and with which credentials.

With `--bootstrap-kubeconfig` a node that has no valid client certificate gets one: where
certificates are rotated, while the kubelet runs; else before it starts.
Rules: SRV-005, SRV-007. Upstream: cmd/kubelet/app/server.go: buildKubeletClientConfig;
pkg/kubelet/certificate/bootstrap.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from refkubelet.api.client import ApiError
from refkubelet.certificates.following import RequestError
from refkubelet.certificates.manager import CertificateManager, CertificateSettings
from refkubelet.certificates.requests import CLIENT, client_of
from refkubelet.certificates.store import CertificateError, CertificateStore, Pair
from refkubelet.config import ConfigError
from refkubelet.wiring.base import CertificateDeps
from simclock import Clock, Rng

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

    from refkubelet.api.lightkube_client import LightkubeApiClient

log = logging.getLogger(__name__)

BOOTSTRAP_S: Final = 3600.0
"""So long the start waits for a first certificate that is not renewed."""
SERVER_WITHIN_S: Final = 60.0
"""So long it waits for the API server to answer at all."""
TRY_S: Final = 2.0


class Asked(Struct, frozen=True):
    """What the command line says of the API server."""

    kubeconfig: str
    """"": there is none."""
    bootstrap: str
    """"": a kubeconfig must have credentials."""
    directory: Path
    """Of certificates: `--cert-dir`."""
    node_name: str
    rotate: bool
    """`rotateCertificates`."""

    def store(self, clock: Clock, files: Pair | None = None) -> CertificateStore:
        """The kubelet's client certificates."""
        return CertificateStore(self.directory, CLIENT.files, clock, files)


class ApiAccess(Struct, frozen=True):
    """The client, None for a kubelet of its own, and what certificates need."""

    api: LightkubeApiClient | None
    certificates: CertificateDeps


async def open_access(asked: Asked, clock: Clock, rng: Rng, stack: AsyncExitStack) -> ApiAccess:
    """The way to the API server; clients are closed with `stack`. Raises `ConfigError`,
    `CertificateError`."""
    if not asked.kubeconfig:
        if asked.bootstrap:
            raise ConfigError(
                "--bootstrap-kubeconfig: there is no --kubeconfig to be written\n"
                "  say with --kubeconfig where the kubelet's own one shall be"
            )
        return ApiAccess(None, CertificateDeps(asked.directory))
    # Here, not above: a standalone kubelet goes without it.
    from refkubelet.api.kubeconfig import read_kubeconfig
    from refkubelet.api.lightkube_client import LightkubeApiClient

    bootstrap = await _bootstrap(asked, clock, rng, stack)
    if not asked.rotate:
        api = LightkubeApiClient.from_kubeconfig(asked.kubeconfig)
        stack.push_async_callback(api.aclose)
        return ApiAccess(api, CertificateDeps(asked.directory))
    config = read_kubeconfig(asked.kubeconfig)
    return _rotating(asked, config, bootstrap, clock=clock, stack=stack)


def _rotating(
    asked: Asked,
    config: SingleConfig,
    bootstrap: LightkubeApiClient | None,
    *,
    clock: Clock,
    stack: AsyncExitStack,
) -> ApiAccess:
    """A client that shows the certificate of --cert-dir, else that of its kubeconfig (SRV-005.2).
    Raises `ConfigError`, `CertificateError`."""
    from refkubelet.api.lightkube_client import KEEP, LightkubeApiClient
    from refkubelet.certificates.bootstrap import named_files, own_data

    files, data = named_files(config), own_data(config)
    store = asked.store(clock, files)
    store.load()
    pair = store.pair() or (KEEP if data is not None else None)
    api = LightkubeApiClient.from_config(config, asked.kubeconfig, pair=pair)
    stack.push_async_callback(api.aclose)

    async def renewed(pair: Pair) -> None:
        log.info("client certificate: a new one is used; connections with the old one are closed")
        await api.use_certificate(pair)

    return ApiAccess(
        api,
        CertificateDeps(
            asked.directory,
            client_files=files,
            client_data=data,
            bootstrap=bootstrap,
            renewed=renewed,
        ),
    )


async def _bootstrap(
    asked: Asked, clock: Clock, rng: Rng, stack: AsyncExitStack
) -> LightkubeApiClient | None:
    """The client with bootstrap credentials; None: they are not needed. Raises `ConfigError`,
    `CertificateError`."""
    if not asked.bootstrap:
        return None
    from refkubelet.api.lightkube_client import LightkubeApiClient
    from refkubelet.certificates.bootstrap import read_bootstrap, unusable, write_kubeconfig

    path = Path(asked.kubeconfig).absolute()
    reason = unusable(path, clock.now())
    if not reason:
        return None
    log.info("%s: asking for a certificate with --bootstrap-kubeconfig", reason)
    config = read_bootstrap(asked.bootstrap)
    client = LightkubeApiClient.from_config(config, asked.bootstrap)
    stack.push_async_callback(client.aclose)
    if not asked.rotate:
        await first_certificate(asked, client, clock, rng)
    write_kubeconfig(path, config, asked.store(clock).current_path)
    return client


async def first_certificate(
    asked: Asked, client: LightkubeApiClient, clock: Clock, rng: Rng
) -> None:
    """Ask for one certificate and wait for it, at most an hour (SRV-007.3). Raises
    `CertificateError`."""
    from refkubelet.certificates.bootstrap import TEMPORARY_KEY, kept_key, request_name

    settings = CertificateSettings(
        CLIENT,
        wanted=lambda: client_of(asked.node_name),
        api=lambda: client,
        signed_within_s=BOOTSTRAP_S,
    )
    store = asked.store(clock)
    manager = CertificateManager(settings, store, clock, rng.stream("bootstrap").random)
    key = kept_key(asked.directory)
    name = request_name(key, asked.node_name)
    until_s = clock.monotonic_s() + SERVER_WITHIN_S
    while True:
        try:
            await manager.ask_once(key, name)
            break
        except ApiError as error:
            if error.status or clock.monotonic_s() >= until_s:
                raise _refused(asked, error) from None
            log.warning("no client certificate yet: %s", error)
        except (RequestError, OSError, ValueError) as error:
            raise _refused(asked, error) from None
        await asyncio.sleep(TRY_S)
    (asked.directory / TEMPORARY_KEY).unlink(missing_ok=True)


def _refused(asked: Asked, error: Exception) -> CertificateError:
    return CertificateError(
        f"--bootstrap-kubeconfig {asked.bootstrap}: no client certificate: {error}\n"
        "  see that its credentials may ask for one, and that somebody approves it"
    )
