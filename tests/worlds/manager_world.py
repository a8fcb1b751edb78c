"""A container manager on a fake kernel, and what it said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loops import virtual_loop

from fakecri.cgroupfs import CgroupFS, CgroupPath, Process
from kubeobjects.quantity import NANO
from refkubelet.container_manager.cgroups.manager import ContainerManager, ContainerManagerDeps
from refkubelet.container_manager.cgroups.node_config import NodeCgroups
from refkubelet.container_manager.cgroups.tree import CgroupTree
from refkubelet.model.objects import Pod

MI, GI = 1 << 20, 1 << 30
CAPACITY = {"cpu": 4 * NANO, "memory": 8 * GI * NANO, "pid": 1000 * NANO}
PAGES = (2 * MI, GI)


@dataclass
class Told:
    """An event recorder that keeps what it is told."""

    node: list[tuple[str, str, str]] = field(default_factory=list)

    def node_event(self, event_type: str, reason: str, message: str) -> None:
        self.node.append((event_type, reason, message))

    def pod_event(self, *args: Any, **fields: Any) -> None:
        raise AssertionError("the manager speaks of the node only")


class World:
    """Make it on a virtual loop. `pods` are the active ones."""

    def __init__(
        self,
        fs: CgroupFS,
        *,
        driver: str = "cgroupfs",
        root: Any = None,
        name: tuple[str, ...] = ("kubepods",),
        **node: Any,
    ) -> None:
        loop = virtual_loop()
        self.fs = fs
        self.clock = loop.clock
        self.told = Told()
        self.pods: list[Pod] = []
        self.killed: list[int] = []
        self.unkillable: set[int] = set()
        self.kills_at_once = True
        fields = {"root": name, "capacity": CAPACITY, "page_sizes": PAGES, **node}
        self.tree = CgroupTree(
            root or fs.path("/"), 1 if fs.version == 1 else 2, driver, fields["page_sizes"]
        )
        self.manager = ContainerManager(
            NodeCgroups(**fields),
            self.tree,
            self.kill,
            ContainerManagerDeps(
                clock=self.clock,
                recorder=self.told,
                active_pods=lambda: tuple(self.pods),
            ),
        )

    def kill(self, pid: int) -> None:
        self.killed.append(pid)
        if pid in self.unkillable:
            raise PermissionError(1, "Operation not permitted")
        process = self.fs.processes.processes.get(pid)
        if process is not None and self.kills_at_once:
            process.kill()

    def read(self, path: str) -> str:
        return self.fs.path(path).read_text().rstrip("\n")

    def group(self, controller: str, path: str) -> CgroupPath:
        tree = f"/{controller}" if self.fs.version == 1 else ""
        return self.fs.path(f"{tree}{path}")

    def process(self, path: str) -> Process:
        """A process there; the runtime has made the group in the tree of devices."""
        if self.fs.version == 1:
            self.fs.path(f"/devices{path}").mkdir(parents=True, exist_ok=True)
        return self.fs.spawn(path)
