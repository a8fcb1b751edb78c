"""The fake API server: requests in, responses out, over one in-process store.

`FakeApi.request` is one HTTP request without HTTP. The transports (`httpx_transport`, `http`)
only carry it. What must never happen: a caller gets hold of a stored object (bodies are copied),
or a request is neither answered nor recorded.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.discovery import discovery_document
from fakeapi.errors import ApiUnreachable, StatusError, bad_request
from fakeapi.faults import Fault, Faults
from fakeapi.jsontools import copy_json
from fakeapi.operations import Operations
from fakeapi.routes import Route, parse_route
from fakeapi.selectors import Predicate, field_selector, label_selector
from fakeapi.store import DEFAULT_HISTORY, Key, Store
from fakeapi.watch import WatchOptions, watch_events
from simtime import Clock, Ids, RealClock, Rng

SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: HTTP status and a JSON body, or, for a watch, `events` to iterate over."""

    status: int
    body: dict[str, Any]
    events: AsyncIterator[dict[str, Any]] | None = None

    @property
    def ok(self) -> bool:
        return self.status < 400


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
    look back before it gets 410.
    """

    def __init__(
        self, clock: Clock | None = None, ids: Ids | None = None, *, history: int = DEFAULT_HISTORY
    ) -> None:
        self._clock = clock
        self._ids = ids or Ids(Rng(0))
        self.store = Store(history)
        self._operations: Operations | None = None
        self._faults = Faults()
        self._records: list[RequestRecord] = []
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

        With `params={"watch": "true"}` the response has `events`. Raises `ApiUnreachable` while
        the server is `down`.
        """
        asked = dict(params or {})
        started = asyncio.get_running_loop().time()
        self._seq += 1
        seq, status = self._seq, 0
        posted = copy_json(body)
        try:
            response = await self._answer(method, path, asked, body, content_type)
            status = response.status
        finally:
            ended = asyncio.get_running_loop().time()
            self._records.append(
                RequestRecord(
                    seq, method, path, asked, posted, content_type, status, started, ended
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

        For `times` requests (None: until `remove()` or the end of the `with` block).
        """
        error = StatusError(status, message, reason=reason)
        return self._faults.add(Fault(method, re.compile(path_regex), error=error, times=times))

    def delays(
        self, method: str | None, path_regex: str, delay_s: float, *, times: int | None = None
    ) -> Fault:
        """Matching requests are handled `delay_s` seconds after they arrived."""
        rule = Fault(method, re.compile(path_regex), delay_s=delay_s, times=times)
        return self._faults.add(rule)

    def hangs(self, method: str | None, path_regex: str, *, times: int | None = None) -> Fault:
        """Matching requests get no answer until the rule is removed."""
        return self._faults.add(Fault(method, re.compile(path_regex), hang=True, times=times))

    def down(self) -> Fault:
        """The server is unreachable, and every open watch breaks, until the block ends."""
        rule = self._faults.add(Fault(None, re.compile(""), down=True))
        self._outages += 1
        self.store.wake()
        return rule

    def requests(self, method: str | None = None, path: str | None = None) -> list[RequestRecord]:
        """The answered requests in order of arrival; `path` is a regular expression searched for
        in the path."""
        pattern = re.compile(path or "")
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
        self, method: str, path: str, params: dict[str, str], body: Any, content_type: str
    ) -> Response:
        # A request takes at least one pass of the loop, as one over a network would.
        outage = self._outages
        await asyncio.sleep(0)
        try:
            await self._faults.strike(method, path)
            if self._outages != outage:
                raise ApiUnreachable("the API server went down (FakeApi.down)")
            known = discovery_document(path) if method == "GET" else None
            if known is not None:
                return Response(200, known)
            route = parse_route(method, path)
            if _is_true(params.get("watch")) and method == "GET":
                return self._open_watch(route, params)
            status, answer = self._dispatch(method, route, params, body, content_type)
            return Response(status, copy_json(answer))
        except StatusError as error:
            return Response(error.code, error.body())

    def _dispatch(
        self, method: str, route: Route, params: dict[str, str], body: Any, content_type: str
    ) -> tuple[int, dict[str, Any]]:
        do, dry_run = self._verbs(), _dry_run(params)
        resource, namespace, name = route.resource, route.namespace or "", route.name
        if method == "GET" and name:
            return 200, do.get(resource, namespace, name)
        if method == "GET":
            limit = _whole_number(params, "limit")
            matches = _predicate(route, params)
            start = params.get("continue", "")
            return 200, do.list(resource, route.namespace, matches, limit=limit, start=start)
        if method == "POST":
            return self._post(route, body, dry_run=dry_run)
        if method == "PUT":
            obj, created = do.update(
                resource, namespace, name, body, subresource=route.subresource, dry_run=dry_run
            )
            return (201 if created else 200), obj
        if method == "PATCH":
            return 200, do.patch(
                resource, namespace, name, body, content_type,
                subresource=route.subresource, dry_run=dry_run,
            )  # fmt: skip
        return self._delete(route, params, body, dry_run=dry_run)

    def _post(self, route: Route, body: Any, *, dry_run: bool) -> tuple[int, dict[str, Any]]:
        do, namespace = self._verbs(), route.namespace or ""
        if route.subresource == "binding":
            do.bind(route.resource, namespace, route.name, body)
            return 201, _success(route, None)
        if route.subresource == "eviction":
            options = (body or {}).get("deleteOptions")
            do.delete(route.resource, namespace, route.name, options, dry_run=dry_run)
            return 201, _success(route, None)
        return 201, do.create(route.resource, namespace, body, dry_run=dry_run)

    def _delete(
        self, route: Route, params: dict[str, str], body: Any, *, dry_run: bool
    ) -> tuple[int, dict[str, Any]]:
        do, options = self._verbs(), dict(body or {})
        if "gracePeriodSeconds" in params:
            grace = _whole_number(params, "gracePeriodSeconds", signed=True)
            options.setdefault("gracePeriodSeconds", grace)
        if not route.name:
            listed = do.list(route.resource, route.namespace, _predicate(route, params))
            for item in listed["items"]:
                where = item["metadata"].get("namespace", "")
                do.delete(route.resource, where, item["metadata"]["name"], options, dry_run=dry_run)
            return 200, listed
        obj, gone = do.delete(
            route.resource, route.namespace or "", route.name, options, dry_run=dry_run
        )
        if route.resource.strategy.returns_deleted or not gone:
            return 200, obj
        return 200, _success(route, obj["metadata"]["uid"])

    def _open_watch(self, route: Route, params: dict[str, str]) -> Response:
        self._verbs()
        version = _whole_number(params, "resourceVersion")
        if version > self.store.revision:
            raise StatusError(
                504,
                f"Too large resource version: {version}, current: {self.store.revision}",
                details={"retryAfterSeconds": 1},
            )
        by_name = {"fieldSelector": f"metadata.name={route.name}"} if route.name else {}
        options = WatchOptions(
            resource=route.resource,
            namespace=route.namespace,
            matches=_predicate(route, {**params, **by_name}),
            resource_version=version,
            timeout_s=_whole_number(params, "timeoutSeconds") or None,
            bookmarks=_is_true(params.get("allowWatchBookmarks")),
            initial_events=_is_true(params.get("sendInitialEvents")),
        )
        outage = self._outages
        events = watch_events(self.store, options, lambda: self._outages == outage)
        return Response(200, {}, _copied(events))

    def _verbs(self) -> Operations:
        """The operations; the clock is chosen, and the system namespaces made, at first use."""
        if self._operations is None:
            loop_clock = getattr(asyncio.get_running_loop(), "clock", None)
            clock = self._clock or (loop_clock if isinstance(loop_clock, Clock) else RealClock())
            self._operations = Operations(self.store, clock, self._ids)
            namespaces = parse_route("POST", "/api/v1/namespaces").resource
            for name in SYSTEM_NAMESPACES:
                if self.store.get(Key("namespaces", "", name)) is None:
                    body = {"metadata": {"name": name}}
                    self._operations.create(namespaces, "", body, dry_run=False)
        return self._operations


async def _copied(events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    async for event in events:
        yield copy_json(event)


def _predicate(route: Route, params: Mapping[str, str]) -> Predicate:
    supported = ("metadata.name", "metadata.namespace", *route.resource.strategy.field_labels)
    by_field = field_selector(params.get("fieldSelector", ""), supported)
    by_label = label_selector(params.get("labelSelector", ""))
    return lambda obj: by_field(obj) and by_label(obj)


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() in ("true", "1")


def _dry_run(params: Mapping[str, str]) -> bool:
    asked = params.get("dryRun")
    if asked not in (None, "", "All"):
        raise bad_request(f'dryRun: unsupported value "{asked}": supported values: "All"')
    return asked == "All"


def _whole_number(params: Mapping[str, str], name: str, *, signed: bool = False) -> int:
    text = params.get(name, "") or "0"
    if not (text.removeprefix("-") if signed else text).isdecimal():
        raise bad_request(f"{name}: wanted a whole number, got {text!r}")
    return int(text)


def _success(route: Route, uid: str | None) -> dict[str, Any]:
    details = {"name": route.name, "kind": route.resource.plural}
    if route.resource.group:
        details["group"] = route.resource.group
    if uid:
        details["uid"] = uid
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
