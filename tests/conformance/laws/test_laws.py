"""Laws: each notices a history that is against it, and none a history that is not."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws import LAWS, History, Left, Planned, Shown, ask
from kubelet_conformance.registry import load_cases

POD = {
    "metadata": {"name": "web", "uid": "u", "annotations": {"kubernetes.io/config.source": "api"}},
    "spec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 5,
        "initContainers": [{"name": "first"}],
        "containers": [{"name": "main"}],
    },
}


class Calls:
    """Makes calls of a kubelet, one a second."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def add(self, method: str, request: Any, response: Any = None, error: Any = None) -> None:
        began_s = float(len(self.made))
        self.made.append(
            SimpleNamespace(
                method=method,
                request=request,
                response=response,
                error=error,
                disturbed=False,
                started_s=began_s,
                ended_s=began_s + 0.5,
                uid="u",
                pod="web",
                container="",
            )
        )

    def sandbox(self, name: str, uid: str = "u", source: str = "api", *, attempt: int = 0) -> None:
        config = cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(
                name="web", uid=uid, namespace="default", attempt=attempt
            ),
            annotations={"kubernetes.io/config.source": source},
        )
        answer = cri.RunPodSandboxResponse(pod_sandbox_id=name)
        self.add("RunPodSandbox", cri.RunPodSandboxRequest(config=config), answer)

    def runs(self, name: str, attempt: int = 0, box: str = "box", of: str = "main") -> None:
        """A container with that ID is made and started."""
        request = cri.CreateContainerRequest(
            pod_sandbox_id=box,
            config=cri.ContainerConfig(metadata=cri.ContainerMetadata(name=of, attempt=attempt)),
            sandbox_config=cri.PodSandboxConfig(
                metadata=cri.PodSandboxMetadata(name="web", uid="u")
            ),
        )
        self.add("CreateContainer", request, cri.CreateContainerResponse(container_id=name))
        start = cri.StartContainerRequest(container_id=name)
        self.add("StartContainer", start, cri.StartContainerResponse())

    def exits(self, name: str, code: int) -> None:
        """The kubelet sees that it has ended."""
        now_ns = len(self.made) * 1_000_000_000
        status = cri.ContainerStatus(
            state=cri.CONTAINER_EXITED, exit_code=code, started_at=1, finished_at=now_ns
        )
        request = cri.ContainerStatusRequest(container_id=name)
        self.add("ContainerStatus", request, cri.ContainerStatusResponse(status=status))

    def stops(self, name: str, timeout: int) -> None:
        request = cri.StopContainerRequest(container_id=name, timeout=timeout)
        self.add("StopContainer", request, cri.StopContainerResponse())


def broken(**facts: Any) -> set[str]:
    """The names of the laws that this history breaks."""
    history = History(**{"start_s": 0.0, "end_s": 100.0, **facts})
    return {breach.law.name for breach in ask(LAWS, history)}


def begun() -> Calls:
    """A pod whose init container has succeeded."""
    calls = Calls()
    calls.sandbox("box")
    calls.runs("i", of="first")
    calls.exits("i", 0)
    return calls


def pod(**spec: Any) -> dict[str, list[Any]]:
    return {"u": [{**POD, "spec": {**POD["spec"], **spec}}]}


def test_a_right_history_breaks_no_law() -> None:
    calls = begun()
    calls.runs("a")
    calls.exits("a", 1)
    calls.runs("b", attempt=1)
    calls.stops("b", 5)
    assert broken(calls=calls.made, pods=pod()) == set()


