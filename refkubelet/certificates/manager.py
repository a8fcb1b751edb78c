"""Keeps one certificate of the kubelet valid: asks the API server for it, and for the next in time.

One task for each certificate. It waits until one is due, makes a key and a request, waits until the
request is decided, and keeps what comes. A request that fails is made anew, with another key, after
a pause. What must never happen here: two requests of one kind wait at the same time; a certificate
that is valid is given up before there is another; a key leaves this process but for its file.
Rules: SRV-004, SRV-005, SRV-006. Upstream: client-go util/certificate/certificate_manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from lightkube.models.certificates_v1 import CertificateSigningRequest
from msgspec import Struct

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import SIGNING_REQUESTS
from refkubelet.api.paths import named
from refkubelet.certificates.deadlines import (
    Held,
    Wanted,
    fits,
    is_expired,
    pause_s,
    rotation_due,
)
from refkubelet.certificates.following import (
    SIGNED_WITHIN_S,
    RequestError,
    issued,
    name_of,
)
from refkubelet.certificates.metrics import CertificateMetrics
from refkubelet.certificates.pem import PemError, new_key, request_for
from refkubelet.certificates.requests import Purpose, signing_request
from refkubelet.certificates.store import CertificateStore, Pair
from refkubelet.failures import Complaints, end_tasks
from simclock import Clock

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""How often it is looked whether another certificate is wanted."""
_ANSWERS: Final = frozenset({401, 403, 404})
"""Refusals of a server that is well."""


class _OtherWanted(Exception):
    """While a request waits, another certificate is wanted."""


async def _nothing(pair: Pair) -> None:
    """For certificates that are read from their files."""


class CertificateSettings(Struct, frozen=True):
    """Which certificate it is."""

    purpose: Purpose
    wanted: Callable[[], Wanted | None]
    """What it shall say; None: that is not known yet."""
    api: Callable[[], ApiClient]
    """Whom to ask; looked up for each request."""
    may_change: bool = False
    """Whether `wanted` may say another thing later; then it is asked every second."""
    forced: bool = False
    """Ask at once, whatever is there: it was not made for this kubelet."""
    signed_within_s: float = SIGNED_WITHIN_S
    """How long a request may wait until it counts as failed."""
    renewed: Callable[[Pair], Awaitable[None]] = _nothing
    """Told where a new certificate is."""


class CertificateManager:
    """One certificate. Raises `CertificateError` when it is made and files of `store` cannot be
    used. `draw`: numbers from [0, 1)."""

    def __init__(
        self,
        settings: CertificateSettings,
        store: CertificateStore,
        clock: Clock,
        draw: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._draw = draw
        self._held = store.load()
        self._forced = settings.forced
        self._complaints = Complaints(log, clock)
        self.metrics = CertificateMetrics()
        self.server_answers = False
        """Whether the API server gave sensible answers last: it is up, and may refuse us."""

    @property
    def held(self) -> Held | None:
        """The certificate; None: there is none, or it has expired."""
        cert = self._held
        return None if cert is None or is_expired(cert, self._clock.now()) else cert

    @property
    def last(self) -> Held | None:
        """The newest certificate, even if it has expired."""
        return self._held

    def pair(self) -> Pair | None:
        """The files of a certificate that is valid now; None: there is none."""
        return self._store.pair() if self.held is not None else None

    async def run(self) -> None:
        """Ask whenever it is time, until cancelled."""
        failures = 0
        while True:
            try:
                if not failures:
                    await self._until_due()
                await self._rotate()
            except _OtherWanted:
                log.info("another %s certificate is wanted: asking anew", self._name)
                failures = 0
            except Exception as error:
                failures += 1
                self.metrics.failures += 1
                expected = (ApiError, RequestError, PemError, OSError)
                self._complaints.failed(self._what, error, *expected)
                await self._clock.sleep(pause_s(failures, self._draw()))
            else:
                failures = 0
                self._complaints.over(self._what)

    async def ask_once(self, key_pem: bytes | None = None, name: str = "") -> Held:
        """Ask for one certificate and keep it; `key_pem` None: with a new key; `name` "": the
        server names the request. Raises `ApiError`, `RequestError`, `PemError`, OSError."""
        contents = self._settings.wanted()
        if contents is None:
            raise RequestError("the node has no IP address that a certificate could name")
        key_pem = key_pem or new_key()
        body = signing_request(self._settings.purpose, request_for(contents, key_pem), name)
        request = await self._created(body)
        name_there = name_of(request)
        log.info("%s certificate: asked for by the request %s", self._name, name_there)
        pem = await self._unless_changed(self._issued(request), contents)
        cert = self._store.update(pem, key_pem)
        before, self._held = self._held, cert
        self.server_answers = True
        if before is not None:
            lived = self._clock.now() - before.not_before
            self.metrics.lives.add(lived.total_seconds())
        expires = cert.not_after.isoformat()
        log.info("%s certificate: %s is issued, valid until %s", self._name, name_there, expires)
        if not fits(cert, contents):
            raise RequestError(f"{name_there}: the certificate does not say what was asked for")
        return cert

    @property
    def _name(self) -> str:
        return self._settings.purpose.name

    @property
    def _what(self) -> str:
        return f"the kubelet's {self._name} certificate cannot be renewed"

    async def _until_due(self) -> None:
        """Return when a certificate is to be asked for."""
        while not self._forced:
            contents, moment = self._settings.wanted(), self._clock.now()
            due = rotation_due(self._held, contents, moment, self._draw())
            if due <= moment:
                return
            log.info("%s certificate: the next is asked for at %s", self._name, due.isoformat())
            if not self._settings.may_change:
                await self._clock.sleep((due - moment).total_seconds())
                return
            with suppress(TimeoutError):
                async with asyncio.timeout((due - moment).total_seconds()):
                    await self._changed(contents)
                    continue
            return

    async def _rotate(self) -> None:
        self._forced = False
        await self.ask_once()
        if (pair := self._store.pair()) is not None:
            await self._settings.renewed(pair)

    async def _changed(self, wanted: Wanted | None) -> None:
        """Return when another certificate is wanted than that one."""
        while self._settings.wanted() == wanted:
            await self._clock.sleep(LOOK_S)

    async def _unless_changed(
        self, work: Coroutine[Any, Any, bytes], wanted: Wanted | None
    ) -> bytes:
        """The result of `work`. Raises `_OtherWanted` when meanwhile another is wanted."""
        if not self._settings.may_change:
            return await work
        waiting, change = asyncio.ensure_future(work), asyncio.ensure_future(self._changed(wanted))
        try:
            await asyncio.wait((waiting, change), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise _OtherWanted
            return waiting.result()
        finally:
            await end_tasks((waiting, change))

    async def _created(self, body: Mapping[str, Any]) -> CertificateSigningRequest:
        """The request, made now or found: one that has a name of its own may be there. Raises
        `ApiError`, `RequestError`."""
        api = self._settings.api()
        try:
            return await api.create(SIGNING_REQUESTS, body)
        except ApiError as error:
            self.server_answers = error.status in _ANSWERS
            name = body["metadata"].get("name")
            if not (error.conflict and name):
                raise
        # of an earlier start: that of this key, as the name is made of it
        listed = await api.list(SIGNING_REQUESTS, fields=named(name))
        if not listed.items:
            raise RequestError(f"certificate signing request {name} was deleted")
        return listed.items[0]

    async def _issued(self, request: CertificateSigningRequest) -> bytes:
        """Raises `RequestError`."""
        settings = self._settings
        return await issued(
            settings.api(),
            request,
            self._clock,
            self._complaints,
            within_s=settings.signed_within_s,
        )
