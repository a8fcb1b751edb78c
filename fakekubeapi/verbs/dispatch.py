"""From a request to the verb that carries it out, and to the answer: `Dispatcher`, `Response`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from msgspec import Struct

from fakekubeapi.access import ADMIN, User
from fakekubeapi.access.settings import AccessSettings
from fakekubeapi.apply.managers import manager_name
from fakekubeapi.asked import Asked
from fakekubeapi.discovery.documents import discovery_document
from fakekubeapi.errors import StatusError, too_large_version
from fakekubeapi.kubelets.paths import passed_on
from fakekubeapi.options import ServerOptions
from fakekubeapi.requests.parameters import (
    check_delete_options,
    field_manager,
    resource_version,
    whole_number,
)
from fakekubeapi.requests.routes import Route, parse_route
from fakekubeapi.requests.shapes import check_shape, require_known_fields
from fakekubeapi.storage.changes import Key
from fakekubeapi.storage.store import Store
from fakekubeapi.storage.watch import reached, watch_events
from fakekubeapi.verbs import writing
from fakekubeapi.verbs.controllers import Controllers
from fakekubeapi.verbs.creation import New, create
from fakekubeapi.verbs.deletion import Leaving, delete
from fakekubeapi.verbs.ownership import SERVER, Owners, Writer
from fakekubeapi.verbs.pod_subresources import bind, evict
from fakekubeapi.verbs.reading import SELECTORS, list_of, watch_options
from fakekubeapi.verbs.reviews import Reviews
from fakekubeapi.verbs.server import Server
from kubeobjects.schema.messages import message, schema_of
from simclock import Clock, Ids, Latency, RealClock

Answer: TypeAlias = tuple[int, dict[str, Any]]
"""The HTTP status of an answer, and its body."""
_DONE: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


class Response(Struct, frozen=True):
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
        access: AccessSettings,
        options: ServerOptions,
        latency: Latency | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._access = access
        self._options = options
        self._latency = latency
        self._reviews = Reviews(store, ids, access.users, access.access)
        self._made: Server | None = None
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

    async def wait_for_version(self, asked: Asked) -> None:
        """Wait until the store has reached the version that a GET asks for as its minimum. Watches
        wait for themselves."""
        wanted = asked.method == "GET" and asked.params.get("resourceVersion")
        if wanted and not asked.watches:
            self._server()
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
        return 200, self._server().stored(asked.route)

    def _list(self, asked: Asked) -> Answer:
        return 200, list_of(self._server().store, asked.route, asked.params)

    def _put(self, asked: Asked) -> Answer:
        server, writer = self._server(), _writer(asked)
        _require_known_fields(asked)
        obj, created = writing.put(asked, writer, server)
        return (201 if created else 200), obj

    def _apply(self, asked: Asked) -> Answer:
        server, writer = self._server(), _writer(asked)
        _require_known_fields(asked)
        obj, created = writing.apply(asked, writer, server)
        return (201 if created else 200), obj

    def _patch(self, asked: Asked) -> Answer:
        return 200, writing.patch(asked, _writer(asked), self._server())

    def _post(self, asked: Asked) -> Answer:
        """Create an object, answer a review, bind a pod to a node, or evict it (delete it)."""
        server, writer, route = self._server(), _writer(asked), asked.route
        _require_known_fields(asked)
        if route.subresource == "token":
            return 201, self._reviews.token_request(route, asked.body, server.clock)
        if not route.resource.stored:
            return 201, self._review(asked, server.clock)
        if route.subresource in ("binding", "eviction"):
            carry_out = bind if route.subresource == "binding" else evict
            carry_out(asked, server)
            return 201, {**_DONE, "code": 201}
        new = New(route, asked.body, asked.user, writer, dry_run=asked.dry_run)
        return 201, create(new, server)

    def _review(self, asked: Asked, clock: Clock) -> dict[str, Any]:
        if asked.route.resource.kind == "TokenReview":
            return self._reviews.token_review(asked.body, clock)
        if asked.route.resource.kind == "SelfSubjectReview":
            return self._reviews.self_review(asked.body, asked.user)
        return self._reviews.access_review(asked.route, asked.body, asked.user)

    def complete_namespaces(self) -> None:
        """Create what controllers put into each namespace, where it is missing."""
        controllers = self._server().controllers
        for key in self._store.keys("namespaces"):
            controllers.after_write(key)

    def user_of(self, token: str) -> User:
        """The user to whom a bearer token belongs. Raises: StatusError 401 for an unknown token."""
        return self._reviews.user_of(token, self._clock_now())

    def _delete(self, asked: Asked) -> Answer:
        """Delete one object, or all of a collection that the selectors choose."""
        server, route, params = self._server(), asked.route, asked.params
        _writer(asked)
        check_shape(asked.body, message("meta.v1.DeleteOptions"))
        options = dict(asked.body or {})
        if "gracePeriodSeconds" in params:
            grace = whole_number(params, "gracePeriodSeconds")
            options.setdefault("gracePeriodSeconds", grace)
        if "propagationPolicy" in params:
            options.setdefault("propagationPolicy", params["propagationPolicy"])
        dry_run = check_delete_options(options) or asked.dry_run
        if not route.name:
            selectors = {key: params[key] for key in SELECTORS if key in params}
            listed = list_of(server.store, route, selectors)
            for item in listed["items"]:
                where, name = item["metadata"].get("namespace"), item["metadata"]["name"]
                one = replace(route, namespace=where, name=name)
                delete(Leaving(one, options, dry_run), server)
            return 200, listed
        leaving = delete(Leaving(route, options, dry_run), server)
        if route.resource.strategy.returns_deleted or not leaving.gone:
            return 200, leaving.obj
        return 200, _success(route, leaving.obj["metadata"]["uid"])

    def _watch(self, asked: Asked, connected: Callable[[], bool]) -> Response:
        """A response with the events of a collection or of one object."""
        self._server()
        options = watch_options(
            asked.route,
            asked.params,
            bookmark_every_s=self._options.bookmark_every_s,
            waits_over_all=self._latency is not None and not self._options.waits_apart,
        )
        return Response(200, {}, watch_events(self._store, options, connected, self._latency))

    def _server(self) -> Server:
        """What the verbs work on. The first call creates the system namespaces. Without a clock of
        its own the dispatcher uses that of the running loop, even when requests come from another
        loop than before."""
        loop, before = asyncio.get_running_loop(), self._made
        if before is not None and (loop is self._loop or self._clock is not None):
            return before
        store, clock, ids, access = self._store, self._clock_now(), self._ids, self._access
        owners = Owners(field_managers=self._options.field_managers)
        server = Server(store, clock, ids, access, owners, Controllers(store, clock, ids, access))
        self._made, self._loop = server, loop
        if before is None:
            schema = schema_of(self._options.kubernetes)
            route = parse_route("POST", "/api/v1/namespaces", schema)
            for name in SYSTEM_NAMESPACES:
                if store.get(Key("namespaces", "", name)) is None:
                    create(New(route, {"metadata": {"name": name}}, ADMIN, SERVER), server)
        return server

    def _clock_now(self) -> Clock:
        """The clock that was given, else that of the running loop."""
        loop_clock = getattr(asyncio.get_running_loop(), "clock", None)
        return self._clock or (loop_clock if isinstance(loop_clock, Clock) else RealClock())


def _require_known_fields(asked: Asked) -> None:
    if asked.strict and isinstance(asked.body, dict):
        require_known_fields(asked.body, asked.route.message)


def _writer(asked: Asked) -> Writer:
    """The manager that writes. Raises: StatusError 422 for a fieldManager that is not allowed."""
    _ = asked.dry_run
    name = field_manager(asked.params, asked.method, applies=asked.applies)
    return Writer(manager_name(name, asked.user_agent))


def _success(route: Route, uid: str | None) -> dict[str, Any]:
    """The Status of a deletion, binding or eviction of the object at `route`."""
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
