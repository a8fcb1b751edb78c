"""Finds the credentials for a pull, and their order (BACK-209). Pure.

Docker configurations (of pull secrets and of the node's files) become a keyring: places,
`host[:port][/path]`, with credentials, more specific places first. What must never happen: a
password in a text that is logged or recorded; a credential sent to a registry that its place does
not cover.
Upstream: pkg/credentialprovider/keyring.go, config.go, secrets/secrets.go.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from lightkube.models.core_v1 import Secret
from msgspec import Struct

DEFAULT_REGISTRY: Final = "index.docker.io"
DEFAULT_NAMES: Final = ("docker.io", DEFAULT_REGISTRY)
CONFIG_JSON_TYPE: Final = "kubernetes.io/dockerconfigjson"
CONFIG_TYPE: Final = "kubernetes.io/dockercfg"
CONFIG_KEYS: Final = {CONFIG_JSON_TYPE: ".dockerconfigjson", CONFIG_TYPE: ".dockercfg"}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]")
_HOST: Final = re.compile(r"[^\s:<>\"\\^`{|}\[\]]*(?::[0-9]*)?\Z|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?\Z")
_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # as Go writes JSON


class CredentialError(ValueError):
    """A pull secret is invalid; the text says why, without its content."""


class SecretSource(Struct, frozen=True):
    """The secret that a credential came from."""

    namespace: str
    name: str
    uid: str


class ServiceAccountSource(Struct, frozen=True):
    """The service account for which a plug-in gave the credential."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Credential:
    """User and password for a registry. `source` None: the node's own, for every pod."""

    username: str
    password: str = field(repr=False)
    email: str = ""
    source: SecretSource | ServiceAccountSource | None = None

    @property
    def hash(self) -> str:
        """A hash that is equal for equal credentials of different secrets (BACK-210)."""
        fields = {"username": self.username, "password": self.password, "email": self.email}
        text = json.dumps(
            {k: v for k, v in fields.items() if v}, separators=(",", ":"), ensure_ascii=False
        )
        for character, escape in _ESCAPES.items():
            text = text.replace(character, escape)
        return hashlib.sha256(text.encode()).hexdigest()


class Keyring(Struct, frozen=True):
    """Places with their credentials; of two nested places the more specific one comes first."""

    places: tuple[tuple[str, tuple[Credential, ...]], ...] = ()

    def lookup(self, repository: str) -> tuple[Credential, ...]:
        """All credentials for `repository` (a full name without tag), by the places that cover it.
        If there are none: those of the default registry, if it serves the repository."""
        fitting = [c for place, creds in self.places if covers(place, repository) for c in creds]
        if not fitting and _on_default_registry(repository):
            fitting = [
                c for place, creds in self.places if place == DEFAULT_REGISTRY for c in creds
            ]
        return tuple(fitting)


def keyring(entries: Iterable[tuple[str, Credential]]) -> Keyring:
    """Make a keyring of entries (place as written, credential). An invalid place is left out; equal
    places share their credentials, in the order of the entries."""
    places: dict[str, list[Credential]] = {}
    for place_text, credential in entries:
        place = _place(place_text)
        if place is not None:
            places.setdefault(place, []).append(credential)
    return Keyring(tuple((p, tuple(places[p])) for p in sorted(places, reverse=True)))


def covers(place: str, repository: str) -> bool:
    """Whether credentials for `place` may be used for `repository`: equal ports, matching host
    parts (`*` matches anything), and the place's path is a prefix of the repository's.

    >>> covers("*.example.com/team", "reg.example.com/team/app")
    True
    >>> covers("example.com", "reg.example.com/app"), covers("reg:5000", "reg/app")
    (False, False)
    """
    (host, port, path), (wanted_host, wanted_port, wanted_path) = _split(place), _split(repository)
    if port != wanted_port or not wanted_path.startswith(path):
        return False
    globs, parts = host.split("."), wanted_host.split(".")
    return len(globs) == len(parts) and all(map(_glob_matches, globs, parts))


def credentials_of(secrets: Iterable[Secret]) -> list[tuple[str, Credential]]:
    """The entries of all pull secrets, in order; secrets of another type, or without the key of
    their type, are skipped. Raises `CredentialError`."""
    entries = []
    for secret in secrets:
        data = _config_of(secret)
        if not data:
            continue
        meta = secret.metadata
        source = SecretSource(
            (meta.namespace if meta else "") or "",
            (meta.name if meta else "") or "",
            (meta.uid if meta else "") or "",
        )
        whole = _json_object(data)
        auths = whole.get("auths") if secret.type == CONFIG_JSON_TYPE else whole
        entries += config_entries(auths or {}, source)
    return entries


