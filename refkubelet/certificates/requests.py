"""What is asked for in a CertificateSigningRequest, and what became of it. Pure.

Rules: SRV-004, SRV-005, SRV-006. Upstream: pkg/kubelet/certificate/kubelet.go; client-go
util/certificate/csr/csr.go: RequestCertificate, WaitForCertificate.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from lightkube.models.certificates_v1 import CertificateSigningRequest
from msgspec import Struct

from refkubelet.certificates.deadlines import Wanted

GROUP: Final = "system:nodes"
USER: Final = "system:node:"
APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"
_ADDRESSES: Final = ("InternalIP", "ExternalIP")
_NAMES: Final = ("InternalDNS", "ExternalDNS")


class Purpose(Struct, frozen=True):
    """What a certificate is for."""

    name: str
    """In log lines: client, serving."""
    signer: str
    """`spec.signerName`."""
    usages: tuple[str, ...]
    """`spec.usages`. Encipherment of keys is for RSA; the kubelet's keys are of elliptic curves."""
    files: str
    """How the files in --cert-dir begin."""


CLIENT: Final = Purpose(
    name="client",
    signer="kubernetes.io/kube-apiserver-client-kubelet",
    usages=("digital signature", "client auth"),
    files="kubelet-client",
)
SERVING: Final = Purpose(
    name="serving",
    signer="kubernetes.io/kubelet-serving",
    usages=("digital signature", "server auth"),
    files="kubelet-server",
)


class Outcome(Enum):
    """What became of a request."""

    WAITS = "waits"
    ISSUED = "issued"
    DENIED = "denied"
    FAILED = "failed"


def client_of(node_name: str) -> Wanted:
    """Whom the certificate names that a kubelet shows to the API server (SRV-005)."""
    return Wanted(USER + node_name, (GROUP,))


def server_of(
    node_name: str, addresses: Sequence[Mapping[str, str]], *, names_suffice: bool = False
) -> Wanted | None:
    """What the certificate of the main port says, from the Node's `status.addresses` (SRV-004).
    None: there is no IP address, and names alone do not suffice (the gate AllowDNSOnlyNodeCSR)."""
    ips: set[str] = set()
    names: set[str] = set()
    for row in addresses:
        kind, value = row["type"], row["address"]
        ip = _ip(value)
        if kind in _ADDRESSES and ip:
            ips.add(ip)
        elif kind == "Hostname":
            (ips if ip else names).add(ip or value)
        elif kind in _NAMES:
            names.add(value)
    if not (ips or (names and names_suffice)):
        return None
    return Wanted(USER + node_name, (GROUP,), tuple(sorted(names)), tuple(sorted(ips)))


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def signing_request(purpose: Purpose, request_pem: bytes, name: str = "") -> dict[str, Any]:
    """The object to create; its name begins with `csr-` unless `name` says it."""
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name} if name else {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(request_pem).decode(),
            "signerName": purpose.signer,
            "usages": list(purpose.usages),
        },
    }


def outcome(request: CertificateSigningRequest) -> Outcome:
    """What became of it: a refusal counts before a certificate, and a certificate only once the
    request is approved."""
    status = request.status
    kinds = _kinds(request)
    if DENIED in kinds:
        return Outcome.DENIED
    if FAILED in kinds:
        return Outcome.FAILED
    if APPROVED in kinds and status is not None and status.certificate:
        return Outcome.ISSUED
    return Outcome.WAITS


def why(request: CertificateSigningRequest, what: Outcome) -> str:
    """How a refusal is told: `certificate signing request csr-x is denied, reason: ..., ...`."""
    condition_type = DENIED if what is Outcome.DENIED else FAILED
    rows = [c for c in _conditions(request) if c.type == condition_type]
    name = (request.metadata.name if request.metadata is not None else None) or ""
    row = rows[0]
    return (
        f"certificate signing request {name} is {what.value}, reason: {row.reason or ''}, "
        f"message: {row.message or ''}"
    )


def certificate_of(request: CertificateSigningRequest) -> bytes:
    """The certificates of an issued request, as PEM. Raises ValueError."""
    return base64.b64decode((request.status and request.status.certificate) or "", validate=True)


def _kinds(request: CertificateSigningRequest) -> Iterable[str]:
    return [condition.type for condition in _conditions(request)]


def _conditions(request: CertificateSigningRequest) -> Sequence[Any]:
    return (request.status and request.status.conditions) or []
