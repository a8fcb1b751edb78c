"""Several nodes of one API server in this process.

Each has a machine, a runtime and a kubelet of its own; what happens to one does not touch the
others. What must never happen: a Node object of somebody else's kubelet is taken over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kubenodes.leftovers import every, remove
from kubenodes.node import READY_WITHIN_S, KubeNode, NodeError
from kubenodes.port import PoolPort
from kubenodes.settings import FAKE, NodeSettings
from kubenodes.shared_reads import SharedReads
from refkubelet.api.client import ApiError
from refkubelet.api.kinds import NODES
from refkubelet.api.lightkube_client import LightkubeApiClient
from simclock import Rng, clock_of

PORT: Final = "_port"
"""The directory of the port; no node can have that name."""
REQUESTS: Final = 16
"""So many requests of all nodes are under way at the same time: each is a connection, and what one
request costs a client grows with their number."""
AT_ONCE: Final = 20
"""So many nodes are started at the same time."""


class NodePool:
    """The nodes of these settings, on the running loop; start them with `start`, or with `async
    with`, after which nothing of them is left at the API server.

    `api`: a client of the API server, which stays open. `directory`: each node has a directory of
    its name below it. `serves`: `kubectl logs`, `exec` and what else asks kubelets for something of
    a pod work, on one port of 127.0.0.1 (real time only). `seed`: that of all random choices.
    Raises ValueError for two nodes of one name, and what `KubeNode` raises.
    """

    def __init__(
        self,
        settings: Iterable[NodeSettings],
        api: LightkubeApiClient,
        directory: Path,
        *,
        serves: bool = False,
        seed: int = 0,
    ) -> None:
        every = list(settings)
        names = [one.name for one in every]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two nodes have the name {twice[0]!r}; give each one of its own")
        self._api = api
        self._keeps = self._names_are_ours = False
        clock = clock_of(asyncio.get_running_loop())
        gate = asyncio.Semaphore(REQUESTS)
        self._reads = SharedReads(self._api, clock, Rng(seed))

        def node(one: NodeSettings) -> KubeNode:
            place = directory / one.name
            return KubeNode(one, api, place, reads=self._reads, gate=gate, clock=clock, seed=seed)

        self._port = PoolPort(lambda: self, directory / PORT) if serves else None
        try:
            every = [self._port.served(one) for one in every] if self._port else every
            self._nodes = {one.name: node(one) for one in every}
        except BaseException:
            if self._port is not None:
                self._port.release()
            raise

    def __getitem__(self, name: str) -> KubeNode:
        """The node of that name. Raises KeyError."""
        return self._nodes[name]

    def __iter__(self) -> Iterator[KubeNode]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    async def start(self, within_s: float = READY_WITHIN_S) -> None:
        """Start all nodes, and wait until they are ready. Raises NodeError for a name that is
        somebody else's node (nothing is started then), and for a node that does not get ready."""
        await self._refuse_others()
        self._names_are_ours = True
        if self._port is not None:
            self._port.open()
        gate = asyncio.Semaphore(AT_ONCE)

        async def start(node: KubeNode) -> None:
            async with gate:
                await node.start()
            await node.ready(within_s)

        await every(start(node) for node in self)

    async def _refuse_others(self) -> None:
        nodes = await self._api.list(NODES)
        others = [
            str(node.metadata.name)
            for node in nodes.items
            if node.metadata is not None
            and node.metadata.name in self._nodes
            and FAKE not in (node.metadata.labels or {})
        ]
        if others:
            raise NodeError(
                f"node {others[0]} is there already, and somebody else's: it lacks the label "
                f"{FAKE}; take another name, or delete it"
            )

    def keep(self) -> None:
        """Let what the nodes have at the API server stay when `async with` ends."""
        self._keeps = True

    async def close(self) -> None:
        """End all kubelets and runtimes; what they have at the API server stays."""
        try:
            await every(node.close() for node in self)
        finally:
            await self._reads.close()
            if self._port is not None:
                await self._port.close()

    async def remove(self) -> None:
        """End all, and delete what the nodes have at the API server. Raises ApiError."""
        try:
            await self.close()
        finally:  # all kubelets have ended, whatever it was that could not be closed
            if self._names_are_ours:
                await remove(self._api, self._nodes.keys())

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            with suppress(ApiError):  # the error that counts is under way
                await self.remove()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await (self.close() if self._keeps else self.remove())
