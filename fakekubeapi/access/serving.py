"""TLS of `fakekubeapi serve`: the authority behind it, and the server's own certificate.

Needs the package `cryptography` (of the extra `kubelet`), which is imported when it is needed.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Collection
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from fakekubeapi.access.certificates import CertificateAuthority
from fakekubeapi.access.users import MASTERS

CERTIFICATE: Final = "ca.crt"
KEY: Final = "ca.key"
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default.svc", "127.0.0.1", "::1")
"""What clients on the same machine, and pods, call an API server."""
_USAGES: Final = ("digital signature", "server auth")
_CLIENT_USAGES: Final = ("digital signature", "client auth")
_CLIENT: Final = "kube-apiserver-kubelet-client"


class AuthorityError(Exception):
    """The files of an authority cannot be used; the text says which, why, and what to do."""


def authority_in(directory: Path | None, now: datetime) -> CertificateAuthority:
    """The authority that is kept in that directory, or a new one, which then is kept there; None: a
    new one that nobody keeps. Raises: AuthorityError for files that cannot be used, RuntimeError
    without the package cryptography."""
    if directory is None:
        return CertificateAuthority.make(now)
    certificate, key = directory / CERTIFICATE, directory / KEY
    try:
        if certificate.exists() or key.exists():
            return CertificateAuthority.load(certificate.read_text(), key.read_text())
        authority = CertificateAuthority.make(now)
        directory.mkdir(parents=True, exist_ok=True)
        with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(authority.key_pem())
        certificate.write_text(authority.root_pem)
        return authority
    except OSError as error:
        raise AuthorityError(
            f"{error.filename}: {error.strerror}; {CERTIFICATE} and {KEY} belong together: restore "
            "both, or remove both for a new authority"
        ) from None
    except ValueError as error:
        raise AuthorityError(
            f"{certificate} and {key} are no authority ({error}); restore both, or remove both for "
            "a new one"
        ) from None


def server_context(
    authority: CertificateAuthority, hosts: Collection[str], now: datetime
) -> ssl.SSLContext:
    """How the server speaks TLS: with a certificate of the authority for these names and addresses
    and for those of this machine; a certificate that a client shows is verified, none is wanted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:  # readable by its owner only
        file.write(server_pem(authority, hosts, now).encode())
        file.flush()
        context.load_cert_chain(file.name)
    context.load_verify_locations(cadata=authority.root_pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def server_pem(authority: CertificateAuthority, hosts: Collection[str], now: datetime) -> str:
    """A server's certificate for these names and addresses and for those of this machine, and its
    key."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    names = (*hosts, *_NAMES)
    pem, key = _signed(authority, subject, names, usages=_USAGES, now=now)
    return pem + key.decode()


def kubelet_client_pem(authority: CertificateAuthority, now: datetime) -> str:
    """What the server shows kubelets: a certificate of a member of system:masters, and its key.
    Kubelets take it that have the authority as their `clientCAFile`."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject: list[x509.NameAttribute[str]] = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, MASTERS),
        x509.NameAttribute(NameOID.COMMON_NAME, _CLIENT),
    ]
    pem, key = _signed(authority, x509.Name(subject), (), usages=_CLIENT_USAGES, now=now)
    return pem + key.decode()


def _signed(
    authority: CertificateAuthority,
    subject: Any,
    hosts: Collection[str],
    *,
    usages: Collection[str],
    now: datetime,
) -> tuple[str, bytes]:
    """A certificate for that subject and those names, and its new key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names := [_general_name(x509, host) for host in dict.fromkeys(hosts)]:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    request = builder.sign(key, hashes.SHA256())
    pem = authority.sign(request.public_bytes(serialization.Encoding.PEM), tuple(usages), now)
    return pem, key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _general_name(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
