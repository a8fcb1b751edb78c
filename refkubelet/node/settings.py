"""How the Node object is kept: what never changes, and the functions that tell the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from refkubelet.container_manager.devices.manager import DeviceManager
from refkubelet.model.objects import Node
from refkubelet.node.startup import NodeStartup
from refkubelet.node.status import Condition, NodeFacts
from refkubelet.volumes.csi.volumes import CsiVolumes

NO_FIELDS: Final[Mapping[str, Any]] = MappingProxyType({})


def _nothing() -> Sequence[Any]:
    return ()


async def _no_look() -> None:
    """For a kubelet without a runtime."""


async def _no_ranges(cidrs: Sequence[str]) -> bool:
    """For a kubelet whose runtime is told nothing."""
    return False


class NodeHealth(Struct, frozen=True):
    """What speaks against the node; by default nothing."""

    pressures: Callable[[], Sequence[Condition]] = _nothing
    """The pressure conditions that the eviction manager has computed."""
    runtime_errors: Callable[[], Sequence[str]] = _nothing
    """Why the runtime is not ready; empty: it is."""
    storage_errors: Callable[[], Sequence[str]] = _nothing
    """Why volumes cannot be had; empty: they can (NODE-216.5)."""
    shutdown_errors: Callable[[], Sequence[str]] = _nothing
    """That the node shuts down; empty: it does not."""

    def not_ready(self) -> list[str]:
        """Why the node is not ready, the runtime's reasons first; empty: it is ready (NODE-022)."""
        return [*self.runtime_errors(), *self.storage_errors(), *self.shutdown_errors()]


class NodeRuntime(Struct, frozen=True):
    """What the node asks of its container runtime, and tells it; by default there is none."""

    fields: Callable[[], Mapping[str, Any]] = lambda: NO_FIELDS
    """Further fields of the status: features of the runtime, images (NODE-035)."""
    pod_cidrs: Callable[[Sequence[str]], Awaitable[bool]] = _no_ranges
    """Told the Node's pod CIDRs; returns whether they are new to the runtime (NODE-014)."""
    look: Callable[[], Awaitable[None]] = _no_look
    """Asks the runtime for its status, outside of the usual period."""


class NodeSettings(Struct, frozen=True):
    """How the node reports, and where its status comes from."""

    facts: NodeFacts  # what does not change while the kubelet runs
    register: bool = True
    """Create or adopt the Node at start (`registerNode`)."""
    update_s: float = 10.0
    """The time between two updates of the status (`nodeStatusUpdateFrequency`)."""
    report_s: float = 300.0
    """An unchanged status is written again after this time (`nodeStatusReportFrequency`)."""
    random: Callable[[], float] = lambda: 0.5
    """Draws from [0, 1), so that the nodes of a cluster do not all write at the same time."""
    health: NodeHealth = NodeHealth()
    runtime: NodeRuntime = NodeRuntime()
    devices: DeviceManager | None = None
    """The devices of device plugins (CG-084)."""
    volumes: CsiVolumes | None = None
    """The volumes that can be attached (NODE-217.1); None: there are none."""
    seen: Callable[[], Node | None] = lambda: None
    """The informer's Node; None: not yet."""
    startup: NodeStartup | None = None
    """Told of the steps to the first Ready; None: nobody asks how long they take."""
