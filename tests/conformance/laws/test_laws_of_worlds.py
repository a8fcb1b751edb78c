"""Laws that are asked of worlds of search: each notices a history that is against it, and none one
that is not, nor a history that is no world's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws import (
    LAWS,
    History,
    Planned,
    Shown,
    ask,
    beginnings,
    noticing,
    probing,
    promptness,
    remembering,
    telling,
)

NOTES = {"kubernetes.io/config.source": "api"}
POD_PATH = "/api/v1/namespaces/default/pods/web"
END_S = 700.0


class Made:
    """A history of one pod, `web`, in the making."""

    def __init__(self, **spec: Any) -> None:
        self.spec = {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 10,
            "containers": [{"name": "main"}],
            **spec,
        }
        self.calls: list[Any] = []
        self.shown: list[Shown] = []
        self.requests: list[Any] = []
        self.by_users: list[Any] = []
        self.planned = [Planned(0.5, "calm")]
        self.events: list[Any] = []
        self.notes = NOTES
        self.gates: dict[str, bool] = {}
        self.others: dict[str, list[Any]] = {}
        self.show(1.0, "Pending")

    def call(
        self, method: str, at_s: float, request: Any, response: Any = None, **said: Any
    ) -> None:
        self.calls.append(
            SimpleNamespace(
                **{
                    "method": method,
                    "request": request,
                    "response": response,
                    "error": None,
                    "disturbed": False,
                    "started_s": at_s,
                    "ended_s": at_s + 0.1,
                    "uid": "u",
                    "pod": "web",
                    "container": "",
                    **said,
                }
            )
        )

    def sandbox(self, at_s: float, error: Any = None) -> None:
        metadata = cri.PodSandboxMetadata(name="web", uid="u", namespace="default")
        config = cri.PodSandboxConfig(metadata=metadata, annotations=self.notes)
        answer = cri.RunPodSandboxResponse(pod_sandbox_id=f"box{at_s:g}")
        self.call(
            "RunPodSandbox", at_s, cri.RunPodSandboxRequest(config=config), answer, error=error
        )

    def runs(self, one: str, at_s: float, name: str = "main", box: str = "box2") -> None:
        """A container with that ID is made and started."""
        request = cri.CreateContainerRequest(
            pod_sandbox_id=box,
            config=cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name)),
            sandbox_config=cri.PodSandboxConfig(
                metadata=cri.PodSandboxMetadata(name="web", uid="u")
            ),
        )
        made = cri.CreateContainerResponse(container_id=one)
        self.call("CreateContainer", at_s, request, made, container=name)
        start = cri.StartContainerRequest(container_id=one)
        self.call("StartContainer", at_s + 0.2, start, cri.StartContainerResponse(), container=name)

    def ends(self, one: str, at_s: float, code: int = 0, noticed_s: float = 0.0) -> None:
        """It ends, and the kubelet sees it then, or when it is `noticed`."""
        status = cri.ContainerStatus(
            state=cri.CONTAINER_EXITED, exit_code=code, started_at=1, finished_at=int(at_s * 1e9)
        )
        request = cri.ContainerStatusRequest(container_id=one)
        answer = cri.ContainerStatusResponse(status=status)
        self.call("ContainerStatus", noticed_s or at_s, request, answer)

    def stops(self, one: str, at_s: float, timeout: int = 10) -> None:
        request = cri.StopContainerRequest(container_id=one, timeout=timeout)
        self.call("StopContainer", at_s, request, cri.StopContainerResponse())

    def runs_command(self, one: str, at_s: float, command: str, code: int = 0, **said: Any) -> None:
        request = cri.ExecSyncRequest(container_id=one, cmd=[command])
        self.call("ExecSync", at_s, request, cri.ExecSyncResponse(exit_code=code), **said)

    def show(self, at_s: float, phase: str, *containers: dict[str, Any], **status: Any) -> None:
        told = {"phase": phase, "containerStatuses": list(containers), **status}
        self.shown.append(Shown(at_s, "web", "u", told))

    def user_deletes(self, at_s: float, grace: int | None = None) -> None:
        body = None if grace is None else {"gracePeriodSeconds": grace}
        self.by_users.append(_request("DELETE", POD_PATH, at_s, body))

    def asks(
        self, method: str, path: str, at_s: float, body: Any = None, status: int = 200
    ) -> None:
        self.requests.append(_request(method, path, at_s, body, status))

    def history(self, **facts: Any) -> History:
        """All of it. `facts`: what else is known, or known otherwise."""
        notes = self.notes
        pod = {"metadata": {"name": "web", "uid": "u", "annotations": notes}, "spec": self.spec}
        known: dict[str, Any] = {
            "calls": sorted(self.calls, key=lambda call: call.started_s),
            "requests": self.requests,
            "by_users": self.by_users,
            "shown": self.shown,
            "planned": self.planned,
            "events": self.events,
            "config": {"featureGates": self.gates},
            "pods": {"u": [pod], **self.others},
            "stored": {"web": pod},
        }
        return History(start_s=0.0, end_s=END_S, **{**known, **facts})

    def broken(self) -> set[str]:
        """The names of the broken laws of worlds."""
        return {breach.law.name for breach in ask(OF_WORLDS, self.history())}


OF_WORLDS = [
    law
    for law in LAWS
    if law.breaches.__module__
    in {each.__name__ for each in (beginnings, noticing, probing, promptness, remembering, telling)}
]


def _request(method: str, path: str, at_s: float, body: Any = None, status: int = 200) -> Any:
    return SimpleNamespace(
        method=method, path=path, body=body, status=status, started_s=at_s, ended_s=at_s + 0.1
    )


def shown(name: str = "main", restarts: int = 0, one: str = "", **state: Any) -> dict[str, Any]:
    """The status of a container."""
    last = state.pop("last", None)
    ready = state.pop("ready", False)
    return {
        "name": name,
        "restartCount": restarts,
        "containerID": f"fake://{one}",
        "ready": ready,
        "state": state,
        **({"lastState": {"terminated": last}} if last else {}),
    }


def running(**spec: Any) -> Made:
    """A pod whose only container runs since 3 s."""
    made = Made(**spec)
    made.sandbox(2.0)
    made.runs("a", 3.0)
    return made


EXEC = {"periodSeconds": 2, "failureThreshold": 2}
PROBES = {
    kind: {"exec": {"command": [command]}, **EXEC}
    for kind, command in (
        ("readinessProbe", "ready"),
        ("livenessProbe", "alive"),
        ("startupProbe", "begun"),
    )
}


def with_probes(*kinds: str, hook: str = "") -> Made:
    entry: dict[str, Any] = {"name": "main", **{kind: PROBES[kind] for kind in kinds}}
    if hook:
        entry["lifecycle"] = {hook: {"exec": {"command": ["hook"]}}}
    return running(containers=[entry])


def gone(made: Made, at_s: float) -> Made:
    """The pod is ended and its object deleted from that moment on."""
    for one in ("a", "s"):
        made.stops(one, at_s)
    made.call("StopPodSandbox", at_s + 1, cri.StopPodSandboxRequest(pod_sandbox_id="box2"))
    made.asks("DELETE", POD_PATH, at_s + 2)
    return made


def meets_too_early(late: bool) -> Made:
    made = with_probes("livenessProbe", "startupProbe")
    made.runs_command("a", 5.0, "begun", 0 if late else 1)
    made.runs_command("a", 7.0, "alive")
    return made


def is_ready(probed: bool) -> Made:
    made = with_probes("readinessProbe")
    made.runs_command("a", 4.0, "ready", 0 if probed else 1)
    made.show(5.0, "Running", shown(one="a", running={}, ready=True))
    return made


def probes_at_the_end(ends: bool) -> Made:
    made = with_probes("livenessProbe")
    made.user_deletes(20.0)
    made.runs_command("a", 19.0 if ends else 24.0, "alive")
    return gone(made, 25.0)


def readiness_at_the_end(goes_on: bool) -> Made:
    made = with_probes("readinessProbe")
    made.user_deletes(20.0, 60)
    for at_s in range(4, 40 if goes_on else 20, 2):
        made.runs_command("a", float(at_s), "ready")
    return gone(made, 40.0)


def killed(fails: int) -> Made:
    made = with_probes("livenessProbe")
    for number in range(fails):
        made.runs_command("a", 5.0 + 2 * number, "alive", 1)
    made.stops("a", 10.0)
    return made


def with_hook(takes_off: bool) -> Made:
    made = with_probes(hook="preStop")
    made.user_deletes(20.0)
    made.runs_command("a", 20.0, "hook", ended_s=26.0)
    made.stops("a", 26.0, 4 if takes_off else 10)
    made.asks("DELETE", POD_PATH, 30.0)
    return made


def deleted(stop_s: float) -> Made:
    made = running()
    made.user_deletes(20.0)
    return gone(made, stop_s)


def sidecar(stop_s: float) -> Made:
    made = running(initContainers=[{"name": "s", "restartPolicy": "Always"}])
    made.runs("s", 2.5, "s")
    made.user_deletes(20.0, 30)
    made.stops("a", 20.0)
    made.stops("s", stop_s)
    made.asks("DELETE", POD_PATH, stop_s + 1)
    return made


def object_stays(gone_s: float) -> Made:
    made = running()
    made.user_deletes(20.0)
    made.stops("a", 20.0)
    made.call("StopPodSandbox", 21.0, cri.StopPodSandboxRequest(pod_sandbox_id="box2"))
    made.asks("DELETE", POD_PATH, gone_s)
    return made


def sandbox_removed(stopped: bool) -> Made:
    made = running()
    made.ends("a", 20.0, 1)
    error = None if stopped else ("UNKNOWN", "no")
    made.call("StopPodSandbox", 21.0, cri.StopPodSandboxRequest(pod_sandbox_id="box2"), error=error)
    made.call("RemovePodSandbox", 22.0, cri.RemovePodSandboxRequest(pod_sandbox_id="box2"))
    return made


def exit_noticed(at_s: float) -> Made:
    made = running()
    made.ends("a", 20.0, 1, noticed_s=at_s)
    return made


def exit_shown(at_s: float) -> Made:
    made = running()
    made.show(4.0, "Running", shown(one="a", running={}))
    made.ends("a", 20.0, 1)
    made.show(at_s, "Running", shown(one="a", terminated={"exitCode": 1}))
    return made


def retries(gap_s: float) -> Made:
    made = Made()
    for number in range(4):
        made.sandbox(10.0 + gap_s * number, ("UNKNOWN", "no"))
    made.events.append({"reason": "FailedCreatePodSandBox", "involvedObject": {"uid": "u"}})
    return made


def begins(at_s: float, again: bool = False) -> Made:
    """A static pod that begins then, for the first time, or since its manifest came back."""
    made = Made()
    made.notes = {"kubernetes.io/config.source": "file"}
    made.shown.clear()
    made.show(1.0, "Pending")
    if again:
        made.sandbox(2.0)
        made.runs("a", 3.0)
        made.stops("a", 20.0)
        made.call("StopPodSandbox", 21.0, cri.StopPodSandboxRequest(pod_sandbox_id="box2"))
        made.planned.append(Planned(20.0, "manifest", "web.yaml"))
        made.shown.append(Shown(30.0, "web", "u", {"phase": "Running"}, again=True))
    made.sandbox(at_s)
    return made


def fails_in_a_row(gap_s: float, *, stirred: bool = False) -> Made:
    """A sandbox cannot be made, each time after that gap."""
    made = Made()
    made.events.append({"reason": "FailedCreatePodSandBox", "involvedObject": {"uid": "u"}})
    for number in range(5):
        at_s = 10.0 + gap_s * number
        made.sandbox(at_s, ("UNKNOWN", "no"))
        if stirred:
            made.call("StopPodSandbox", at_s + 0.2, cri.StopPodSandboxRequest(pod_sandbox_id="b"))
    return made


def begun_late(at_s: float) -> Made:
    made = running()
    made.user_deletes(20.0)
    made.runs("b", at_s)
    made.stops("b", at_s + 1)
    return gone(made, 25.0)


def dead_runtime(told: bool) -> Made:
    made = Made()
    made.asks("GET", "/api/v1/nodes/node", 1.0)
    made.call("Status", 10.0, cri.StatusRequest())
    for at_s in range(20, 200, 10):
        made.call("Status", float(at_s), cri.StatusRequest(), error=("UNAVAILABLE", "no"))
    made.call("Status", 200.0, cri.StatusRequest())
    made.call("Status", 680.0, cri.StatusRequest())
    for at_s in range(210, 680, 30):
        made.call("Status", float(at_s), cri.StatusRequest())
    if told:
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        made.asks("PATCH", "/api/v1/nodes/node/status", 60.0, unready)
    return made


def end_told(code: int, again: bool = False) -> Made:
    made = running(restartPolicy="Never")
    made.show(20.0, "Running", shown(one="a", terminated={"exitCode": 0}))
    made.show(30.0, "Running", shown(one="a", terminated={"exitCode": code}))
    if again:
        made.runs("b", 40.0)
    return made


def last_end_told(told: bool) -> Made:
    made = running()
    made.show(20.0, "Running", shown(one="a", terminated={"exitCode": 3}))
    made.show(40.0, "Running", shown(one="b", running={}, last={"exitCode": 3} if told else None))
    return made


def rebooted(init_first: bool) -> Made:
    made = running(initContainers=[{"name": "first"}])
    made.runs("f", 2.5, "first")
    made.sandbox(30.0)
    made.runs("g", 31.0 if init_first else 35.0, "first", "box30")
    made.runs("b", 33.0, "main", "box30")
    return made


def sandbox_after(code: int) -> Made:
    made = running(restartPolicy="OnFailure")
    made.ends("a", 20.0, code)
    made.sandbox(30.0)
    return made


def removed(ran: bool) -> Made:
    made = running()
    made.ends("a", 20.0, 3)
    made.runs("b", 30.0)
    if not ran:
        made.calls[-1].error = ("UNKNOWN", "no")
    made.call("RemoveContainer", 60.0, cri.RemoveContainerRequest(container_id="a"))
    return made


def failure_told(told: bool) -> Made:
    made = Made()
    made.sandbox(10.0, ("UNKNOWN", "no"))
    if told:
        made.events.append({"reason": "FailedCreatePodSandBox", "involvedObject": {"uid": "u"}})
    return made


def reboots_told(times: int) -> Made:
    made = running()
    made.events.append({"reason": "Rebooted", "message": "boot x", "count": times})
    return made


def waits_for_init(phase: str) -> Made:
    made = running(initContainers=[{"name": "first"}])
    made.runs("f", 2.5, "first")
    made.show(20.0, phase, shown(waiting={"reason": "PodInitializing"}))
    made.show(40.0, "Running", shown(running={}))
    return made


def refused(cpu: str) -> Made:
    made = Made(containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])
    made.asks("POST", "/api/v1/nodes", 0.6, {"status": {"allocatable": {"cpu": "4"}}}, 201)
    made.show(2.0, "Failed", reason="OutOfcpu")
    return made


def asked_about(times: int) -> Made:
    made = running()
    for number in range(times):
        made.asks("GET", POD_PATH, 600.0 + 10 * number)
    return made


def mirrors(gap_s: float) -> Made:
    made = running()
    mirror = {"metadata": {"name": "own", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    for at_s in (10.0, 10.0 + gap_s):
        made.asks("POST", "/api/v1/namespaces/default/pods", at_s, mirror, 201)
    return made


PAIRS = {
    "startup-first": (meets_too_early(late=False), meets_too_early(late=True)),
    "ready-when-probed": (is_ready(probed=False), is_ready(probed=True)),
    "probes-end": (probes_at_the_end(ends=False), probes_at_the_end(ends=True)),
    "readiness-goes-on": (readiness_at_the_end(goes_on=False), readiness_at_the_end(goes_on=True)),
    "killed-for-failures": (killed(1), killed(2)),
    "hook-time-counts": (with_hook(takes_off=False), with_hook(takes_off=True)),
    "stopped-in-time": (deleted(60.0), deleted(21.0)),
    "sidecars-in-turn": (sidecar(45.0), sidecar(20.5)),
    "gone-in-time": (object_stays(100.0), object_stays(25.0)),
    "ends-noticed": (exit_noticed(200.0), exit_noticed(21.0)),
    "ends-shown": (exit_shown(60.0), exit_shown(21.0)),
    "begun-in-time": (begins(100.0), begins(20.0)),
    "retries-wait": (retries(0.1), retries(10.0)),
    "nothing-begun-at-the-end": (begun_late(24.0), begun_late(20.5)),
    "dead-runtime-told": (dead_runtime(told=False), dead_runtime(told=True)),
    "ends-stay": (end_told(137), end_told(0)),
    "done-stays-done": (end_told(0, again=True), last_end_told(told=True)),
    "initialized-again": (rebooted(init_first=False), rebooted(init_first=True)),
    "no-sandbox-for-nothing": (sandbox_after(0), sandbox_after(1)),
    "last-run-kept": (removed(ran=False), removed(ran=True)),
    "kept-when-not-stopped": (sandbox_removed(stopped=False), sandbox_removed(stopped=True)),
    "failures-told": (failure_told(told=False), failure_told(told=True)),
    "reboots-told-once": (reboots_told(3), reboots_told(1)),
    "running-is-initialized": (waits_for_init("Running"), waits_for_init("Pending")),
    "refused-when-full": (refused("3"), refused("5")),
    "quiet-when-still": (asked_about(8), asked_about(1)),
    "mirrors-made-once": (mirrors(3.0), mirrors(100.0)),
}
"""Law -> a history that is against it, and one like that which is not."""


def test_there_is_a_pair_for_each_law() -> None:
    assert PAIRS.keys() == {law.name for law in OF_WORLDS}


@pytest.mark.parametrize("law", PAIRS)
def test_a_wrong_history_breaks_its_law_and_a_right_one_none(law: str) -> None:
    wrong, right = PAIRS[law]
    assert law in wrong.broken()
    assert right.broken() == set()


@pytest.mark.parametrize("law", PAIRS)
def test_what_is_no_world_is_not_asked(law: str) -> None:
    wrong, _ = PAIRS[law]
    wrong.planned = []
    assert wrong.broken() == set()


def test_how_an_earlier_run_has_ended_stays_told() -> None:
    assert last_end_told(told=False).broken() == {"ends-stay"}
    assert last_end_told(told=True).broken() == set()


def test_a_pod_that_comes_back_begins_again() -> None:
    assert begins(100.0, again=True).broken() == {"begun-in-time"}
    assert begins(45.0, again=True).broken() == set()
    late = begins(100.0, again=True)
    late.planned.append(Planned(31.0, "manifest", "web.yaml"))  # it is away once more
    assert late.broken() == set()


def test_what_fails_each_second_wants_a_reason() -> None:
    assert fails_in_a_row(1.0).broken() == {"retries-wait"}
    assert fails_in_a_row(1.0, stirred=True).broken() == set()
    assert fails_in_a_row(10.0).broken() == set()


def hook_hangs(stop_s: float) -> Made:
    """A hook is under way, which a fault holds up, when its pod is deleted."""
    made = with_probes(hook="postStart")
    made.user_deletes(20.0)
    made.runs_command("a", 4.0, "hook", ended_s=60.0, disturbed=True)
    return gone(made, stop_s)


def test_a_hook_that_hangs_holds_up_no_end() -> None:
    assert hook_hangs(61.0).broken() == {"stopped-in-time"}
    assert hook_hangs(21.0).broken() == set()


def pulls_meanwhile(shown_s: float) -> Made:
    """A container ends, while the image of another one is being pulled."""
    made = exit_shown(shown_s)
    pull = cri.PullImageRequest()
    made.call("PullImage", 19.0, pull, disturbed=True, ended_s=80.0)
    return made


def test_the_end_of_a_container_is_shown_while_a_sync_waits() -> None:
    assert pulls_meanwhile(60.0).broken() == {"ends-shown"}
    assert pulls_meanwhile(21.0).broken() == set()


def told_by_events(at_s: float) -> Made:
    """A kubelet that listens to events shows so late that a container has ended."""
    made = running()
    made.gates = {"EventedPLEG": True}
    made.ends("a", 20.0, 1)
    made.show(at_s, "Running", shown(one="b", running={}, last=ended("a")))
    return made


def ended(one: str) -> dict[str, Any]:
    return {"exitCode": 1, "containerID": f"fake://{one}"}


def test_a_kubelet_with_events_notices_the_end_of_a_container() -> None:
    assert told_by_events(200.0).broken() == {"ends-noticed"}
    assert told_by_events(25.0).broken() == set()


def rebooted_while_running(about: str, init: dict[str, Any]) -> Made:
    made = running(initContainers=[{"name": "first"}])
    made.planned.insert(0, Planned(15.0, "outside", about))
    status = shown(one="a", terminated={"exitCode": 255})
    made.show(20.0, "Running", status, initContainerStatuses=[shown("first", **init)])
    made.show(40.0, "Running", shown(one="b", running={}))
    return made


def test_init_containers_that_run_after_a_boot_make_a_pod_pending() -> None:
    assert "running-is-initialized" in rebooted_while_running("reboot", {"running": {}}).broken()
    for about, init in (("", {"running": {}}), ("reboot", {"terminated": {"exitCode": 0}})):
        made = rebooted_while_running(about, init)
        assert "running-is-initialized" not in made.broken()


def beside_one_refused(told_s: float) -> Made:
    """A pod is refused at 2 s beside a larger one, which was refused at that moment."""
    made = refused("3")
    big = {"metadata": {"uid": "big", "annotations": NOTES}, "spec": refused("5").spec}
    made.others = {"big": [big]}
    made.shown.insert(0, Shown(1.0, "big", "big", {"phase": "Pending"}))
    event = {"reason": "OutOfcpu", "involvedObject": {"uid": "big"}}
    made.asks("POST", "/api/v1/namespaces/default/events", told_s, event, 201)
    return made


def test_a_pod_that_was_refused_itself_does_not_count() -> None:
    assert "refused-when-full" in beside_one_refused(1.5).broken()
    assert "refused-when-full" not in beside_one_refused(8.0).broken()
