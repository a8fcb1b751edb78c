"""What is asked and answered, but not stored: token requests, token reviews, access reviews.

Upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go,
pkg/registry/authentication/tokenreview, pkg/registry/authorization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekubeapi.access.policy import AccessPolicy, Attributes
from fakekubeapi.access.tokens import read, sign
from fakekubeapi.access.users import ALL_AUTHENTICATED, User, Users
from fakekubeapi.errors import StatusError, bad_request, conflict, invalid, not_found
from fakekubeapi.requests.routes import Route
from fakekubeapi.requests.shapes import check_shape
from fakekubeapi.resources.service_accounts import EXPIRATION_S
from fakekubeapi.storage.changes import Key, Object
from fakekubeapi.storage.store import Store
from kubeobjects.causes import Cause, invalid_value
from kubeobjects.golang.strconv import quoted_list
from kubeobjects.schema.messages import message
from simclock import Clock, Ids, format_rfc3339

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
SHORTEST_S: Final = 600
LONGEST_S: Final = 1 << 32
USUAL_S: Final = 3600
EXTENDED_S: Final = 365 * 24 * 3600
_GROUP: Final = "authentication.k8s.io"
_BOUND_TO: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@dataclass
class Reviews:
    """Answers over one store. `users` and `access` are the tables that tests write."""

    store: Store
    ids: Ids
    users: Users
    access: AccessPolicy
    _key: bytes = field(default=b"", repr=False)

    # -- tokens --------------------------------------------------------------------------------

    def token_request(self, route: Route, body: Any, clock: Clock) -> Object:
        """A token of the service account at `route`; the answer is the TokenRequest with its
        status. Raises: StatusError 404 without the account or the object it is bound to, 400 for
        an object of another kind or a pod of another account, 409 for another UID, 422 for a
        lifetime below 600 s."""
        check_shape(body, message("authentication.v1.TokenRequest"))
        _check_names(route, (body or {}).get("metadata") or {})
        account = self._found("serviceaccounts", route.namespace or "", route.name)
        spec = {**((body or {}).get("spec") or {})}
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        if spec.get("expirationSeconds") is None:  # a kubelet sends null
            spec["expirationSeconds"] = USUAL_S
        lasts_s = spec["expirationSeconds"]
        _check_request(route, (body or {}).get("metadata") or {}, account, lasts_s)
        bound = self._bound(route, spec.get("boundObjectRef"))
        now_ns = clock.wall_ns()
        token = self._signed(account, bound, spec, now_ns)
        metadata = {key: account["metadata"][key] for key in ("name", "namespace", "uid")}
        expires = format_rfc3339((now_ns // 10**9 + lasts_s) * 10**9)
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {**metadata, "creationTimestamp": format_rfc3339(now_ns)},
            "spec": {**spec, "boundObjectRef": spec.get("boundObjectRef")},
            "status": {"token": token, "expirationTimestamp": expires},
        }

    def user_of(self, token: str, clock: Clock, audiences: Sequence[str] = (ISSUER,)) -> User:
        """The user to whom a bearer token belongs, for one of these audiences. Raises: StatusError
        401 with the reason when it is refused."""
        user = self.users.of_token(token)
        if user is not None:
            return user
        claims = read(self._key, token) if self._key else None
        if claims is None:
            raise StatusError(401, "invalid bearer token")
        problem = self._problem(claims, clock, audiences)
        if problem:
            raise StatusError(401, f"[invalid bearer token, {problem}]")
        return _user_of_claims(claims)

    def token_review(self, body: Any, clock: Clock) -> Object:
        """A TokenReview with its status. Raises: StatusError 400 without a token."""
        check_shape(body, message("authentication.v1.TokenReview"))
        spec = (body or {}).get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        audiences = spec.get("audiences") or [ISSUER]
        status: dict[str, Any]
        try:
            user = self.user_of(spec["token"], clock, audiences)
        except StatusError as error:
            status = {"user": {}}
            if self.users.is_explained(spec["token"]):
                status["error"] = error.message
        else:
            claims = read(self._key, spec["token"]) if self._key else None
            own = audiences if claims is None else claims["aud"]
            common = [audience for audience in audiences if audience in own]
            status = {"authenticated": True, "user": user.info(), "audiences": common}
        return _answered(body, "TokenReview", f"{_GROUP}/v1", status)

    def self_review(self, body: Any, user: User) -> Object:
        """The identity of the client (`kubectl auth whoami`)."""
        return _answered(body or {}, "SelfSubjectReview", f"{_GROUP}/v1", {"userInfo": user.info()})

    # -- access --------------------------------------------------------------------------------

    def access_review(self, route: Route, body: Any, user: User) -> Object:
        """A SubjectAccessReview, one of the client itself or of a namespace, with its status.
        Raises: StatusError 422 for a spec that names no user, or not one kind of access."""
        resource = route.resource
        check_shape(body, route.message)
        spec = (body or {}).get("spec") or {}
        is_self = resource.kind == "SelfSubjectAccessReview"
        causes = _access_causes(spec, names_user=not is_self)
        if causes:
            raise invalid(resource.kind, resource.group, "", causes)
        attributes = _attributes(spec, user if is_self else None)
        if route.namespace and attributes.namespace != route.namespace:
            cause = invalid_value(
                "spec.resourceAttributes.namespace",
                attributes.namespace,
                "must match metadata.namespace",
            )
            raise invalid(resource.kind, resource.group, "", [cause])
        decision = self.access.decide(attributes)
        status: dict[str, Any] = {"allowed": decision.allowed}
        if decision.denied:
            status["denied"] = True
        if decision.reason:
            status["reason"] = decision.reason
        return _answered(body, resource.kind, resource.api_version, status)

    # -- parts ---------------------------------------------------------------------------------

    def _found(self, plural: str, namespace: str, name: str) -> Object:
        obj = self.store.get(Key(plural, namespace, name))
        if obj is None:
            raise not_found(plural, name)
        return obj

    def _bound(self, route: Route, ref: Any) -> dict[str, Any]:
        """The claims about the object that the token is bound to; {} if there is none."""
        if not ref:
            return {}
        kind, name = ref.get("kind") or "", ref.get("name") or ""
        if kind not in _BOUND_TO or (ref.get("apiVersion") or "v1") != "v1":
            version = ref.get("apiVersion") or ""
            type_text = f"{version if '/' in version else '/' + version}, Kind={kind}"
            raise bad_request(f"cannot bind token to object of type {type_text}")
        namespace = "" if kind == "Node" else route.namespace or ""
        target = self._found(_BOUND_TO[kind], namespace, name)
        claims: dict[str, Any] = {kind.lower(): _ref(target)}
        if kind == "Pod":
            if (target["spec"].get("serviceAccountName") or "") != route.name:
                raise bad_request(
                    f'cannot bind token for serviceaccount "{route.name}" to pod running with '
                    "different serviceaccount name."
                )
            node = target["spec"].get("nodeName")
            if node:
                node_object = self.store.get(Key("nodes", "", node))
                claims["node"] = _ref(node_object) if node_object else {"name": node}
        if ref.get("uid") and ref["uid"] != target["metadata"]["uid"]:
            raise conflict(
                kind,
                name,
                f"the UID in the bound object reference ({ref['uid']}) does not match the UID in "
                "record. The object might have been deleted and then recreated",
            )
        return claims

    def _signed(
        self, account: Object, bound: dict[str, Any], spec: dict[str, Any], now_ns: int
    ) -> str:
        now_s, lasts_s = now_ns // 10**9, spec["expirationSeconds"]
        metadata = account["metadata"]
        private: dict[str, Any] = {
            "namespace": metadata["namespace"],
            "serviceaccount": _ref(account),
        }
        private.update(bound)
        if "pod" in bound and lasts_s == EXPIRATION_S and spec["audiences"] == [ISSUER]:
            private["warnafter"] = now_s + lasts_s
            lasts_s = EXTENDED_S
        claims = {
            "aud": spec["audiences"],
            "exp": now_s + lasts_s,
            "iat": now_s,
            "iss": ISSUER,
            "jti": self.ids.uuid(),
            "kubernetes.io": private,
            "nbf": now_s,
            "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
        }
        if not self._key:
            self._key = (self.ids.uuid() + self.ids.uuid()).encode()
        return sign(self._key, claims)

    def _problem(self, claims: dict[str, Any], clock: Clock, audiences: Sequence[str]) -> str:
        """Why a token with these claims is not taken; "" if it is."""
        if claims["exp"] <= clock.wall_ns() // 10**9:
            return "service account token has expired"
        if not set(claims["aud"]) & set(audiences):
            own, target = quoted_list(claims["aud"]), quoted_list(audiences)
            return f"token audiences {own} is invalid for the target audiences {target}"
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        account_object = self.store.get(Key("serviceaccounts", namespace, account["name"]))
        if account_object is None:
            return f'serviceaccounts "{account["name"]}" not found'
        if account_object["metadata"]["uid"] != account["uid"]:
            uid = account_object["metadata"]["uid"]
            return f"service account UID ({uid}) does not match claim ({account['uid']})"
        for kind, plural in _BOUND_TO.items():
            bound = private.get(kind.lower())
            if bound is None or (kind == "Node" and "pod" in private):
                continue
            target_now = self.store.get(
                Key(plural, "" if kind == "Node" else namespace, bound["name"])
            )
            if target_now is None or target_now["metadata"]["uid"] != bound.get("uid"):
                return "service account token has been invalidated"
        return ""


def _ref(obj: Object) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _check_names(route: Route, given: Object) -> None:
    """Check that a token request names nobody else."""
    causes: list[Cause] = []
    for key, expected_value in (("name", route.name), ("namespace", route.namespace)):
        if (given.get(key) or expected_value) != expected_value:
            rule = f"must match the service account {key} if specified"
            causes.append(invalid_value(f"metadata.{key}", given[key], rule))
    if causes:
        raise invalid("TokenRequest", _GROUP, route.name, causes)


def _check_request(route: Route, given: Object, account: Object, lasts_s: int) -> None:
    """Check the metadata and the lifetime of a token request."""
    causes: list[Cause] = []
    if lasts_s < SHORTEST_S:
        rule = "may not specify a duration less than 10 minutes"
        causes.append(invalid_value("spec.expirationSeconds", lasts_s, rule))
    if lasts_s > LONGEST_S:
        rule = "may not specify a duration larger than 2^32 seconds"
        causes.append(invalid_value("spec.expirationSeconds", lasts_s, rule))
    if causes:
        raise invalid("TokenRequest", _GROUP, given.get("name") or "", causes)
    uid = account["metadata"]["uid"]
    if (given.get("uid") or uid) != uid:
        raise conflict(
            f"TokenRequest.{_GROUP}",
            route.name,
            f"the UID in the token request ({given['uid']}) does not match the UID of the service "
            f"account ({uid})",
        )


def _user_of_claims(claims: dict[str, Any]) -> User:
    """The user that a service account is."""
    private = claims["kubernetes.io"]
    extra = {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)}
    for kind in ("node", "pod"):
        ref = private.get(kind) or {}
        for part in ("name", "uid"):
            if ref.get(part):
                extra[f"authentication.kubernetes.io/{kind}-{part}"] = (ref[part],)
    groups = (
        "system:serviceaccounts",
        f"system:serviceaccounts:{private['namespace']}",
        ALL_AUTHENTICATED,
    )
    return User(claims["sub"], private["serviceaccount"]["uid"], groups, extra)


def _access_causes(spec: dict[str, Any], *, names_user: bool) -> list[Cause]:
    causes: list[Cause] = []
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        rule = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid_value("spec.nonResourceAttributes", other, rule))
    if resource is None and other is None:
        rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid_value("spec.resourceAttributes", None, rule))
    if names_user and not spec.get("user") and not spec.get("groups"):
        rule = "at least one of user or group must be specified"
        causes.append(invalid_value("spec.user", "", rule))
    return causes


def _attributes(spec: dict[str, Any], user: User | None) -> Attributes:
    attributes = spec.get("resourceAttributes") or {}
    other = spec.get("nonResourceAttributes") or {}
    return Attributes(
        user=user.name if user else spec.get("user") or "",
        groups=user.groups if user else tuple(spec.get("groups") or ()),
        verb=attributes.get("verb") or other.get("verb") or "",
        api_group=attributes.get("group") or "",
        resource=attributes.get("resource") or "",
        subresource=attributes.get("subresource") or "",
        name=attributes.get("name") or "",
        namespace=attributes.get("namespace") or "",
        path=other.get("path") or "",
    )


def _answered(body: Any, kind: str, api_version: str, status: dict[str, Any]) -> Object:
    parts = {key: value for key, value in (body or {}).items() if key in ("metadata", "spec")}
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, **parts, "status": status}
