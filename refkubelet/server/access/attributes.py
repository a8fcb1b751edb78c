"""What a request to the main port wants to do, in the words of authorization. Pure.

Rules: SRV-012. Upstream: pkg/kubelet/server/auth.go: GetRequestAttributes.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from refkubelet.server.common.exchange import Request

VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
FINE_GRAINED: Final = (
    ("/pods", "pods"),
    ("/healthz", "healthz"),
    ("/configz", "configz"),
    ("/runningpods", "pods"),
)
SUBRESOURCES: Final = (
    ("/stats", "stats"),
    ("/metrics", "metrics"),
    ("/logs", "log"),
    ("/checkpoint", "checkpoint"),
    ("/statusz", "statusz"),
    ("/flagz", "configz"),
)
PROXY: Final = "proxy"
VERSION: Final = "v1"
RESOURCE: Final = "nodes"


class User(Struct, frozen=True):
    """Who asks. `extra`: pairs of a key and its values."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())


class Attributes(Struct, frozen=True):
    """What a request wants to do with the node's object."""

    user: User
    verb: str
    subresource: str
    node_name: str
    path: str = ""
    """The whole path of the request, of which a review says nothing."""


def verb_of(method: str) -> str:
    """The verb of a method; "" for others."""
    return VERBS.get(method, "")


def subresources_of(path: str, *, fine_grained: bool = True) -> tuple[str, ...]:
    """The subresources of `nodes`, one of which must be allowed. `fine_grained`: the gate
    KubeletFineGrainedAuthz.

    >>> subresources_of("/pods"), subresources_of("/logs/x"), subresources_of("/podsandmore")
    (('pods', 'proxy'), ('log',), ('proxy',))
    """
    fine = _first(path, FINE_GRAINED) if fine_grained else None
    coarse = _first(path, SUBRESOURCES) or PROXY
    return (coarse,) if fine is None else (fine, coarse)


def _first(path: str, table: tuple[tuple[str, str], ...]) -> str | None:
    return next((sub for root, sub in table if path == root or path.startswith(f"{root}/")), None)


def attributes_of(
    request: Request, user: User, node_name: str, *, fine_grained: bool = True
) -> tuple[Attributes, ...]:
    """What is asked of the authorizer, in this order, until it allows one."""
    return tuple(
        Attributes(user, verb_of(request.method), subresource, node_name, request.path)
        for subresource in subresources_of(request.path, fine_grained=fine_grained)
    )


def review_spec(attributes: Attributes) -> dict[str, object]:
    """The spec of a SubjectAccessReview."""
    user = attributes.user
    resource = {
        "verb": attributes.verb,
        "version": VERSION,
        "resource": RESOURCE,
        "subresource": attributes.subresource,
        "name": attributes.node_name,
    }
    spec: dict[str, object] = {
        "resourceAttributes": {name: value for name, value in resource.items() if value},
        "user": user.name,
    }
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra}
    return spec


def request_length(attributes: Attributes) -> int:
    """How many characters the request's part of the attributes has; those of the user do not count
    (upstream: shouldCache)."""
    texts = (VERSION, RESOURCE, attributes.verb, attributes.subresource)
    return sum(map(len, texts)) + len(attributes.node_name) + len(attributes.path)


def forbidden(asked: tuple[Attributes, ...]) -> str:
    """The words of a 403."""
    first = asked[0]
    subresources = " ".join(a.subresource for a in asked)
    return (
        f"Forbidden (user={first.user.name}, verb={first.verb}, resource=nodes, "
        f"subresource(s)=[{subresources}])\n"
    )


def failed(attributes: Attributes) -> str:
    """The words of a 500: nobody could say whether it is allowed."""
    return (
        f"Authorization error (user={attributes.user.name}, verb={attributes.verb}, "
        f"resource=nodes, subresource={attributes.subresource})"
    )
