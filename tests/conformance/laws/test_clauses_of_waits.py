"""Clauses of laws about what waits for something: a step for a call, a mirror for its turn, a pod
for its name. Each leaves that alone, and notices what is like it but for the reason."""

from __future__ import annotations

from typing import Any

from kubecri.v1 import api_pb2 as cri
from test_clauses_of_laws import PODS_PATH, told
from test_laws_of_reasons import sandboxes_left
from test_laws_of_worlds import (
    END_S,
    POD_PATH,
    PROBES,
    Made,
    begun_late,
    exit_noticed,
    object_stays,
    running,
    shown,
)

from kubelet_conformance.laws import (
    Planned,
    Shown,
    beginnings,
    calls,
    calm,
    noticing,
    promptness,
    statuses,
)
from kubelet_conformance.laws.history import There

STATIC = {"kubernetes.io/config.source": "file"}


def probed_when_over(*, disturbed: bool) -> Made:
    """A probe runs at 30 s in a container that has ended at 10 s, as one list has told, while
    another one is under way."""
    made = running()
    made.planned.insert(0, Planned(1.0, "fault", "ListContainers"))
    made.ends("a", 10.0)
    request = cri.ListContainersRequest()
    made.call("ListContainers", 9.0, request, uid="", disturbed=disturbed, ended_s=29.5)
    made.call("ListContainers", 10.5, request, uid="")
    made.runs_command("a", 30.0, "alive")
    return made


def test_a_list_that_is_held_up_lets_nobody_know_what_is_over() -> None:
    assert not told(calls.nothing_in_what_is_over, probed_when_over(disturbed=True))
    assert told(calls.nothing_in_what_is_over, probed_when_over(disturbed=False))


def starts_again(notes: dict[str, str], *requests: tuple[str, str]) -> Made:
    """The startTime of a pod changes between 10 s and 20 s; these requests are made at 12 s."""
    made = running()
    made.notes = notes
    for at_s, start in ((10.0, "1"), (20.0, "2")):
        made.show(at_s, "Running", startTime=start)
    for method, path in requests:
        made.asks(method, path, 12.0, {"metadata": {"name": "web"}}, 201)
    return made


def test_a_static_pod_whose_mirror_is_made_again_may_start_again() -> None:
    delete, post = ("DELETE", POD_PATH), ("POST", PODS_PATH)
    for request in (delete, post):
        assert not told(statuses.start_time_kept, starts_again(STATIC, request))
    api = {"kubernetes.io/config.source": "api"}
    for made in (
        starts_again(STATIC),
        starts_again(STATIC, ("DELETE", f"{PODS_PATH}/other"), ("GET", POD_PATH)),
        starts_again(api, delete),
    ):
        assert told(statuses.start_time_kept, made)


def ends_while_a_sync_waits(policy: str, code: int, *, pulls: bool = True) -> Made:
    """A container has ended at 20 s, which is shown at 60 s; an image is pulled until 80 s."""
    made = running(restartPolicy=policy)
    made.show(4.0, "Running", shown(one="a", running={}))
    made.ends("a", 20.0, code)
    made.show(60.0, "Running", shown(one="a", terminated={"exitCode": code}))
    if pulls:
        made.call("PullImage", 19.0, cri.PullImageRequest(), disturbed=True, ended_s=80.0)
    return made


def test_an_end_for_good_is_not_shown_while_a_sync_waits() -> None:
    for policy, code in (("Never", 1), ("OnFailure", 0)):
        assert not told(noticing.ends_shown, ends_while_a_sync_waits(policy, code))
        alone = ends_while_a_sync_waits(policy, code, pulls=False)
        (text,) = told(noticing.ends_shown, alone)
        assert "under way" not in text
    for policy, code in (("Always", 0), ("OnFailure", 1)):
        (text,) = told(noticing.ends_shown, ends_while_a_sync_waits(policy, code))
        assert text.endswith(", while PullImage of its pod is under way")


def test_what_is_begun_of_a_deleted_pod_tells_what_its_sync_had_waited_for() -> None:
    made = begun_late(24.0)
    assert not any("under way" in text for text in told(promptness.nothing_begun_at_the_end, made))
    made.call("PullImage", 19.0, cri.PullImageRequest(), ended_s=22.0)
    for text in told(promptness.nothing_begun_at_the_end, made):
        assert text.endswith("it was deleted, while PullImage of its pod is under way")


