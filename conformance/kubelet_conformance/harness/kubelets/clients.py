"""Clients of the kubelet's main port: an authority of the case's own, and what it signs.

The kubelet's own certificate is not looked at: what a case wants is on the other side.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from simclock import RealClock

GOOD_FOR: Final = timedelta(days=1)
AUTHORITY: Final = "ca"
Owner = tuple[str, tuple[str, ...]]
"""A common name and organizations."""


def make_authority(directory: Path) -> Path:
    """The certificate file of an authority, which is made if it is not there."""
    file = directory / f"{AUTHORITY}.crt"
    if not file.exists():
        directory.mkdir(parents=True, exist_ok=True)
        _make(directory, AUTHORITY, ("clients of the case", ()))
    return file


def client_context(directory: Path, owner: Owner | None) -> ssl.SSLContext:
    """How to connect as `owner`, with a certificate of the authority there; None: without one."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if owner is not None:
        make_authority(directory)
        name = "-".join(["client", owner[0], *owner[1]]).replace(":", "_").replace("/", "_")
        if not (directory / f"{name}.crt").exists():
            _make(directory, name, owner)
        context.load_cert_chain(directory / f"{name}.crt", directory / f"{name}.key")
    return context


def _make(directory: Path, name: str, owner: Owner) -> None:
    """Write NAME.crt and NAME.key; the authority signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(owner)
    issuer, signer = subject, key
    is_authority = name == AUTHORITY
    if not is_authority:
        issuer, signer = _authority(directory)
    moment = datetime.fromtimestamp(RealClock().wall_ns() // 10**9, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - GOOD_FOR)
        .not_valid_after(moment + GOOD_FOR)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / f"{name}.key").write_bytes(secret)
    (directory / f"{name}.crt").write_bytes(certificate.public_bytes(pem))


def _authority(directory: Path) -> tuple[Any, Any]:
    """The name and the key of the authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    certificate = x509.load_pem_x509_certificate((directory / f"{AUTHORITY}.crt").read_bytes())
    key = serialization.load_pem_private_key((directory / f"{AUTHORITY}.key").read_bytes(), None)
    return certificate.subject, key


def _subject(owner: Owner) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    name, organizations = owner
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
