"""Usage as the runtime tells it: each value in its place, and what it does not tell."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import ParseDict
from kubecri.v1 import api_pb2 as cri

from refkubelet.cri.labels import CONTAINER_NAME, POD_NAME, POD_NAMESPACE, POD_UID
from refkubelet.cri.usage import (
    ContainerUsage,
    FilesystemUsage,
    SandboxUsage,
    container_usage,
    filesystem_usage,
    sandbox_usage,
)
from refkubelet.model.traffic import InterfaceTraffic, Traffic

FULL = {
    "attributes": {
        "id": "c-1",
        "metadata": {"name": "in metadata"},
        "labels": {
            CONTAINER_NAME: "main",
            POD_UID: "u-1",
            POD_NAME: "web",
            POD_NAMESPACE: "default",
        },
    },
    "cpu": {
        "timestamp": 1,
        "usageCoreNanoSeconds": {"value": 2},
        "usageNanoCores": {"value": 3},
    },
    "memory": {
        "timestamp": 4,
        "workingSetBytes": {"value": 5},
        "usageBytes": {"value": 6},
        "rssBytes": {"value": 7},
        "availableBytes": {"value": 8},
        "pageFaults": {"value": 9},
        "majorPageFaults": {"value": 10},
    },
    "swap": {
        "timestamp": 11,
        "swapUsageBytes": {"value": 12},
        "swapAvailableBytes": {"value": 13},
    },
    "writableLayer": {
        "timestamp": 14,
        "fsId": {"mountpoint": "/disk"},
        "usedBytes": {"value": 15},
        "inodesUsed": {"value": 16},
    },
}
FULL_USAGE = ContainerUsage(
    container_id="c-1",
    name="main",
    pod_uid="u-1",
    pod_name="web",
    pod_namespace="default",
    cpu_time_ns=1,
    cpu_usage_core_ns=2,
    cpu_usage_nano_cores=3,
    memory_time_ns=4,
    memory_working_set_bytes=5,
    memory_usage_bytes=6,
    memory_rss_bytes=7,
    memory_available_bytes=8,
    memory_page_faults=9,
    memory_major_page_faults=10,
    swap_time_ns=11,
    swap_usage_bytes=12,
    swap_available_bytes=13,
    rootfs_time_ns=14,
    rootfs_mountpoint="/disk",
    rootfs_used_bytes=15,
    rootfs_inodes_used=16,
)


def stats(told: dict[str, Any]) -> Any:
    return ParseDict(told, cri.ContainerStats())


def test_every_value_of_a_container_has_its_place_CRI_123() -> None:
    assert container_usage(stats(FULL)) == FULL_USAGE


def test_what_a_runtime_does_not_tell_is_unknown_CRI_123() -> None:
    bare = stats({"attributes": {"id": "c-1", "metadata": {"name": "main"}}})
    wanted = ContainerUsage("c-1", "main", pod_uid="", pod_name="", pod_namespace="")
    assert container_usage(bare) == wanted
    bare.writable_layer.timestamp = 1
    told = container_usage(bare)
    assert (told.rootfs_time_ns, told.rootfs_used_bytes, told.rootfs_inodes_used) == (1, None, None)


def test_zero_is_a_value_CRI_123() -> None:
    usage = container_usage(stats({"writableLayer": {"usedBytes": {}}, "memory": {"rssBytes": {}}}))
    assert (usage.rootfs_used_bytes, usage.memory_rss_bytes) == (0, 0)


def test_a_pod_as_a_whole_CRI_124() -> None:
    told = {
        "attributes": {"labels": {POD_UID: "u-1"}, "metadata": {"uid": "in metadata"}},
        "linux": {
            "memory": {"workingSetBytes": {"value": 1}, "usageBytes": {"value": 2}},
            "process": {"processCount": {"value": 3}},
            "containers": [FULL, {"attributes": {"id": "c-2"}}],
        },
    }
    assert sandbox_usage(ParseDict(told, cri.PodSandboxStats())) == SandboxUsage(
        pod_uid="u-1",
        memory_working_set_bytes=1,
        memory_usage_bytes=2,
        processes=3,
        containers=(FULL_USAGE, ContainerUsage("c-2", "", "", "", "")),
    )


def test_a_pod_without_labels_is_known_by_its_metadata_CRI_124() -> None:
    told = ParseDict({"attributes": {"metadata": {"uid": "u-1"}}}, cri.PodSandboxStats())
    assert sandbox_usage(told) == SandboxUsage("u-1", 0, 0, 0, ())


def test_the_traffic_of_a_pod_CRI_124() -> None:
    linux = {
        "network": {
            "timestamp": 7,
            "defaultInterface": {"name": "eth0", "rxBytes": {"value": 1}, "txErrors": {}},
            "interfaces": [{"name": "eth1", "rxErrors": {"value": 2}, "txBytes": {"value": 3}}],
        }
    }
    row = sandbox_usage(
        ParseDict({"attributes": {"id": "s"}, "linux": linux}, cri.PodSandboxStats())
    )
    assert row.sandbox_id == "s"
    assert row.traffic == Traffic(
        7,
        InterfaceTraffic("eth0", rx_bytes=1, tx_errors=0),
        (InterfaceTraffic("eth1", rx_errors=2, tx_bytes=3),),
    )
    bare = ParseDict({"linux": {"network": {"timestamp": 7}}}, cri.PodSandboxStats())
    assert sandbox_usage(bare).traffic == Traffic(7)


def test_the_pressure_on_a_container_CRI_123() -> None:
    data = {"Total": 5, "Avg10": 1.5, "Avg60": 2.5, "Avg300": 3.5}
    told = {
        "cpu": {"psi": {"Full": data}},
        "memory": {"psi": {"Some": data}},
        "io": {"timestamp": 9, "psi": {}},
    }
    usage = container_usage(stats(told))
    known = {"total": 5, "avg10": 1.5, "avg60": 2.5, "avg300": 3.5}
    none = dict.fromkeys(known, 0)
    assert usage.cpu_psi == {"full": known, "some": none}
    assert usage.memory_psi == {"full": none, "some": known}
    assert usage.io_psi == {"full": none, "some": none}
    assert usage.io_time_ns == 9
    assert container_usage(stats({})).io_psi is None


def test_a_filesystem_CRI_098() -> None:
    told = {
        "timestamp": 1,
        "fsId": {"mountpoint": "/disk"},
        "usedBytes": {"value": 2},
        "inodesUsed": {"value": 3},
    }
    assert filesystem_usage(ParseDict(told, cri.FilesystemUsage())) == FilesystemUsage(
        mountpoint="/disk", used_bytes=2, inodes_used=3, time_ns=1
    )