def test_laws_of_containers_and_calls() -> None:
    twice = begun()
    twice.runs("a")
    twice.runs("b", attempt=1)
    assert broken(calls=twice.made, pods=pod()) == {"one-running"}
    by_others = [Planned(twice.made[-1].started_s, "outside")]
    assert broken(calls=twice.made, pods=pod(), planned=by_others) == set()
    boxes = Calls()
    boxes.sandbox("box")
    boxes.sandbox("other", attempt=1)
    assert broken(calls=boxes.made) == {"one-sandbox"}
    assert broken(calls=boxes.made, planned=[Planned(0.1, "outside")]) == set()
    assert broken(calls=boxes.made, planned=[Planned(-1, "outside")]) == {"one-sandbox"}
    boxes.sandbox("third", attempt=1)
    assert broken(calls=boxes.made) == {"one-sandbox", "attempts-grow"}
    static = Calls()
    static.sandbox("box", source="file")
    static.sandbox("other", uid="v", source="file")
    assert broken(calls=static.made) == {"one-static"}
    same = begun()
    for name in ("a", "b"):
        same.runs(name)
        same.exits(name, 1)
    assert broken(calls=same.made, pods=pod()) == {"attempts-grow"}
    early = Calls()
    early.sandbox("box")
    early.runs("a")
    assert broken(calls=early.made, pods=pod()) == {"init-in-order"}
    beside = Calls()
    beside.sandbox("box")
    beside.runs("i", of="first")
    beside.runs("a")
    beside.exits("i", 0)  # it has succeeded, but later
    assert broken(calls=beside.made, pods=pod()) == {"init-in-order"}


SHORT = {"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}}


def test_laws_of_restarts() -> None:
    calls = begun()
    for attempt, name in enumerate("abc"):
        calls.runs(name, attempt=attempt)
        calls.exits(name, 0)
    assert broken(calls=calls.made, pods=pod()) == {"backed-off"}
    assert (
        broken(
            calls=calls.made,
            pods=pod(),
            config=SHORT,
        )
        == set()
    )
    assert broken(calls=calls.made, pods=pod(restartPolicy="OnFailure")) == {
        "backed-off",
        "policy-obeyed",
    }


def test_laws_of_ends() -> None:
    calls = begun()
    calls.runs("a")
    calls.stops("a", 1)
    calls.stops("a", 6)
    (short, long) = [
        breach.what
        for breach in ask(LAWS, History(start_s=0, end_s=9, calls=calls.made, pods=pod()))
    ]
    assert "timeout of 1 s" in short
    assert "timeout of 6 s" in long
    over = [Shown(0.5, "web", "u", {"phase": "Succeeded"})]
    assert "nothing-after-its-end" in broken(calls=begun().made, pods=pod(), shown=over)
    removed = begun()
    removed.runs("a")
    removed.add("RemoveContainer", cri.RemoveContainerRequest(container_id="a"))
    assert broken(calls=removed.made, pods=pod()) == {"removed-when-over"}
    dead = begun()
    dead.runs("a")
    dead.exits("a", 0)
    dead.add("Version", None)
    dead.add("ExecSync", cri.ExecSyncRequest(container_id="a"))
    assert broken(calls=dead.made, pods=pod()) == {"nothing-in-what-is-over"}
    away = begun()
    away.runs("a")
    away.exits("a", 0)
    for _ in range(20):
        away.add("ListContainers", None, error=("UNAVAILABLE", "the runtime is down"))
        away.made[-1].uid = ""
    away.add("ExecSync", cri.ExecSyncRequest(container_id="a"))
    outside = [Planned(6.5, "outside")]
    assert broken(calls=away.made, pods=pod(), planned=outside) == set()
    away.made[-3].error = None  # a list that has just told of the end
    assert broken(calls=away.made, pods=pod(), planned=outside) == set()
    away.made[7].error = None  # one that has told of it long before
    breaks = {"nothing-in-what-is-over"}
    assert broken(calls=away.made, pods=pod(), planned=outside) == breaks
    wrong = Calls()
    wrong.add("PullImage", None, error=("INVALID_ARGUMENT", "no image"))
    assert broken(calls=wrong.made) == {"no-mistaken-call"}
    taken = Calls()  # whatever the call: the words tell
    taken.add("PullImage", None, error=("UNKNOWN", "failed to reserve container name"))
    assert broken(calls=taken.made) == {"no-mistaken-call"}
    assert broken(calls=wrong.made, planned=[Planned(0, "fault", "PullImage")]) == set()
    assert broken(left=Left(asked=True, pods=("web",))) == {"nothing-left"}
    assert broken(left=Left(pods=("web",))) == set()
    assert broken(log=["Traceback (most recent call last):"]) == {"no-unexpected-error"}


RUNNING: Mapping[str, Any] = {"running": {"startedAt": "0"}}


def container(state: Mapping[str, Any] = RUNNING, **facts: Any) -> dict[str, Any]:
    return {"name": "main", "state": state, "restartCount": 0, "containerID": "c://a", **facts}


def ended(code: int = 0, at: str = "1970-01-01T00:00:00Z") -> dict[str, Any]:
    """The init container, which ended with 0 in the fourth second, as some status has it."""
    state = {"exitCode": code, "containerID": "c://i", "startedAt": at, "finishedAt": at}
    return {**container({"terminated": state}), "name": "first", "containerID": "c://i"}


def status(*containers: Any, ready: str = "True", at: str = "0", **facts: Any) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": ready, "lastTransitionTime": at}
        for kind in ("Ready", "ContainersReady")
    ]
    return {"conditions": conditions, "containerStatuses": list(containers), **facts}


