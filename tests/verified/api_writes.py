"""Random operations that write: create, update, patch, apply, delete."""

from __future__ import annotations

import json
from typing import Any

from api_bodies import (
    CLUSTER_WIDE,
    STATUS_TWISTS,
    TWISTS,
    WITH_STATUS,
    body_of,
    in_namespace,
    put_over,
)
from api_operations import (
    APPLY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    ApiOperations,
    kinds,
    managers,
    names,
    odd_names,
    remove,
)
from api_pair import Ask, Server
from hypothesis import strategies as st
from hypothesis.stateful import rule

write_options = st.sampled_from(
    [
        *({},) * 8,
        {"dryRun": "All"},
        {"dryRun": "Some"},
        {"fieldManager": "one"},
        {"fieldManager": "x" * 129},
        {"fieldValidation": "Strict"},
        {"fieldValidation": "Strict"},
        {"fieldValidation": "Ignore"},
        {"fieldValidation": "Wrong"},
    ]
)
delete_options: Any = st.sampled_from(
    [
        *(None,) * 4,
        {"gracePeriodSeconds": 0},
        {"gracePeriodSeconds": 5},
        {"gracePeriodSeconds": -1},
        {"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}},
        {"preconditions": {"resourceVersion": "1"}},
        {"propagationPolicy": "Background"},
        {"propagationPolicy": "Wrong"},
        {"orphanDependents": True, "propagationPolicy": "Background"},
        {"dryRun": ["All"]},
        {"dryRun": ["Some"]},
        {"kind": "DeleteOptions", "apiVersion": "v1"},
        {"gracePeriodSeconds": "text"},
    ]
)
OPERATIONS: Any = [
    [],
    [{"op": "add", "path": "/metadata/labels", "value": {"j": "1"}}],
    [{"op": "add", "path": "/metadata/labels/j", "value": "2"}],
    [{"op": "replace", "path": "/metadata/labels/a", "value": "3"}],
    [{"op": "remove", "path": "/metadata/labels"}],
    [{"op": "remove", "path": "/metadata/annotations/none"}],
    [{"op": "test", "path": "/metadata/name", "value": "x"}],
    [{"op": "test", "path": "/metadata/name", "value": "other"}],
    [{"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations"}],
    [{"op": "replace", "path": "/metadata/name", "value": "other"}],
    [{"op": "replace", "path": "/kind", "value": "Other"}],
    [{"op": "add", "path": "/data/j", "value": "dg=="}],
    [{"op": "wrong", "path": "/data"}],
    [{"op": "replace", "path": "/spec/containers/0/image", "value": "busybox:9"}],
    [{"op": "add", "path": "/spec/unschedulable", "value": True}],
    {"op": "add"},
    "text",
    [{"op": "remove", "path": "/spec/containers/5"}],
    [{"op": "remove", "path": ""}],
]
DIRECTIVES: Any = [
    {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
    {"spec": {"containers": [{"name": "b", "image": "i:2"}]}},
    {"spec": {"containers": [{"image": "i:2"}]}},
    {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}]}},
    {"metadata": {"finalizers": ["example.com/other"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}},
    {"metadata": {"labels": {"a": None}}},
    {"metadata": {"labels": None}},
    {"data": {"$patch": "replace", "only": "dg=="}},
    {"data": None},
    {"spec": {"activeDeadlineSeconds": 30}},
    {"spec": {"activeDeadlineSeconds": None}},
    {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "some-uid"}]}},
    {"$patch": "replace", "metadata": {"name": "x"}},
    {"$patch": "delete"},
    {"spec": {"tolerations": [{"key": "more", "operator": "Exists"}]}},
    {"spec": {"$retainKeys": ["type"], "type": "NodePort"}},
    {"status": {"phase": "Running"}},
    {"spec": {"terminationGracePeriodSeconds": 7}},
    {"spec": {"containers": [{"name": "a", "image": "busybox:7"}]}},
    {"spec": {"containers": [{"name": "a", "image": ""}]}},
]


def some_twists(data: Any, kind: str, most: int = 2) -> list[Any]:
    drawn: list[Any] = data.draw(st.lists(st.sampled_from(TWISTS[kind]), max_size=most))
    return drawn


