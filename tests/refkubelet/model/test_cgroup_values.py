"""Who gets what: pods, classes, the node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.cgroups.values import (
    PodCgroupSettings,
    PodRequest,
    node_config,
    pod_request,
    qos_configs,
    resource_config_for_pod,
)
from refkubelet.model.objects import Pod, decode_pod
from refkubelet.model.quantity import NANO

MI = 1 << 20


def amounts(text: str) -> dict[str, str]:
    """`cpu/memory`, either may be missing."""
    cpu, _, memory = text.partition("/")
    return {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v}


def container(requests: str = "", limits: str = "", **fields: Any) -> dict[str, Any]:
    resources = {"requests": {**amounts(limits), **amounts(requests)}, "limits": amounts(limits)}
    return {"name": "c", "resources": resources, **fields}


def sidecar(requests: str = "", limits: str = "") -> dict[str, Any]:
    return container(requests, limits, restartPolicy="Always")


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    return decode_pod({"metadata": {"uid": "1"}, "spec": {"containers": containers, **spec}})


def config(
    shares: int, quota_us: int | None = None, memory_mi: int | None = None, **fields: Any
) -> ResourceConfig:
    return ResourceConfig(
        cpu_shares=shares,
        cpu_quota_us=quota_us,
        cpu_period_us=None if quota_us is None else 100_000,
        memory_limit_bytes=None if memory_mi is None else memory_mi * MI,
        **{"hugepages": {}, **fields},
    )


LEVEL = {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"}}


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        # CG-027: Guaranteed
        (pod(container(limits="300m/100Mi"), container(limits="1/50Mi")),
         config(1331, 130_000, 150)),
        (pod(container(limits="1m/4Mi")), config(2, 1000, 4)),
        # CG-028: Burstable
        (pod(container("100m", "150m/200Mi"), container(limits="50m/20Mi")),
         config(153, 20_000, 220)),
        (pod(container("100m", "150m/200Mi"), container("50m")), config(153)),
        (pod(container("100m", "150m/200Mi"), container(limits="/20Mi")), config(102, None, 220)),
        (pod(container("100m", "150m"), container(limits="50m/20Mi")), config(153, 20_000)),
        (pod(container("/64Mi")), config(2)),
        (pod(container("250m/64Mi")), config(256)),
        # an init container's limit may be its own, or that of a sidecar before it
        (
            pod(container("50m", "100m/64Mi"), initContainers=[container(limits="20m")]),
            config(51, 10_000),
        ),
        (
            pod(container("50m", "100m/64Mi"),
                initContainers=[sidecar("", "20m/8Mi"), container()]),
            config(71, 12_000, 72),
        ),
        (
            pod(container("50m", "100m/64Mi"),
                initContainers=[container(), sidecar("", "20m/8Mi")]),
            config(71),
        ),
        (
            pod(container("50m", "100m/64Mi"), initContainers=[container(limits="1/256Mi")]),
            config(1024, 100_000, 256),
        ),
        (
            pod(container("50m", "100m/64Mi"),
                initContainers=[sidecar("", "20m/8Mi"), container(limits="20m/8Mi")]),
            config(71, 12_000, 72),
        ),
        (
            pod(container("50m", "100m/64Mi"),
                initContainers=[sidecar("", "20m/8Mi"), sidecar(), container()]),
            config(71, 12_000, 72),
        ),
        # CG-029: BestEffort
        (pod(container()), config(2)),
        (pod(container(), overhead={"cpu": "1", "memory": "1Gi"}), config(2)),
        # CG-023: overhead counts for requests, and for limits that are there
        (
            pod(container(limits="100m/64Mi"), overhead={"cpu": "100m", "memory": "16Mi"}),
            config(204, 20_000, 80),
        ),
        (pod(container("100m"), overhead={"cpu": "100m", "memory": "16Mi"}), config(204)),
        # CG-002, CG-023: the pod's own resources
        (pod(container("100m"), resources=LEVEL), config(512, 50_000, 64)),
        (pod(container(limits="100m/64Mi"), resources={}), config(2)),
        (
            pod(container("100m"), resources={"limits": {"cpu": "1"}, "requests": {"cpu": "200m"}}),
            config(204, 100_000),
        ),
        (pod(container("100m"), resources={"requests": {"memory": "1Gi"}}), config(102)),
    ],
)  # fmt: skip
def test_values_of_pods_CG_023_CG_027_CG_028_CG_029(built: Pod, wanted: ResourceConfig) -> None:
    assert resource_config_for_pod(built) == wanted


GUARANTEED = pod(container(limits="333m/100Mi"))


@pytest.mark.parametrize(
    ("settings", "quota_us", "period_us"),
    [
        (PodCgroupSettings(), 33_300, 100_000),
        (PodCgroupSettings(cpu_cfs_quota=False), -1, 100_000),
        (PodCgroupSettings(cpu_period_us=50_000), 16_650, 50_000),
        (PodCgroupSettings(systemd=True), 34_000, 100_000),
        (PodCgroupSettings(systemd=True, cpu_cfs_quota=False), -1, 100_000),
    ],
)
def test_quota_of_pods_CG_020_CG_031(
    settings: PodCgroupSettings, quota_us: int, period_us: int
) -> None:
    found = resource_config_for_pod(GUARANTEED, settings)
    assert (found.cpu_quota_us, found.cpu_period_us) == (quota_us, period_us)


def test_pods_with_cpus_of_their_own_have_no_quota_CG_031() -> None:
    found = resource_config_for_pod(GUARANTEED, exclusive_cpus=True)
    assert (found.cpu_quota_us, found.memory_limit_bytes) == (-1, 100 * MI)
    assert resource_config_for_pod(pod(container()), exclusive_cpus=True).cpu_quota_us is None


@pytest.mark.parametrize(("limit", "wanted"), [(-1, None), (0, None), (1, 1), (64, 64)])
@pytest.mark.parametrize("built", [GUARANTEED, pod(container("1m")), pod(container())])
def test_every_pod_has_the_limit_of_processes_CG_027(
    built: Pod, limit: int, wanted: int | None
) -> None:
    assert resource_config_for_pod(built, PodCgroupSettings(pids_limit=limit)).pids_limit == wanted


def test_huge_pages_of_a_pod_CG_027_CG_030() -> None:
    resources = {
        "limits": {"hugepages-2Mi": "4Mi", "cpu": "1"},
        "requests": {"hugepages-2Mi": "4Mi"},
    }
    two = {"name": "c", "resources": resources}
    assert resource_config_for_pod(pod(two, two)).hugepages == {2 * MI: 8 * MI}


@pytest.mark.parametrize(
    ("built", "unified"),
    [
        (GUARANTEED, {"memory.min": str(100 * MI)}),
        (pod(container("/64Mi")), {"memory.low": str(64 * MI)}),
        (pod(container("100m")), None),
        (pod(container()), None),
    ],
)
def test_memory_that_is_kept_for_pods_CG_033(built: Pod, unified: dict[str, str] | None) -> None:
    settings = PodCgroupSettings(reserve_memory=True)
    assert resource_config_for_pod(built, settings).unified == unified
    assert resource_config_for_pod(built).unified is None


def test_a_pod_without_containers_has_the_least_shares() -> None:
    empty = decode_pod({"metadata": {"uid": "1"}})
    assert resource_config_for_pod(empty) == config(2)


def test_the_node_CG_024_CG_032_CG_035() -> None:
    have = {
        "cpu": 4 * NANO,
        "memory": 1000 * NANO,
        "pid": 500 * NANO,
        "hugepages-2Mi": 4 * MI * NANO,
        "ephemeral-storage": NANO,
    }
    assert node_config(have, "0-3") == ResourceConfig(
        cpu_shares=4096,
        memory_limit_bytes=1000,
        pids_limit=500,
        hugepages={2 * MI: 4 * MI},
        cpus="0-3",
    )
    assert node_config(have, "0-3", cpu_only=True) == ResourceConfig(cpu_shares=4096, cpus="0-3")
    assert node_config({}) == ResourceConfig(hugepages={})
    assert node_config({"memory": 5 * NANO}, cpu_only=True) == ResourceConfig()


def test_what_a_pod_adds_to_its_class_CG_025() -> None:
    assert pod_request(pod(container("100m/64Mi"), container("/1"))) == PodRequest(
        "Burstable", 100, 64 * MI + 1
    )
    assert pod_request(pod(container())) == PodRequest("BestEffort", 0, 0)


ROWS = (
    PodRequest("Burstable", 500, 10),
    PodRequest("Guaranteed", 1000, 20),
    PodRequest("Burstable", 250, 5),
    PodRequest("BestEffort", 0, 0),
)
FREE = {2 * MI: 1 << 62}


def test_classes_CG_025_CG_026() -> None:
    assert qos_configs(ROWS, (2 * MI,)) == {
        "Guaranteed": ResourceConfig(hugepages=FREE),
        "Burstable": ResourceConfig(cpu_shares=768, hugepages=FREE),
        "BestEffort": ResourceConfig(cpu_shares=2, hugepages=FREE),
    }
    assert qos_configs((), ())["Burstable"] == ResourceConfig(cpu_shares=2)


@pytest.mark.parametrize(("reserve", "node", "burstable"), [(True, "35", "15"), (False, "0", "0")])
def test_memory_that_is_kept_for_classes_CG_033(reserve: bool, node: str, burstable: str) -> None:
    found = qos_configs(ROWS, (), memory_qos=True, reserve_memory=reserve)
    assert found["Guaranteed"].unified == {"memory.min": node}
    assert found["Burstable"].unified == {"memory.low": burstable}
    assert found["BestEffort"].unified is None


containers = st.builds(
    container,
    st.sampled_from(["", "100m", "/64Mi", "100m/64Mi"]),
    st.sampled_from(["", "200m", "/64Mi", "200m/64Mi", "1/1Gi"]),
)


@given(st.lists(containers, min_size=1, max_size=4), st.lists(containers, max_size=3))
def test_a_pod_is_limited_only_where_all_are_CG_028(
    regular: list[dict[str, Any]], inits: list[dict[str, Any]]
) -> None:
    built = pod(*regular, initContainers=inits)
    found = resource_config_for_pod(built)
    for name, limit in (("cpu", found.cpu_quota_us), ("memory", found.memory_limit_bytes)):
        all_have = all(name in c["resources"]["limits"] for c in [*regular, *inits])
        assert (limit is not None) == all_have
    assert (found.cpu_quota_us is None) == (found.cpu_period_us is None)
    assert 2 <= (found.cpu_shares or 0) <= 262_144
