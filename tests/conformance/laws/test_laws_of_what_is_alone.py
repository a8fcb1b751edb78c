"""Laws about what pods have alone: a wrong history breaks each, and the right one beside it does
not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws import alone
from kubelet_conformance.laws.alone import exclusive_cpus
from kubelet_conformance.laws.history import History, Planned
from kubelet_conformance.laws.law import Law, Seen

ALONE = {"limits": {"cpu": "2", "memory": "1Gi"}}


def call(method: str, at_s: float, request: Any, response: Any = None, **facts: Any) -> Any:
    made = {"error": None, "disturbed": False, "started_s": at_s, "ended_s": at_s + 0.1}
    names = {"uid": "", "pod": "", "container": ""}
    given = {"method": method, "request": request, "response": response}
    return SimpleNamespace(**{**made, **names, **given, **facts})


def sandbox(uid: str, at_s: float, *ranges: tuple[int, int]) -> Any:
    uids = [cri.IDMapping(host_id=first, length=length) for first, length in ranges]
    users = cri.UserNamespace(uids=uids)
    config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name=uid, uid=uid))
    config.linux.security_context.namespace_options.userns_options.CopyFrom(users)
    answer = cri.RunPodSandboxResponse(pod_sandbox_id=f"box-{uid}")
    return call(
        "RunPodSandbox", at_s, cri.RunPodSandboxRequest(config=config), answer, pod=uid, uid=uid
    )


def listed(at_s: float, *uids: str, state: Any = cri.SANDBOX_READY, of: str = "") -> Any:
    """The kubelet's list of sandboxes, and its answer. `of`: only those of that pod."""
    items = [cri.PodSandbox(id=f"box-{uid}", state=state) for uid in uids]
    labels = {"io.kubernetes.pod.uid": of} if of else {}
    request = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=labels))
    return call("ListPodSandbox", at_s, request, cri.ListPodSandboxResponse(items=items))


def stopped(uid: str, at_s: float) -> Any:
    request = cri.StopPodSandboxRequest(pod_sandbox_id=f"box-{uid}")
    return call("StopPodSandbox", at_s, request)


def created(uid: str, at_s: float, cpus: str, devices: str = "", **facts: Any) -> Any:
    config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="main"))
    config.linux.resources.cpuset_cpus = cpus
    if devices:
        config.envs.add(key="DEVICES_WIDGET", value=devices.encode())
    of = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name=uid, uid=uid))
    request = cri.CreateContainerRequest(
        pod_sandbox_id=f"box-{uid}", config=config, sandbox_config=of
    )
    answer = cri.CreateContainerResponse(container_id=f"c-{uid}")
    return call("CreateContainer", at_s, request, answer, **{"uid": uid, "pod": uid, **facts})


def started(uid: str, at_s: float, **facts: Any) -> Any:
    request = cri.StartContainerRequest(container_id=f"c-{uid}")
    return call("StartContainer", at_s, request, **{"uid": uid, "pod": uid, **facts})


def updated(uid: str, at_s: float, cpus: str) -> Any:
    linux = cri.LinuxContainerResources(cpuset_cpus=cpus)
    request = cri.UpdateContainerResourcesRequest(container_id=f"c-{uid}", linux=linux)
    return call("UpdateContainerResources", at_s, request)


def pods(**resources: Any) -> Any:
    return {
        uid: [{"metadata": {"name": uid}, "spec": {"containers": [one]}}]
        for uid, one in ((uid, {"name": "main", "resources": r}) for uid, r in resources.items())
    }


def broken(law: Law, made: list[Any], **facts: Any) -> list[str]:
    history = History(**{"start_s": 0.0, "end_s": 600.0, "calls": made, **facts})
    return list(law.breaches(Seen(history)))


TWO = [created("a", 1, "2-3"), started("a", 2), created("b", 3, "3-4"), started("b", 4)]


def test_exclusive_cpus_are_given_once() -> None:
    both = pods(a=ALONE, b=ALONE)
    assert broken(alone.given_once, TWO, pods=both) == ["b/main and a/main have CPU 3 at 4.000 s"]
    assert broken(alone.given_once, TWO[:3], pods=both) == []  # b does not run
    over = [*TWO[:2], stopped("a", 2.5), *TWO[2:]]
    assert broken(alone.given_once, over, pods=both) == []
    under_way = [*TWO[:3], started("b", 4, ended_s=None)]
    assert broken(alone.given_once, under_way, pods=both) == []


def test_shared_cpus_may_be_those_of_others() -> None:
    shares = pods(a=ALONE, b={"requests": {"cpu": "2"}})
    assert broken(alone.given_once, TWO, pods=shares) == []
    one_of_two = [*TWO[:2], created("b", 3, "2-7"), started("b", 4)]
    assert broken(alone.given_once, one_of_two, pods=pods(a=ALONE, b=ALONE)) == []


