"""Pods with cgroups on a fake runtime, made as a kubelet makes them, and what is in their files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from criapi.v1 import api_pb2 as pb

from fakecri import FakeCRI, FakeNode
from fakecri.behaviors.behavior import Behavior
from fakecri.cgroupfs import CgroupPath
from simtime import run_virtual

MIB = 1 << 20
PARENT = "/kubepods/burstable/pod1"


@dataclass
class Pods:
    """Makes pods and containers on a fake runtime, as a kubelet does."""

    cri: FakeCRI
    parent: str = PARENT
    made: list[str] = field(default_factory=list)

    async def sandbox(self, name: str = "pod", parent: str | None = None) -> pb.PodSandboxConfig:
        config = pb.PodSandboxConfig(
            metadata=pb.PodSandboxMetadata(name=name, namespace="n", uid=name)
        )
        config.linux.cgroup_parent = self.parent if parent is None else parent
        answer: Any = await self.cri.call("RunPodSandbox", pb.RunPodSandboxRequest(config=config))
        self.made.append(answer.pod_sandbox_id)
        return config

    async def container(
        self,
        sandbox: pb.PodSandboxConfig,
        name: str = "main",
        sandbox_id: str = "",
        **resources: Any,
    ) -> str:
        """In the newest sandbox, if not in another."""
        config = pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name=name),
            image=pb.ImageSpec(image="localhost/busybox:1"),
            command=["/bin/eat", "all"],
        )
        config.linux.resources.CopyFrom(pb.LinuxContainerResources(**resources))
        request = pb.CreateContainerRequest(
            pod_sandbox_id=sandbox_id or self.made[-1], config=config, sandbox_config=sandbox
        )
        answer: Any = await self.cri.call("CreateContainer", request)
        return str(answer.container_id)

    async def started(
        self, *behaviors: Behavior, name: str = "main", parent: str | None = None, **resources: Any
    ) -> str:
        """A container of its own pod that has started."""
        self.cri.behaves(*behaviors, container=name)
        sandbox = await self.sandbox(f"pod-{name}", parent)
        return await self.start(await self.container(sandbox, name, **resources))

    async def start(self, container: str) -> str:
        await self.cri.call("StartContainer", pb.StartContainerRequest(container_id=container))
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


def in_a_world(version: Any, body: Callable[[Pods], Awaitable[None]], **node: Any) -> None:
    async def main() -> None:
        await body(world(version, **node))

    run_virtual(main)


def directories(node: FakeNode) -> list[str]:
    """The cgroups below the roots, of all hierarchies."""
    return sorted(
        f"{mount}{cgroup.path}"
        for mount, hierarchy in node.cgroups.mounts.items()
        for cgroup in hierarchy.root.down()
        if cgroup.parent is not None
    )
