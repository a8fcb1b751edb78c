"""Which kind of object the body of a request is: the one that its path takes. Pure."""

from __future__ import annotations

from typing import Final

from fakekubeapi.requests.routes import Route

_OF_SUBRESOURCES: Final = {
    "binding": ("v1", "Binding"),
    "eviction": ("policy/v1", "Eviction"),
    "token": ("authentication.k8s.io/v1", "TokenRequest"),
}
_OPTIONS: Final = ("meta.k8s.io/v1", "DeleteOptions")


def kind_at(method: str, route: Route) -> tuple[str, str]:
    """apiVersion and kind of what is sent to a route."""
    if method == "DELETE":
        return _OPTIONS
    own = (route.resource.api_version, route.resource.kind)
    return _OF_SUBRESOURCES.get(route.subresource, own)
