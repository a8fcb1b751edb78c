"""Clauses of laws about what begins anew: for another kubelet, in another sandbox, of a manifest
that comes back; and about ends that others hold up. Each leaves that alone, and notices what is
like it but for the reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kubecri.v1 import api_pb2 as cri
from test_clauses_of_laws import told
from test_laws_of_worlds import Made, object_stays, refused, running, shown, with_hook

from kubelet_conformance.laws import (
    Planned,
    Shown,
    fitting,
    probing,
    promptness,
    remembering,
    statuses,
    telling,
)
from kubelet_conformance.laws.history import There

API = {"kubernetes.io/config.source": "api"}
STATIC = {"kubernetes.io/config.source": "file"}


def test_another_kubelet_gives_a_hook_all_of_its_time_again() -> None:
    for at_s, is_told in ((4.0, True), (22.0, False)):
        made = with_hook(takes_off=False)
        made.planned.extend([Planned(at_s, "kill"), Planned(at_s + 0.5, "start")])
        assert bool(told(probing.hook_time_counts, made)) is is_told


def runs_once_more(box: str) -> Made:
    """An init container that has succeeded is shown running: another instance, in that sandbox."""
    made = running(initContainers=[{"name": "first"}])
    made.runs("f", 2.5, "first")
    made.sandbox(30.0)
    made.runs("g", 31.0, "first", box)
    for at_s, one, state in (
        (10.0, "f", {"terminated": {"exitCode": 0}}),
        (40.0, "g", {"running": {}}),
    ):
        made.show(at_s, "Pending", initContainerStatuses=[shown("first", one=one, **state)])
    return made


def test_in_another_sandbox_an_init_container_runs_again() -> None:
    assert not told(remembering.ends_stay, runs_once_more("box30"))
    (text,) = told(remembering.ends_stay, runs_once_more("box2"))
    assert "first had ended with 0" in text


def test_the_server_deletes_a_pod_that_is_over_at_once() -> None:
    for over_s, is_told in ((20.0, False), (20.5, True)):
        made = object_stays(100.0)
        made.show(over_s, "Failed")
        assert bool(told(promptness.gone_in_time, made)) is is_told


def test_a_driver_that_does_not_answer_holds_up_the_end_of_a_pod() -> None:
    for failed_s, is_told in ((21.0, False), (2.0, True)):
        times = {"started_s": failed_s, "ended_s": failed_s + 1}
        call = SimpleNamespace(disturbed=False, error=("UNAVAILABLE", "no"), **times)
        calls = {"disks.example": [call]}
        found = told(promptness.gone_in_time, object_stays(100.0), driver_calls=calls)
        assert bool(found) is is_told


def test_a_container_that_could_not_be_found_is_left_as_it_was() -> None:
    for reason, count in (("ContainerStatusUnknown", 0), ("Error", 2)):
        made = running()
        ended = {"exitCode": 137, "reason": reason}
        made.show(20.0, "Failed", {**shown(one="a", terminated=ended, ready=True), "started": True})
        assert len(told(statuses.ready_while_running, made)) == count


def moved(notes: dict[str, str], *files: str, again: bool = False) -> Made:
    """A pod that was over runs; these files have moved since."""
    made = running()
    made.notes = notes
    made.planned.extend(Planned(12.0, "manifest", name) for name in files)
    made.show(10.0, "Succeeded", startTime="1")
    status: dict[str, Any] = {"phase": "Running", "startTime": "2"}
    made.shown.append(Shown(20.0, "web", "u", status, again))
    return made


def test_a_manifest_that_comes_back_is_a_new_life_of_its_pod() -> None:
    for made in (moved(STATIC, "web.yaml"), moved(STATIC, again=True)):
        assert not told(statuses.phases_go_on, made)
        assert not told(statuses.start_time_kept, made)
    for made in (moved(STATIC), moved(STATIC, "other.yaml"), moved(API, "web.yaml", again=True)):
        assert told(statuses.phases_go_on, made)
        assert told(statuses.start_time_kept, made)


def made_again(name: str, *, dropped: bool) -> Made:
    """A container that has done its work is made again in its sandbox; `dropped`: somebody has
    taken a record of the pod away."""
    made = running(restartPolicy="Never", initContainers=[{"name": "first"}])
    ended = shown(name, one="a", terminated={"exitCode": 0})
    kind = "initContainerStatuses" if name == "first" else "containerStatuses"
    made.show(20.0, "Running", **{kind: [ended]})
    if dropped:
        made.planned.insert(0, Planned(25.0, "outside"))
    made.runs("b", 30.0, name)
    return made


def test_init_containers_run_again_when_records_were_taken_away() -> None:
    assert not told(remembering.done_stays_done, made_again("first", dropped=True))
    assert told(remembering.done_stays_done, made_again("first", dropped=False))
    assert told(remembering.done_stays_done, made_again("main", dropped=True))


def refused_beside_one_that_was_over(source: str, start_s: float) -> Made:
    """A pod that asks for 3 of 4 CPUs is refused at 30 s, beside one of 3 that was over at 10 s; a
    kubelet starts at that moment."""
    made = refused("3")
    made.shown = [Shown(at_s, "big", "v", {"phase": phase}) for at_s, phase in BIG]
    made.show(29.0, "Pending")
    made.show(30.0, "Failed", reason="OutOfcpu")
    metadata = {"uid": "v", "annotations": {"kubernetes.io/config.source": source}}
    made.others = {"v": [{"metadata": metadata, "spec": made.spec}]}
    request = cri.RunPodSandboxRequest()
    answer = cri.RunPodSandboxResponse(pod_sandbox_id="big")
    made.call("RunPodSandbox", 3.0, request, answer, uid="v")
    made.planned.append(Planned(start_s, "start"))
    return made


BIG = ((2.0, "Running"), (10.0, "Failed"))


def test_a_kubelet_that_starts_counts_a_static_pod_that_was_over() -> None:
    assert not told(telling.refused_when_full, refused_beside_one_that_was_over("file", 20.0))
    for source, start_s in (("file", 5.0), ("api", 20.0)):
        made = refused_beside_one_that_was_over(source, start_s)
        assert told(telling.refused_when_full, made)


def test_what_a_container_may_use_while_the_pods_are_removed_does_not_count() -> None:
    for at_s, is_told in ((690.0, True), (710.0, False)):
        made = running(containers=[with_cpus("main", "1"), with_cpus("other", "500m")])
        made.runs("b", 4.0, "other")
        for one, cpus, asked_s in (("a", "1", 10.0), ("b", "2", 10.0), ("b", "0-2", at_s)):
            linux = cri.LinuxContainerResources(cpuset_cpus=cpus)
            request = cri.UpdateContainerResourcesRequest(container_id=one, linux=linux)
            made.call("UpdateContainerResources", asked_s, request)
        there = There(containers=[runs("a", "main"), runs("b", "other")])
        config = {"cpuManagerPolicy": "static"}
        found = told(fitting.shared_keep_off, made, there=there, config=config)
        assert bool(found) is is_told


def with_cpus(name: str, cpus: str) -> dict[str, Any]:
    """A container of a pod of the class Guaranteed; whole CPUs it has alone."""
    amounts = {"cpu": cpus, "memory": "64Mi"}
    return {"name": name, "resources": {"requests": amounts, "limits": amounts}}


def runs(one: str, name: str) -> cri.ContainerStatus:
    """A container of the pod `web` as the runtime has it in the end."""
    labels = {
        "io.kubernetes.pod.uid": "u",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.container.name": name,
    }
    return cri.ContainerStatus(id=one, state=cri.CONTAINER_RUNNING, labels=labels)
