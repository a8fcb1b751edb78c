"""Which requests are passed on, told from their paths. Pure."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from fakekubeapi.errors import StatusError

PROXY: Final = "proxy"
LOG: Final = "log"
STREAMS: Final = ("attach", "exec", "portforward")
SUBRESOURCES: Final = {
    "nodes": (PROXY,),
    "pods": (*STREAMS, LOG, PROXY),
    "services": (PROXY,),
}
"""The subresources that are passed on, of each resource of the core group."""
KINDS: Final = {
    "attach": "PodAttachOptions",
    "exec": "PodExecOptions",
    "portforward": "PodPortForwardOptions",
    LOG: "Pod",
}
_PROXY_KINDS: Final = {
    "nodes": "NodeProxyOptions",
    "pods": "PodProxyOptions",
    "services": "ServiceProxyOptions",
}
_METHODS: Final = {LOG: ("GET",), PROXY: ()}
"""Those that a subresource takes; (): all."""
_STREAM_METHODS: Final = ("GET", "POST")
_VERBS: Final = {
    LOG: ["get"],
    PROXY: ["create", "delete", "get", "patch", "update"],
}


class Passed(Struct, frozen=True):
    """A request that is passed on: about which object, which subresource of it, and, for a proxy,
    the path behind it as it was sent (`""` or `/...`, still quoted)."""

    plural: str
    namespace: str
    """"" for a node."""
    name: str
    subresource: str
    rest: str = ""


def passed_on(path: str) -> Passed | None:
    """What a path, still quoted, says of a request that is passed on; None: it is not.

    >>> passed_on("/api/v1/namespaces/a/pods/b/proxy/c/")
    Passed(plural='pods', namespace='a', name='b', subresource='proxy', rest='/c/')
    """
    parts = path.split("/")
    if parts[:3] != ["", "api", "v1"]:
        return None
    namespace, rest = "", parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = unquote(rest[1]), rest[2:]
    if len(rest) < 3 or not rest[1] or bool(namespace) == (rest[0] == "nodes"):
        return None
    plural, name, subresource, *below = rest
    if subresource not in SUBRESOURCES.get(plural, ()):
        return None
    if below and subresource != PROXY:
        return None
    behind = "".join(f"/{part}" for part in below)
    return Passed(plural, namespace, unquote(name), subresource, behind)


def check_method(passed: Passed, method: str) -> None:
    """Raises: StatusError 405 for a method that the subresource does not take."""
    allowed = _METHODS.get(passed.subresource, _STREAM_METHODS)
    if allowed and method not in allowed:
        raise StatusError(405, f"{method} is not allowed here: it takes {', '.join(allowed)}")


def discovery_rows(plural: str) -> list[dict[str, object]]:
    """What the list of resources says of the subresources that are passed on."""
    return [
        {
            "name": f"{plural}/{name}",
            "singularName": "",
            "namespaced": plural != "nodes",
            "kind": KINDS.get(name) or _PROXY_KINDS[plural],
            "verbs": _VERBS.get(name, ["create", "get"]),
        }
        for name in SUBRESOURCES.get(plural, ())
    ]