@pytest.mark.parametrize(
    ("law", "first", "second"),
    [
        ("phases-go-on", {"phase": "Failed"}, {"phase": "Running"}),
        (
            "restarts-go-up",
            status(container(restartCount=2), ready="False"),
            status(container(restartCount=1), ready="False"),
        ),
        ("start-time-kept", {"startTime": "1"}, {"startTime": "2"}),
        ("generation-not-back", {"observedGeneration": 2}, {"observedGeneration": 1}),
        ("transitions-have-times", status(ready="True", at="1"), status(ready="True", at="2")),
        ("transitions-have-times", status(ready="True", at="2"), status(ready="False", at="1")),
        ("conditions-agree", {}, status(container(ready=False))),
        ("ready-while-running", {}, status(container({"waiting": {}}, ready=True))),
        (
            "ready-while-running",
            {},
            status(container({"waiting": {}}, started=True), ready="False"),
        ),
        ("as-the-runtime-had-it", {}, status(container(containerID="c://b"), ready="False")),
        ("as-the-runtime-had-it", {}, status(ended(), ready="False")),
        ("as-the-runtime-had-it", {}, status(ended(at="1970-01-01T00:00:03Z"), ready="False")),
        ("addresses-of-sandbox", {}, {"podIP": "192.0.2.1"}),
    ],
)
def test_laws_of_statuses(law: str, first: Any, second: Any) -> None:
    calls = begun()
    calls.runs("a")
    shown = [Shown(20.0, "web", "u", first), Shown(21.0, "web", "u", second)]
    assert broken(calls=calls.made, pods=pod(), shown=shown) == {law}
    assert broken(calls=calls.made, pods=pod(), shown=shown[:1]) == set()


def test_restarts_of_what_the_runtime_has_lost_are_forgotten_with_the_status() -> None:
    meta = {**POD["metadata"], "annotations": {"kubernetes.io/config.source": "file"}}
    lost = {"name": "main", "state": {"waiting": {}}, "restartCount": 0}
    kept = {**lost, "containerID": "c://a"}
    made = [request("POST", WEB.removesuffix("/web"), {"metadata": {"name": "web"}}, 201)]
    other = [request("POST", WEB.removesuffix("/web"), {"metadata": {"name": "other"}}, 201)]
    for of in (made, other):
        of[0].started_s = 20.5

    def down(now: Any, requests: Any, planned: Any = (), **facts: Any) -> bool:
        statuses = (status(container(restartCount=1), ready="False"), status(now, ready="False"))
        shown = [Shown(20.0 + n, "web", "u", each) for n, each in enumerate(statuses)]
        given = {"u": [{**POD, "metadata": {**meta, **facts}}]}
        facts_of_run = {"pods": given, "requests": requests, "planned": planned}
        return "restarts-go-up" in broken(shown=shown, **facts_of_run)

    assert not down(lost, made)
    assert down(kept, made)  # the runtime tells it
    assert down(lost, other)
    assert down(lost, made, annotations={"kubernetes.io/config.source": "api"})
    started, ended = [Planned(20.5, "start", "")], [Planned(20.5, "stop", "")]
    assert not down(lost, other, started)
    assert down(kept, other, started)
    assert down(lost, other, ended)
    assert down(lost, other, started, annotations={"kubernetes.io/config.source": "api"})