def node_entries(data: bytes, *, legacy: bool) -> list[tuple[str, Credential]]:
    """The entries of the node's own config.json, or of a .dockercfg. Raises `CredentialError`."""
    whole = _json_object(data)
    return config_entries((whole if legacy else whole.get("auths")) or {}, None)


def config_entries(auths: Any, source: SecretSource | None) -> list[tuple[str, Credential]]:
    """The entries of a Docker configuration: place -> username, password, email, auth; `auth`
    overrides the first two. Raises `CredentialError`."""
    entries = []
    if not isinstance(auths, Mapping):
        raise CredentialError("the entries of the Docker configuration are not an object")
    for place, entry in auths.items():
        if not isinstance(entry, Mapping):
            raise CredentialError(f"the entry of {place} is not an object")
        username, password = _text(entry, "username"), _text(entry, "password")
        if auth := _text(entry, "auth"):
            username, password = _decode_auth(auth)
        entries.append((place, Credential(username, password, _text(entry, "email"), source)))
    return entries


def _config_of(secret: Secret) -> bytes:
    encoded = (secret.data or {}).get(CONFIG_KEYS.get(secret.type or "", ""), "")
    try:
        return base64.b64decode(encoded)
    except ValueError:
        raise CredentialError("illegal base64 data in the secret") from None


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise CredentialError("the Docker configuration is not JSON") from None
    if not isinstance(value, dict):
        raise CredentialError("the Docker configuration is not a JSON object")
    return value


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise CredentialError(f"{name} is not a text")
    return value or ""


def _decode_auth(auth: str) -> tuple[str, str]:
    """User and password of an `auth`, base64 of `user:password` with or without padding. Raises
    `CredentialError`."""
    joined = auth.replace("\r", "").replace("\n", "")
    body = joined.rstrip("=")
    characters = enumerate(auth.rstrip("=\r\n"))
    wrong = next((i for i, c in characters if not _BASE64.match(c) and c not in "\r\n"), None)
    over, padding = len(body) % 4, len(joined) - len(body)
    expected_padding = {2: 2, 3: 1}.get(over, 0)
    if wrong is None and padding not in (0, expected_padding):
        wrong = len(joined) if padding < expected_padding else len(body) + expected_padding
    elif wrong is None and over == 1:
        wrong = len(joined) - 1
    if wrong is not None:
        raise CredentialError(f"illegal base64 data at input byte {wrong}")
    decoded = base64.b64decode(body + "=" * expected_padding)
    user, colon, password = decoded.decode(errors="replace").partition(":")
    if not colon:
        raise CredentialError(
            "unable to parse auth field, must be formatted as base64(username:password)"
        )
    return user, password


def _place(written: str) -> str | None:
    """Host and path of a place, without a leading `/v1/` or `/v2/` and without a lone `/`; None for
    an invalid URL."""
    url = written if written.startswith(("https://", "http://")) else f"https://{written}"
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return None
    if not _HOST.match(host):
        return None
    path = unquote(parts.path)
    if path.startswith(("/v1/", "/v2/")):
        path = path[3:]
    return host if path in ("", "/") else host + path


def _split(name: str) -> tuple[str, str, str]:
    """Host, port and path of a place or repository."""
    host, slash, path = name.partition("/")
    front, colon, port = host.rpartition(":")
    if colon and not port.endswith("]"):
        return front, port, slash + path
    return host, "", slash + path


def _glob_matches(glob: str, part: str) -> bool:
    """Whether the part matches a glob with stars, in linear time: users write the globs."""
    if "*" not in glob:
        return glob == part
    first, *between, last = glob.split("*")
    at, end = len(first), len(part) - len(last)
    for text in between:
        position = part.find(text, at)
        if position < 0:
            return False
        at = position + len(text)
    return at <= end and part.startswith(first) and part.endswith(last)


def _on_default_registry(repository: str) -> bool:
    """Whether the default registry serves the repository. As in upstream a first part without dot
    and colon is not a host, so `localhost/app` belongs to the default registry."""
    first, slash, _ = repository.partition("/")
    return bool(first) and (
        not slash or first in DEFAULT_NAMES or not any(character in first for character in ".:")
    )
