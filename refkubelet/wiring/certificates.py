"""The kubelet's certificates that come from the API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from refkubelet.api.client import ApiClient
from refkubelet.certificates.deadlines import Wanted, seconds_left
from refkubelet.certificates.guard import ClientGuard
from refkubelet.certificates.manager import CertificateManager, CertificateSettings
from refkubelet.certificates.requests import CLIENT, SERVING, client_of, server_of
from refkubelet.certificates.store import CertificateError, CertificateStore
from refkubelet.failures import Part
from refkubelet.node.status import node_addresses
from refkubelet.telemetry.metrics import Histograms, Metric, Numbers, one
from refkubelet.wiring.base import Base, CertificateDeps

ROTATED: Final = "RotateKubeletServerCertificate"
NAMES_SUFFICE: Final = "AllowDNSOnlyNodeCSR"
LIVES: Final = "kubelet_certificate_manager_server_rotation_seconds"


class Certificates(Struct, frozen=True):
    """`client` None: the kubelet shows what its kubeconfig says; `serving` None: the certificate
    of the main port is not asked for."""

    base: Base
    client: CertificateManager | None = None
    serving: CertificateManager | None = None

    def parts(self) -> Iterator[Part]:
        """What runs."""
        if self.client is not None:
            yield Part("client certificate", self.client.run)
            guard = ClientGuard(self.client, self.base.deps.clock)
            yield Part("client certificate guard", guard.run, fatal=(CertificateError,))
        if self.serving is not None:
            yield Part("serving certificate", self.serving.run)

    def metrics(self) -> Iterator[Metric]:
        """Of the page at /metrics (SRV-006.6)."""
        if self.client is not None:
            errors = "kubelet_certificate_manager_client_expiration_renew_errors"
            yield from self._numbers(self.client, "client", errors)
        if self.serving is not None:
            errors = "kubelet_server_expiration_renew_errors"
            yield from self._numbers(self.serving, "server", errors)
            lives, text = self.serving.metrics.lives, "How old replaced certificates became."
            yield Histograms(LIVES, text, lambda: {(): lives})

    def _numbers(self, manager: CertificateManager, kind: str, errors: str) -> Iterator[Numbers]:
        clock = self.base.deps.clock
        failed = one(lambda: manager.metrics.failures)
        seconds = one(lambda: seconds_left(manager.last, clock.now()))
        yield Numbers(errors, "Failures to renew the certificate.", failed, kind="counter")
        name = f"kubelet_certificate_manager_{kind}_ttl_seconds"
        yield Numbers(name, "Seconds until the certificate expires.", seconds)


def build_certificates(base: Base) -> Certificates:
    """Raises `CertificateError` for files that cannot be used."""
    config, deps = base.config, base.deps
    if deps.api is None or deps.certificates is None:
        return Certificates(base)
    serves = config.server_tls_bootstrap and base.gate(ROTATED, default=True)
    return Certificates(
        base,
        client=_client(base, deps.api, deps.certificates) if config.rotate_certificates else None,
        serving=_serving(base, deps.api, deps.certificates) if serves else None,
    )


def _client(base: Base, api: ApiClient, files: CertificateDeps) -> CertificateManager:
    deps = base.deps
    store = CertificateStore(files.directory, CLIENT.files, deps.clock, files.client_files)
    forced = files.client_data is not None and store.load() is None
    if forced and files.client_data is not None:
        store.update(*files.client_data)

    def asked() -> ApiClient:
        """The credentials of the start, until there are others (SRV-005.4)."""
        return api if manager.held is not None or files.bootstrap is None else files.bootstrap

    settings = CertificateSettings(
        CLIENT,
        wanted=lambda: client_of(deps.node.name),
        api=asked,
        forced=forced,
        renewed=files.renewed,
    )
    manager = CertificateManager(settings, store, deps.clock, deps.rng.stream("client").random)
    return manager


def _serving(base: Base, api: ApiClient, files: CertificateDeps) -> CertificateManager:
    deps, config, facts = base.deps, base.config, base.deps.node.facts
    key_pair = config.tls_cert_file, config.tls_private_key_file
    store = CertificateStore(
        files.directory,
        SERVING.files,
        deps.clock,
        (Path(key_pair[0]), Path(key_pair[1])) if all(key_pair) else None,
    )
    names_suffice = base.gate(NAMES_SUFFICE, default=False)

    def wanted() -> Wanted | None:
        rows = node_addresses(facts) if facts is not None else ()
        return server_of(deps.node.name, rows, names_suffice=names_suffice)

    settings = CertificateSettings(SERVING, wanted=wanted, api=lambda: api, may_change=True)
    return CertificateManager(settings, store, deps.clock, deps.rng.stream("serving").random)
