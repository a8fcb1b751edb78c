"""The fake API server: requests in, responses out, over one in-process store.

`FakeApi.request` is one HTTP request without HTTP; the transports (`httpx_transport`, `http`) only
carry it. Bodies are copied on the way in and out, so that no caller holds a stored object, and each
request is recorded, also one that gets no answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from fakekubeapi.access import ADMIN, AccessPolicy, User, Users
from fakekubeapi.access.certificates import CertificateAuthority
from fakekubeapi.access.settings import AccessSettings
from fakekubeapi.access.signing import Signing
from fakekubeapi.asked import Asked
from fakekubeapi.bodies import copy_json
from fakekubeapi.errors import ApiUnreachable, StatusError, bad_request
from fakekubeapi.faults import Fault, Faults, pattern_of
from fakekubeapi.kubelets.paths import Passed
from fakekubeapi.kubelets.places import Place, Places
from fakekubeapi.options import ServerOptions
from fakekubeapi.storage.changes import Key
from fakekubeapi.storage.store import Store
from fakekubeapi.verbs.dispatch import Dispatcher, Response
from kubeobjects.arguments import arguments_told
from kubeobjects.schema.messages import schema_of
from simclock import Clock, Ids, Latency, Rng, sleep
from simclock.latency import NO_DELAY

_Events: TypeAlias = AsyncGenerator[dict[str, Any], None]


class RequestRecord(Struct, frozen=True):
    """One request as it arrived and was answered."""

    seq: int
    """Its number in order of arrival, from 1."""
    method: str
    """The HTTP method, in capitals."""
    path: str
    """The path without the query."""
    params: Mapping[str, str]
    """The query."""
    body: Any
    """The decoded JSON body; None if there was none or it could not be decoded."""
    content_type: str
    """The media type of the body, as the client gave it."""
    status: int
    """The HTTP status of the answer; 0 if there was none (server down, or the client went away)."""
    started_s: float
    """When it arrived, in seconds of the event loop's clock."""
    ended_s: float
    """When it was answered or given up, in seconds of the event loop's clock; for a watch: when it
    was opened."""


class _Begun(Struct, frozen=True):
    """A request that has arrived: its number, and when."""

    seq: int
    at_s: float


