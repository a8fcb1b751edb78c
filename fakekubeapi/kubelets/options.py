"""How the server reaches kubelets: addresses, credentials, what it believes of them.

The names are those of kube-apiserver's flags.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from kubeobjects.arguments import arguments_told

ADDRESS_TYPES: Final = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")
PORT: Final = 10250


class CredentialsError(Exception):
    """Files of credentials that cannot be used; the text says which, and what was wanted."""


@arguments_told
@dataclass(frozen=True)
class KubeletOptions:
    """How to reach kubelets."""

    preferred_address_types: tuple[str, ...] = ADDRESS_TYPES
    """The first type of which the Node has an address is taken."""
    port: int = PORT
    """The port of a kubelet whose Node names none."""
    connect_s: float = 30.0
    """How long a connection to a kubelet, a pod or a service may take."""
    certificate_authority: Path | None = None
    """A file with the authority of the kubelets' certificates. None: they are not verified, as in a
    kube-apiserver without the flag."""
    client_certificate: Path | None = None
    """A file with the certificate that kubelets are shown, and those above it."""
    client_key: Path | None = None
    """A file with its key."""
    client_pem: str = ""
    """The same as text, certificate and key, where there are no files:
    `access.serving.kubelet_client_pem` makes it."""

    def check(self) -> None:
        """Raises: CredentialsError for files that cannot be used."""
        if self.client_key is not None and self.client_certificate is None:
            raise CredentialsError(f"{self.client_key}: a key wants its certificate, too")
        _ = self.verifying

    @cached_property
    def verifying(self) -> ssl.SSLContext:
        """How to speak TLS with kubelets. Raises: CredentialsError."""
        return self._with_client(context(self.certificate_authority))

    @cached_property
    def careless(self) -> ssl.SSLContext:
        """The same for requests that do not care who answers. Raises: CredentialsError."""
        return self._with_client(context(None))

    def _with_client(self, made: ssl.SSLContext) -> ssl.SSLContext:
        if self.client_certificate is not None:
            _show_files(made, self.client_certificate, self.client_key)
        elif self.client_pem:
            with tempfile.NamedTemporaryFile("w") as file:  # readable by its owner only
                file.write(self.client_pem)
                file.flush()
                made.load_cert_chain(file.name)
        return made


def context(certificate_authority: Path | None) -> ssl.SSLContext:
    """TLS without credentials of our own. The other side's certificate is verified against the
    authority in that file; None: it is not verified. Raises: CredentialsError."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if certificate_authority is None:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        return tls
    try:
        tls.load_verify_locations(certificate_authority)
    except OSError as error:  # that of ssl is one, too
        raise CredentialsError(
            f"{certificate_authority}: wanted certificates of an authority as PEM, "
            f"got: {error.strerror or error}"
        ) from None
    return tls


def _show_files(made: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    try:
        made.load_cert_chain(certificate, key)
    except OSError as error:
        files = f"{certificate}, {key}" if key is not None else f"{certificate}"
        raise CredentialsError(
            f"{files}: wanted a certificate and its key as PEM, got: {error.strerror or error}"
        ) from None
