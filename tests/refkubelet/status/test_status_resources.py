"""The resources that a status shows: what there is, not what was asked for (CG-063, CG-067)."""

from __future__ import annotations

from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, ContainerStatus, ResourceRequirements
from pods import container, make_pod

from refkubelet.cri.convert import runtime_resources
from refkubelet.cri.records import ContainerRecord, ContainerState, RuntimeResources
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.status.resources import container_resources_shown, pod_resources_shown

MIB = 1 << 20


def resources(cpu: str = "", memory: str = "") -> ResourceRequirements:
    """ "REQUEST/LIMIT" each; either may be empty."""
    return ResourceRequirements.from_dict(container(cpu=cpu, memory=memory).get("resources", {}))


def web(asked: ResourceRequirements, **fields: Any) -> Pod:
    return make_pod(container(resources=asked.to_dict()), **fields)


def shown(
    asked: ResourceRequirements,
    actual: RuntimeResources | None,
    *,
    state: ContainerState = ContainerState.RUNNING,
    before: ResourceRequirements | None = None,
    actuated: ResourceRequirements | None = None,
) -> ResourceRequirements:
    pod = web(asked)
    record = ContainerRecord("c-1", "main", state, resources=actual)
    previous = (
        ContainerStatus(
            image="i", imageID="", name="main", ready=True, restartCount=0, resources=before
        )
        if before is not None
        else None
    )
    return container_resources_shown(pod.spec.containers[0], record, previous, actuated)


ASKED = resources("200m/400m", "64Mi/128Mi")
SMALLER = RuntimeResources(100, 300, 96 * MIB)


def test_a_running_container_shows_what_the_runtime_says_CG_063() -> None:
    told = shown(ASKED, SMALLER, actuated=resources("100m/300m", "32Mi/96Mi"))
    assert told == resources("100m/300m", "32Mi/96Mi")


def test_a_container_that_does_not_run_shows_what_is_allocated_CG_063() -> None:
    for state in (ContainerState.CREATED, ContainerState.EXITED, ContainerState.UNKNOWN):
        assert shown(ASKED, SMALLER, state=state) == ASKED


def test_a_runtime_that_says_nothing_leaves_what_was_given_CG_063() -> None:
    given = resources("100m/300m", "32Mi/96Mi")
    assert shown(ASKED, None, actuated=given) == given


def test_what_is_not_known_stays_as_it_was_shown_CG_063() -> None:
    before = resources("1/2", "1Gi/2Gi")
    assert shown(ASKED, None, before=before) == before
    assert shown(ASKED, None) == ASKED
    only_cpu = RuntimeResources(100, 300, None)
    assert shown(ASKED, only_cpu, before=before) == resources("100m/300m", "1Gi/2Gi")


def test_only_what_is_asked_for_is_shown_CG_063() -> None:
    assert shown(resources(), SMALLER) == resources()
    assert shown(resources("200m"), SMALLER) == resources("100m")
    assert shown(resources("/200m"), SMALLER) == resources("/300m", "/96Mi")


@pytest.mark.parametrize(
    ("asked", "actual", "told"),
    [
        ("1m/5m", RuntimeResources(2, 10), "1m/5m"),  # below what the kernel can tell apart
        ("1m/5m", RuntimeResources(3, 11), "3m/11m"),
        ("3m/11m", RuntimeResources(2, 10), "2m/10m"),
    ],
)
def test_the_smallest_amounts_are_shown_as_asked_for_CG_067(
    asked: str, actual: RuntimeResources, told: str
) -> None:
    assert shown(resources(asked), actual) == resources(told)


@pytest.mark.parametrize(
    ("linux", "told"),
    [
        ({}, None),
        ({"cpu_shares": 102}, RuntimeResources(100)),
        ({"cpu_shares": 1}, None),
        ({"cpu_quota": 20_000, "cpu_period": 100_000}, RuntimeResources(None, 200)),
        ({"cpu_quota": -1, "cpu_period": 100_000}, None),
        ({"cpu_quota": 20_000}, None),
        ({"memory_limit_in_bytes": 5}, RuntimeResources(memory_limit_bytes=5)),
    ],
)
def test_what_a_runtime_says_of_resources_CG_063(
    linux: dict[str, int], told: RuntimeResources | None
) -> None:
    assert runtime_resources(cri.LinuxContainerResources(**linux)) == told


# -- the pod as a whole --------------------------------------------------------------------------

RUNNING = {"phase": "Running"}
GROUP = ResourceConfig(204, 40_000, 100_000, 256 * MIB)


def test_before_it_runs_a_pod_shows_what_is_allocated_CG_063() -> None:
    assert pod_resources_shown(web(ASKED), None, GROUP) == ASKED


def test_a_running_pod_shows_what_its_cgroup_has_CG_063() -> None:
    told = pod_resources_shown(web(ASKED, **RUNNING), None, GROUP)
    assert told == resources("200m/400m", "64Mi/256Mi")


