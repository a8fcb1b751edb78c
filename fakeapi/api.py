"""The fake API server: requests in, responses out, over one in-process store.

`FakeApi.request` is one HTTP request without HTTP. The transports (`httpx_transport`, `http`)
only carry it. What must never happen: a caller gets hold of a stored object (bodies are copied),
or a request is neither answered nor recorded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from fakeapi.dispatch import Dispatcher, Response
from fakeapi.errors import ApiUnreachable, StatusError, bad_request
from fakeapi.faults import Fault, Faults, pattern_of
from fakeapi.reading import decode_body
from fakeapi.store import DEFAULT_HISTORY, Store
from simtime import Clock, Ids, Rng


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as it arrived and was answered. Times: the loop's seconds; `status` 0: no
    answer (server down, or the client went away)."""

    seq: int
    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    content_type: str
    status: int
    started_s: float
    ended_s: float


class FakeApi:
    """One API server. `clock` None: the running loop's (a `VirtualLoop`'s own, else real time).

    `ids` None: UIDs from seed 0, the same in every run. `history`: how many changes a watch can
    look back before it gets 410. `request_limit`: so many requests are remembered.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        ids: Ids | None = None,
        *,
        history: int = DEFAULT_HISTORY,
        request_limit: int = 100_000,
    ) -> None:
        self.store = Store(history)
        self._dispatcher = Dispatcher(self.store, clock, ids or Ids(Rng(0)))
        self._faults = Faults()
        self._records: deque[RequestRecord] = deque(maxlen=request_limit)
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
    ) -> Response:
        """One request; `path` without query. Refusals are responses with a Status body.

        `body`: a JSON value, or bytes as they come over a wire (then `content_type` counts).
        With `params={"watch": "true"}` the response has `events`. Raises `ApiUnreachable` while
        the server is `down`.
        """
        asked = dict(params or {})
        started = asyncio.get_running_loop().time()
        self._seq += 1
        seq, status = self._seq, 0
        posted: Any = None
        try:
            try:
                posted = decode_body(method, body, content_type)
                response = await self._answer(
                    method, path, params=asked, body=posted, content_type=content_type
                )
            except StatusError as error:
                response = Response(error.code, error.body())
            except RecursionError:
                refusal = bad_request("the objects of this request are nested too deeply")
                response = Response(refusal.code, refusal.body())
            status = response.status
        finally:
            ended = asyncio.get_running_loop().time()
            self._records.append(
                RequestRecord(
                    seq=seq,
                    method=method,
                    path=path,
                    params=asked,
                    body=posted,
                    content_type=content_type,
                    status=status,
                    started_s=started,
                    ended_s=ended,
                )
            )
        return response

    async def watch(
        self, path: str, *, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The events of a collection: `{"type": "ADDED", "object": {...}}`, ...

        Raises `StatusError` when the watch is refused, `ApiUnreachable` when the server goes down.
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
    ) -> Fault:
        """Requests of that method (None: any) whose path contains `path_regex` get `status`.

        For `times` requests (None: until `remove()` or the end of the `with` block). Raises:
        ValueError for a method, status or expression that is none.
        """
        error = StatusError(status, message, reason=reason)
        return self._faults.add(Fault(method, pattern_of(path_regex), error=error, times=times))

    def delays(
        self, method: str | None, path_regex: str, delay_s: float, *, times: int | None = None
    ) -> Fault:
        """Matching requests are handled `delay_s` seconds after they arrived."""
        rule = Fault(method, pattern_of(path_regex), delay_s=delay_s, times=times)
        return self._faults.add(rule)

    def hangs(self, method: str | None, path_regex: str, *, times: int | None = None) -> Fault:
        """Matching requests get no answer until the rule is removed."""
        return self._faults.add(Fault(method, pattern_of(path_regex), hang=True, times=times))

    def down(self) -> Fault:
        """The server is unreachable, and every open watch breaks, until the block ends."""
        rule = self._faults.add(Fault(None, pattern_of(""), down=True))
        self._outages += 1
        self.store.wake()
        return rule

    def requests(self, method: str | None = None, path: str | None = None) -> list[RequestRecord]:
        """The answered requests in order of arrival; `path` is a regular expression searched for
        in the path."""
        pattern = pattern_of(path or "")
        found = [
            record
            for record in self._records
            if method in (None, record.method) and pattern.search(record.path)
        ]
        return sorted(found, key=lambda record: record.seq)

    def compact(self) -> None:
        """Forget the history, so that a watch from an older resourceVersion gets 410."""
        self.store.compact()

    # -- parts -----------------------------------------------------------------------------------

    async def _answer(
        self, method: str, path: str, *, params: dict[str, str], body: Any, content_type: str
    ) -> Response:
        # A request takes at least one pass of the loop, as one over a network would.
        outage = self._outages
        await asyncio.sleep(0)
        await self._faults.strike(method, path)
        if self._outages != outage:
            raise ApiUnreachable("the API server went down (FakeApi.down)")
        return self._dispatcher.answer(
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            connected=lambda: self._outages == outage,
        )
