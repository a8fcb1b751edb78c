"""The cgroup values of pods, of QoS classes and of the node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import container, make_pod, sidecar

from kubeobjects.quantity import NANO
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.cgroups.values import (
    PodCgroupSettings,
    PodRequest,
    node_config,
    pod_request,
    qos_configs,
    resource_config_for_pod,
)
from refkubelet.model.objects import Pod

MI = 1 << 20


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


HALF = container(cpu="50m/100m", memory="64Mi/64Mi")
FULL = container(cpu="100m/100m", memory="64Mi/64Mi")
MORE = container(cpu="100m/150m", memory="200Mi/200Mi")
SURE = container(cpu="50m/50m", memory="20Mi/20Mi")
SIDE = sidecar(cpu="20m/20m", memory="8Mi/8Mi")


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        # CG-027: Guaranteed
        (
            make_pod(
                container(cpu="300m/300m", memory="100Mi/100Mi"),
                container(cpu="1/1", memory="50Mi/50Mi"),
            ),
            config(1331, 130_000, 150),
        ),
        (make_pod(container(cpu="1m/1m", memory="4Mi/4Mi")), config(2, 1000, 4)),
        # CG-028: Burstable
        (make_pod(MORE, SURE), config(153, 20_000, 220)),
        (make_pod(MORE, container(cpu="50m")), config(153)),
        (make_pod(MORE, container(memory="20Mi/20Mi")), config(102, None, 220)),
        (make_pod(container(cpu="100m/150m"), SURE), config(153, 20_000)),
        (make_pod(container(memory="64Mi")), config(2)),
        (make_pod(container(cpu="250m", memory="64Mi")), config(256)),
        # an init container's limit may be its own, or that of a sidecar before it
        (make_pod(HALF, init=[container(cpu="20m/20m")]), config(51, 10_000)),
        (make_pod(HALF, init=[SIDE, container()]), config(71, 12_000, 72)),
        (make_pod(HALF, init=[container(), SIDE]), config(71)),
        (
            make_pod(HALF, init=[container(cpu="1/1", memory="256Mi/256Mi")]),
            config(1024, 100_000, 256),
        ),
        (
            make_pod(HALF, init=[SIDE, container(cpu="20m/20m", memory="8Mi/8Mi")]),
            config(71, 12_000, 72),
        ),
        (make_pod(HALF, init=[SIDE, sidecar(), container()]), config(71, 12_000, 72)),
        # CG-029: BestEffort
        (make_pod(container()), config(2)),
        (make_pod(container(), overhead={"cpu": "1", "memory": "1Gi"}), config(2)),
        # CG-023: overhead counts for requests, and for limits that are there
        (make_pod(FULL, overhead={"cpu": "100m", "memory": "16Mi"}), config(204, 20_000, 80)),
        (make_pod(container(cpu="100m"), overhead={"cpu": "100m", "memory": "16Mi"}), config(204)),
        # CG-002, CG-023: the pod's own resources
        (make_pod(container(cpu="100m"), resources=LEVEL), config(512, 50_000, 64)),
        (make_pod(FULL, resources={}), config(2)),
        (
            make_pod(
                container(cpu="100m"),
                resources={"limits": {"cpu": "1"}, "requests": {"cpu": "200m"}},
            ),
            config(204, 100_000),
        ),
        (make_pod(container(cpu="100m"), resources={"requests": {"memory": "1Gi"}}), config(102)),
    ],
)
def test_values_of_pods_CG_023_CG_027_CG_028_CG_029(built: Pod, wanted: ResourceConfig) -> None:
    assert resource_config_for_pod(built) == wanted


GUARANTEED = make_pod(container(cpu="333m/333m", memory="100Mi/100Mi"))


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
    assert resource_config_for_pod(make_pod(container()), exclusive_cpus=True).cpu_quota_us is None


@pytest.mark.parametrize(("limit", "wanted"), [(-1, None), (0, None), (1, 1), (64, 64)])
@pytest.mark.parametrize(
    "built", [GUARANTEED, make_pod(container(cpu="1m")), make_pod(container())]
)
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
    assert resource_config_for_pod(make_pod(two, two)).hugepages == {2 * MI: 8 * MI}


@pytest.mark.parametrize(
    ("built", "unified"),
    [
        (GUARANTEED, {"memory.min": str(100 * MI)}),
        (make_pod(container(memory="64Mi")), {"memory.low": str(64 * MI)}),
        (make_pod(container(cpu="100m")), None),
        (make_pod(container()), None),
    ],
)
def test_memory_that_is_kept_for_pods_CG_033(built: Pod, unified: dict[str, str] | None) -> None:
    settings = PodCgroupSettings(reserve_memory=True)
    assert resource_config_for_pod(built, settings).unified == unified
    assert resource_config_for_pod(built).unified is None


def test_a_pod_without_containers_has_the_least_shares() -> None:
    empty = Pod()
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
    assert pod_request(
        make_pod(container(cpu="100m", memory="64Mi"), container(memory="1"))
    ) == PodRequest("Burstable", 100, 64 * MI + 1)
    assert pod_request(make_pod(container())) == PodRequest("BestEffort", 0, 0)


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
    cpu=st.sampled_from(["", "100m", "100m/200m", "1/1"]),
    memory=st.sampled_from(["", "64Mi", "64Mi/200Mi", "1Gi/1Gi"]),
)


@given(st.lists(containers, min_size=1, max_size=4), st.lists(containers, max_size=3))
def test_a_pod_is_limited_only_where_all_are_CG_028(
    regular: list[dict[str, Any]], inits: list[dict[str, Any]]
) -> None:
    built = make_pod(*regular, init=inits)
    found = resource_config_for_pod(built)
    for name, limit in (("cpu", found.cpu_quota_us), ("memory", found.memory_limit_bytes)):
        limits = [c.get("resources", {}).get("limits", {}) for c in [*regular, *inits]]
        all_have = all(name in one for one in limits)
        assert (limit is not None) == all_have
    assert (found.cpu_quota_us is None) == (found.cpu_period_us is None)
    assert 2 <= (found.cpu_shares or 0) <= 262_144
