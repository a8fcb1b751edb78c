"""Makes a certificate for the main port where none is configured: `kubelet.crt`, `kubelet.key`.

A pair that is there and readable is kept. The certificate is signed by an authority that is made
for it and forgotten; both are in the file. It is good for a year.
Rules: SRV-003.1. Upstream: cmd/kubelet/app/server.go: InitializeTLS;
staging/src/k8s.io/client-go/util/cert: GenerateSelfSignedCertKey.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from simclock import Clock

CERTIFICATE: Final = "kubelet.crt"
KEY: Final = "kubelet.key"
KEY_BITS: Final = 2048
GOOD_FOR: Final = timedelta(days=365)
BEGINS_BEFORE: Final = timedelta(hours=1)
"""Clocks of clients may be late."""


def pair_in(directory: str, host_name: str, clock: Clock) -> tuple[str, str]:
    """The paths of certificate and key, which are made if one of them cannot be read. Raises
    OSError."""
    certificate, key = Path(directory) / CERTIFICATE, Path(directory) / KEY
    if not (_readable(certificate) and _readable(key)):
        chain, secret = make_pair(host_name, clock)
        certificate.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _write(certificate, chain, 0o644)
        _write(key, secret, 0o600)
    return str(certificate), str(key)


def _readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Whole or not at all, and never readable for more than `mode` says."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file, "wb") as out:
        out.write(data)
    beside.replace(path)


def make_pair(host_name: str, clock: Clock) -> tuple[bytes, bytes]:
    """Certificate chain and key in PEM."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    moment = datetime.fromtimestamp(clock.wall_ns() // 10**9, UTC)
    authority_key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    stamp = int(moment.timestamp())
    authority = _authority(f"{host_name}-ca@{stamp}", authority_key, moment)
    own = _server(f"{host_name}@{stamp}", host_name, key, (authority, authority_key), moment)
    pem = serialization.Encoding.PEM
    chain = own.public_bytes(pem) + authority.public_bytes(pem)
    secret = key.private_bytes(
        pem,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return chain, secret


def _authority(name: str, key: Any, now: datetime) -> Any:
    from cryptography import x509

    usage = _usage(key_cert_sign=True)
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    subject = _name(name)
    return (
        _builder(subject, subject, key, now)
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
        .sign(key, _sha256())
    )


def _server(name: str, host_name: str, key: Any, issuer: tuple[Any, Any], now: datetime) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority, authority_key = issuer
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    served = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    names = x509.SubjectAlternativeName([x509.DNSName(host_name)])
    return (
        _builder(_name(name), authority.subject, key, now)
        .add_extension(constraints, critical=True)
        .add_extension(_usage(), critical=True)
        .add_extension(served, critical=False)
        .add_extension(names, critical=False)
        .sign(authority_key, _sha256())
    )


def _builder(subject: Any, issuer: Any, key: Any, now: datetime) -> Any:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BEGINS_BEFORE)
        .not_valid_after(now + GOOD_FOR)
    )


def _usage(*, key_cert_sign: bool = False) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=key_cert_sign,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _sha256() -> Any:
    from cryptography.hazmat.primitives import hashes

    return hashes.SHA256()
