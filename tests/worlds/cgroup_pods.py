"""Pods with cgroups on a fake runtime, made as a kubelet makes them, and what is in their files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubecri.v1 import api_pb2 as pb
from runtime_calls import create, pod_config, run_pod, start

from fakecri import FakeCRI, FakeNode
from fakecri.cgroupfs import CgroupPath
from fakecri.words.behaviors import Behavior

MIB = 1 << 20
PARENT = "/kubepods/burstable/pod1"


@dataclass
class Pods:
    """Makes pods and containers on a fake runtime, as a kubelet does."""

    cri: FakeCRI
    parent: str = PARENT
    made: list[str] = field(default_factory=list)

    async def sandbox(self, name: str = "pod", parent: str | None = None) -> pb.PodSandboxConfig:
        config = pod_config(name)
        config.linux.cgroup_parent = self.parent if parent is None else parent
        self.made.append(await run_pod(self.cri, config))
        return config

    async def container(
        self,
        sandbox: pb.PodSandboxConfig,
        name: str = "main",
        sandbox_id: str = "",
        **resources: Any,
    ) -> str:
        """In the newest sandbox, if not in another."""
        linux = pb.LinuxContainerConfig(resources=pb.LinuxContainerResources(**resources))
        return await create(
            self.cri,
            sandbox_id or self.made[-1],
            sandbox,
            name,
            command=["/bin/eat", "all"],
            linux=linux,
        )

    async def started(
        self, *behaviors: Behavior, name: str = "main", parent: str | None = None, **resources: Any
    ) -> str:
        """A container of its own pod that has started."""
        self.cri.behaves(*behaviors, container=name)
        sandbox = await self.sandbox(f"pod-{name}", parent)
        return await self.start(await self.container(sandbox, name, **resources))

    async def start(self, container: str) -> str:
        await start(self.cri, container)
        return container

    def file(self, name: str, *, of: str = PARENT) -> str:
        """What a file says: "memory.current" with v2, "memory/memory.usage_in_bytes" with v1."""
        return self._path(name, of).read_text().strip()

    def write(self, name: str, text: str, *, of: str = PARENT) -> None:
        """Write into a file."""
        self._path(name, of).write_text(text)

    def _path(self, name: str, directory: str) -> CgroupPath:
        mount, _, name = name.rpartition("/")
        return self.cri.node.cgroups.path(f"/{mount}{directory}/{name}")


def world(version: Any, **node: Any) -> Pods:
    """A machine with cgroups of that version, on which nothing runs yet."""
    return Pods(FakeCRI(node=FakeNode(cgroups_version=version, **node)))


def directories(node: FakeNode) -> list[str]:
    """The cgroups below the roots, of all hierarchies."""
    return sorted(
        f"{mount}{cgroup.path}"
        for mount, hierarchy in node.cgroups.mounts.items()
        for cgroup in hierarchy.root.down()
        if cgroup.parent is not None
    )
