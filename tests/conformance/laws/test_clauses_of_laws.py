"""Clauses of laws: what a law leaves alone for a reason, and that it notices what is like that but
for the reason."""

from __future__ import annotations

from typing import Any

from kubecri.v1 import api_pb2 as cri
from test_laws_of_worlds import PROBES, Made, running, shown

from kubelet_conformance.laws import (
    Law,
    Planned,
    Shown,
    calls,
    calm,
    containers,
    fitting,
    probing,
    remembering,
    telling,
)
from kubelet_conformance.laws.history import There
from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.moments import STARTED_SINCE

GONE = ("CANCELLED", "the caller went away")
"""How a call ends whose kubelet was killed: what it does goes on."""
PODS_PATH = "/api/v1/namespaces/default/pods"


def told(law: Law, made: Made, **facts: Any) -> list[str]:
    """What of that history is against the law."""
    return list(law.breaches(Seen(made.history(**facts))))


def tells(made: Made, one: str, at_s: float, state: int, code: int = 0, began: int = 1) -> None:
    """The kubelet asks for the status of a container; `began`: 0 if it was never started."""
    status = cri.ContainerStatus(state=state, exit_code=code, started_at=began, finished_at=2)
    request = cri.ContainerStatusRequest(container_id=one)
    made.call("ContainerStatus", at_s, request, cri.ContainerStatusResponse(status=status))


def dies_while_it_starts_one(policy: str = "") -> Made:
    """The kubelet is killed while it starts an init container, or a sidecar; the next one goes on
    with `main` at 20 s."""
    entry = {"name": "first", **({"restartPolicy": policy} if policy else {})}
    made = Made(initContainers=[entry])
    made.sandbox(2.0)
    made.runs("f", 3.0, "first")
    made.calls[-1].error = GONE
    made.planned.insert(0, Planned(3.25, "kill"))
    made.planned.insert(1, Planned(4.0, "start"))
    made.runs("a", 20.0)
    return made


def test_the_status_of_an_init_container_tells_the_next_kubelet_that_it_was_started() -> None:
    for code, began in ((0, 1), (1, 1), (0, 0)):
        made = dies_while_it_starts_one()
        tells(made, "f", 10.0, cri.CONTAINER_EXITED, code, began)
        is_through = code == 0 and began == 1
        assert bool(told(containers.init_in_order, made)) is not is_through
    late = dies_while_it_starts_one()
    tells(late, "f", 30.0, cri.CONTAINER_EXITED)
    assert told(containers.init_in_order, late)


def test_the_status_of_a_sidecar_tells_the_next_kubelet_that_it_was_started() -> None:
    made = dies_while_it_starts_one("Always")
    assert told(containers.init_in_order, made)
    tells(made, "f", 10.0, cri.CONTAINER_RUNNING)
    assert not told(containers.init_in_order, made)


def test_an_instance_whose_start_nobody_was_told_of_is_the_last_that_ran() -> None:
    for began in (0, 1):
        made = running()
        made.ends("a", 20.0, 3)
        made.runs("b", 30.0)
        made.calls[-1].error = GONE
        made.call("RemoveContainer", 60.0, cri.RemoveContainerRequest(container_id="a"))
        tells(made, "b", 61.0, cri.CONTAINER_EXITED, began=began)
        assert bool(told(remembering.last_run_kept, made)) is (began == 0)


def test_what_is_said_of_a_start_tells_that_a_kubelet_has_started_since() -> None:
    for at_s, since in ((2.0, ""), (4.0, STARTED_SINCE)):
        made = Made(containers=[{"name": "main", "readinessProbe": PROBES["readinessProbe"]}])
        made.runs("a", 3.0)
        made.calls[-1].error = GONE
        made.planned.append(Planned(at_s, "start"))
        made.runs_command("a", 90.0, "ready")
        made.show(10.0, "Running", shown(one="a", ready=True, running={}))
        (text,) = told(probing.ready_when_probed, made)
        assert text.endswith(f"no probe has passed{since}")


def test_a_container_that_is_being_stopped_holds_up_the_status_whoever_has_started_it() -> None:
    for began in (0, 1):
        made = running(containers=[{"name": "main"}, {"name": "other"}])
        made.runs("b", 4.0, "other")
        made.calls[-1].error = GONE
        tells(made, "b", 6.0, cri.CONTAINER_RUNNING, began=began)
        made.stops("a", 10.0)
        made.runs_command("a", 20.0, "alive")
        assert bool(told(calls.nothing_in_what_is_over, made)) is (began == 0)


