"""Random operations that read: get, list, tables, watches; and requests that fit nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from api_bodies import BASES, CLUSTER_WIDE
from api_operations import ApiOperations, kinds, names
from api_pair import Answer, Ask, Server
from hypothesis import strategies as st
from hypothesis.stateful import rule

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL: Final = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
SHORT: Final = {"watch": "true", "timeoutSeconds": "1"}
SENTINEL: Final = "sentinel"
_WATCHABLE: Final = ("pods", "configmaps", "secrets", "leases", "services")

list_options = st.sampled_from(
    [
        {},
        {},
        {"limit": "1"},
        {"limit": "2"},
        {"limit": "-1"},
        {"limit": "x"},
        {"labelSelector": "a=b"},
        {"labelSelector": "a in (b,c),!none"},
        {"labelSelector": "a notin (b)"},
        {"labelSelector": "a=b,a!=c"},
        {"labelSelector": "a>1"},
        {"labelSelector": "bad key=x"},
        {"labelSelector": "a in b"},
        {"labelSelector": "a=-bad-"},
        {"fieldSelector": "metadata.name=x"},
        {"fieldSelector": "metadata.name!=x"},
        {"fieldSelector": "metadata.namespace=default"},
        {"fieldSelector": "spec.nodeName="},
        {"fieldSelector": "status.phase=Pending"},
        {"fieldSelector": "type=Opaque"},
        {"fieldSelector": "spec.wrong=x"},
        {"fieldSelector": "no operator"},
        {"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact"},
        {"resourceVersion": "1", "resourceVersionMatch": "Wrong"},
        {"resourceVersion": "abc"},
        {"resourceVersion": "0", "continue": "x"},
        {"continue": "no token"},
        {"timeoutSeconds": "x"},
        {"sendInitialEvents": "true"},
        {"allowWatchBookmarks": "true"},
    ]
)
# What is asked of a version that a server may not have in its cache yet would be another answer now
# and then; the contract tests have such requests.
watch_options = st.sampled_from(
    [
        {"resourceVersion": "FIRST"},
        {"resourceVersion": "FIRST"},
        {"resourceVersion": "FIRST", "labelSelector": "a=b"},
        {"resourceVersion": "FIRST", "fieldSelector": "metadata.name!=x"},
        {"resourceVersion": "FIRST", "labelSelector": "a"},
        {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
            "resourceVersion": "FIRST",
        },
        {
            "sendInitialEvents": "false",
            "resourceVersionMatch": "NotOlderThan",
            "resourceVersion": "FIRST",
        },
        {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "resourceVersion": "FIRST",
        },
        {"allowWatchBookmarks": "true", "resourceVersion": "FIRST"},
    ]
)
bad_watches = st.sampled_from(
    [
        {"sendInitialEvents": "true"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "1"},
        {"resourceVersion": "abc"},
        {"labelSelector": "bad key=x"},
        {"fieldSelector": "spec.wrong=x"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"timeoutSeconds": "x"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
        {"continue": "x"},
    ]
)


class Reads(ApiOperations):
    """Get, list, tables, watches."""

    @rule(kind=kinds, name=names)
    def get(self, kind: str, name: str) -> None:
        self.ask(f"get {kind}", "GET", self.path(kind, name))

    @rule(kind=kinds, options=list_options)
    def list(self, kind: str, options: dict[str, str]) -> None:
        real, fake = self.ask(
            f"list {kind}", "GET", self.collection(kind), params=self.mine(kind, options)
        )
        for server, answer in ((self.pair.real, real), (self.pair.fake, fake)):
            token = answer.body.get("metadata", {}).get("continue") if answer.code == 200 else None
            if token:
                server.list_versions[f"continue {kind}"] = token

    @rule(kind=kinds, limit=st.sampled_from(["", "1", "5"]))
    def go_on(self, kind: str, limit: str) -> None:
        """The next part of a list that was cut."""
        key = f"continue {kind}"
        if key in self.pair.real.list_versions and key in self.pair.fake.list_versions:
            options = self.mine(kind, {"limit": limit} if limit else {})

            def build(server: Server) -> Ask:
                params = {**options, "continue": server.list_versions[key]}
                return Ask("GET", self.collection(kind), params=params)

            self.do(f"list {kind}", build)
            del self.pair.real.list_versions[key]

    def mine(self, kind: str, options: dict[str, str]) -> dict[str, str]:
        """With a selector that leaves out the nodes and namespaces of others."""
        if kind not in CLUSTER_WIDE:
            return options
        given = options.get("labelSelector")
        label = f"machine={self.tag}"
        return {**options, "labelSelector": f"{label},{given}" if given else label}

    @rule(kind=kinds, include=st.sampled_from(["", "None", "Object", "Wrong"]), name=names)
    def table(self, kind: str, include: str, name: str) -> None:
        params = {"includeObject": include} if include else {}
        one = self.path(kind, name)
        self.ask(f"table {kind}", "GET", one, params=params, accept=TABLE)
        params = self.mine(kind, params)
        self.ask(f"table {kind}", "GET", self.collection(kind), params=params, accept=TABLE)

    @rule(kind=kinds, name=names)
    def partial(self, kind: str, name: str) -> None:
        self.ask(f"partial {kind}", "GET", self.path(kind, name), accept=PARTIAL)
        params = self.mine(kind, {})
        self.ask(
            f"partial {kind}", "GET", self.collection(kind), params=params, accept=PARTIAL_LIST
        )

    @rule(kind=st.sampled_from(_WATCHABLE), options=bad_watches)
    def wrong_watch(self, kind: str, options: dict[str, str]) -> None:
        asked = Ask("GET", self.collection(kind), params={**SHORT, **options})

        async def ask(server: Server) -> Answer:
            return await _events(server, asked, "")

        self.runner.run(self.pair.both(f"refused watch {kind}", lambda server: asked, ask))

    @rule(kind=st.sampled_from(_WATCHABLE), options=watch_options)
    def watch(self, kind: str, options: dict[str, str]) -> None:
        """All events up to that of an object that is made for the purpose."""
        path = self.collection(kind)
        number = self.pair.operations
        name = f"{SENTINEL}-{number}"
        body = {**BASES[kind], "metadata": {"name": name, "labels": {"a": "b"}}}
        made = self.ask(f"create {kind}", "POST", path, body)
        for server, answer in zip((self.pair.real, self.pair.fake), made, strict=True):
            server.list_versions["made"] = answer.body["metadata"]["resourceVersion"]
        # What a server begins with may be as old as the version that it is asked for.
        since = "made" if options.get("sendInitialEvents") == "true" else f"first {kind}"

        def build(server: Server) -> Ask:
            params = {"watch": "true", "timeoutSeconds": "60", **options}
            if params.get("resourceVersion") == "FIRST":
                params["resourceVersion"] = server.list_versions[since]
            return Ask("GET", path, params=params)

        async def ask(server: Server) -> Answer:
            return await _events(server, build(server), name)

        self.runner.run(self.pair.both(f"watch {kind}", build, ask))
        at_once = {"gracePeriodSeconds": 0}
        self.ask(f"delete {kind}", "DELETE", f"{path}/{name}", at_once)

    def remember_versions(self) -> None:
        """What lists say at the begin; watches go on from there."""
        for kind in _WATCHABLE:
            answers = self.ask(f"list {kind}", "GET", self.collection(kind))
            for server, answer in zip((self.pair.real, self.pair.fake), answers, strict=True):
                version = answer.body["metadata"]["resourceVersion"]
                server.list_versions[f"first {kind}"] = version

    @rule(
        method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
        path=st.sampled_from(
            [
                "/api/v1/nothing",
                "/api/v1/namespaces/NAMESPACE/nothing",
                "/api/v1/namespaces/NAMESPACE/pods/x/nothing",
                "/api/v1/namespaces/NAMESPACE/configmaps/x/status",
                "/api/v1/namespaces/NAMESPACE/configmaps",
                "/api/v1/pods",
                "/api/v1/namespaces/none-such/configmaps",
                "/api/v1/namespaces/none-such/configmaps/x",
                "/api/v1/namespaces/NAMESPACE/pods/x/binding",
                "/api/v1/namespaces/NAMESPACE/pods/x/eviction",
                "/api/v2/pods",
            ]
        ),
        body=st.sampled_from([b"{}", b'{"metadata": {}}']),
    )
    def odd(self, method: str, path: str, body: bytes | None) -> None:
        """Requests that fit nothing."""
        path = path.replace("NAMESPACE", self.namespace)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        if (method, path) == ("GET", "/api/v1/pods") or method == "DELETE":
            return
        self.ask(f"odd {method}", method, path, body, kind=kind)


async def _events(server: Server, ask: Ask, sentinel: str) -> Answer:
    """The events of a watch up to the first that shows the sentinel, without plain bookmarks; with
    initial events also the bookmark that ends them."""
    wants_mark = "sendInitialEvents" in ask.params and "allowWatchBookmarks" in ask.params
    events: list[Any] = []
    seen = marked = False
    async with server.side.stream(ask.path, ask.params) as answer:
        if answer.status != 200:
            return Answer(answer.status, await answer.json())
        async with asyncio.timeout(30):
            async for line in answer.content:
                event = json.loads(line)
                metadata = event["object"].get("metadata", {})
                if event["type"] == "BOOKMARK":
                    if "annotations" not in metadata:
                        continue
                    marked = True
                    metadata["resourceVersion"] = "of a bookmark"
                events.append(event)
                seen = seen or (bool(sentinel) and metadata.get("name") == sentinel)
                if event["type"] == "ERROR" or (seen and (marked or not wants_mark)):
                    break
    return Answer(200, events)