def test_what_an_update_gives_counts_from_then_on() -> None:
    both = pods(a=ALONE, b=ALONE)
    apart = [*TWO[:2], created("b", 3, "4-5", "w1"), started("b", 4)]
    assert broken(alone.given_once, apart, pods=both) == []
    assert broken(alone.given_once, [*apart, updated("b", 5, "2,5")], pods=both) == [
        "b/main and a/main have CPU 2 at 5.000 s"
    ]
    assert broken(alone.given_once, [*apart, updated("a", 5, "0-1")], pods=both) == []
    moved = [*apart, updated("a", 5, "0-1"), updated("b", 6, "2-3")]
    assert broken(alone.given_once, moved, pods=both) == []
    device = [created("d", 6, "", "w1"), started("d", 7)]
    (what,) = broken(alone.given_once, [*apart, updated("b", 5, "5,6"), *device], pods=both)
    assert what == "d/main and b/main have device w1 at 7.000 s"


def status_of(uid: str, at_s: float, finished_s: float) -> Any:
    status = cri.ContainerStatus(state=cri.CONTAINER_EXITED, finished_at=int(finished_s * 1e9))
    request = cri.ContainerStatusRequest(container_id=f"c-{uid}")
    return call("ContainerStatus", at_s, request, cri.ContainerStatusResponse(status=status))


@pytest.mark.parametrize(("ended_s", "breaches"), [(2.5, 0), (4.5, 1)])
def test_an_end_counts_from_when_it_was(ended_s: float, breaches: int) -> None:
    told_late = [*TWO, status_of("a", 9, ended_s)]
    assert len(broken(alone.given_once, told_late, pods=pods(a=ALONE, b=ALONE))) == breaches


@pytest.mark.parametrize(("lost_s", "breaches"), [(0.5, 1), (2.5, 0), (5.0, 1)])
def test_what_the_runtime_may_have_forgotten_has_nothing_alone(
    lost_s: float, breaches: int
) -> None:
    lost = [Planned(lost_s, "outside")]
    both = pods(a=ALONE, b=ALONE)
    assert len(broken(alone.given_once, TWO, pods=both, planned=lost)) == breaches
    told = [*TWO, status_of("a", 9, 4.5)]
    assert len(broken(alone.given_once, told, pods=both, planned=lost)) == 1


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        (ALONE, 2),
        ({**ALONE, "requests": {"cpu": "2000m"}}, 2),
        ({**ALONE, "requests": {"cpu": "1"}}, 0),
        ({"limits": {"cpu": "1500m", "memory": "1Gi"}}, 0),
        ({"limits": {"cpu": "2"}}, 0),
        ({"limits": {"cpu": "two", "memory": "1Gi"}}, 0),
        ({}, 0),
    ],
)
def test_whole_cpus_of_guaranteed_pods_are_exclusive(resources: Any, count: int) -> None:
    spec = {"containers": [{"name": "main", "resources": resources}]}
    assert exclusive_cpus(spec, "main") == count
    other = {"name": "first", "resources": {}}
    assert exclusive_cpus({**spec, "initContainers": [other]}, "main") == 0


def test_ranges_of_user_ids_do_not_overlap() -> None:
    law = alone.user_ids_given_once
    apart = [sandbox("a", 1, (65536, 65536)), sandbox("b", 2, (131072, 65536))]
    assert broken(law, apart) == []
    twice = [*apart, sandbox("c", 3, (131000, 100))]
    assert broken(law, twice) == [
        "a has the user IDs from 65536, c those from 131000",
        "b has the user IDs from 131072, c those from 131000",
    ]
    assert broken(law, [apart[0], stopped("a", 2), twice[2]]) == []
    lists = [
        (listed(2), 0),
        (listed(2, of="c"), 1),
        (listed(2, "a"), 1),
        (listed(2, "a", state=cri.SANDBOX_NOTREADY), 0),
        (listed(0.5), 1),  # from before it was made
        (listed(3.5), 1),  # too late
    ]
    for told, breaches in lists:
        assert len(broken(law, [apart[0], told, twice[2]])) == breaches
    assert broken(law, [apart[0], sandbox("a", 3, (65536, 65536))]) == []  # the same pod
    assert broken(law, [apart[0], sandbox("d", 3, (65536, 0))]) == []  # none at all


def test_no_two_pods_have_one_cgroup() -> None:
    law = alone.cgroups_given_once
    one, other = sandbox("a", 1), sandbox("b", 2)
    for box, parent in ((one, "/kubepods/poda"), (other, "/kubepods/podb")):
        box.request.config.linux.cgroup_parent = parent
    assert broken(law, [one, other]) == []
    other.request.config.linux.cgroup_parent = "/kubepods/poda"
    assert broken(law, [one, other]) == ["a and b have the cgroup /kubepods/poda"]
    assert broken(law, [one, stopped("a", 1.5), other]) == []
    assert broken(law, [one, one]) == []  # the same pod
    for box in (one, other):
        box.request.config.linux.cgroup_parent = ""
    assert broken(law, [one, other]) == []  # cgroupsPerQOS is off
