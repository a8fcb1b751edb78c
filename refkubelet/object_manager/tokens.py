"""Tokens of service accounts for projected volumes, and when they are renewed (NODE-207).

A token is asked for with the TokenRequest API, bound to its pod, and kept until 80 % of its life or
24 hours are over, a little earlier by chance so that tokens of one moment are not renewed in one.
While the server refuses to renew it, it serves until it expires. What must never happen here: a
token in a log.
Upstream: pkg/kubelet/token/token_manager.go.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from msgspec import Struct

from refkubelet.api.client import ApiError
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod
from refkubelet.model.pod import name_and_namespace, uid
from simclock import Clock, Rng

log = logging.getLogger(__name__)

MAX_TTL: Final = timedelta(hours=24)
MAX_JITTER_S: Final = 10
CLEANUP_PERIOD_S: Final = 60.0


class TokenApi(Protocol):
    """The part of the API client that is used here."""

    async def create_token(
        self, namespace: str, service_account: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        """Raises `ApiError`."""


class Token(Struct, frozen=True):
    """A token, with the seconds of life that were granted."""

    text: str
    expires: datetime
    life_s: int | None

    def requires_refresh(self, now: datetime, jitter_s: int) -> bool:
        """Whether it is to be renewed: it is older than a day or than 80 % of its life, less
        `jitter_s` seconds. One whose life is unknown never is."""
        if self.life_s is None:
            return False
        jitter = timedelta(seconds=jitter_s)
        issued = self.expires - timedelta(seconds=self.life_s)
        last_fifth = timedelta(seconds=self.life_s * 20 // 100)
        return now > issued + MAX_TTL - jitter or now > self.expires - last_fifth - jitter


class _Wanted(Struct, frozen=True):
    """What a token is for; also the key under which it is kept."""

    pod_uid: str
    pod_name: str
    namespace: str
    account: str
    audience: str
    expiration_s: int | None

    def request(self) -> dict[str, Any]:
        """The body of the TokenRequest."""
        bound = {"kind": "Pod", "apiVersion": "v1", "name": self.pod_name, "uid": self.pod_uid}
        audiences = [self.audience] if self.audience else None
        spec: dict[str, Any] = {"audiences": audiences, "boundObjectRef": bound}
        if self.expiration_s is not None:
            spec["expirationSeconds"] = self.expiration_s
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}

    def __str__(self) -> str:
        """The key as errors show it."""
        return f'"{self.account}"/"{self.namespace}"/"{self.audience}"'


class TokenManager:
    """The tokens of all pods."""

    def __init__(self, api: TokenApi, clock: Clock, rng: Rng) -> None:
        self._api = api
        self._clock = clock
        self._random = rng.stream("tokens")
        self._tokens: dict[_Wanted, Token] = {}
        self._complaints = Complaints(log, clock)

    async def run(self) -> None:
        """Forget expired tokens, until cancelled."""
        while True:
            await self._clock.sleep(CLEANUP_PERIOD_S)
            moment = self._clock.now()
            for request in [w for w, token in self._tokens.items() if moment > token.expires]:
                del self._tokens[request]

    async def get(self, pod: Pod, audience: str, expiration_s: int | None) -> str:
        """A token of the pod's service account; `audience` "": the server's own; `expiration_s`
        None: the server's default. Raises `ApiError`."""
        return (await self.token(pod, audience, expiration_s)).text

    async def token(self, pod: Pod, audience: str, expiration_s: int | None) -> Token:
        """The same token, with the time when it expires. Raises `ApiError`."""
        name, namespace = name_and_namespace(pod)
        request = _Wanted(
            pod_uid=uid(pod),
            pod_name=name,
            namespace=namespace,
            account=pod.spec.serviceAccountName or "",
            audience=audience,
            expiration_s=expiration_s,
        )
        cached = self._tokens.get(request)
        jitter_s = int(self._random.random() * MAX_JITTER_S)
        if cached is not None and not cached.requires_refresh(self._clock.now(), jitter_s):
            return cached
        return await self._renew(request, cached)

    async def _renew(self, wanted: _Wanted, known: Token | None) -> Token:
        complaint = f"token of {wanted.account} for pod {wanted.namespace}/{wanted.pod_name}"
        try:
            answer = await self._api.create_token(
                wanted.namespace, wanted.account, wanted.request()
            )
            token = _token_in(answer, wanted)
        except ApiError as error:
            if known is None:
                raise _told(error, f"failed to fetch token: {error.message}") from None
            if self._clock.now() > known.expires:
                text = f"token {wanted} expired and refresh failed: {error.message}"
                raise _told(error, text) from None
            self._complaints.failed(complaint, error, ApiError)
            return known
        self._complaints.over(complaint)
        self._tokens[wanted] = token
        return token

    def forget(self, pod_uid: str) -> None:
        """The pod has ended: its tokens serve nobody."""
        for request in [w for w in self._tokens if w.pod_uid == pod_uid]:
            del self._tokens[request]


def _token_in(answer: dict[str, Any], wanted: _Wanted) -> Token:
    """The token of an answer. Raises `ApiError` if there is none."""
    try:
        status = answer["status"]
        expires = datetime.fromisoformat(status["expirationTimestamp"])
        life_s = (answer.get("spec") or {}).get("expirationSeconds", wanted.expiration_s)
        return Token(str(status["token"]), expires, life_s if isinstance(life_s, int) else None)
    except (KeyError, TypeError, ValueError):
        text = "the API server sent an unreadable TokenRequest"
        raise ApiError(0, "BadAnswer", text) from None


def _told(error: ApiError, text: str) -> ApiError:
    return ApiError(error.status, error.reason, text)
