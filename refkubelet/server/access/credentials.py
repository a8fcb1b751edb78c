"""The credentials in a request: a bearer token, or a client certificate. Pure.

Rules: SRV-013. Upstream: staging/src/k8s.io/apiserver/pkg/authentication/request: bearertoken,
websocket, x509.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from kubeobjects.structs import replace
from refkubelet.server.access.attributes import User
from refkubelet.server.common.exchange import WEBSOCKET_PROTOCOLS, ClientCertificate, Request

BEARER_PROTOCOL: Final = "base64url.bearer.authorization.k8s.io."
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
AUTHENTICATED: Final = "system:authenticated"
ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


class BadCredentials(Exception):
    """The request has credentials that are none; the text is for the log, and names no secret."""


def bearer_token(request: Request) -> str | None:
    """The token of the Authorization header; None: it has none."""
    words = request.headers.get("authorization", "").strip().split(" ", 2)
    if len(words) < 2 or words[0].lower() != "bearer":
        return None
    return words[1] or None


def websocket_token(request: Request) -> str | None:
    """The token among the protocols that a WebSocket offers; None: there is none. Raises
    `BadCredentials`."""
    if not request.is_websocket:
        return None
    protocols = request.websocket_protocols
    encoded = [p.removeprefix(BEARER_PROTOCOL) for p in protocols if p.startswith(BEARER_PROTOCOL)]
    if not encoded:
        return None
    if len(encoded) > 1:
        raise BadCredentials("multiple base64.bearer.authorization tokens specified")
    try:
        padded = encoded[0] + "=" * (-len(encoded[0]) % 4)
        token = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadCredentials("invalid base64.bearer.authorization token encoding") from None
    if token and len(protocols) == 1:
        raise BadCredentials("missing additional subprotocol")
    return token or None


def without_token(request: Request) -> Request:
    """The request as it goes on to the runtime: the token stays here (SRV-013)."""
    protocols = [p for p in request.websocket_protocols if not p.startswith(BEARER_PROTOCOL)]
    headers = {name: value for name, value in request.headers.items() if name != "authorization"}
    if WEBSOCKET_PROTOCOLS in headers:
        headers[WEBSOCKET_PROTOCOLS] = ",".join(protocols)
    return replace(request, headers=headers)


def user_of_certificate(certificate: ClientCertificate | None) -> User | None:
    """The owner of a verified client certificate; None: there is none, or it names nobody."""
    if certificate is None or not certificate.common_name:
        return None
    extra = ((CREDENTIAL_ID, (f"X509SHA256={certificate.sha256}",)),) if certificate.sha256 else ()
    return User(certificate.common_name, certificate.organizations, extra=extra)


def authenticated(user: User) -> User:
    """The user with the group of all who were authenticated."""
    if AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))
