"""Which cases can share a kubelet, and which of them do so together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kubelet_conformance.features import Feature
from kubelet_conformance.registry import Case

OF_THE_NODE: Final = frozenset(
    {
        *(Feature.NODE_RESOURCES, Feature.SPLIT_DISK, Feature.SHORTAGE, Feature.MEMORY_USE),
        *(Feature.OWN_DISK, Feature.PRESSURE, Feature.SHUTDOWN, Feature.SHUTDOWN_AGAIN),
        *(Feature.CGROUPS, Feature.CONTAINER_GROUPS, Feature.MEMORY_NOTIFICATION),
        *(Feature.CGROUP_V1, Feature.CGROUP_V2, Feature.SYSTEMD_CGROUPS),
        *(Feature.MANIFEST_URL, Feature.DEVICE_PLUGINS, Feature.RESTART),
        *(Feature.IMAGE_GC, Feature.IMAGE_VOLUMES, Feature.NO_APPARMOR),
        *(Feature.BEHAVIORS, Feature.EVENTS, Feature.STREAMED_LISTS),
    }
)
"""What is the whole node's, or the whole runtime's."""
OF_ALL_PODS: Final = frozenset(
    {
        *("maxPods", "podsPerCore", "systemReserved", "kubeReserved", "reservedMemory"),
        *("cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy"),
        *("authentication", "authorization", "nodeStatusUpdateFrequency"),
        *("serializeImagePulls", "maxParallelImagePulls", "registryPullQPS", "registryBurst"),
        *("kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst"),
    }
)
"""Fields of the configuration that make pods wait for each other, or are about no pod."""
TOGETHER: Final = 48
"""How many cases get a kubelet one after the other, and beside each other."""


def shares(case: Case) -> bool:
    """Whether the case can share its kubelet."""
    of_the_node = case.needs & OF_THE_NODE or case.node_config.keys() & OF_ALL_PODS or case.machine
    return not (case.alone or of_the_node)


def batches(cases: Sequence[Case], *, most: int = TOGETHER) -> list[list[Case]]:
    """The cases in groups: those of a group of several share a kubelet. Long ones come first, so
    that no process has one of them left for itself."""
    by_kubelet: dict[str, list[Case]] = {}
    alone: list[list[Case]] = []
    for case in sorted(cases, key=_is_short):
        if shares(case):
            by_kubelet.setdefault(_kubelet_of(case), []).append(case)
        else:
            alone.append([case])
    groups = [part for group in by_kubelet.values() for part in _parts(group, most)]
    place = {case.id: number for number, case in enumerate(cases)}
    return sorted(
        [*groups, *alone],
        key=lambda group: (len(group) == 1, _is_short(group[0]), place[group[0].id]),
    )


def _is_short(case: Case) -> bool:
    return Feature.VIRTUAL_TIME not in case.needs


def _kubelet_of(case: Case) -> str:
    """What cases must have in common that share a kubelet."""
    config = json.dumps(case.node_config, sort_keys=True)
    return f"{config} {'with' if Feature.API in case.needs else 'without'} an API server"


def _parts(group: Sequence[Case], most: int) -> list[list[Case]]:
    """As few parts as there can be with `most` cases each, of equal size. Long cases, which come
    first, stay together: time that passes for one of them passes for the others, too."""
    count = -(-len(group) // most)
    ends = [len(group) * number // count for number in range(count + 1)]
    return [list(group[begin:end]) for begin, end in pairwise(ends)]
