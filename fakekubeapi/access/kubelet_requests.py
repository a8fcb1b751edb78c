"""What the two signers of kubelets ask of a request; they refuse others with the condition Failed.

Needs the package `cryptography`. Upstream: the documentation of certificate signing requests,
"Kubernetes signers"; pkg/apis/certificates/helpers.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fakekubeapi.access.signing import KUBELET_CLIENT, KUBELET_SERVING

_GROUP: Final = "system:nodes"
_USER: Final = "system:node:"
_ENCIPHERMENT: Final = "key encipherment"
_USAGES: Final = {
    KUBELET_CLIENT: {"digital signature", "client auth"},
    KUBELET_SERVING: {"digital signature", "server auth"},
}


def problem_of(signer: str, usages: Sequence[str], request_pem: bytes) -> str:
    """Why that signer does not sign the request; "": it does. Raises: ValueError for a text that is
    no request."""
    if signer not in _USAGES:
        return ""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    request = x509.load_pem_x509_csr(request_pem)
    attributes_of = request.subject.get_attributes_for_oid
    if [each.value for each in attributes_of(NameOID.ORGANIZATION_NAME)] != [_GROUP]:
        return f"subject organization is not {_GROUP}"
    names = [str(each.value) for each in attributes_of(NameOID.COMMON_NAME)]
    if not names or not names[0].startswith(_USER):
        return f"subject common name does not begin with {_USER}"
    if set(usages) - {_ENCIPHERMENT} != _USAGES[signer]:
        return "usages did not match " + ", ".join(sorted(_USAGES[signer]))
    return _problem_of_names(signer, request)


def _problem_of_names(signer: str, request: Any) -> str:
    from cryptography import x509

    try:
        kind = x509.SubjectAlternativeName
        names = list(request.extensions.get_extension_for_class(kind).value)
    except x509.ExtensionNotFound:
        names = []
    if signer == KUBELET_CLIENT:
        return "subject alternative names are not allowed" if names else ""
    if not all(isinstance(name, x509.DNSName | x509.IPAddress) for name in names):
        return "only DNS and IP subjectAltNames are allowed"
    return "" if names else "DNS or IP subjectAltName is required"
