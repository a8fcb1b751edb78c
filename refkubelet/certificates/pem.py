"""Keys, requests for certificates, and certificates, as PEM texts.

`cryptography` is imported when it is needed. What must never happen here: a private key gets into
an error, a log line or any other text than that of its file.
Rules: SRV-004, SRV-005. Upstream: client-go util/certificate/certificate_manager.go: generateCSR.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from refkubelet.certificates.deadlines import Held, Wanted


class PemError(ValueError):
    """A text is no usable pair of certificate and key; says why, and shows nothing of it."""


def new_key() -> bytes:
    """A new key on the curve P-256."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def request_for(wanted: Wanted, key_pem: bytes) -> bytes:
    """A request for a certificate of that key, signed with it. Raises `PemError`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    key = _key(key_pem)
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(wanted))
    names: list[Any] = [x509.DNSName(name) for name in wanted.dns_names]
    names += [x509.IPAddress(ipaddress.ip_address(each)) for each in wanted.addresses]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def held_in(certificates: bytes, key_pem: bytes) -> Held:
    """The first certificate of a text, which must be of that key. Raises `PemError`."""
    certificate = _certificates(certificates)[0]
    if certificate.public_key() != _key(key_pem).public_key():
        raise PemError("the private key is not that of the certificate")
    return _held(certificate)


def expiries(certificates: bytes) -> list[Held]:
    """All certificates of a text. Raises `PemError`."""
    return [_held(certificate) for certificate in _certificates(certificates)]


def _held(certificate: Any) -> Held:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    subject = certificate.subject

    def said(oid: Any) -> list[str]:
        return [str(each.value) for each in subject.get_attributes_for_oid(oid)]

    return Held(
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        common_name=next(iter(said(NameOID.COMMON_NAME)), ""),
        organizations=frozenset(said(NameOID.ORGANIZATION_NAME)),
        dns_names=frozenset(names.get_values_for_type(x509.DNSName)),
        addresses=frozenset(str(each) for each in names.get_values_for_type(x509.IPAddress)),
    )


def _certificates(text: bytes) -> list[Any]:
    from cryptography import x509

    try:
        return list(x509.load_pem_x509_certificates(text))
    except ValueError:
        raise PemError("there is no certificate in it") from None


def _key(text: bytes) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        return serialization.load_pem_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise PemError("there is no private key in it") from None


def _subject(wanted: Wanted) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    organizations = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in wanted.organizations
    ]
    # a node's name may be longer than the 64 characters of a common name: Go does not mind
    name = x509.NameAttribute(NameOID.COMMON_NAME, wanted.common_name, _validate=False)
    return x509.Name([*organizations, name])
