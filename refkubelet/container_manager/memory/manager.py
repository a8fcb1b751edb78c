"""The memory manager with policy Static: assigns memory of NUMA nodes to containers and takes it
back.

The state is an immutable value; every allocation and release replaces it and writes its file. What
must never happen here: memory is taken back before all pods are known.

Rules: CG-082. Upstream: pkg/kubelet/cm/memorymanager: memory_manager.go, policy_static.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from kubeobjects.structs import replace
from refkubelet.container_manager.memory.requests import pinned_memory, pod_pinned_memory
from refkubelet.container_manager.memory.state import Block, MemoryState, taken
from refkubelet.container_manager.memory.static import (
    Reusable,
    chosen_nodes,
    hints_for_requests,
    hints_of_blocks,
    memory_hints,
)
from refkubelet.container_manager.providers.active import ActiveContainers
from refkubelet.container_manager.providers.hints import (
    NO_PREFERENCE,
    Affinities,
    AllocationError,
    Hints,
    NumaMask,
)
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import (
    containers,
    is_plain_init,
    is_sidecar,
    log_name,
    uid,
)
from refkubelet.telemetry.node_metrics import ExclusiveMetrics

log = logging.getLogger(__name__)


class MemoryManager:
    """A hint provider. `state`: restored and checked; `store`: called with every new state."""

    def __init__(
        self,
        state: MemoryState,
        store: Callable[[MemoryState], None],
        affinities: Affinities,
        active: ActiveContainers,
        metrics: ExclusiveMetrics | None = None,
    ) -> None:
        self._metrics = metrics or ExclusiveMetrics()
        self._store = store
        self._affinities = affinities
        self._active = active
        self._reusable: tuple[str, dict[tuple[NumaMask, str], int]] = ("", {})
        self.state = state

    def nodes_of(self, pod_uid: str, container_name: str) -> tuple[int, ...]:
        """The NUMA nodes of the container's memory; none: any."""
        blocks = self.blocks(pod_uid, container_name)
        return tuple(sorted({node for block in blocks for node in block.nodes}))

    def blocks(self, pod_uid: str, container_name: str) -> tuple[Block, ...]:
        """The memory of NUMA nodes that is assigned to the container (CG-085)."""
        return self.state.of(pod_uid, container_name) or ()

    def allocatable(self) -> tuple[Block, ...]:
        """The memory of every node that can be assigned, assigned memory included."""
        return tuple(
            Block((number,), name, table.allocatable)
            for number, node in sorted(self.state.nodes.items())
            for name, table in sorted(node.tables.items())
            if table.allocatable
        )

    def topology_hints(self, pod: Pod, container: Container) -> Hints:
        """The NUMA nodes that the container's memory can come from."""
        return self._hints(pod, pinned_memory(pod, container), (container,))

    def pod_topology_hints(self, pod: Pod) -> Hints:
        """As `topology_hints`, for the memory of all containers of the pod together."""
        # Upstream, too, compares the first allocated container with the whole pod's requests.
        return self._hints(pod, pod_pinned_memory(pod), containers(pod))

    def _hints(
        self, pod: Pod, requests: Mapping[str, int], allocated: Iterable[Container]
    ) -> Hints:
        """The nodes of the first container of `allocated` that has memory already, else those that
        can hold the requests."""
        self.drop_stale(pod)
        if not requests:
            return NO_PREFERENCE
        for container in allocated:
            blocks = self.state.of(uid(pod), container.name)
            if blocks is not None:
                return hints_of_blocks(blocks, requests)
        hints = memory_hints(self.state.nodes, requests, self._reusable_by(pod))
        return hints_for_requests(hints, requests)

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Assign memory to the container, if it is pinned and has none yet. Raises
        `AllocationError`."""
        self.drop_stale(pod)
        requests = pinned_memory(pod, container)
        if not requests:
            return
        self._metrics.memory_requests.inc()
        try:
            self._assign(pod, container, requests)
        except AllocationError:
            self._metrics.memory_errors.inc()
            raise

    def _assign(self, pod: Pod, container: Container, requests: Mapping[str, int]) -> None:
        """Assign the memory, unless the container has it already. Raises `AllocationError`."""
        blocks = self.state.of(uid(pod), container.name)
        if blocks is not None:
            self._note_reuse(pod, container, blocks)
            return
        hint = self._affinities.affinity(uid(pod), container.name)
        reusable = self._reusable_by(pod)
        chosen = chosen_nodes(self.state.nodes, requests, hint, reusable)
        blocks = tuple(Block(chosen, name, size) for name, size in requests.items())
        nodes = self.state.nodes
        for block in blocks:
            rest = max(0, block.size - reusable(block.mask, block.resource))
            nodes = taken(nodes, msgspec.structs.replace(block, size=rest))
        self._note_reuse(pod, container, blocks)
        state = replace(self.state, nodes=nodes).with_blocks(uid(pod), container.name, blocks)
        self._replace(without_reused(state, pod, container, blocks))
        name = log_name(pod)
        log.info("memory of container %s of pod %s: nodes %s", container.name, name, chosen)

    def starting(self, pod: Pod, container: Container) -> None:
        """Release the memory of the plain init containers before a container that starts now, since
        they have ended."""
        state = self.state
        for earlier in pod.spec.initContainers or ():
            if earlier.name == container.name:
                break
            if not is_sidecar(earlier) and state.of(uid(pod), earlier.name) is not None:
                state = state.released(uid(pod), earlier.name)
        if state is not self.state:
            self._replace(state)

    def drop_stale(self, admitted: Pod | None = None) -> None:
        """Take back the memory of containers of pods that are not active; `admitted` counts as
        active."""
        state = self._active.without_stale(self.state, admitted)
        if state is not self.state:
            self._replace(state)

    def _reusable_by(self, pod: Pod) -> Reusable:
        owner, sizes = self._reusable
        return lambda mask, resource: sizes.get((mask, resource), 0) if owner == uid(pod) else 0

    def _note_reuse(self, pod: Pod, container: Container, blocks: tuple[Block, ...]) -> None:
        """Update the reusable memory: that of the largest plain init container can be reused by the
        next containers, once."""
        owner, before = self._reusable
        sizes = dict(before) if owner == uid(pod) else {}
        plain_init = is_plain_init(pod, container.name)
        for block in blocks:
            key = (block.mask, block.resource)
            size = sizes.get(key, 0)
            sizes[key] = max(size, block.size) if plain_init else max(0, size - block.size)
        self._reusable = (uid(pod), sizes)

    def _replace(self, state: MemoryState) -> None:
        self.state = state
        self._store(state)


def without_reused(
    state: MemoryState, pod: Pod, container: Container, blocks: tuple[Block, ...]
) -> MemoryState:
    """The state after a container has reused memory of earlier init containers: their blocks shrink
    by its size, so that the blocks add up to the assigned memory of the nodes."""
    for block in blocks:
        rest = block.size
        for init in pod.spec.initContainers or ():
            if init.name == container.name:
                break
            old = state.of(uid(pod), init.name)
            if is_sidecar(init) or not old:
                continue
            new, rest = _shrunk(old, block, rest)
            state = state.with_blocks(uid(pod), init.name, new)
    return state


def _shrunk(blocks: tuple[Block, ...], by: Block, rest: int) -> tuple[tuple[Block, ...], int]:
    """`blocks`, those of the same nodes and resource as `by` made smaller, and the rest to
    shrink."""
    result = []
    for block in blocks:
        same = block.resource == by.resource and block.mask == by.mask
        part = min(block.size, rest) if same else 0
        rest -= part
        result.append(msgspec.structs.replace(block, size=block.size - part))
    return tuple(result), rest