def over_and_not(notes: dict[str, str], start_s: float, **failed: Any) -> Made:
    """A pod is Failed at 10 s and Running at 20 s; a kubelet starts at that moment."""
    made = running()
    made.notes = notes
    made.planned.append(Planned(start_s, "start"))
    made.show(10.0, "Failed", shown(one="a", terminated={"exitCode": 1}), **failed)
    made.show(20.0, "Running", shown(one="b", running={}))
    return made


def test_a_kubelet_that_starts_does_not_know_why_a_static_pod_had_ended() -> None:
    why = {"reason": "Terminated"}
    assert not told(statuses.phases_go_on, over_and_not(STATIC, 15.0, **why))
    for made in (
        over_and_not(STATIC, 15.0),
        over_and_not(STATIC, 25.0, **why),
        over_and_not({"kubernetes.io/config.source": "api"}, 15.0, **why),
    ):
        assert told(statuses.phases_go_on, made)


def undecided(command: str) -> tuple[Made, There]:
    """A container with a startup probe has not started in the end; that command is under way."""
    hook = {"postStart": {"exec": {"command": ["hook"]}}}
    probe = PROBES["startupProbe"]
    made = running(containers=[{"name": "main", "startupProbe": probe, "lifecycle": hook}])
    made.runs_command("a", 10.0, command, ended_s=None)
    state = {"running": {"startedAt": "1970-01-01T00:00:10Z"}}
    status = {"name": "main", "state": state, "started": False}
    web = {
        "metadata": {"name": "web", "uid": "u"},
        "spec": made.spec,
        "status": {"phase": "Running", "containerStatuses": [status]},
    }
    return made, There(at_api={"web": web})


def test_a_hook_holds_up_what_a_startup_probe_has_decided_and_a_probe_nothing() -> None:
    for command, is_told in (("hook", False), ("begun", True)):
        made, there = undecided(command)
        found = told(calm.wanted_pods_go_on, made, there=there)
        assert bool(found) is is_told
        assert all("main runs since" in text for text in found)


def test_an_end_that_is_noticed_late_tells_that_a_list_had_failed() -> None:
    made = exit_noticed(200.0)
    (text,) = told(noticing.ends_noticed, made)
    assert text.endswith("noticed at 200.100 s")
    request = cri.ListContainersRequest()
    made.call("ListContainers", 30.0, request, uid="", error=("UNKNOWN", "no"))
    (text,) = told(noticing.ends_noticed, made)
    assert text.endswith("noticed at 200.100 s: a list had failed at 30.000 s")


def test_a_pod_that_does_not_go_on_tells_that_its_sandbox_was_lost() -> None:
    waits = {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}
    status = {"phase": "Pending", "containerStatuses": [waits]}
    for is_lost in (False, True):
        made = Made()
        made.sandbox(2.0)
        if is_lost:
            stop = cri.StopPodSandboxRequest(pod_sandbox_id="box2")
            made.call("StopPodSandbox", 9.0, stop, cri.StopPodSandboxResponse())
        web = {"metadata": {"name": "web", "uid": "u"}, "spec": made.spec, "status": status}
        (text,) = told(calm.wanted_pods_go_on, made, there=There(at_api={"web": web}))
        assert text.endswith("its sandbox was lost") is is_lost


def waits_for_its_name(stopped_s: float | None, made_s: float = 2.0) -> Made:
    """A pod is there from 20 s on and never begins; another one of its name has got a sandbox
    before, which is stopped then, or never."""
    made = Made()
    made.shown = [Shown(20.0, "web", "u", {"phase": "Pending"})]
    metadata = cri.PodSandboxMetadata(name="web", uid="v", namespace="default")
    request = cri.RunPodSandboxRequest(config=cri.PodSandboxConfig(metadata=metadata))
    answer = cri.RunPodSandboxResponse(pod_sandbox_id="other")
    made.call("RunPodSandbox", made_s, request, answer, uid="v")
    if stopped_s is not None:
        stop = cri.StopPodSandboxRequest(pod_sandbox_id="other")
        made.call("StopPodSandbox", stopped_s, stop, cri.StopPodSandboxResponse(), uid="v")
    return made


