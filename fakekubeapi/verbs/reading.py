"""What reads and watches ask for: which objects, of which version, for how long; and lists."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from fakekubeapi.errors import bad_request, too_large_version
from fakekubeapi.requests.parameters import (
    check_list_options,
    is_true,
    resource_version,
    whole_number,
)
from fakekubeapi.requests.routes import Route
from fakekubeapi.storage.changes import Key, Object, Place
from fakekubeapi.storage.selectors import (
    Predicate,
    field_selector,
    label_selector,
    required_value,
)
from fakekubeapi.storage.store import Store
from fakekubeapi.storage.watch import WatchOptions

SELECTORS: Final = ("labelSelector", "fieldSelector")
"""The parameters that choose objects of a collection."""


def chosen(route: Route, params: Mapping[str, str]) -> Predicate:
    """Whether an object is one of those that the selectors of the query choose. Raises: StatusError
    400 for a wrong selector."""
    resource = route.resource
    own = resource.strategy.field_labels
    # Kinds without fields of their own share a predicate, which knows namespaces for all.
    place = ("metadata.namespace",) if resource.namespaced or not own else ()
    supported = ("metadata.name", *place, *own)
    by_field = field_selector(params.get("fieldSelector", ""), supported, own=bool(own))
    by_label = label_selector(params.get("labelSelector", ""))
    return lambda obj: by_field(obj) and by_label(obj)


def check_version(params: Mapping[str, str], newest: int) -> None:
    """Check the resourceVersion that the query of a list asks for; `newest`: that of the store.

    Raises: StatusError 400 for text that is not a version, 504 for a version that does not exist
    yet, 400 for an exact version other than the newest, as old states are not kept.
    """
    check_list_options(params)
    version = resource_version(params)
    if version > newest:
        raise too_large_version(version, newest)
    if params.get("resourceVersionMatch") == "Exact" and version != newest:
        raise bad_request(
            f"resourceVersionMatch: Exact is answered for the newest version only ({newest}), "
            f"got {version}"
        )


def list_of(store: Store, route: Route, params: Mapping[str, str]) -> Object:
    """A list object with the stored objects that the query chooses, in order of namespace and name.

    `limit` > 0 ends it after that many; then its `metadata.continue` is where the next part begins,
    and where nothing is selected, its `metadata.remainingItemCount` says how many are left. Raises:
    StatusError 400 for wrong options or a `continue` that is no such token, 504 for a version that
    does not exist yet.
    """
    check_version(params, store.revision)
    whole_number(params, "timeoutSeconds")
    limit, start = max(0, whole_number(params, "limit")), params.get("continue", "")
    if params.get("resourceVersion") == "0":
        limit = 0  # a kube-apiserver answers from its cache, which knows no parts
    matches = chosen(route, params)
    last = _decode_continue(start) if start else None
    keys = store.keys_at(_place(route, params), last)
    last_of_all = store.last_key(route.resource.qualified, route.namespace)
    items: list[Object] = []
    metadata: dict[str, Any] = {"resourceVersion": str(store.revision)}
    for i, key in enumerate(keys):
        obj = store.get(key)
        if obj is not None and matches(obj):
            items.append({k: v for k, v in obj.items() if k not in ("kind", "apiVersion")})
        if limit and len(items) == limit and key != last_of_all:
            metadata["continue"] = _encode_continue(key)
            if not any(params.get(selector) for selector in SELECTORS):
                metadata["remainingItemCount"] = len(keys) - i - 1
            break
    return {
        "kind": f"{route.resource.kind}List",
        "apiVersion": route.resource.api_version,
        "metadata": metadata,
        "items": items,
    }


def watch_options(
    route: Route, params: Mapping[str, str], *, bookmark_every_s: float | None, waits_over_all: bool
) -> WatchOptions:
    """What a watch asks for: of a collection, or of one object where the path has a name. Raises:
    StatusError for wrong options."""
    check_list_options(params)
    version, timeout_s = resource_version(params), whole_number(params, "timeoutSeconds")
    by_name = {"fieldSelector": f"metadata.name={route.name}"} if route.name else {}
    return WatchOptions(
        resource=route.resource,
        namespace=route.namespace,
        matches=chosen(route, {**params, **by_name}),
        place=_place(route, {**params, **by_name}),
        message=route.message,
        resource_version=version,
        timeout_s=max(0, timeout_s) if timeout_s else None,
        bookmarks=is_true(params.get("allowWatchBookmarks")),
        bookmark_every_s=bookmark_every_s,
        initial_events=is_true(params.get("sendInitialEvents")),
        waits_over_all=waits_over_all,
    )


def _place(route: Route, params: Mapping[str, str]) -> Place:
    """What all objects of a watch have in common, as far as it is told in one field."""
    path, value = required_value(params.get("fieldSelector", ""))
    return Place(route.resource.qualified, route.namespace, path, value)


def _encode_continue(key: Key) -> str:
    return base64.urlsafe_b64encode(f"{key.namespace}/{key.name}".encode()).decode()


def _decode_continue(token: str) -> tuple[str, str]:
    try:
        namespace, _, name = base64.b64decode(token, b"-_", validate=True).decode().partition("/")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        why = "illegal base64 data at input byte 0"
        raise bad_request(f"invalid continue token: continue key is not valid: {why}") from None
    return namespace, name
