"""The TLS context of the main port, made anew when its files change.

A connection gets the context of the files as they are: certificate, key and the authority of
clients may be exchanged while the kubelet runs. Files that cannot be used leave the last good ones
in place. What must never happen here: a client is believed whom the authority did not sign, or a
change of files ends the server.
Rules: SRV-003, SRV-004. Upstream: cmd/kubelet/app/server.go: InitializeTLS; pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from refkubelet.certificates.store import Pair
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.failures import Complaints
from refkubelet.server.tls.names import cipher_string, version_of
from refkubelet.server.tls.self_signed import pair_in
from simclock import Clock

log = logging.getLogger(__name__)
NO_CERTIFICATE: Final = "no serving certificate available for the kubelet"
LOOK_S: Final = 1.0
"""Files are looked at once in so many seconds, when a connection comes."""


class TlsError(Exception):
    """The main port cannot speak TLS; the text names the field and the file."""


def server_context(
    config: KubeletConfiguration,
    directory: str,
    host_name: str,
    clock: Clock,
    *,
    asked_for: Callable[[], Pair | None] | None = None,
) -> ssl.SSLContext:
    """The context to listen with. `asked_for`: where the certificate is that comes from the API
    server; None: it does not come from there. Raises `TlsError`."""
    if asked_for is not None:
        return _Contexts(config, asked_for, clock).listening
    certificate, key = config.tls_cert_file, config.tls_private_key_file
    if not certificate:
        try:
            certificate, key = pair_in(directory, host_name, clock)
        except OSError as problem:
            why = problem.strerror or problem
            raise TlsError(
                f"--cert-dir {directory}: the certificate of the main port cannot be made: {why}\n"
                "  name another directory, or set tlsCertFile and tlsPrivateKeyFile"
            ) from None
    pair = Path(certificate), Path(key)
    return _Contexts(config, lambda: pair, clock).listening


class _Contexts:
    """The newest context, and the one that listens and hands connections to it. While `pair` has no
    certificate, connections are refused (SRV-004.4)."""

    def __init__(
        self, config: KubeletConfiguration, pair: Callable[[], Pair | None], clock: Clock
    ) -> None:
        self._config = config
        self._pair = pair
        self._clock = clock
        self._complaints = Complaints(log, clock)
        self._looked_s = clock.monotonic_s()
        self._seen = self._files()
        self._newest = self._made() if pair() is not None else None
        self.listening = self._made()
        self.listening.sni_callback = self._connected

    def _made(self) -> ssl.SSLContext:
        """Raises `TlsError`."""
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.minimum_version = version_of(config.tls_min_version)
            if suites := cipher_string(config.tls_cipher_suites):
                context.set_ciphers(suites)
        except (ValueError, ssl.SSLError) as problem:
            raise TlsError(f"tlsMinVersion, tlsCipherSuites: {problem}") from None
        context.set_alpn_protocols(["http/1.1"])
        if (pair := self._pair()) is not None:
            certificate, key = pair
            try:
                context.load_cert_chain(certificate, key)
            except (OSError, ssl.SSLError) as e:
                files = f"tlsCertFile {certificate}, tlsPrivateKeyFile {key}"
                raise TlsError(f"{files}: cannot be used: {e.strerror or e}") from None
        if authority := config.authentication.x509.client_ca_file:
            _trust(context, authority)
        return context

    def _connected(self, connection: Any, name: str | None, context: ssl.SSLContext) -> int | None:
        """A client has said hello: it gets the newest context, or the alert that is returned."""
        now_s = self._clock.monotonic_s()
        if self._newest is None or now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._look()
        if self._newest is None:
            self._complaints.failed("port", TlsError(NO_CERTIFICATE), TlsError)
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        self._complaints.over("port")
        connection.context = self._newest
        return None

    def _look(self) -> None:
        files = self._files()
        if files == self._seen:
            return
        self._seen = files
        try:
            if self._pair() is None:
                self._newest = None
                return
            self._newest = self._made()
        except TlsError as problem:
            log.error("%s; the last ones are used on", problem)

    def _files(self) -> tuple[tuple[int, int, int] | None, ...]:
        """What would change with the files."""
        names = (*(self._pair() or ()), self._config.authentication.x509.client_ca_file)
        return tuple(_state(name) for name in names if name)


def _trust(context: ssl.SSLContext, authority: str) -> None:
    """Ask clients for certificates, and believe those that the file's authorities signed."""
    try:
        context.load_verify_locations(cafile=authority)
    except (OSError, ssl.SSLError) as e:
        raise TlsError(
            f"authentication.x509.clientCAFile {authority}: cannot be used: {e.strerror or e}"
        ) from None
    context.verify_mode = ssl.CERT_OPTIONAL


def _state(path: str | Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
