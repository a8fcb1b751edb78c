"""Capacity, reservations, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from kubeobjects.topology import Cpu, HugePages, MachineTopology, NumaNode
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import (
    allocatable_of,
    enforced,
    eviction_reservation,
    impossible_reservation,
    reservation,
    shown,
)
from refkubelet.container_manager.cgroups.node_config import (
    ReservedCgroup,
    node_cgroups,
    reservations_of,
)

GI = 1 << 30
CAPACITY = {
    "cpu": 4 * NANO,
    "memory": 8 * GI * NANO,
    "ephemeral-storage": 100 * GI * NANO,
    "hugepages-2Mi": 1 * GI * NANO,
}
TOPOLOGY = MachineTopology(
    tuple(Cpu(n, n, 0, 0) for n in (0, 1, 3)),
    (NumaNode(0, GI, (HugePages(2 << 20, 3), HugePages(1 << 30, 0))), NumaNode(1, GI, ())),
)


def configured(**fields: Any) -> KubeletConfiguration:
    return replace(KubeletConfiguration(eviction_hard={}), **fields)


def test_eviction_thresholds_keep_memory_and_disk_back_CG_034() -> None:
    hard = {"memory.available": "256Mi", "nodefs.available": "10%", "imagefs.available": "15%"}
    assert eviction_reservation(CAPACITY, hard) == {
        "memory": (256 << 20) * NANO,
        "ephemeral-storage": 10_737_418_400 * NANO,  # the percentage has 32 bits
    }
    assert eviction_reservation(CAPACITY, {"memory.available": "0%"}) == {}
    assert eviction_reservation({}, {"memory.available": "10%"}) == {"memory": 0}


def test_pods_are_limited_to_more_than_is_promised_CG_034() -> None:
    config = configured(
        kube_reserved={"cpu": "500m", "memory": "1Gi"},
        system_reserved={"cpu": "1", "nonsense": "5"},
        eviction_hard={"memory.available": "1Gi"},
    )
    assert enforced(CAPACITY, node_of(config).reserved)["memory"] == 7 * GI * NANO
    assert allocatable_of(CAPACITY, reservations_of(config, CAPACITY)) == {
        "cpu": NANO * 5 // 2,
        "memory": 5 * GI * NANO,  # huge pages are no memory
        "ephemeral-storage": 100 * GI * NANO,
        "hugepages-2Mi": 1 * GI * NANO,
    }


def node_of(config: KubeletConfiguration, version: Any = 1) -> Any:
    return node_cgroups(config, CAPACITY, TOPOLOGY, version)


def test_nothing_is_negative_CG_034() -> None:
    assert enforced({"cpu": 5}, [{"cpu": 3}, {"cpu": 3}]) == {"cpu": 0}
    assert allocatable_of({"memory": 5, "hugepages-2Mi": 9}, []) == {
        "memory": 0,
        "hugepages-2Mi": 9,
    }
    assert allocatable_of({"cpu": 5}, []) == {"cpu": 5}


def test_reservations_of_what_is_not_there_do_not_count_CG_034() -> None:
    assert reservation({"cpu": 5, "memory": 6}, [{"cpu": 1, "pid": 7}, {"cpu": 2}]) == {"cpu": 3}


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 100)),
    st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 60)), max_size=3),
)
def test_what_is_left_and_what_is_kept_are_all_there_is_CG_034(
    capacity: dict[str, int], reserved: list[dict[str, int]]
) -> None:
    left, kept = enforced(capacity, reserved), reservation(capacity, reserved)
    assert left.keys() == capacity.keys()
    too_much = [name for name in capacity if kept.get(name, 0) > capacity[name]]
    assert bool(too_much) == (impossible_reservation(capacity, reserved) is not None)
    for name in capacity.keys() - too_much:
        assert left[name] + kept.get(name, 0) == capacity[name]


def test_impossible_sums_are_told_CG_034() -> None:
    config = configured(
        kube_reserved={"cpu": "3", "memory": "5Gi"},
        system_reserved={"cpu": "1500m", "memory": "3Gi"},
        eviction_hard={"memory.available": "1Mi"},
    )
    assert impossible_reservation(CAPACITY, reservations_of(config, CAPACITY)) == (
        'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 4500m but '
        'capacity of 4. Expected capacity >= reservation. Resource "memory" has a reservation of '
        "8193Mi but capacity of 8Gi. Expected capacity >= reservation."
    )
    fits = configured(kube_reserved={"cpu": "4"}, eviction_hard={"memory.available": "8Gi"})
    assert impossible_reservation(CAPACITY, reservations_of(fits, CAPACITY)) is None


def test_amounts_are_shown_as_the_api_shows_them() -> None:
    assert shown("memory", 2048 * NANO) == "2Ki"
    assert shown("hugepages-2Mi", 2048 * NANO) == "2Ki"
    assert shown("ephemeral-storage", 1024 * NANO) == "1Ki"
    assert shown("cpu", 2048 * NANO) == "2048"
    assert shown("cpu", NANO // 2) == "500m"


def test_the_node_of_a_configuration_CG_011_CG_031_CG_032() -> None:
    config = configured(
        cgroup_root="/a",
        cgroup_driver="systemd",
        pod_pids_limit=64,
        cpu_cfs_quota=False,
        cpu_cfs_quota_period_s=0.05,
    )
    node = node_of(config)
    assert node.root == ("a", "kubepods")
    assert (node.all_cpus, node.page_sizes, node.enforce_pods) == ("0-1,3", (2 << 20, GI), True)
    assert (node.pods.pids_limit, node.pods.cpu_cfs_quota) == (64, False)
    assert (node.pods.cpu_period_us, node.pods.systemd) == (50_000, True)
    assert not node.memory_qos
    assert not node.pods.reserve_memory
    assert node_of(configured(cpu_manager_policy="static")).all_cpus == ""
    assert not node_of(configured(enforce_node_allocatable=("none",))).enforce_pods


@pytest.mark.parametrize(
    ("version", "gate", "policy", "wanted"),
    [
        (2, True, "TieredReservation", (True, True)),
        (2, True, "None", (True, False)),
        (2, False, "TieredReservation", (False, False)),
        (1, True, "TieredReservation", (False, False)),
    ],
)
def test_memory_qos_needs_its_gate_and_v2_CG_033(
    version: Any, gate: bool, policy: str, wanted: tuple[bool, bool]
) -> None:
    config = configured(feature_gates={"MemoryQoS": gate}, memory_reservation_policy=policy)
    node = node_of(config, version)
    assert (node.memory_qos, node.pods.reserve_memory) == wanted


def test_reserved_groups_in_their_order_CG_035() -> None:
    config = configured(
        enforce_node_allocatable=(
            "kube-reserved-compressible",
            "system-reserved",
            "pods",
        ),
        kube_reserved={"cpu": "1"},
        system_reserved={"cpu": "2"},
        kube_reserved_cgroup="/kube",
        system_reserved_cgroup="/sys",
    )
    assert node_of(config).reserved_cgroups == (
        ReservedCgroup("System Reserved", "/sys", {"cpu": 2 * NANO}, cpu_only=False),
        ReservedCgroup("Kube Reserved", "/kube", {"cpu": NANO}, cpu_only=True),
    )
