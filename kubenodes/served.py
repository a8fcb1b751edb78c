"""Nodes for tests without an event loop: they live in a background thread, in real time.

Every method of `ServedNode` runs on the thread's loop and is waited for, so that tests stay
ordinary blocking code. What must never happen: a node is touched from another thread than its own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fakecri import ServedFake
from kubenodes.node import READY_WITHIN_S, KubeNode
from kubenodes.pool import NodePool
from kubenodes.settings import NodeSettings
from refkubelet.api.lightkube_client import LightkubeApiClient
from simclock.loop_thread import LoopThread


class ServedNode:
    """A node that lives in a background thread, with the methods of `KubeNode` as blocking calls
    for any thread. `kubeconfig`: the file by which its API server is reached. Raises what
    `KubeNode` raises."""

    def __init__(self, thread: LoopThread, node: KubeNode, kubeconfig: Path) -> None:
        self._thread = thread
        self._node = node
        self.kubeconfig = kubeconfig
        self.runtime = ServedFake(thread, node.runtime, "", "")
        """Its fake runtime, whose methods block: `behaves`, `on`, `exit`, `calls`, ...;
        `runtime.node` is its machine."""

    @property
    def name(self) -> str:
        """The name of its Node object."""
        return self._node.name

    @property
    def runs(self) -> bool:
        """Whether its kubelet runs."""
        return bool(self._thread.run(lambda: self._node.runs))

    def start(self) -> None:
        """As `KubeNode.start`."""
        self._do(self._node.start)

    def ready(self, within_s: float = READY_WITHIN_S) -> None:
        """As `KubeNode.ready`."""
        self._do(partial(self._node.ready, within_s))

    def stop(self) -> None:
        """As `KubeNode.stop`."""
        self._do(self._node.stop)

    def kill(self) -> None:
        """As `KubeNode.kill`."""
        self._do(self._node.kill)

    def power_off(self) -> None:
        """As `KubeNode.power_off`."""
        self._do(self._node.power_off)

    def power_on(self, within_s: float = READY_WITHIN_S) -> None:
        """As `KubeNode.power_on`."""
        self._do(partial(self._node.power_on, within_s))

    def reboot(self, within_s: float = READY_WITHIN_S) -> None:
        """As `KubeNode.reboot`."""
        self._do(partial(self._node.reboot, within_s))

    def lose_network(self) -> None:
        """As `KubeNode.lose_network`."""
        self._thread.run(self._node.lose_network)

    def restore_network(self) -> None:
        """As `KubeNode.restore_network`."""
        self._thread.run(self._node.restore_network)

    def _do(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        __tracebackhide__ = True
        self._thread.run(step)


@contextmanager
def serve_nodes(
    thread: LoopThread,
    settings: Iterable[NodeSettings],
    api: LightkubeApiClient,
    *,
    kubeconfig: Path,
    directory: Path,
    seed: int = 0,
) -> Iterator[list[ServedNode]]:
    """Nodes of these settings on the thread's loop, ready; at the end of the block nothing of them
    is left at the API server. `api`: a client of it, on that loop. Raises what `NodePool`
    raises."""

    async def make() -> NodePool:
        return NodePool(settings, api, directory, serves=True, seed=seed)

    pool: NodePool = thread.run(make)
    thread.run(pool.__aenter__)
    try:
        yield [ServedNode(thread, node, kubeconfig) for node in pool]
    finally:
        thread.run(pool.remove)
