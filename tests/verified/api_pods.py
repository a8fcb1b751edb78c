"""Random operations on the subresources of pods and service accounts: binding, eviction, ephemeral
containers, resize, tokens."""

from __future__ import annotations

from typing import Any

from api_operations import MERGE, STRATEGIC, ApiOperations, names
from hypothesis import strategies as st
from hypothesis.stateful import rule

bindings: Any = st.sampled_from(
    [
        *({"metadata": {"name": "NAME"}, "target": {"name": "node"}},) * 4,
        {"target": {"name": "node"}},
        {"metadata": {"name": "NAME"}, "target": {"kind": "Node", "name": "node"}},
        {"metadata": {"name": "NAME"}, "target": {"name": ""}},
        {"metadata": {"name": "NAME"}},
        {"metadata": {"name": "NAME"}, "target": {"kind": "Other", "name": "node"}},
        {"metadata": {"name": "other"}, "target": {"name": "node"}},
        {"metadata": {"name": "NAME", "labels": {"bound": "yes"}}, "target": {"name": "node"}},
        {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "node"}},
        {"target": {"name": "node"}, "unknownField": 1},
    ]
)
evictions: Any = st.sampled_from(
    [
        *({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "NAME"}},) * 2,
        {"apiVersion": "policy/v1", "kind": "Eviction"},
        {"metadata": {"name": "other"}},
        {},
        {"metadata": {"name": "NAME"}, "deleteOptions": {"gracePeriodSeconds": 0}},
        {
            "metadata": {"name": "NAME"},
            "deleteOptions": {"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}},
        },
        {"metadata": {"name": "NAME"}, "deleteOptions": {"dryRun": ["All"]}},
        {"apiVersion": "v1", "kind": "Eviction"},
    ]
)
ephemerals: Any = st.sampled_from(
    [
        [{"name": "e", "image": "i"}],
        [{"name": "e", "image": "i", "targetContainerName": "a"}],
        [{"name": "e", "image": "i", "targetContainerName": "none"}],
        [{"name": "e", "image": "j"}],
        [{"name": "f", "image": "i", "stdin": True, "tty": True}],
        [{"name": "a", "image": "i"}],
        [{"name": "f", "image": "i", "ports": [{"containerPort": 1}]}],
        [{"name": "f", "image": "i", "resources": {"limits": {"cpu": "1"}}}],
        [{"name": "f", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}],
        [{"name": "f", "image": ""}],
        [],
    ]
)
resizes: Any = st.sampled_from(
    [
        {"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "2", "memory": "2Gi"}},
        {"requests": {"cpu": "100m"}},
        {"requests": {"cpu": "0.2"}},
        {"requests": {"memory": "1024Mi"}},
        {"requests": {"example.com/gpu": "1"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        {"limits": {"ephemeral-storage": "1Gi"}},
        {},
    ]
)
tokens: Any = st.sampled_from(
    [
        {},
        {"spec": {}},
        {"spec": {"audiences": ["a"], "expirationSeconds": 600}},
        {"spec": {"expirationSeconds": 599}},
        {"spec": {"expirationSeconds": 1 << 33}},
        {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "x"}}},
        {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "x"}}},
        {"spec": {"boundObjectRef": {"kind": "Other", "name": "x"}}},
        {"metadata": {"name": "other"}},
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    ]
)


class Subresources(ApiOperations):
    """Binding, eviction, ephemeral containers, resize, tokens."""

    @rule(name=names, body=bindings)
    def bind(self, name: str, body: Any) -> None:
        self.ask("bind pods", "POST", self.path("pods", name, "binding"), _named(body, name))

    @rule(name=names, body=evictions)
    def evict(self, name: str, body: Any) -> None:
        self.ask("evict pods", "POST", self.path("pods", name, "eviction"), _named(body, name))

    @rule(name=names, added=ephemerals, how=st.sampled_from([MERGE, STRATEGIC]))
    def debug(self, name: str, added: Any, how: str) -> None:
        body = {"spec": {"ephemeralContainers": added}}
        path = self.path("pods", name, "ephemeralcontainers")
        self.ask("ephemeralcontainers pods", "PATCH", path, body, kind=how)

    @rule(name=names, wanted=resizes)
    def resize(self, name: str, wanted: Any) -> None:
        body = {"spec": {"containers": [{"name": "a", "resources": wanted}]}}
        path = self.path("pods", name, "resize")
        self.ask("resize pods", "PATCH", path, body, kind=STRATEGIC)

    @rule(name=st.sampled_from(["x", "default", "none"]), body=tokens)
    def token(self, name: str, body: Any) -> None:
        path = self.path("serviceaccounts", name, "token")
        self.ask("token serviceaccounts", "POST", path, body)


def _named(body: Any, name: str) -> Any:
    """The body with the name in the place of the word NAME."""
    metadata = body.get("metadata")
    if metadata and metadata.get("name") == "NAME":
        return {**body, "metadata": {**metadata, "name": name}}
    return body
