"""Laws about a node left alone: each holds of a right end, and is broken by a wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws import calm
from kubelet_conformance.laws.history import History, Manifest, There
from kubelet_conformance.laws.law import Law, Seen

RUNS, EXITED = cri.CONTAINER_RUNNING, cri.CONTAINER_EXITED
END_S = 600
STATIC = {"kubernetes.io/config.source": "file"}
MIRROR = {"kubernetes.io/config.mirror": "x"}


def container(
    uid: str, state: int = RUNS, name: str = "main", created: int = 1
) -> cri.ContainerStatus:
    labels = {
        "io.kubernetes.pod.uid": uid,
        "io.kubernetes.container.name": name,
        "io.kubernetes.pod.name": uid,
    }
    return cri.ContainerStatus(
        id=f"{uid}-{name}-{created}", state=state, labels=labels, created_at=created
    )


def pod(uid: str, state: dict[str, Any] | None, phase: str = "Running", **metadata: Any) -> Any:
    status: dict[str, Any] = {"phase": phase}
    if state is not None:
        status["containerStatuses"] = [
            {"name": "main", "state": state, "containerID": f"fake://{uid}-main-1"}
        ]
    return {
        "metadata": {"name": uid, "uid": uid, **metadata},
        "spec": {"containers": [{"name": "main"}]},
        "status": status,
    }


def broken(law: Law, there: There) -> list[str]:
    return list(law.breaches(Seen(History(start_s=0, end_s=END_S, there=there))))


RUNNING = {"running": {}}
RIGHT = There(
    containers=[container("web"), container("own")],
    listed={"own": pod("own", RUNNING, annotations=STATIC)},
    at_api={"web": pod("web", RUNNING), "own": pod("mirror", RUNNING, annotations=MIRROR)},
)


@pytest.mark.parametrize(
    "law",
    [
        *(calm.wanted_pods_go_on, calm.nothing_else_runs, calm.told_as_it_is, calm.mirrors_agree),
        calm.manifests_are_read,
    ],
    ids=lambda law: law.name,
)
def test_each_holds_of_a_right_end_and_where_nobody_has_looked(law: Law) -> None:
    assert not broken(law, RIGHT)
    assert not list(law.breaches(Seen(History(start_s=0, end_s=1))))


WAITS = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("web", "says"),
    [
        (pod("web", RUNNING, deletionTimestamp="2026-01-01T00:00:00Z"), "was deleted"),
        (pod("web", WAITS, "Pending"), "does not run: ContainerCreating"),
        (pod("web", None, "Pending"), "does not run: no status"),
        (pod("web", {"waiting": {"reason": "PodInitializing"}}), "which are through"),
    ],
)
def test_a_pod_that_does_not_go_on(web: Any, says: str) -> None:
    (told,) = broken(calm.wanted_pods_go_on, There(at_api={"web": web}))
    assert says in told


def test_a_container_that_is_to_be_restarted_and_has_ended_long_ago() -> None:
    def told(policy: str, code: int, ended_at: str = "1970-01-01T00:00:01Z") -> list[str]:
        web = pod("web", {"terminated": {"exitCode": code, "finishedAt": ended_at}})
        web["spec"]["restartPolicy"] = policy
        return broken(calm.wanted_pods_go_on, There(at_api={"web": web}))

    for policy, code in (("Always", 0), ("OnFailure", 1)):
        (says,) = told(policy, code)
        assert "is not started again" in says
        assert told(policy, code, "1970-01-01T00:09:00Z") == []  # in back-off
    assert told("OnFailure", 0) == told("Never", 1) == []


def test_a_pod_may_wait_in_back_off_for_init_containers_and_for_objects_that_are_not_there() -> (
    None
):
    backs_off = pod("a", {"waiting": {"reason": "CrashLoopBackOff"}})
    behind = pod("b", {"waiting": {"reason": "PodInitializing"}}, "Pending")
    behind["spec"]["initContainers"] = [{"name": "first"}]
    behind["status"]["initContainerStatuses"] = [{"name": "first", "state": RUNNING}]
    without = pod("c", WAITS, "Pending")
    without["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "late"}}]
    pods = {"a": backs_off, "b": behind, "c": without}
    assert not broken(calm.wanted_pods_go_on, There(at_api=pods))
    there = There(at_api=pods, configmaps=frozenset({"late"}))
    assert len(broken(calm.wanted_pods_go_on, there)) == 1


def with_init(state: dict[str, Any], **status: Any) -> Any:
    web = pod("web", RUNNING)
    web["spec"]["initContainers"] = [{"name": "side", "restartPolicy": "Always"}]
    web["status"]["initContainerStatuses"] = [{"name": "side", "state": state, **status}]
    return web


def test_an_init_container_that_does_not_go_on() -> None:
    waits = with_init({"waiting": {"reason": "PodInitializing"}})
    early = {"running": {"startedAt": "1970-01-01T00:00:01Z"}}
    for web, says in ((waits, "side waits"), (with_init(early, started=False), "not started")):
        for there in (There(at_api={"web": web}), There(listed={"web": web})):
            (told,) = broken(calm.wanted_pods_go_on, there)
            assert says in told
    well = There(at_api={"web": with_init(early, started=True)})
    assert not broken(calm.wanted_pods_go_on, well)


def test_of_a_container_one_instance_runs() -> None:
    one, other = container("web"), container("web", created=2)
    assert broken(calm.one_of_each, There(containers=[one, other]))
    assert not broken(calm.one_of_each, There(containers=[one, container("web", EXITED)]))


def test_a_container_of_a_pod_that_is_over_or_gone_must_not_run() -> None:
    over = There(containers=[container("web")], at_api={"web": pod("web", None, "Failed")})
    assert broken(calm.nothing_else_runs, over)
    assert broken(calm.nothing_else_runs, There(containers=[container("gone")]))
    assert not broken(calm.nothing_else_runs, There(containers=[container("gone", EXITED)]))


@pytest.mark.parametrize(
    ("containers", "says"),
    [
        ([container("web", EXITED)], "the runtime has exited"),
        ([], "the runtime has none"),
        ([container("web"), container("web", RUNS, created=2)], "the ID of another instance"),
    ],
)
def test_a_status_that_is_not_that_of_the_newest_instance(containers: Any, says: str) -> None:
    there = There(containers=containers, at_api={"web": pod("web", RUNNING)})
    (told,) = broken(calm.told_as_it_is, there)
    assert says in told


def test_what_has_changed_just_now_may_not_be_told_yet() -> None:
    just_now = container("web", EXITED, created=END_S * 10**9 - 10**9)
    there = There(containers=[just_now], at_api={"web": pod("web", RUNNING)})
    assert not broken(calm.told_as_it_is, there)


def test_mirrors_and_static_pods_belong_together() -> None:
    static, mirror = pod("own", RUNNING, annotations=STATIC), RIGHT.at_api["own"]
    ended = pod("mirror", None, "Succeeded", annotations=MIRROR)
    web = RIGHT.at_api["web"]
    cases = [
        (There(listed={"own": static}, at_api={"web": web}), "has no mirror"),
        (There(listed={}, at_api={"own": mirror}), "has no static pod"),
        (There(listed={"own": static}, at_api={"own": ended}), "is Succeeded, its pod Running"),
    ]
    for there, says in cases:
        (told,) = broken(calm.mirrors_agree, there)
        assert says in told


def of_file(name: str = "own-node", **metadata: Any) -> Any:
    return {**pod(name, RUNNING, **metadata), "metadata": {"name": name, **metadata}}


def read(manifests: dict[str, list[Manifest]], *pods: Any) -> list[str]:
    """What is said against a kubelet that has these static pods beside these manifests."""
    listed = {one["metadata"]["name"]: one for one in pods}
    return broken(calm.manifests_are_read, There(listed=listed, manifests=manifests))


def test_each_manifest_is_a_pod_as_it_says() -> None:
    own = of_file("own-node", annotations=STATIC)
    new = of_file("own", labels={"version": "two"})
    assert not read({"own": [Manifest(of_file("own"))]}, own)
    assert read({"own": [Manifest(of_file("own"))]}) == [
        "the manifest of own is there, and no pod of it"
    ]
    assert read({}, own) == ["static pod own is there, and no manifest of it"]
    assert read({"own": [Manifest(new)]}, own) == ["static pod own is not as its manifest is"]
    assert not read({"own": [Manifest(new), Manifest(of_file("own"))]}, own)


def test_a_copy_beside_a_manifest_may_be_read_or_not() -> None:
    copy = Manifest(of_file("own"), read=False)
    assert not read({"own": [copy]})
    assert not read({"own": [copy]}, of_file("own-node", annotations=STATIC))


def test_a_mirror_of_an_older_manifest() -> None:
    notes = {**STATIC, "kubernetes.io/config.hash": "y"}
    there = There(
        listed={"own": pod("own", RUNNING, annotations=notes)},
        at_api={"own": pod("mirror", RUNNING, annotations=MIRROR)},
    )
    assert broken(calm.mirrors_agree, there) == ["mirror own is of another manifest than its pod"]
