"""From a request to the verb that carries it out, and to the answer: `Dispatcher`, `Response`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fakekubeapi.access import ADMIN, User
from fakekubeapi.access.settings import AccessSettings
from fakekubeapi.apply.managers import manager_name
from fakekubeapi.bodies import APPLY_PATCH
from fakekubeapi.discovery.documents import discovery_document
from fakekubeapi.errors import StatusError, bad_request, too_large_version
from fakekubeapi.kubelets.paths import Passed, passed_on
from fakekubeapi.kubelets.places import Place, Places
from fakekubeapi.requests.parameters import (
    check_delete_options,
    check_list_options,
    dry_run,
    field_manager,
    is_true,
    resource_version,
    whole_number,
)
from fakekubeapi.requests.routes import Route, parse_route
from fakekubeapi.requests.shapes import check_shape, require_known_fields
from fakekubeapi.storage.selectors import Predicate, field_selector, label_selector
from fakekubeapi.storage.store import Key, Store
from fakekubeapi.storage.watch import WatchOptions, reached, watch_events
from fakekubeapi.verbs.bindings import require_eviction, require_name
from fakekubeapi.verbs.operations import Operations
from fakekubeapi.verbs.ownership import Writer
from fakekubeapi.verbs.reviews import Reviews
from kubeobjects.schema.messages import message
from simclock import Clock, Ids, Latency, RealClock

_OTHER_KINDS: Final = ("binding", "eviction", "token")
"""Subresources whose bodies are objects of another kind than the resource's."""
_DONE: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: HTTP status and a JSON body, or, for a watch, `events` to iterate over."""

    status: int
    """The HTTP status."""
    body: dict[str, Any]
    """The JSON body: an object, a list or a `metav1.Status`; empty for a watch."""
    events: AsyncGenerator[dict[str, Any], None] | None = None
    """The events of a watch, each `{"type": ..., "object": ...}`; None for anything else."""

    @property
    def ok(self) -> bool:
        """Whether the request was carried out: a status below 400."""
        return self.status < 400


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request says beside its method and path."""

    params: Mapping[str, str]
    body: Any
    content_type: str
    user: User
    user_agent: str

    @property
    def applies(self) -> bool:
        """Whether this is a server-side apply, if it is a PATCH."""
        return self.content_type.partition(";")[0].strip() == APPLY_PATCH

    def writer(self, method: str) -> Writer:
        """Who writes. Raises: StatusError 422 for a wrong fieldManager."""
        applies = method == "PATCH" and self.applies
        given = field_manager(self.params, method, applies=applies)
        return Writer(manager_name(given, self.user_agent))


