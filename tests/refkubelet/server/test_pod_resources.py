"""What monitors are answered (CG-085)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from device_world import asking
from pods import make_pod

from refkubelet.server.pod_resources.answers import PodResourcesLister, UnknownPod


class Devices:
    def given(self, pod_uid: str, container: str) -> list[tuple[str, str, int | None]]:
        if (pod_uid, container) == ("uid-web", "main"):
            return [("v/gpu", "g1", 0), ("v/gpu", "g1", 1), ("v/nic", "n1", None)]
        return []

    def healthy_devices(self) -> list[tuple[str, str, int | None]]:
        return [("v/gpu", "g1", 0), ("v/nic", "n1", None), ("v/nic", "n2", None)]


class Cpus:
    def own_cpus(self, pod_uid: str, container_name: str) -> Iterable[int]:
        return {7, 3} if container_name == "side" else ()

    def allocatable(self) -> Iterable[int]:
        return {3, 2, 1}


@dataclass
class Block:
    resource: str
    size: int
    nodes: tuple[int, ...]


class Memory:
    def blocks(self, pod_uid: str, container_name: str) -> list[Block]:
        return [Block("memory", 1 << 30, (0, 1))] if container_name == "main" else []

    def allocatable(self) -> list[Block]:
        return [Block("hugepages-2Mi", 1 << 21, (1,))]


WEB = make_pod(
    asking(1), name="web", init=[asking(1, "setup"), asking(1, "side", restartPolicy="Always")]
)
OVER = make_pod(asking(1), name="over")
ALL = PodResourcesLister(
    active_pods=lambda: [WEB],
    pods=lambda: [WEB, OVER],
    devices=Devices(),
    cpus=Cpus(),
    memory=Memory(),
)


def test_list_shows_active_pods_and_the_containers_that_stay_CG_085() -> None:
    (shown,) = ALL.list().pod_resources
    assert (shown.name, shown.namespace) == ("web", "default")
    side, main = shown.containers
    assert (side.name, list(side.cpu_ids), len(side.devices)) == ("side", [3, 7], 0)
    devices = [
        (d.resource_name, list(d.device_ids), [n.ID for n in d.topology.nodes])
        for d in main.devices
    ]
    assert devices == [("v/gpu", ["g1"], [0]), ("v/gpu", ["g1"], [1]), ("v/nic", ["n1"], [])]
    assert not main.devices[2].HasField("topology")
    (block,) = main.memory
    assert (block.memory_type, block.size) == ("memory", 1 << 30)
    assert [n.ID for n in block.topology.nodes] == [0, 1]


def test_get_shows_one_pod_CG_085() -> None:
    assert ALL.get("over", "default").pod_resources.name == "over"
    with pytest.raises(UnknownPod) as error:
        ALL.get("over", "other")
    assert str(error.value) == "pod over in namespace other not found"


def test_allocatable_shows_what_there_is_CG_085() -> None:
    shown = ALL.allocatable()
    assert [d.device_ids[0] for d in shown.devices] == ["g1", "n1", "n2"]
    assert list(shown.cpu_ids) == [1, 2, 3]
    assert [m.memory_type for m in shown.memory] == ["hugepages-2Mi"]


def test_without_managers_there_is_nothing_to_show_CG_085() -> None:
    bare = PodResourcesLister(lambda: [WEB], lambda: [WEB])
    (shown,) = bare.list().pod_resources
    assert [(c.name, len(c.devices), len(c.cpu_ids)) for c in shown.containers] == [
        ("side", 0, 0),
        ("main", 0, 0),
    ]
    assert bare.allocatable().ByteSize() == 0