def test_the_memory_request_stays_what_was_shown_first_CG_063() -> None:
    """No cgroup holds it (s25)."""
    before = PodStatus(phase="Running", resources=resources("1/1", "32Mi/1Gi"))
    told = pod_resources_shown(web(ASKED, **RUNNING), before, GROUP)
    assert told == resources("200m/400m", "32Mi/256Mi")
    before.phase = "Pending"
    told = pod_resources_shown(web(ASKED, **RUNNING), before, GROUP)
    assert told == resources("200m/400m", "64Mi/256Mi")


def test_without_a_cgroup_a_running_pod_shows_what_it_showed_CG_063() -> None:
    before = PodStatus(phase="Running", resources=resources("1/2", "32Mi/1Gi"))
    assert pod_resources_shown(web(ASKED, **RUNNING), before, None) == before.resources


def test_no_limit_with_v1_is_a_very_large_one_CG_063() -> None:
    """As in s01/api: the kernel's number, in full."""
    unlimited = ResourceConfig(2, -1, 100_000, 9_223_372_036_854_771_712)
    told = pod_resources_shown(web(resources(), **RUNNING), None, unlimited)
    assert told == ResourceRequirements(limits={"memory": "9007199254740988Ki"})
    v2 = ResourceConfig(2, -1, 100_000, -1)
    assert pod_resources_shown(web(resources(), **RUNNING), None, v2) == ResourceRequirements()


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (ResourceConfig(cpu_quota_us=1, cpu_period_us=1000), "/"),  # rounds to nothing
        (ResourceConfig(cpu_quota_us=20, cpu_period_us=1000), "/20m"),
        (ResourceConfig(cpu_quota_us=100_000, cpu_period_us=100_000), "/1"),
        (ResourceConfig(cpu_quota_us=1, cpu_period_us=1), "/1"),
        (ResourceConfig(cpu_period_us=1), "/"),
        (ResourceConfig(cpu_quota_us=0, cpu_period_us=1000), "/"),
        (ResourceConfig(cpu_quota_us=-1, cpu_period_us=1000), "/"),
        (ResourceConfig(cpu_quota_us=20_000), "/"),
        (ResourceConfig(cpu_period_us=1000), "/"),
        (ResourceConfig(cpu_shares=1), "/"),  # less than any cgroup can have
        (ResourceConfig(cpu_shares=2), "/"),
        (ResourceConfig(cpu_shares=3), "3m/"),
        (ResourceConfig(cpu_shares=1024), "1/"),
    ],
)
def test_what_the_files_of_a_cgroup_mean_CG_063(group: ResourceConfig, told: str) -> None:
    assert pod_resources_shown(web(resources(), **RUNNING), None, group) == resources(told)


def test_the_pods_own_resources_are_the_ground_CG_063() -> None:
    own = {"requests": {"cpu": "9", "memory": "8Mi"}, "limits": {"cpu": "9", "example.com/x": "1"}}
    pod = web(ASKED, resources=own, **RUNNING)
    told = pod_resources_shown(pod, None, ResourceConfig(memory_limit_bytes=1))
    assert told.to_dict() == {
        "requests": {"cpu": "9", "memory": "8Mi"},
        "limits": {"cpu": "9", "memory": "1", "example.com/x": "1"},
    }
    small = pod_resources_shown(pod, None, ResourceConfig(2, 10, 1000))
    assert (small.requests or {})["cpu"] == "2m"
    assert (small.limits or {})["cpu"] == "10m"


def test_all_that_is_asked_for_is_shown_before_the_pod_runs_CG_063() -> None:
    asked = ResourceRequirements(limits={"hugepages-2Mi": "4Mi", "example.com/x": "1"})
    told = pod_resources_shown(web(asked), None, None)
    assert told.limits == {"hugepages-2Mi": "4Mi", "example.com/x": "1"}


def test_sums_keep_the_form_they_were_written_in_CG_063() -> None:
    asked = ResourceRequirements(requests={"memory": "1500M", "cpu": "1e0"})
    told = pod_resources_shown(web(asked), None, None)
    assert told.requests == {"memory": "1500M", "cpu": "1e0"}


def test_a_given_limit_of_cpu_alone_leaves_memory_at_none_CG_063() -> None:
    told = shown(resources("100m/200m"), None, actuated=resources("100m/200m"))
    assert told == ResourceRequirements(
        requests={"cpu": "100m", "memory": "0"}, limits={"cpu": "200m", "memory": "0"}
    )


def test_a_running_container_shows_canonical_amounts_CG_063() -> None:
    """The memory request is what was asked for, in its very text: no runtime tells it."""
    asked = ResourceRequirements(requests={"cpu": "0.1", "memory": "0.1Gi"})
    sent = ResourceRequirements(requests={"cpu": "100m", "memory": "107374182400m"})
    record = ContainerRecord("c", "main", ContainerState.RUNNING)
    shown = container_resources_shown(Container(name="main", resources=asked), record, None, sent)
    assert shown.requests == {"cpu": "100m", "memory": "107374182400m"}


def test_the_memory_request_of_a_resize_stays_in_bytes_CG_063() -> None:
    sent = resources("100m", "200000000")
    assert shown(resources("100m", "200M"), None, actuated=sent).requests == sent.requests