class Dispatcher:
    """Answers requests over one store. `clock` None: that of the running loop. `latency`: how
    long watches wait before they tell of a change; requests themselves take no time here."""

    def __init__(
        self,
        store: Store,
        clock: Clock | None,
        ids: Ids,
        *,
        latency: Latency | None = None,
        settings: AccessSettings | None = None,
    ) -> None:
        self._store = store
        self._settings = settings or AccessSettings()
        self._reviews = Reviews(store, ids, self._settings.users, self._settings.access)
        self._latency = latency
        self._clock = clock
        self._ids = ids
        self._operations: Operations | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def answer(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: Any,
        content_type: str,
        connected: Callable[[], bool],
        user: User = ADMIN,
        user_agent: str = "",
    ) -> Response:
        """Carry out one request; what is in the response may be the store's own and must not be
        changed.

        `path` has no query, `params` is the query, `body` a decoded JSON value, `user` who sends
        it, with the program `user_agent`. A watch goes on while `connected()` is true. Raises:
        StatusError when the request is refused.
        """
        known = discovery_document(path) if method == "GET" else None
        if known is not None:
            return Response(200, known)
        if passed_on(path) is not None:
            raise StatusError(501, f"{path} is passed on to others by a server on a socket only")
        route = parse_route(method, path)
        if method == "GET" and is_true(params.get("watch")):
            return self._open_watch(route, params, connected)
        asked = _Asked(params, body, content_type, user, user_agent)
        status, found = self._dispatch(method, route, asked)
        return Response(status, found)

    def place_of(self, method: str, passed: Passed, query: Iterable[tuple[str, str]]) -> Place:
        """Where a request goes that is passed on. Raises: StatusError."""
        return Places(self._store, self._settings.kubelets).find(method, passed, query)

    async def wait_for_version(self, method: str, params: Mapping[str, str]) -> None:
        """Give the store time to reach the version that a GET wants at least. Not for watches:
        they wait themselves."""
        if method == "GET" and params.get("resourceVersion") and not is_true(params.get("watch")):
            self._verbs()
            await reached(self._store, resource_version(params))

    def _dispatch(self, method: str, route: Route, asked: _Asked) -> tuple[int, dict[str, Any]]:
        """The HTTP status and the body of the answer to anything but a watch."""
        params, body = asked.params, asked.body
        do, unstored = self._verbs(), dry_run(method, params)
        if method == "GET" and route.name:
            if resource_version(params) > self._store.revision:
                raise too_large_version(resource_version(params), self._store.revision)
            return 200, do.get(route)
        if method == "GET":
            self._check_version(params)
            whole_number(params, "timeoutSeconds")
            limit, start = max(0, whole_number(params, "limit")), params.get("continue", "")
            if params.get("resourceVersion") == "0":
                limit = 0  # a kube-apiserver answers from its cache, which knows no parts
            selects = params.get("labelSelector") or params.get("fieldSelector")
            return 200, do.list(
                route,
                _predicate(route, params),
                limit=limit,
                start=start,
                count_rest=not selects,
            )
        writer = asked.writer(method)
        if method == "PATCH" and not asked.applies:
            do.get(route)
        strict = params.get("fieldValidation") == "Strict" and route.subresource not in _OTHER_KINDS
        if strict and (asked.applies or method != "PATCH") and isinstance(body, dict):
            require_known_fields(body, route.resource.message)
        if method == "POST":
            return 201, self._post(route, asked, dry_run=unstored, writer=writer)
        if method == "PUT":
            obj, created = do.update(route, body, dry_run=unstored, writer=writer)
            return (201 if created else 200), obj
        if method == "PATCH" and asked.applies:
            obj, created = do.apply(
                route,
                body,
                dry_run=unstored,
                force=is_true(params.get("force")),
                user=asked.user,
                writer=writer,
            )
            return (201 if created else 200), obj
        if method == "PATCH":
            kind = asked.content_type
            return 200, do.patch(route, body, kind, dry_run=unstored, strict=strict, writer=writer)
        return self._delete(route, params, body, dry_run=unstored)

    def _post(
        self, route: Route, asked: _Asked, *, dry_run: bool, writer: Writer
    ) -> dict[str, Any]:
        """Create an object, answer a review, bind a pod to a node, or evict it (delete it)."""
        do, body = self._verbs(), asked.body
        if route.subresource == "token":
            return self._reviews.token_request(route, body, self._clock_now())
        if not route.resource.stored:
            return self._review(route, body, asked.user)
        if route.subresource == "binding":
            do.bind(route, body)
            return {**_DONE, "code": 201}
        if route.subresource == "eviction":
            check_shape(body, message("policy.v1.Eviction"))
            require_eviction(body or {})
            require_name(route, body or {}, "Eviction")
            options = (body or {}).get("deleteOptions")
            dry_run = dry_run or check_delete_options(options or {})
            do.evict(route, options, dry_run=dry_run)
            return {**_DONE, "code": 201}
        return do.create(route, body, dry_run=dry_run, user=asked.user, writer=writer)

    def _review(self, route: Route, body: Any, user: User) -> dict[str, Any]:
        if route.resource.kind == "TokenReview":
            return self._reviews.token_review(body, self._clock_now())
        if route.resource.kind == "SelfSubjectReview":
            return self._reviews.self_review(body, user)
        return self._reviews.access_review(route, body, user)

    def complete_namespaces(self) -> None:
        """Give each namespace what controllers put there, where it is missing."""
        do = self._verbs()
        for key in self._store.keys("namespaces"):
            do.controllers.after_write(key)

    def user_of(self, token: str) -> User:
        """Who a bearer token belongs to. Raises: StatusError 401 for one that is not known."""
        return self._reviews.user_of(token, self._clock_now())

    def _delete(
        self, route: Route, params: Mapping[str, str], body: Any, *, dry_run: bool
    ) -> tuple[int, dict[str, Any]]:
        """Delete one object, or all of a collection that the selectors choose."""
        do = self._verbs()
        check_shape(body, message("meta.v1.DeleteOptions"))
        options = dict(body or {})
        if "gracePeriodSeconds" in params:
            grace = whole_number(params, "gracePeriodSeconds")
            options.setdefault("gracePeriodSeconds", grace)
        if "propagationPolicy" in params:
            options.setdefault("propagationPolicy", params["propagationPolicy"])
        dry_run = check_delete_options(options) or dry_run
        if not route.name:
            listed = do.list(route, _predicate(route, params))
            for item in listed["items"]:
                where, name = item["metadata"].get("namespace"), item["metadata"]["name"]
                one = replace(route, namespace=where, name=name)
                do.deletion.delete(one, options, dry_run=dry_run)
            return 200, listed
        obj, gone = do.deletion.delete(route, options, dry_run=dry_run)
        do.controllers.after_write(route.key)
        if route.resource.strategy.returns_deleted or not gone:
            return 200, obj
        return 200, _success(route, obj["metadata"]["uid"])

    def _open_watch(
        self, route: Route, params: Mapping[str, str], connected: Callable[[], bool]
    ) -> Response:
        """A response with the events of a collection, or of one object where the path has a
        name."""
        self._verbs()
        check_list_options(params)
        version, timeout_s = resource_version(params), whole_number(params, "timeoutSeconds")
        by_name = {"fieldSelector": f"metadata.name={route.name}"} if route.name else {}
        options = WatchOptions(
            resource=route.resource,
            namespace=route.namespace,
            matches=_predicate(route, {**params, **by_name}),
            resource_version=version,
            timeout_s=max(0, timeout_s) if timeout_s else None,
            bookmarks=is_true(params.get("allowWatchBookmarks")),
            bookmark_every_s=self._settings.bookmark_every_s,
            initial_events=is_true(params.get("sendInitialEvents")),
        )
        events = watch_events(self._store, options, connected, self._latency)
        return Response(200, {}, events)

    def _check_version(self, params: Mapping[str, str]) -> None:
        """Check the resourceVersion that the query asks for.

        Raises: StatusError 400 for text that is not a version, 504 for a version that does not
        exist yet, 400 for an exact version other than the newest, as old states are not kept.
        """
        check_list_options(params)
        version, newest = resource_version(params), self._store.revision
        if version > newest:
            raise too_large_version(version, newest)
        if params.get("resourceVersionMatch") == "Exact" and version != newest:
            raise bad_request(
                f"resourceVersionMatch: Exact is answered for the newest version only ({newest}), "
                f"got {version}"
            )

    def _verbs(self) -> Operations:
        """The operations of the store. The first call creates the system namespaces. Without a
        clock of its own the dispatcher uses that of the running loop, even when requests come from
        another loop than before."""
        loop = asyncio.get_running_loop()
        if self._operations is not None and (loop is self._loop or self._clock is not None):
            return self._operations
        first, self._loop = self._operations is None, loop
        clock = self._clock_now()
        self._operations = Operations(self._store, clock, self._ids, self._settings)
        if first:
            namespaces = parse_route("POST", "/api/v1/namespaces")
            for name in SYSTEM_NAMESPACES:
                if self._store.get(Key("namespaces", "", name)) is None:
                    body = {"metadata": {"name": name}}
                    self._operations.create(namespaces, body, dry_run=False)
        return self._operations

    def _clock_now(self) -> Clock:
        """The clock that was given, else that of the running loop."""
        loop_clock = getattr(asyncio.get_running_loop(), "clock", None)
        return self._clock or (loop_clock if isinstance(loop_clock, Clock) else RealClock())


def _predicate(route: Route, params: Mapping[str, str]) -> Predicate:
    resource = route.resource
    own = resource.strategy.field_labels
    # Kinds without fields of their own share a predicate, which knows namespaces for all.
    place = ("metadata.namespace",) if resource.namespaced or not own else ()
    supported = ("metadata.name", *place, *own)
    by_field = field_selector(params.get("fieldSelector", ""), supported, own=bool(own))
    by_label = label_selector(params.get("labelSelector", ""))
    return lambda obj: by_field(obj) and by_label(obj)


def _success(route: Route, uid: str | None) -> dict[str, Any]:
    """The Status that says that the object at `route` was deleted, bound or evicted."""
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