def test_a_restart_is_counted() -> None:
    calls = begun()
    calls.runs("a", attempt=1)
    shown = [Shown(20.0, "web", "u", status(container(), ready="False"))]
    assert broken(calls=calls.made, pods=pod(), shown=shown) == {"counted-as-made"}


def request(method: str, path: str, body: Any = None, code: int = 200) -> Any:
    return SimpleNamespace(method=method, path=path, body=body, status=code, started_s=1.0)


WEB = "/api/v1/namespaces/default/pods/web"


def test_laws_of_requests() -> None:
    right = {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}}
    assert broken(requests=[request("DELETE", WEB, right)]) == set()
    assert broken(requests=[request("DELETE", WEB, {"gracePeriodSeconds": 0})]) == {
        "only-what-it-may"
    }
    assert broken(requests=[request("PUT", WEB)]) == {"only-what-it-may"}
    refused = request("PATCH", f"{WEB}/status", {"status": {}}, 422)
    assert broken(requests=[refused]) == {"nothing-refused"}
    assert broken(requests=[request("DELETE", WEB, right), refused]) == set()
    malformed = request("PATCH", f"{WEB}/status", {"status": {}}, 400)
    assert broken(requests=[request("DELETE", WEB, right), malformed]) == {"nothing-refused"}
    write = request("PATCH", f"{WEB}/status", {"status": {"phase": "Running"}})
    assert broken(requests=[write]) == set()
    assert broken(requests=[write, write]) == {"no-equal-writes"}
    assert broken(requests=[write, write], by_users=[request("PATCH", WEB)]) == set()
    empty = request("PATCH", f"{WEB}/status", {"metadata": {"uid": "u"}})
    assert broken(requests=[empty]) == {"no-equal-writes"}


def event(**facts: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": "web", "uid": "u"}
    plain = {"involvedObject": about, "reason": "Started", "message": "m", "type": "Normal"}
    return {**plain, **facts}


def test_laws_of_events() -> None:
    calls = begun()
    assert broken(calls=calls.made, events=[event()]) == set()
    assert broken(calls=calls.made, events=[event(count=2)]) == {"events-as-often"}
    strange = event(reason="Killing", involvedObject={"kind": "Pod", "name": "x", "uid": "w"})
    assert broken(calls=calls.made, events=[strange]) == {"events-of-what-is-there"}
    assert broken(calls=calls.made, events=[event(source={"host": "b"})]) == {
        "events-of-what-is-there"
    }


def test_each_law_has_a_name_of_its_own_rules_and_a_sentence() -> None:
    assert len({law.name for law in LAWS}) == len(LAWS)
    assert all(law.rules and law.says for law in LAWS)


def test_cases_except_laws_that_there_are_with_a_reason() -> None:
    names = {law.name for law in LAWS}
    for case in load_cases():
        assert case.except_laws.keys() <= names, case.id
        assert all(case.except_laws.values()), case.id


def test_a_generation_is_one_that_the_pod_has_had() -> None:
    given = {"u": [{**POD, "metadata": {**POD["metadata"], "generation": 2}}]}
    shown = [Shown(20.0, "web", "u", {"observedGeneration": number}) for number in (1, 2)]
    assert broken(pods=given, shown=shown) == set()
    shown.append(Shown(21.0, "web", "u", {"observedGeneration": 3}))
    assert broken(pods=given, shown=shown) == {"generation-not-back"}


def test_a_sync_that_was_held_up_may_go_on_in_a_sandbox_that_has_died() -> None:
    calls = begun()
    calls.runs("a")
    start = calls.made[-1]
    stop = cri.StopPodSandboxRequest(pod_sandbox_id="box")
    calls.add("StopPodSandbox", stop, cri.StopPodSandboxResponse())
    for _ in range(3):
        calls.add("Version", None)
    calls.runs("b", of="second")
    outside = [Planned(0, "outside")]
    late = {"nothing-in-what-is-over"}
    assert broken(calls=calls.made, pods=pod(), planned=outside) == late
    start.ended_s, start.disturbed = 9.0, True
    assert broken(calls=calls.made, pods=pod(), planned=outside) == set()
    assert late <= broken(calls=calls.made, pods=pod())
