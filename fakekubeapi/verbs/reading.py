"""What reads and watches ask for: which objects, of which version, for how long."""

from __future__ import annotations

from collections.abc import Mapping

from fakekubeapi.errors import bad_request, too_large_version
from fakekubeapi.requests.parameters import (
    check_list_options,
    is_true,
    resource_version,
    whole_number,
)
from fakekubeapi.requests.routes import Route
from fakekubeapi.storage.selectors import Predicate, field_selector, label_selector
from fakekubeapi.storage.watch import WatchOptions


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


def watch_options(
    route: Route, params: Mapping[str, str], *, bookmark_every_s: float | None
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
        resource_version=version,
        timeout_s=max(0, timeout_s) if timeout_s else None,
        bookmarks=is_true(params.get("allowWatchBookmarks")),
        bookmark_every_s=bookmark_every_s,
        initial_events=is_true(params.get("sendInitialEvents")),
    )