def starts_anew(sandbox_s: float, ready: bool = True) -> Made:
    """A sidecar is started again at 20 s, while the container of its pod waits to be: in the
    sandbox that this ran in, or in another one."""
    made = running(initContainers=[{"name": "side", "restartPolicy": "Always"}])
    if sandbox_s > 2.0:
        made.sandbox(sandbox_s)
    side = shown("side", one="s", running={}, ready=ready)
    ended = shown(one="a", terminated={"exitCode": 1})
    made.show(20.0, "Running", ended, initContainerStatuses=[{**side, "started": ready}])
    made.show(40.0, "Running", shown(one="b", running={}))
    return made


def test_a_sidecar_that_starts_anew_where_others_have_run_makes_no_pod_pending() -> None:
    assert told(telling.running_is_initialized, starts_anew(15.0, ready=False))
    assert not told(telling.running_is_initialized, starts_anew(15.0))
    assert not told(telling.running_is_initialized, starts_anew(2.0, ready=False))
    removed = starts_anew(2.0, ready=False)
    removed.call("RemoveContainer", 18.0, cri.RemoveContainerRequest(container_id="a"))
    assert told(telling.running_is_initialized, removed)


def shut_down(*, server_s: float | None, status: int | None) -> tuple[Made, There]:
    """A static pod has run, and is over since 20 s; it has no mirror, which the kubelet has tried
    to make at 5 s, with that answer; None: it has not. Requests are disturbed at `server_s`."""
    made = running()
    made.shown = [Shown(3.0, "web", "u", {"phase": "Running"})]
    made.show(20.0, "Failed")
    if server_s is not None:
        made.planned = [Planned(server_s, "server"), Planned(90.0, "calm")]
    if status is not None:
        made.asks("POST", PODS_PATH, 5.0, {"metadata": {"name": "web"}}, status)
    metadata = {
        "name": "web",
        "uid": "u",
        "annotations": {"kubernetes.io/config.source": "file"},
    }
    pod = {"metadata": metadata, "spec": made.spec, "status": {"phase": "Failed"}}
    return made, There(listed={"web": pod}, at_api={"other": {"metadata": {"uid": "o"}}})


def test_no_mirror_is_wanted_of_a_pod_that_was_over_before_the_server_took_one() -> None:
    for server_s, status, wants in (
        (1.0, 0, False),
        (1.0, None, False),
        (1.0, 201, True),
        (30.0, None, True),
        (None, None, True),
    ):
        made, there = shut_down(server_s=server_s, status=status)
        text = ["static pod web has no mirror"] if wants else []
        assert told(calm.mirrors_agree, made, there=there) == text


def removed_and_made_again(method: str, error: Any) -> Made:
    """A container has done its work, and its pod gets another sandbox, and the container in it;
    before that the container, or its sandbox, was removed, with that answer."""
    made = running(restartPolicy="Never")
    made.ends("a", 10.0)
    request = cri.StopPodSandboxRequest(pod_sandbox_id="box2")
    made.call("StopPodSandbox", 11.0, request, cri.StopPodSandboxResponse())
    removals = {
        "RemoveContainer": cri.RemoveContainerRequest(container_id="a"),
        "RemovePodSandbox": cri.RemovePodSandboxRequest(pod_sandbox_id="box2"),
    }
    made.call(method, 12.0, removals[method], error=error)
    made.sandbox(20.0)
    made.runs("b", 21.0, box="box20")
    return made


def test_what_was_being_removed_when_its_kubelet_died_may_be_gone() -> None:
    failed = ("UNKNOWN", "no")
    for error in (GONE, failed, None):
        container = removed_and_made_again("RemoveContainer", error)
        box = removed_and_made_again("RemovePodSandbox", error)
        kept = error is failed
        assert any("web/main" in text for text in told(containers.attempts_grow, container)) is kept
        assert any("sandbox of" in text for text in told(containers.attempts_grow, box)) is kept
        assert bool(told(fitting.done_in_any_sandbox, container)) is kept


def test_a_sidecar_that_starts_anew_in_a_sandbox_of_which_no_answer_tells() -> None:
    for name, is_told in (("main", False), ("side", True)):
        made = starts_anew(2.0, ready=False)
        made.runs("b", 15.0, name, "lost")
        assert bool(told(telling.running_is_initialized, made)) is is_told
