"""What a credential provider plug-in is told and answers, and under what its answer is kept. Pure.

One CredentialProviderRequest as JSON goes to its stdin, one CredentialProviderResponse is expected
on its stdout (BACK-214). What must never happen: an answer, which may hold passwords, in a text.
Upstream: pkg/credentialprovider/plugin/plugin.go; k8s.io/kubelet/pkg/apis/credentialprovider/v1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from kubeobjects.golang.duration import parse_duration_s
from kubeobjects.golang.strconv import quoted
from refkubelet.config.credentials.providers import PROTOCOL_V1, CredentialProvider
from refkubelet.kuberuntime.images.keyring import (
    Credential,
    ServiceAccountSource,
    covers,
)

REQUEST_KIND: Final = "CredentialProviderRequest"
RESPONSE_KIND: Final = "CredentialProviderResponse"
IMAGE: Final = "Image"
REGISTRY: Final = "Registry"
GLOBAL: Final = "Global"
_FIELDS: Final = frozenset({"apiVersion", "kind", "cacheKeyType", "cacheDuration", "auth"})
_AUTH_FIELDS: Final = frozenset({"username", "password"})
_NO_ANNOTATIONS: Final[Mapping[str, str]] = MappingProxyType({})
LONGEST_SHOWN: Final = 80

CacheKey = tuple[str, ...]


class AnswerError(Exception):
    """The plug-in's answer cannot be used; the text has nothing of it but names of versions."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The service account for which a plug-in is asked; `uid` "": for none. `token_hash`: of the
    token, if answers are kept for each token, else ""."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    token: str = field(default="", repr=False)
    annotations: Mapping[str, str] = field(default_factory=lambda: _NO_ANNOTATIONS)
    per_token: bool = False

    @property
    def source(self) -> ServiceAccountSource | None:
        """Whose the credentials are that the plug-in answers; None: the node's."""
        if not self.uid:
            return None
        return ServiceAccountSource(self.namespace, self.name, self.uid)

    @property
    def key(self) -> CacheKey:
        """What answers for this caller are kept under, beside the image."""
        if not self.uid:
            return ()
        texts = (text for pair in sorted(self.annotations.items()) for text in pair)
        kept_for = self._token_hash if self.per_token else ""
        return (self.namespace, self.name, self.uid, kept_for, *texts)

    @property
    def run_key(self) -> CacheKey:
        """What tells runs of the plug-in apart, beside the image: the token, too."""
        return (*self.key, self._token_hash) if self.uid else ()

    @property
    def _token_hash(self) -> str:
        return hashlib.sha256(self.token.encode()).hexdigest()


NOBODY: Final = Caller()


@dataclass(frozen=True, slots=True)
class Answer:
    """Logins by their places, and how long they are kept: `keep_s` None: as long as the provider's
    configuration says; 0: not at all."""

    key_type: str
    keep_s: float | None = None
    logins: tuple[tuple[str, str, str], ...] = field(default=(), repr=False)

    def credentials(self, source: ServiceAccountSource | None) -> list[tuple[str, Credential]]:
        """The entries for a keyring."""
        return [
            (place, Credential(username, password, source=source))
            for place, username, password in self.logins
        ]


def is_asked(provider: CredentialProvider, repository: str) -> bool:
    """Whether one of the provider's matchImages covers the image (a full name without tag)."""
    return any(covers(match, repository) for match in provider.match_images)


def request_bytes(provider: CredentialProvider, repository: str, caller: Caller) -> bytes:
    """The request, in the version that the provider wants."""
    request: dict[str, Any] = {
        "kind": REQUEST_KIND,
        "apiVersion": provider.api_version,
        "image": repository,
    }
    if provider.api_version == PROTOCOL_V1:
        if caller.token:
            request["serviceAccountToken"] = caller.token
        if caller.annotations:
            request["serviceAccountAnnotations"] = dict(caller.annotations)
    return json.dumps(request).encode() + b"\n"


def read_answer(data: bytes, api_version: str) -> Answer:
    """The answer in what a plug-in has printed. Raises `AnswerError`, also for another version."""
    value = _object(data)
    version = value.get("apiVersion")
    if version != api_version:
        version_found = str(version or "")[:LONGEST_SHOWN]
        raise AnswerError(
            "apiVersion from credential plugin response did not match expected "
            f"apiVersion:{api_version}, actual apiVersion:{version_found}"
        )
    try:
        answer = _answer(value)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise AnswerError(
            "error decoding credential provider plugin response from stdout"
        ) from None
    if answer.key_type not in (IMAGE, REGISTRY, GLOBAL):
        raise AnswerError(
            "credential provider plugin did not return a valid cacheKeyType: "
            f"{quoted(answer.key_type[:LONGEST_SHOWN])}"
        )
    return answer


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise AnswerError(f"it printed {len(data)} bytes that are no JSON object on stdout")
    return value


def _answer(value: dict[str, Any]) -> Answer:
    """Raises ValueError and the like for what is no response, unknown fields among it."""
    if value.get("kind") != RESPONSE_KIND or not value.keys() <= _FIELDS:
        raise ValueError
    duration = value.get("cacheDuration")
    keep_s = None if duration is None else parse_duration_s(duration)
    auth = value.get("auth") or {}
    logins = []
    for place, login in auth.items():
        if not (login or {}).keys() <= _AUTH_FIELDS:
            raise ValueError
        texts = [(login or {}).get(name) or "" for name in ("username", "password")]
        if not all(isinstance(text, str) for text in (place, *texts)):
            raise ValueError
        logins.append((place, *texts))
    key_type = value.get("cacheKeyType") or ""
    if not isinstance(key_type, str):
        raise ValueError
    return Answer(key_type, keep_s, tuple(logins))


def kept_under(key_type: str, repository: str, caller: Caller) -> CacheKey:
    """The key of an answer of that type."""
    image_part = {IMAGE: repository, REGISTRY: repository.partition("/")[0], GLOBAL: ""}[key_type]
    return (key_type, image_part, *caller.key)


def looked_for(repository: str, caller: Caller) -> tuple[CacheKey, ...]:
    """The keys under which an answer may be kept that serves here, the closest first."""
    return tuple(kept_under(kind, repository, caller) for kind in (IMAGE, REGISTRY, GLOBAL))