@arguments_told
class FakeApi:
    """One API server, empty but for the system namespaces.

    `clock` gives the times in objects; None: that of the running loop (the virtual clock of a
    `VirtualLoop`, else real time). `ids` gives UIDs and generated names; None: those of seed 0, the
    same in every run. `options`: what it serves and remembers, as a kube-apiserver's flags say it.
    `latency`: how long requests take, for example `api_latency(Rng(1))`; None: no time. Raises:
    `storage.journal.DataError` for a data directory that cannot be used, LookupError for an unknown
    minor of Kubernetes.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        ids: Ids | None = None,
        options: ServerOptions | None = None,
        *,
        latency: Latency | None = None,
    ) -> None:
        options = options or ServerOptions()
        self.schema = schema_of(options.kubernetes)
        self.store = Store(options.history, options.data)
        self.kubelets = options.kubelets
        """How to reach kubelets."""
        self._latency = None if latency is None or latency.none else latency
        self._access = AccessSettings(
            service_account_admission=options.service_account_admission,
            authority=options.authority,
        )
        self._dispatcher = Dispatcher(
            self.store,
            clock,
            ids or Ids(Rng(0)),
            access=self._access,
            options=options,
            latency=self._latency,
        )
        self._faults = Faults()
        self._records: deque[RequestRecord] = deque(maxlen=options.request_limit)
        self._seq = 0
        self._outages = 0

    # -- requests ------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        user: User = ADMIN,
        user_agent: str = "",
        undisturbed: bool = False,
    ) -> Response:
        """Carry out one request; a refusal is an answer, too, with a `metav1.Status` as its body.

        `path` has no query; `params` is the query. `body`: a JSON value, or bytes as they come over
        a wire. `content_type`: what bytes are; for a PATCH always the kind of patch. `user`: who
        sends it (`client_of`); nobody is refused anything, but it is noted in certificate requests
        and counts in reviews of oneself. `user_agent`: the program that sends it, which owns the
        fields that it writes unless `params` has a `fieldManager`. `undisturbed`: faults are for
        others, only `down` is for it, too. With
        `params={"watch": "true"}` the response has `events`. Raises: ApiUnreachable while the
        server is `down`.
        """
        asked = Asked(
            method,
            path,
            params=dict(params or {}),
            sent=body,
            content_type=content_type,
            user=user,
            user_agent=user_agent,
            schema=self.schema,
            undisturbed=undisturbed,
        )
        response = await self.exchange(asked)
        events = None if response.events is None else _copied(response.events)
        return Response(response.status, copy_json(response.body), events)

    async def exchange(self, asked: Asked) -> Response:
        """As `request`, for callers that only read the answer: it may be made of the stored
        objects themselves, which must not be changed."""
        begun, decoded, status = self._begin(), None, 0
        try:
            try:
                decoded = asked.body
                response = await self._answer(asked)
            except (StatusError, RecursionError) as error:
                response = _refused(error)
            status = response.status
        finally:
            self._note(begun, asked, decoded, status)
        return response

    def _begin(self) -> _Begun:
        """A request has arrived."""
        self._seq += 1
        return _Begun(self._seq, asyncio.get_running_loop().time())

    def _note(self, begun: _Begun, asked: Asked, body: Any, status: int) -> None:
        """Put a request on record, with the status of its answer (0: it got none)."""
        record = RequestRecord(
            seq=begun.seq,
            method=asked.method,
            path=asked.path,
            params=asked.params,
            body=body,
            content_type=asked.content_type,
            status=status,
            started_s=begun.at_s,
            ended_s=asyncio.get_running_loop().time(),
        )
        self._records.append(record)

    async def place_of(
        self, method: str, path: str, passed: Passed, query: Sequence[tuple[str, str]]
    ) -> Place:
        """Where a request goes that is passed on to a kubelet, a pod or a service. It is recorded
        and may be struck by faults as any other. `query` has the pairs as they came. Raises:
        StatusError, ApiUnreachable."""
        begun, status = self._begin(), 0
        try:
            await self._faults.strike(method, path)
            place = Places(self.store, self.kubelets).find(method, passed, query)
            status = 200
            return place
        except StatusError as error:
            status = error.code
            raise
        finally:
            self._note(begun, Asked(method, path, dict(query), content_type=""), None, status)

    async def watch(
        self, path: str, *, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Watch the collection at `path`; `params` are its options, such as `resourceVersion`.

        Yields watch events as they go over the wire: `{"type": "ADDED", "object": {...}}`, ...
        Raises: StatusError when the watch is refused, ApiUnreachable when the server goes down.
        """
        response = await self.request("GET", path, params={**(params or {}), "watch": "true"})
        if response.events is None:
            raise StatusError(
                response.status,
                response.body.get("message", "the watch was refused"),
                reason=response.body.get("reason"),
            )
        async for event in response.events:
            yield event

    # -- users and what they may do ------------------------------------------------------------

    @property
    def users(self) -> Users:
        """The bearer tokens of users, for token reviews; empty at first."""
        return self._access.users

    @property
    def access(self) -> AccessPolicy:
        """What users may do, for access reviews; at first those with a token may do everything."""
        return self._access.access

    @property
    def authority(self) -> CertificateAuthority | None:
        """What signs approved certificate requests; None: they wait for a signer."""
        return self._access.authority

    @authority.setter
    def authority(self, authority: CertificateAuthority | None) -> None:
        self._access.authority = authority

    @property
    def signing(self) -> Signing:
        """Which certificate requests the server approves or denies by itself; at first none."""
        return self._access.signing

    def admit_service_accounts(self) -> None:
        """From now on give new pods a service account and the volume with its token, as
        `service_account_admission` does from the start; namespaces that are there get
        kube-root-ca.crt. To be called where the server's loop runs."""
        self._access.service_account_admission = True
        self._dispatcher.complete_namespaces()

    def client_of(self, authorization: str) -> User:
        """The client of a request with this header `Authorization`: the user or service account of
        a known token, else an administrator, because this server does not authenticate."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer":
            return ADMIN
        try:
            return self._dispatcher.user_of(token.strip())
        except StatusError:
            return ADMIN

    # -- programming and looking -----------------------------------------------------------------

    def fails(
        self,
        method: str | None,
        path_regex: str,
        status: int = 500,
        *,
        reason: str | None = None,
        message: str = "injected failure",
        times: int | None = None,
        nth: int | None = None,
    ) -> Fault:
        """Refuse requests with `method` (None: any) in whose path `path_regex` is found.

        They get the HTTP `status` (400 to 599) with a Status body that has `reason` (None: the
        usual one of that status) and `message`. The rule holds for `times` requests; None: until
        `remove()` or the end of its `with` block. `nth`: only this one of the requests that match,
        counted from 1. Raises: ValueError for an unknown method, a status that is not an error, or
        an invalid regular expression.
        """
        error = StatusError(status, message, reason=reason)
        rule = Fault(method, pattern_of(path_regex), error=error, times=times, nth=nth)
        return self._faults.add(rule)

    def delays(
        self,
        method: str | None,
        path_regex: str,
        delay_s: float,
        *,
        times: int | None = None,
        nth: int | None = None,
    ) -> Fault:
        """Handle requests that match (as in `fails`) `delay_s` seconds after they arrived.
        Raises: ValueError as `fails` does, and for a negative delay."""
        rule = Fault(method, pattern_of(path_regex), delay_s=delay_s, times=times, nth=nth)
        return self._faults.add(rule)

    def hangs(
        self,
        method: str | None,
        path_regex: str,
        *,
        times: int | None = None,
        nth: int | None = None,
    ) -> Fault:
        """Leave requests that match (as in `fails`) without an answer until the rule is removed;
        then they are handled. Raises: ValueError as `fails` does."""
        rule = Fault(method, pattern_of(path_regex), hang=True, times=times, nth=nth)
        return self._faults.add(rule)

    def down(self) -> Fault:
        """Make the server unreachable and break every open watch, until `remove()` or the end of
        the rule's `with` block. Requests raise ApiUnreachable; the objects stay."""
        rule = self._faults.add(Fault(None, pattern_of(""), down=True))
        self._outages += 1
        self.store.wake()
        return rule

    @property
    def request_count(self) -> int:
        """How many requests have arrived: the `seq` of the last one."""
        return self._seq

    def requests(self, method: str | None = None, path: str | None = None) -> list[RequestRecord]:
        """The finished requests in order of arrival, those without an answer too.

        `method` None: any; `path`: a regular expression searched for in the path, None: any. A
        request that still waits is not among them. Raises: ValueError for an invalid expression.
        """
        pattern = pattern_of(path or "")
        found = [
            record
            for record in self._records
            if method in (None, record.method) and pattern.search(record.path)
        ]
        return sorted(found, key=lambda record: record.seq)

    def gives_uid(self, plural: str, name: str, uid: str, *, namespace: str = "default") -> None:
        """Give the next object of that kind and name this UID when it is created, whatever its body
        says; real servers, and this one otherwise, choose UIDs themselves. `plural`: with its
        group, if it has one."""
        self.store.given_uids[Key(plural, namespace, name)] = uid

    def compact(self) -> None:
        """Forget the history of changes, so that a watch from an older resourceVersion gets 410
        Expired."""
        self.store.compact()

    def close(self) -> None:
        """Let go of the data directory, if there is one; nothing can be written any more."""
        self.store.close()

    # -- parts -----------------------------------------------------------------------------------

    async def _answer(self, asked: Asked) -> Response:
        """Let the rules decide when the request arrives, and carry it out inside its latency. A
        refusal takes that time, too."""
        outage = self._outages
        delay = NO_DELAY if self._latency is None else self._latency.of(asked.method)
        left_s = sum(delay)
        # A request takes at least one pass of the loop, as one over a network would.
        await asyncio.sleep(0)
        try:
            await self._faults.strike(asked.method, asked.path, only_down=asked.undisturbed)
            await _pass_time(delay.before_s)
            await self._dispatcher.wait_for_version(asked)
            left_s = delay.after_s
            self._require_no_other(outage)
            response = self._dispatcher.answer(asked, lambda: self._outages == outage)
        except StatusError:
            await _pass_time(left_s)
            raise
        await _pass_time(left_s)
        self._require_no_other(outage)
        return response

    def _require_no_other(self, outage: int) -> None:
        """Raise ApiUnreachable if the server went down after that outage."""
        if self._outages != outage:
            raise ApiUnreachable("the API server went down (FakeApi.down)")


async def _copied(
    events: _Events,
) -> _Events:
    async for event in events:
        yield copy_json(event)


async def _pass_time(delay_s: float) -> None:
    if delay_s:
        await sleep(delay_s)


def _refused(error: StatusError | RecursionError) -> Response:
    """The answer to a request that was refused, or whose objects are too deep to be walked."""
    if isinstance(error, RecursionError):
        error = bad_request("the objects of this request are nested too deeply")
    return Response(error.code, error.body())