class Writes(ApiOperations):
    """Create, update, patch, apply, delete."""

    @rule(kind=kinds, name=odd_names, options=write_options, data=st.data())
    def create(self, kind: str, name: str, options: dict[str, str], data: Any) -> None:
        if kind == "services":
            name = name or "x"  # where no name is, that of its address is missed first
        body = self.body(data, kind, name)
        answers = self.ask(f"create {kind}", "POST", self.collection(kind), body, params=options)
        self.generated(kind, answers)

    @rule(kind=kinds, name=names)
    def create_plain(self, kind: str, name: str) -> None:
        body = body_of(kind, self.object_name(kind, name), self.namespace, [])
        if kind == "nodes":
            body["metadata"]["labels"] = {"machine": self.tag}
        path = self.path(kind, name)
        answers = self.ask(f"create {kind}", "POST", self.collection(kind), body)
        self.settled(path, answers)

    def body(self, data: Any, kind: str, name: str, most: int = 2) -> dict[str, Any]:
        body = body_of(
            kind, self.object_name(kind, name), self.namespace, some_twists(data, kind, most)
        )
        if kind in CLUSTER_WIDE:
            labels = body["metadata"].get("labels")
            body["metadata"]["labels"] = {**(labels or {}), "machine": self.tag}
        return body

    def generated(self, kind: str, answers: Any) -> None:
        """Learn a generated name, and remove an object that only one server has made."""
        done = [a.body["metadata"]["name"] if a.code < 300 else "" for a in answers]
        servers = (self.pair.real, self.pair.fake)
        if done[0] != done[1]:
            for server, name in zip(servers, done, strict=True):
                if name:
                    path = f"{self.collection(kind)}/{name}"
                    self.runner.run(remove(server, path))

    @rule(kind=kinds, name=names, options=write_options, data=st.data())
    def update(self, kind: str, name: str, options: dict[str, str], data: Any) -> None:
        """What a GET shows, changed."""
        twists = some_twists(data, kind)
        path = self.path(kind, name)
        real, fake = self.ask(f"get {kind}", "GET", path)
        if real.code != 200 or fake.code != 200:
            return
        forget = data.draw(st.sampled_from([(), (), (), ("resourceVersion",), ("uid",)]))
        shown = {self.pair.real: real.body, self.pair.fake: fake.body}

        def build(server: Server) -> Ask:
            body = json.loads(json.dumps(shown[server]))
            for twist in twists:
                body = put_over(body, in_namespace(twist, self.namespace))
            for key in forget:
                body["metadata"].pop(key, None)
            return Ask("PUT", path, body, options)

        self.settled(path, self.do(f"update {kind}", build))

    @rule(kind=kinds, name=names, options=write_options, data=st.data())
    def put_new(self, kind: str, name: str, options: dict[str, str], data: Any) -> None:
        path = self.path(kind, name)
        body = self.body(data, kind, name, 1)
        self.settled(path, self.ask(f"put {kind}", "PUT", path, body, params=options))

    @rule(
        kind=kinds,
        name=names,
        options=write_options,
        how=st.sampled_from([MERGE, STRATEGIC]),
        data=st.data(),
    )
    def patch(self, kind: str, name: str, options: dict[str, str], how: str, data: Any) -> None:
        drawn = data.draw(st.sampled_from([*TWISTS[kind], *DIRECTIVES]))
        path = self.path(kind, name)
        word = "merge" if how == MERGE else "strategic"
        answers = self.ask(
            f"{word} {kind}",
            "PATCH",
            path,
            in_namespace(drawn, self.namespace),
            params=options,
            kind=how,
        )
        self.settled(path, answers)

    @rule(kind=kinds, name=names, operations=st.sampled_from(OPERATIONS))
    def json_patch(self, kind: str, name: str, operations: Any) -> None:
        path = self.path(kind, name)
        self.settled(path, self.ask(f"json {kind}", "PATCH", path, operations, kind=JSON_PATCH))

    @rule(kind=kinds, name=names, manager=managers, force=st.booleans(), data=st.data())
    def apply(self, kind: str, name: str, manager: str, force: bool, data: Any) -> None:
        path = self.path(kind, name)
        params = {"fieldManager": manager, **({"force": "true"} if force else {})}
        body = self.body(data, kind, name)
        self.settled(
            path, self.ask(f"apply {kind}", "PATCH", path, body, params=params, kind=APPLY)
        )

    @rule(kind=kinds, name=names, options=delete_options)
    def delete(self, kind: str, name: str, options: Any) -> None:
        if kind == "namespaces":
            return
        path = self.path(kind, name)
        self.settled(path, self.ask(f"delete {kind}", "DELETE", path, options))

    @rule(
        kind=kinds.filter(lambda kind: kind not in CLUSTER_WIDE),
        labels=st.sampled_from(["a=b", "a!=b", "none=here", "bad=="]),
        options=delete_options,
    )
    def delete_collection(self, kind: str, labels: str, options: Any) -> None:
        path = self.collection(kind)
        self.ask(
            f"deletecollection {kind}", "DELETE", path, options, params={"labelSelector": labels}
        )

    @rule(
        kind=st.sampled_from([*("pods",) * 3, *WITH_STATUS]),
        name=names,
        how=st.sampled_from([MERGE, STRATEGIC, "PUT", APPLY]),
        data=st.data(),
    )
    def status(self, kind: str, name: str, how: str, data: Any) -> None:
        twist = in_namespace(data.draw(st.sampled_from(STATUS_TWISTS[kind])), self.namespace)
        path = self.path(kind, name, "status")
        what = f"status {kind}"
        real, fake = self.ask(f"get {kind}", "GET", self.path(kind, name))
        if real.code != 200 or fake.code != 200:
            return
        if how != "PUT":
            params = {}
            if how == APPLY:
                params = {"fieldManager": "one"}
                base = body_of(kind, self.object_name(kind, name), self.namespace, [])
                base.pop("spec", None)
                twist = put_over(base, twist)
            self.ask(what, "PATCH", path, twist, kind=how, params=params)
            return
        real, fake = self.ask(f"get {kind}", "GET", path)
        if real.code != 200 or fake.code != 200:
            return
        shown = {self.pair.real: real.body, self.pair.fake: fake.body}
        self.do(what, lambda server: Ask("PUT", path, put_over(shown[server], twist)))
