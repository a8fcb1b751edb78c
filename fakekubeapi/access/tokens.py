"""Tokens of service accounts: JSON web tokens, signed with a key of this server (HS256).

A kube-apiserver signs with RSA or elliptic curves, so that others can check its tokens; here only
the server itself does, at a TokenReview, and the standard library is enough.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any, Final

_HEADER: Final = {"alg": "HS256", "typ": "JWT"}


def sign(key: bytes, claims: dict[str, Any]) -> str:
    """The token with these claims."""
    signed = f"{_encode(_HEADER)}.{_encode(claims)}"
    return f"{signed}.{_text(_signature(key, signed))}"


def read(key: bytes, token: str) -> dict[str, Any] | None:
    """The claims of a token that was signed with that key; None for any other text."""
    signed, _, signature = token.rpartition(".")
    if signed.count(".") != 1:
        return None
    try:
        given_signature = _bytes(signature)
        claims = json.loads(_bytes(signed.partition(".")[2]))
    except (ValueError, binascii.Error, UnicodeError):
        return None
    right = hmac.compare_digest(given_signature, _signature(key, signed))
    return claims if right and isinstance(claims, dict) else None


def _signature(key: bytes, signed: str) -> bytes:
    return hmac.new(key, signed.encode(), hashlib.sha256).digest()


def _encode(value: dict[str, Any]) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
