"""A certificate authority of the fake server: it signs approved certificate requests.

Needs the package `cryptography` (of the extra `kubelet`), which is imported when an authority is
made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kubeobjects.arguments import arguments_told

UNSIGNED_ROOT: Final = """\
-----BEGIN CERTIFICATE-----
MIIBoDCCAUegAwIBAgIUR2S7K9JaCyywZx7V+YUnsf0Zq3EwCgYIKoZIzj0EAwIw
JTEjMCEGA1UEAwwaZmFrZWFwaSByb290IHdpdGhvdXQgYSBrZXkwIBcNMjYxMTIz
MjEzNTE2WhgPMjEyNjEwMzAyMTM1MTZaMCUxIzAhBgNVBAMMGmZha2VhcGkgcm9v
dCB3aXRob3V0IGEga2V5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEXg3Nn7nv
+GLNkLdPI334Y/d0Y8Jmi6mgFU16tkcBYbUmekYUlVZg+IY2e8qmraYo74B+3kFN
Uo5Zi+UUCz4QOqNTMFEwHQYDVR0OBBYEFKkotUJ0ysnEEdp8tkUT/obfy68pMB8G
A1UdIwQYMBaAFKkotUJ0ysnEEdp8tkUT/obfy68pMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDRwAwRAIgL/7Mf8UbL2v98h3POfIW5g3heyaOhYCAJPMCiG24
8xsCIA+1XxOLR03CHsKAr/ZdwHYoVDQPgGQPWZODPdPUCoBm
-----END CERTIFICATE-----
"""
"""What kube-root-ca.crt holds of a server without an authority: a certificate, so that programs
that read it are content. Nobody has its key."""
YEAR_S: Final = 365 * 24 * 3600
_BACKDATE: Final = timedelta(minutes=5)
_ORDINARY: Final = ("digital signature", "key encipherment", "key agreement", "data encipherment")


@arguments_told
@dataclass(frozen=True)
class CertificateAuthority:
    """An authority with a key of its own. Make one with `make` or `load`."""

    root_pem: str
    """Its certificate."""
    _key: Any
    _certificate: Any

    @classmethod
    def make(cls, now: datetime, name: str = "kubernetes") -> CertificateAuthority:
        """A new authority whose certificate holds for ten years from five minutes before `now`
        (UTC). Raises: RuntimeError without the package cryptography."""
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives import hashes, serialization
            from cryptography.hazmat.primitives.asymmetric import ec
            from cryptography.x509.oid import NameOID
        except ImportError:
            raise RuntimeError(
                "a certificate authority needs the package cryptography: "
                "pip install 'refkubelet[kubelet]'"
            ) from None
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATE)
            .not_valid_after(now + timedelta(seconds=10 * YEAR_S))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(("digital signature", "cert sign")), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
        return cls(pem, key, certificate)

    @classmethod
    def load(cls, root_pem: str, key_pem: str) -> CertificateAuthority:
        """An authority that was saved earlier. Raises: ValueError for a text that is not a
        certificate or not a key, and for two that do not belong together."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization

        certificate = x509.load_pem_x509_certificate(root_pem.encode())
        try:
            key = serialization.load_pem_private_key(key_pem.encode(), password=None)
        except TypeError:
            raise ValueError("the key has a password; wanted one without") from None
        if key.public_key() != certificate.public_key():
            raise ValueError("the key is not that of the certificate")
        return cls(root_pem, key, certificate)

    def key_pem(self) -> str:
        """The private key, unencrypted: for a file that only its owner may read."""
        from cryptography.hazmat.primitives import serialization

        pem: bytes = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return pem.decode()

    def sign(
        self, request_pem: bytes, usages: Sequence[str], now: datetime, lasts_s: int = YEAR_S
    ) -> str:
        """The certificate, as PEM, for a request: its subject, names and key, from five minutes
        before `now` to `lasts_s` seconds after; `usages` as in the spec of a request (`client
        auth`, `server auth`). Raises: ValueError for text that is not a request, or whose
        signature is wrong."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID

        request = x509.load_pem_x509_csr(request_pem)
        if not request.is_signature_valid:
            raise ValueError("the signature of the certificate request is wrong")
        extended = {
            "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
            "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
        }
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATE)
            .not_valid_after(now + timedelta(seconds=lasts_s))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(usages), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        purposes = [extended[usage] for usage in usages if usage in extended]
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        for extension in request.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM).decode()


def _key_usage(usages: Sequence[str]) -> Any:
    from cryptography import x509

    signature, encipherment, agreement, data = (usage in usages for usage in _ORDINARY)
    return x509.KeyUsage(
        digital_signature=signature,
        content_commitment=False,
        key_encipherment=encipherment,
        data_encipherment=data,
        key_agreement=agreement,
        key_cert_sign="cert sign" in usages,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
