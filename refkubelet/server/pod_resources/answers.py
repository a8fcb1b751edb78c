"""Answers the pod-resources API: devices, exclusive CPUs and NUMA memory of containers (CG-085).

The API is for monitoring: a call changes nothing. The values come from the managers.
Upstream: pkg/kubelet/apis/podresources/server_v1.go, server_v1alpha1.go;
pkg/kubelet/cm/container_manager.go:
containerDevicesFromResourceDeviceInstances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from kubecri.podresources import api_pb2 as api
from kubecri.podresources_v1alpha1 import api_pb2 as alpha
from msgspec import Struct

from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import name_and_namespace, sidecars, uid


class Devices(Protocol):
    """The device manager: (resource, device, NUMA node or None)."""

    def given(self, pod_uid: str, container: str) -> Iterable[tuple[str, str, int | None]]: ...

    def healthy_devices(self) -> Iterable[tuple[str, str, int | None]]: ...


class Cpus(Protocol):
    """The CPU manager."""

    def own_cpus(self, pod_uid: str, container_name: str) -> Iterable[int]: ...

    def allocatable(self) -> Iterable[int]: ...


class MemoryBlock(Protocol):
    """Memory of one kind on some NUMA nodes: `memory` or `hugepages-<size>`, in bytes."""

    @property
    def resource(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def nodes(self) -> Iterable[int]: ...


class Memory(Protocol):
    """The memory manager."""

    def blocks(self, pod_uid: str, container_name: str) -> Iterable[MemoryBlock]: ...

    def allocatable(self) -> Iterable[MemoryBlock]: ...


class UnknownPod(LookupError):
    """The pod does not exist; the text is the API's answer."""


class PodResourcesLister(Struct, frozen=True):
    """Makes the answers. `active_pods`: the pods for List; `pods`: all pods of the node, for Get
    and v1alpha1. A manager may be None: its part of the answers is empty."""

    active_pods: Callable[[], Iterable[Pod]]
    pods: Callable[[], Iterable[Pod]]
    devices: Devices | None = None
    cpus: Cpus | None = None
    memory: Memory | None = None

    def list(self) -> Any:
        """The answer to List, a ListPodResourcesResponse."""
        return api.ListPodResourcesResponse(
            pod_resources=[self._pod(pod) for pod in self.active_pods()]
        )

    def list_alpha(self) -> Any:
        """The answer to List of v1alpha1: of all pods of the node, also those that are over, the
        devices of regular containers, nothing else."""
        return alpha.ListPodResourcesResponse(
            pod_resources=[self._pod_alpha(pod) for pod in self.pods()]
        )

    def _pod_alpha(self, pod: Pod) -> Any:
        name, namespace = name_and_namespace(pod)
        devices_of = self.devices.given if self.devices is not None else lambda pod_uid, name: ()
        return alpha.PodResources(
            name=name,
            namespace=namespace,
            containers=[
                alpha.ContainerResources(
                    name=container.name,
                    devices=[
                        alpha.ContainerDevices(resource_name=resource, device_ids=[device])
                        for resource, device, _ in devices_of(uid(pod), container.name)
                    ],
                )
                for container in pod.spec.containers
            ],
        )

    def get(self, name: str, namespace: str) -> Any:
        """The answer to Get, a GetPodResourcesResponse. Raises `UnknownPod`."""
        for pod in self.pods():
            if name_and_namespace(pod) == (name, namespace):
                return api.GetPodResourcesResponse(pod_resources=self._pod(pod))
        raise UnknownPod(f"pod {name} in namespace {namespace} not found")

    def allocatable(self) -> Any:
        """The answer to GetAllocatableResources, an AllocatableResourcesResponse."""
        return api.AllocatableResourcesResponse(
            devices=_devices(self.devices.healthy_devices() if self.devices else ()),
            cpu_ids=sorted(self.cpus.allocatable() if self.cpus else ()),
            memory=_memory(self.memory.allocatable() if self.memory else ()),
        )

    def _pod(self, pod: Pod) -> Any:
        name, namespace = name_and_namespace(pod)
        containers = [*sidecars(pod), *pod.spec.containers]
        return api.PodResources(
            name=name,
            namespace=namespace,
            containers=[self._container(pod, container) for container in containers],
        )

    def _container(self, pod: Pod, container: Container) -> Any:
        key = uid(pod), container.name
        return api.ContainerResources(
            name=container.name,
            devices=_devices(self.devices.given(*key) if self.devices else ()),
            cpu_ids=sorted(self.cpus.own_cpus(*key) if self.cpus else ()),
            memory=_memory(self.memory.blocks(*key) if self.memory else ()),
        )


def _devices(devices: Iterable[tuple[str, str, int | None]]) -> list[Any]:
    return [
        api.ContainerDevices(
            resource_name=resource,
            device_ids=[device],
            topology=None if node is None else _topology([node]),
        )
        for resource, device, node in devices
    ]


def _memory(blocks: Iterable[MemoryBlock]) -> list[Any]:
    return [
        api.ContainerMemory(
            memory_type=block.resource, size=block.size, topology=_topology(block.nodes)
        )
        for block in blocks
    ]


def _topology(nodes: Iterable[int]) -> Any:
    return api.TopologyInfo(nodes=[api.NUMANode(ID=node) for node in nodes])
