"""From a request to the verb that carries it out, and to the answer: `Dispatcher`, `Response`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from fakekubeapi.access import User
from fakekubeapi.access.settings import AccessSettings
from fakekubeapi.apply.managers import manager_name
from fakekubeapi.asked import Asked
from fakekubeapi.discovery.documents import discovery_document
from fakekubeapi.errors import StatusError, too_large_version
from fakekubeapi.kubelets.paths import Passed, passed_on
from fakekubeapi.kubelets.places import Place, Places
from fakekubeapi.requests.parameters import (
    check_delete_options,
    field_manager,
    is_true,
    resource_version,
    whole_number,
)
from fakekubeapi.requests.routes import Route, parse_route
from fakekubeapi.requests.shapes import check_shape, require_known_fields
from fakekubeapi.storage.store import Key, Store
from fakekubeapi.storage.watch import reached, watch_events
from fakekubeapi.verbs.bindings import require_eviction, require_name
from fakekubeapi.verbs.operations import Operations
from fakekubeapi.verbs.ownership import Writer
from fakekubeapi.verbs.reading import check_version, chosen, watch_options
from fakekubeapi.verbs.reviews import Reviews
from kubeobjects.schema.messages import message
from simclock import Clock, Ids, Latency, RealClock

Answer: TypeAlias = tuple[int, dict[str, Any]]
"""The HTTP status of an answer, and its body."""
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

    def answer(self, asked: Asked, connected: Callable[[], bool]) -> Response:
        """Carry out one request; what is in the response may be the store's own and must not be
        changed. A watch goes on while `connected()` is true. Raises: StatusError when the request
        is refused."""
        known = discovery_document(asked.path, asked.schema) if asked.method == "GET" else None
        if known is not None:
            return Response(200, known)
        if passed_on(asked.path) is not None:
            why = f"{asked.path} is passed on to others by a server on a socket only"
            raise StatusError(501, why)
        carry_out = self._verb_of(asked)  # an unknown path is refused before anything else
        if asked.watches:
            return self._watch(asked, connected)
        status, body = carry_out(asked)
        return Response(status, body)

    def place_of(self, method: str, passed: Passed, query: Iterable[tuple[str, str]]) -> Place:
        """Where a request goes that is passed on. Raises: StatusError."""
        return Places(self._store, self._settings.kubelets).find(method, passed, query)

    async def wait_for_version(self, asked: Asked) -> None:
        """Give the store time to reach the version that a GET wants at least. Not for watches:
        they wait themselves."""
        wanted = asked.method == "GET" and asked.params.get("resourceVersion")
        if wanted and not asked.watches:
            self._verbs()
            await reached(self._store, resource_version(asked.params))

    def _verb_of(self, asked: Asked) -> Callable[[Asked], Answer]:
        """What carries the request out. Raises: StatusError for an unknown path."""
        route = asked.route
        if asked.method == "GET":
            return self._get if route.name else self._list
        if asked.method == "PATCH":
            return self._apply if asked.applies else self._patch
        return {"POST": self._post, "PUT": self._put, "DELETE": self._delete}[asked.method]

    def _get(self, asked: Asked) -> Answer:
        version, newest = resource_version(asked.params), self._store.revision
        if version > newest:
            raise too_large_version(version, newest)
        return 200, self._verbs().get(asked.route)

    def _list(self, asked: Asked) -> Answer:
        do, params = self._verbs(), asked.params
        check_version(params, self._store.revision)
        whole_number(params, "timeoutSeconds")
        limit, start = max(0, whole_number(params, "limit")), params.get("continue", "")
        if params.get("resourceVersion") == "0":
            limit = 0  # a kube-apiserver answers from its cache, which knows no parts
        selects = params.get("labelSelector") or params.get("fieldSelector")
        return 200, do.list(
            asked.route,
            chosen(asked.route, params),
            limit=limit,
            start=start,
            count_rest=not selects,
        )

    def _put(self, asked: Asked) -> Answer:
        do, unstored, writer = self._verbs(), asked.dry_run, _writer(asked)
        _require_known_fields(asked)
        obj, created = do.update(asked.route, asked.body, dry_run=unstored, writer=writer)
        return (201 if created else 200), obj

    def _apply(self, asked: Asked) -> Answer:
        do, unstored, writer = self._verbs(), asked.dry_run, _writer(asked)
        _require_known_fields(asked)
        obj, created = do.apply(
            asked.route,
            asked.body,
            dry_run=unstored,
            force=is_true(asked.params.get("force")),
            user=asked.user,
            writer=writer,
        )
        return (201 if created else 200), obj

    def _patch(self, asked: Asked) -> Answer:
        do, unstored, writer = self._verbs(), asked.dry_run, _writer(asked)
        do.get(asked.route)
        return 200, do.patch(
            asked.route,
            asked.body,
            asked.content_type,
            dry_run=unstored,
            strict=_is_strict(asked),
            writer=writer,
        )

    def _post(self, asked: Asked) -> Answer:
        """Create an object, answer a review, bind a pod to a node, or evict it (delete it)."""
        do, route, unstored, writer = self._verbs(), asked.route, asked.dry_run, _writer(asked)
        _require_known_fields(asked)
        if route.subresource == "token":
            return 201, self._reviews.token_request(route, asked.body, self._clock_now())
        if not route.resource.stored:
            return 201, self._review(route, asked.body, asked.user)
        if route.subresource == "binding":
            do.bind(route, asked.body)
            return 201, {**_DONE, "code": 201}
        if route.subresource == "eviction":
            self._evict(route, asked.body, dry_run=unstored)
            return 201, {**_DONE, "code": 201}
        return 201, do.create(route, asked.body, dry_run=unstored, user=asked.user, writer=writer)

    def _evict(self, route: Route, sent: Any, *, dry_run: bool) -> None:
        """Delete a pod for an eviction. `sent`: its body, not yet checked; None: there is none."""
        check_shape(sent, message("policy.v1.Eviction"))
        body: dict[str, Any] = sent or {}
        require_eviction(body)
        require_name(route, body, "Eviction")
        options = body.get("deleteOptions")
        dry_run = dry_run or check_delete_options(options or {})
        self._verbs().evict(route, options, dry_run=dry_run)

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

    def _delete(self, asked: Asked) -> Answer:
        """Delete one object, or all of a collection that the selectors choose."""
        do, route, params, body = self._verbs(), asked.route, asked.params, asked.body
        dry_run = asked.dry_run
        _writer(asked)
        check_shape(body, message("meta.v1.DeleteOptions"))
        options = dict(body or {})
        if "gracePeriodSeconds" in params:
            grace = whole_number(params, "gracePeriodSeconds")
            options.setdefault("gracePeriodSeconds", grace)
        if "propagationPolicy" in params:
            options.setdefault("propagationPolicy", params["propagationPolicy"])
        dry_run = check_delete_options(options) or dry_run
        if not route.name:
            listed = do.list(route, chosen(route, params))
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

    def _watch(self, asked: Asked, connected: Callable[[], bool]) -> Response:
        """A response with the events of a collection or of one object."""
        self._verbs()
        every_s = self._settings.bookmark_every_s
        options = watch_options(asked.route, asked.params, bookmark_every_s=every_s)
        return Response(200, {}, watch_events(self._store, options, connected, self._latency))

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
            namespaces = parse_route("POST", "/api/v1/namespaces", self._settings.schema)
            for name in SYSTEM_NAMESPACES:
                if self._store.get(Key("namespaces", "", name)) is None:
                    body = {"metadata": {"name": name}}
                    self._operations.create(namespaces, body, dry_run=False)
        return self._operations

    def _clock_now(self) -> Clock:
        """The clock that was given, else that of the running loop."""
        loop_clock = getattr(asyncio.get_running_loop(), "clock", None)
        return self._clock or (loop_clock if isinstance(loop_clock, Clock) else RealClock())


def _is_strict(asked: Asked) -> bool:
    """Whether fields that the kind does not have are refused."""
    strict = asked.params.get("fieldValidation") == "Strict"
    return strict and asked.route.subresource not in _OTHER_KINDS


def _require_known_fields(asked: Asked) -> None:
    if _is_strict(asked) and isinstance(asked.body, dict):
        require_known_fields(asked.body, asked.route.message)


def _writer(asked: Asked) -> Writer:
    """Who writes. Raises: StatusError 422 for a wrong fieldManager."""
    given = field_manager(asked.params, asked.method, applies=asked.applies)
    return Writer(manager_name(given, asked.user_agent))


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