def test_a_pod_waits_until_the_sandbox_of_the_one_before_is_stopped() -> None:
    assert not told(beginnings.begun_in_time, waits_for_its_name(None))
    (text,) = told(beginnings.begun_in_time, waits_for_its_name(100.0))
    assert text.endswith("has not begun at 140.100 s")
    assert told(beginnings.begun_in_time, waits_for_its_name(None, made_s=18.0))


def ends_unseen(*, status: int) -> Made:
    """A kubelet that listens to events shows at 200 s that a container has ended at 20 s; a request
    has got that answer at 180 s."""
    made = exit_noticed(200.0)
    made.gates = {"EventedPLEG": True}
    ended = {"exitCode": 1, "containerID": "fake://a"}
    made.show(200.0, "Running", shown(one="a", terminated=ended))
    made.asks("PATCH", f"{POD_PATH}/status", 180.0, {}, status)
    return made


def test_a_server_that_refuses_holds_up_what_is_shown() -> None:
    for status, is_told in ((200, True), (404, True), (503, False), (0, False)):
        assert bool(told(noticing.ends_noticed, ends_unseen(status=status))) is is_told


def stops_meanwhile(method: str) -> Made:
    """A container has ended at 20 s, which is shown at 60 s; such a call takes until 50 s."""
    made = ends_while_a_sync_waits("Always", 1, pulls=False)
    made.call(method, 19.0, cri.StopPodSandboxRequest(), ended_s=50.0)
    return made


def test_nothing_is_shown_while_a_sandbox_is_being_stopped() -> None:
    assert not told(noticing.ends_shown, stops_meanwhile("StopPodSandbox"))
    assert told(noticing.ends_shown, stops_meanwhile("RemovePodSandbox"))


def test_a_container_that_was_started_is_shown_when_its_sync_is_over() -> None:
    labels = {"io.kubernetes.pod.uid": "u", "io.kubernetes.container.name": "main"}
    runs = cri.ContainerStatus(id="a", state=cri.CONTAINER_RUNNING, labels=labels)
    waits = {"name": "main", "state": {"waiting": {}}}
    for ended_s, is_told in ((None, False), (650.0, True)):
        made, there = undecided("begun")
        made.runs_command("a", 20.0, "hook", ended_s=ended_s)
        web = there.at_api["web"]
        web = {**web, "status": {"phase": "Pending", "containerStatuses": [waits]}}
        there = There(containers=[runs], at_api={"web": web})
        assert bool(told(calm.told_as_it_is, made, there=there)) is is_told


def not_there(code: str) -> Made:
    """The object of a pod stays too long; the status of a container got such an answer."""
    made = object_stays(100.0)
    request = cri.ContainerStatusRequest(container_id="x")
    made.call("ContainerStatus", 22.0, request, error=(code, "no"), disturbed=True)
    return made


def test_that_something_is_not_there_is_an_answer_to_go_on_with() -> None:
    assert told(promptness.gone_in_time, not_there("NOT_FOUND"))
    assert not told(promptness.gone_in_time, not_there("UNAVAILABLE"))


def stopping(timeout_s: int, **said: Any) -> Made:
    """A pod that nobody wants runs at the end; StopContainer was called 100 s before."""
    made = sandboxes_left("gone")
    request = cri.StopContainerRequest(container_id="x", timeout=timeout_s)
    made.call("StopContainer", END_S - 100.0, request, **{"uid": "gone", "ended_s": None, **said})
    return made


def test_what_is_being_stopped_may_run_as_long_as_it_was_given() -> None:
    for in_time in (stopping(600), stopping(600, ended_s=END_S), stopping(100)):
        assert in_time.broken() == set()
    for over in (stopping(99), stopping(600, ended_s=END_S - 1.0), stopping(600, uid="u")):
        assert over.broken() == {"no-other-sandboxes"}
    labels = {calm.UID: "gone", calm.NAME: "main", "io.kubernetes.pod.name": "web"}
    runs = cri.Container(state=cri.CONTAINER_RUNNING, labels=labels)
    for made, breaks in ((stopping(600), False), (stopping(99), True)):
        there = There(containers=[runs])
        assert bool(told(calm.nothing_else_runs, made, there=there)) is breaks
