"""Swap and protection of a container's memory, as the runtime is told."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from pods import container, make_pod

from fakecri import FakeNode
from kubeobjects.structs import replace
from refkubelet.config.schema.kubelet_config import KubeletConfiguration, MemorySwap
from refkubelet.kuberuntime.common.runtime_options import MemoryOptions
from refkubelet.kuberuntime.config.linux_resources import container_resources
from refkubelet.kuberuntime.config.memory import protection, swap_allowance_bytes
from refkubelet.kuberuntime.options_from_config import memory_options, resource_options
from refkubelet.model.objects import Pod

MI = 1 << 20
SWAPPING = MemoryOptions(limited_swap=True, swap_bytes=1000 * MI, capacity_bytes=4000 * MI)


def pod(memory: str = "", *others: str, **spec: Any) -> Pod:
    """A pod whose first container has that request and limit of memory; `others` have CPUs."""
    rest = [container(f"other-{cpu}", cpu=cpu) for cpu in others]
    return make_pod(container(memory=memory), *rest, **spec)


def first(built: Pod) -> Any:
    return built.spec.containers[0]


@pytest.mark.parametrize(
    ("built", "options", "allowed_mi"),
    [
        (pod("400Mi/800Mi"), SWAPPING, 100),
        (pod("400Mi"), SWAPPING, 100),
        (pod("1Mi"), SWAPPING, 0.25),
        (pod("400Mi/400Mi", "1"), SWAPPING, 0),  # request and limit are equal
        (pod("", "1"), SWAPPING, 0),  # it asks for no memory
        (pod(), SWAPPING, 0),  # BestEffort
        (pod("400Mi", priority=2_000_000_000), SWAPPING, 0),  # critical
        (pod("400Mi"), replace(SWAPPING, limited_swap=False), 0),
        (pod("400Mi"), replace(SWAPPING, swap_bytes=0), 0),
        (pod("400Mi"), replace(SWAPPING, capacity_bytes=0), 0),
        (pod("4001Mi"), SWAPPING, 0),  # more than the node has
        (pod("4000Mi"), SWAPPING, 1000),
    ],
)
def test_swap_goes_by_the_share_of_memory_CG_050(
    built: Pod, options: MemoryOptions, allowed_mi: float
) -> None:
    assert swap_allowance_bytes(first(built), built, options) == allowed_mi * MI


QOS = MemoryOptions(memory_qos=True, reserve=True, allocatable_bytes=1000 * MI)
HIGH = str((100 + 90) * MI)


@pytest.mark.parametrize(
    ("built", "options", "files"),
    [
        (pod("100Mi/200Mi"), QOS, {"memory.low": str(100 * MI), "memory.high": HIGH}),
        (
            pod("100Mi/200Mi"),
            replace(QOS, reserve=False),
            {"memory.min": "0", "memory.low": "0", "memory.high": HIGH},
        ),
        (
            pod("100Mi"),
            QOS,
            {"memory.low": str(100 * MI), "memory.high": str(910 * MI)},
        ),
        (pod("100Mi/100Mi", "1"), QOS, {"memory.low": str(100 * MI)}),
        (
            pod("/5000", "1"),
            replace(QOS, throttling_factor=0.5),
            {"memory.low": "5000"},
        ),
        (pod("", "1"), QOS, {"memory.min": "0", "memory.low": "0"}),
        (pod("100Mi"), replace(QOS, allocatable_bytes=0), {"memory.low": str(100 * MI)}),
        (pod("100Mi"), replace(QOS, allocatable_bytes=50 * MI), {"memory.low": str(100 * MI)}),
        (
            pod("1/10001"),
            replace(QOS, throttling_factor=0.5),
            {"memory.low": "1", "memory.high": "4096"},
        ),
        (pod("100Mi/200Mi"), replace(QOS, memory_qos=False), {}),
    ],
)
def test_protection_of_memory_CG_033(
    built: Pod, options: MemoryOptions, files: dict[str, str]
) -> None:
    assert protection(first(built), built, options) == files


def test_a_guaranteed_pod_is_protected_hard_CG_033() -> None:
    sure = make_pod(container(cpu="1/1", memory="100Mi/100Mi"))
    assert protection(first(sure), sure, QOS) == {"memory.min": str(100 * MI)}


def options_of(version: Any, **fields: Any) -> Any:
    config = structs.replace(KubeletConfiguration(resolv_conf=""), **fields)
    return resource_options(
        config,
        FakeNode(memory_bytes=4000 * MI, cgroups_version=version, swap_total_bytes=1000 * MI),
    )


@pytest.mark.parametrize(
    ("version", "behavior", "swap_limit_mi", "unified"),
    [
        (1, "", 800, {}),
        (1, "LimitedSwap", 800, {}),
        (2, "", 0, {"memory.oom.group": "1", "memory.swap.max": "0"}),
        (2, "NoSwap", 0, {"memory.oom.group": "1", "memory.swap.max": "0"}),
        (2, "LimitedSwap", 0, {"memory.oom.group": "1", "memory.swap.max": str(100 * MI)}),
    ],
)
def test_what_the_runtime_is_told_of_swap_CG_050(
    version: int, behavior: str, swap_limit_mi: int, unified: dict[str, str]
) -> None:
    options = options_of(version, memory_swap=MemorySwap(behavior))
    built = pod("400Mi/800Mi")
    made = container_resources(first(built), built, options)
    assert made.memory_limit_in_bytes == 800 * MI
    assert made.memory_swap_limit_in_bytes == swap_limit_mi * MI
    assert dict(made.unified) == unified
    assert [(h.page_size, h.limit) for h in made.hugepage_limits] == [("2MB", 0), ("1GB", 0)]


@pytest.mark.parametrize("version", [1, 2])
def test_a_kernel_that_limits_no_swap_CG_050(version: int) -> None:
    options = options_of(version)
    options = replace(options, memory=replace(options.memory, swap_controller=False))
    built = pod("400Mi/800Mi")
    made = container_resources(first(built), built, options)
    assert made.memory_swap_limit_in_bytes == 0
    assert "memory.swap.max" not in made.unified


def test_memory_of_the_configuration_CG_033_CG_050() -> None:
    node = FakeNode(memory_bytes=4000 * MI)
    config = structs.replace(
        KubeletConfiguration(),
        feature_gates={"MemoryQoS": True},
        memory_reservation_policy="TieredReservation",
        memory_throttling_factor=0.5,
        kube_reserved={"memory": "500Mi"},
        system_reserved={"memory": "500Mi"},
    )
    wanted = MemoryOptions(
        capacity_bytes=4000 * MI,
        memory_qos=True,
        reserve=True,
        throttling_factor=0.5,
        allocatable_bytes=3000 * MI,
    )
    assert memory_options(config, node) == wanted
    node.cgroups_version = 1
    assert memory_options(config, node) == replace(wanted, memory_qos=False)


def hugepages_of(limits: dict[str, str], own: dict[str, str]) -> list[tuple[str, int]]:
    """`limits`: of the container; `own`: of the pod itself."""
    built = make_pod(container(limits=limits), resources={"limits": own})
    made = container_resources(first(built), built, options_of(1))
    return [(h.page_size, h.limit) for h in made.hugepage_limits]


def test_page_sizes_are_known_by_any_name_CG_030() -> None:
    found = hugepages_of({"hugepages-2048Ki": "4Mi"}, {"hugepages-1024Mi": "2Gi"})
    assert found == [("2MB", 4 * MI), ("1GB", 2048 * MI)]


def test_the_containers_own_limit_hides_the_pods_even_if_it_is_0_CG_030() -> None:
    assert hugepages_of({"hugepages-2048Ki": "0"}, {"hugepages-2Mi": "4Mi"})[0] == ("2MB", 0)
