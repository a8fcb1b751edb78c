"""What all random operations on two API servers share: the namespace of an example, how objects
are named, and what the servers have to be told apart."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from api_bodies import BASES, CLUSTER_WIDE
from api_differences import before, of_1_36
from api_normal import Symbols
from api_pair import Answer, ApiPair, Ask, Build, Server
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from simclock import Ids, Rng

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_IDS: Final = Ids(Rng.from_system())

kinds = st.sampled_from([*("pods",) * 6, *BASES])
names = st.sampled_from(["x", "y", "z"])
odd_names = st.sampled_from(["x", "x", "y", "y", "z", "z", "", "Bad_Name", "a.b", "n" * 254])
managers = st.sampled_from(["one", "two"])


class ApiOperations(RuleBasedStateMachine):
    """The objects of one example, and requests about them to both servers."""

    pair: ApiPair
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.tag = f"m{_IDS.hex(8)}"
        self.namespace = f"ns-{self.tag}"
        self.pair.history.clear()
        for server in (self.pair.real, self.pair.fake):
            server.symbols = Symbols()
            server.list_versions.clear()
        namespace = {"metadata": {"name": self.namespace, "labels": {"machine": self.tag}}}
        self.ask("create namespaces", "POST", "/api/v1/namespaces", namespace)
        account = {"metadata": {"name": "default"}}
        self.runner.run(self._unless_there(f"{self.collection('serviceaccounts')}", account))

    def teardown(self) -> None:
        self.runner.run(self._clean())

    async def _unless_there(self, path: str, body: Any) -> None:
        """The default account comes from a controller, which the fake plays."""
        for server in (self.pair.real, self.pair.fake):
            await server.ask(Ask("POST", path, body))

    async def _clean(self) -> None:
        for server in (self.pair.real, self.pair.fake):
            for kind in BASES:
                if kind not in CLUSTER_WIDE:
                    await self._empty(server, self.collection(kind), "")
            await self._empty(server, "/api/v1/nodes", f"machine={self.tag}")
            for name in ("x", "y", "z"):
                await server.ask(
                    Ask("DELETE", f"/api/v1/namespaces/{self.object_name('namespaces', name)}")
                )
            await server.ask(Ask("DELETE", f"/api/v1/namespaces/{self.namespace}"))

    async def _empty(self, server: Server, path: str, labels: str) -> None:
        """Remove all objects there, also those that finalizers hold."""
        found = await server.ask(Ask("GET", path, params={"labelSelector": labels}))
        for item in found.body.get("items", ()):
            await remove(server, f"{path}/{item['metadata']['name']}")

    # -- requests --------------------------------------------------------------------------------

    def collection(self, kind: str) -> str:
        prefix = "/apis/coordination.k8s.io/v1" if kind == "leases" else "/api/v1"
        place = "" if kind in CLUSTER_WIDE else f"/namespaces/{self.namespace}"
        return f"{prefix}{place}/{kind}"

    def object_name(self, kind: str, name: str) -> str:
        """Names of what is in no namespace have to differ between examples."""
        return f"{name}-{self.tag}" if kind in CLUSTER_WIDE and name else name

    def path(self, kind: str, name: str, subresource: str = "") -> str:
        below = f"/{subresource}" if subresource else ""
        return f"{self.collection(kind)}/{self.object_name(kind, name)}{below}"

    def do(self, what: str, build: Build) -> tuple[Answer, Answer]:
        return self.runner.run(self.pair.do(what, build))

    def ask(
        self,
        what: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: dict[str, str] | None = None,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[Answer, Answer]:
        """The same request to both servers, unless their minor is one that does otherwise."""
        assume(not before("1.36", self.pair.minor) or not of_1_36(what, body))
        made = Ask(method, path, body, dict(params or {}), kind, accept)
        return self.do(what, lambda server: made)

    def settled(self, path: str, answers: tuple[Answer, Answer]) -> None:
        """Where one server alone has done something (a known difference), undo it on both."""
        done = [answer.code < 300 for answer in answers]
        if done[0] != done[1]:
            for server in (self.pair.real, self.pair.fake):
                self.runner.run(remove(server, path))


async def remove(server: Server, path: str) -> None:
    """Remove an object at once, whatever holds it."""
    await server.ask(Ask("PATCH", path, {"metadata": {"finalizers": None}}, kind=MERGE))
    await server.ask(Ask("DELETE", path, params={"gracePeriodSeconds": "0"}))
