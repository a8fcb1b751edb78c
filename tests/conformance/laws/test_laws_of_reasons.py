"""Laws about slow syncs and about what runs beside what: each notices a history that is against it,
and none one that is not, nor a history that is no world's."""

from __future__ import annotations

from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from test_laws_of_worlds import NOTES, PROBES, shown
from test_laws_of_worlds import Made as MadeBefore

from kubelet_conformance.laws import LAWS, History, ask, fitting, reasons
from kubelet_conformance.laws.history import There

ALONE = {"limits": {"cpu": "2", "memory": "64Mi"}}
ASKED = [law for law in LAWS if law.breaches.__module__ in {fitting.__name__, reasons.__name__}]


class Made(MadeBefore):
    """A history of the pod `web` in the making. `there`: what was there in the end; `also`: other
    pods, by UID."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.there: There | None = None
        self.config: dict[str, Any] = {}
        self.also: dict[str, Any] = {}

    def pod(self) -> dict[str, Any]:
        metadata = {"name": "web", "uid": "u", "annotations": NOTES}
        return {"metadata": metadata, "spec": self.spec}

    def broken(self) -> set[str]:
        """The names of the broken laws."""
        history = History(
            start_s=0.0,
            end_s=700.0,
            calls=sorted(self.calls, key=lambda call: call.started_s),
            requests=self.requests,
            by_users=self.by_users,
            shown=self.shown,
            planned=self.planned,
            events=self.events,
            pods={uid: [pod] for uid, pod in {"u": self.pod(), **self.also}.items()},
            stored={"web": self.pod()},
            there=self.there,
            config=self.config,
        )
        return {breach.law.name for breach in ask(ASKED, history)}


def running(**spec: Any) -> Made:
    """A pod whose only container runs since 3 s."""
    made = Made(**spec)
    made.sandbox(2.0)
    made.runs("a", 3.0)
    return made


def with_probes(*kinds: str, hook: str = "") -> Made:
    entry: dict[str, Any] = {"name": "main", **{kind: PROBES[kind] for kind in kinds}}
    if hook:
        entry["lifecycle"] = {hook: {"exec": {"command": ["hook"]}}}
    return running(containers=[entry])


def in_runtime(one: str, name: str = "main", uid: str = "u", **facts: Any) -> cri.ContainerStatus:
    """A container as the runtime has it in the end; it runs."""
    labels = {
        "io.kubernetes.pod.uid": uid,
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.container.name": name,
    }
    state = cri.CONTAINER_EXITED if facts.get("finished_at") else cri.CONTAINER_RUNNING
    return cri.ContainerStatus(id=one, labels=labels, state=state, **facts)


def ready(name: str, uid: str = "u") -> cri.PodSandbox:
    metadata = cri.PodSandboxMetadata(name=name, uid=uid, namespace="default")
    return cri.PodSandbox(id=f"{name}-{uid}", metadata=metadata, state=cri.SANDBOX_READY)


def pod(phase: str = "Running", policy: str = "Always", uid: str = "u", **state: Any) -> Any:
    """The pod `web` as the API server has it, and the state of its container."""
    return {
        "metadata": {"name": "web", "uid": uid, "annotations": NOTES},
        "spec": {"restartPolicy": policy, "containers": [{"name": "main"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
    }


def slow(made: Made) -> Made:
    """Starts are late."""
    made.call("Version", 2.5, None, disturbed=True)
    return made


def stopped_after(fails: int) -> Made:
    made = slow(with_probes("livenessProbe"))
    for number in range(fails):
        made.runs_command("a", 5.0 + 2 * number, "alive", 1)
    made.runs_command("a", 9.5, "alive")  # while the sync before is under way
    made.stops("a", 30.0)
    return made


def killed_and_told(times: int) -> Made:
    made = with_probes("livenessProbe")
    made.runs_command("a", 5.0, "alive", 1)
    made.runs_command("a", 7.0, "alive", 1)
    made.stops("a", 7.5)
    event = {
        "reason": "Killing",
        "message": "Container main failed liveness probe, will be restarted",
        "involvedObject": {"uid": "u"},
        "count": times,
    }
    made.events.append(event)
    return made


def shown_while(starts: bool) -> Made:
    made = Made()
    made.sandbox(2.0)
    made.runs("a", 3.0)  # its start is a success at 3.3 s
    waits = {"reason": "ContainerCreating"}
    made.show(3.25, "Pending", shown(one="a" if starts else "", waiting=waits))
    return made


def has_started(passed: bool) -> Made:
    made = with_probes("startupProbe")
    made.runs_command("a", 4.0, "begun", 0 if passed else 1)
    made.show(5.0, "Running", {**shown(one="a", running={}), "started": True})
    return made


def all_ready(condition: str) -> Made:
    made = running()
    told = {"type": "ContainersReady", "status": condition, "reason": "ContainersNotReady"}
    made.show(5.0, "Running", shown(one="a", running={}, ready=True), conditions=[told])
    return made


def two_ran(began_s: int) -> Made:
    made = running()
    made.ends("a", 20.0, 1)
    made.runs("b", 21.0)
    made.there = There(containers=[in_runtime("b", started_at=began_s * 10**9)])
    return made


def sandboxes_left(*uids: str) -> Made:
    made = Made()
    made.there = There(sandboxes=[ready("web", uid) for uid in uids], at_api={"web": pod()})
    return made


def done_and_started(code: int) -> Made:
    made = running(restartPolicy="OnFailure")
    made.ends("a", 20.0, code)
    made.sandbox(21.0)
    made.runs("b", 22.0, box="box21")
    return made


def asks_for_sandboxes(gap_s: float) -> Made:
    made = Made()
    for number in range(7):
        made.sandbox(10.0 + gap_s * number)
        box = f"box{10.0 + gap_s * number:g}"
        made.call("StopPodSandbox", 10.1, cri.StopPodSandboxRequest(pod_sandbox_id=box))
    return made


def with_ports(second: int) -> Made:
    made = Made()
    made.also = {"v": made.pod() | {"metadata": {"name": "web2", "uid": "v", "annotations": NOTES}}}
    for number, (uid, port) in enumerate((("u", 8080), ("v", second))):
        metadata = cri.PodSandboxMetadata(name=uid, uid=uid)
        mapped = [cri.PortMapping(host_port=port)]
        config = cri.PodSandboxConfig(metadata=metadata, port_mappings=mapped)
        answer = cri.RunPodSandboxResponse(pod_sandbox_id=f"box-{uid}")
        request = cri.RunPodSandboxRequest(config=config)
        made.call("RunPodSandbox", 10.0 + number, request, answer, uid=uid)
    return made


def ended_as(policy: str) -> Made:
    made = Made()
    made.there = There(at_api={"web": pod(policy=policy, terminated={"exitCode": 1})})
    return made


def may_use(cpus: str) -> Made:
    entries = [{"name": "main", "resources": ALONE}]
    made = Made(containers=entries)
    made.config = {"cpuManagerPolicy": "static"}
    made.sandbox(2.0)
    for one, mine in (("a", "2-3"), ("b", cpus)):
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="main"))
        config.linux.resources.cpuset_cpus = mine
        of = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="u"))
        request = cri.CreateContainerRequest(config=config, sandbox_config=of)
        made.call("CreateContainer", 3.0, request, cri.CreateContainerResponse(container_id=one))
    made.there = There(containers=[in_runtime("a"), in_runtime("b", "other")])
    return made


def asks_for(cpus: str) -> Made:
    made = running(containers=[{"name": "main", "resources": {"requests": {"cpu": cpus}}}])
    node = {"status": {"allocatable": {"cpu": "4"}}}
    made.asks("POST", "/api/v1/nodes", 0.1, node, 201)
    made.there = There(containers=[in_runtime("a")])
    return made


PAIRS = {
    "stops-have-reasons": (stopped_after(1), stopped_after(2)),
    "kills-told-as-often": (killed_and_told(2), killed_and_told(1)),
    "created-is-not-shown": (shown_while(starts=True), shown_while(starts=False)),
    "started-when-probed": (has_started(passed=False), has_started(passed=True)),
    "ready-when-all-are": (all_ready("False"), all_ready("True")),
    "never-two-at-once": (two_ran(19), two_ran(21)),
    "no-other-sandboxes": (sandboxes_left("u", "gone"), sandboxes_left("u")),
    "done-in-any-sandbox": (done_and_started(0), done_and_started(1)),
    "sandboxes-in-no-hurry": (asks_for_sandboxes(0.2), asks_for_sandboxes(2.0)),
    "ports-given-once": (with_ports(8080), with_ports(8081)),
    "phases-fit": (ended_as("Never"), ended_as("Always")),
    "shared-keep-off": (may_use("3-7"), may_use("4-7")),
    "no-more-than-fits": (asks_for("5"), asks_for("4")),
}
"""Law -> a history that is against it, and one like that which is not."""


def test_there_is_a_pair_for_each_law() -> None:
    assert PAIRS.keys() == {law.name for law in ASKED}


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


def test_a_row_of_failures_goes_on_in_the_next_instance_PROBE_027() -> None:
    made = slow(with_probes("livenessProbe"))
    made.runs_command("a", 5.0, "alive", 1)
    made.ends("a", 6.0, 1)
    made.runs("b", 7.0)
    made.runs_command("b", 9.0, "alive", 1)
    made.stops("b", 9.5)
    assert "stops-have-reasons" not in made.broken()
    made.stops("a", 10.0)
    assert "stops-have-reasons" in made.broken()


def test_a_kill_that_may_have_another_reason_is_no_breach() -> None:
    assert "stops-have-reasons" in stopped_after(0).broken()
    edited = stopped_after(0)
    edited.user_deletes(29.0)
    assert "stops-have-reasons" not in edited.broken()
    failed = stopped_after(0)
    failed.call("ListContainers", 29.0, None, error=("UNKNOWN", "no"))
    assert "stops-have-reasons" not in failed.broken()
    hooked = with_probes("livenessProbe", hook="postStart")
    hooked.stops("a", 30.0)
    assert "stops-have-reasons" not in hooked.broken()


def test_a_sandbox_of_one_pod_is_ready_once_and_none_of_one_that_is_over() -> None:
    assert sandboxes_left("u", "u").broken() == {"no-other-sandboxes"}
    over = sandboxes_left("u")
    over.there = There(sandboxes=[ready("web")], at_api={"web": pod("Succeeded")})
    assert over.broken() == {"no-other-sandboxes"}


def test_a_pod_all_of_whose_containers_run_is_not_pending() -> None:
    pending = Made()
    pending.there = There(at_api={"web": pod("Pending", running={})})
    assert pending.broken() == {"phases-fit"}
    well = Made()
    well.there = There(at_api={"web": pod("Running", "OnFailure", terminated={"exitCode": 0})})
    assert well.broken() == {"phases-fit"}


def test_a_node_has_no_more_pods_than_it_may() -> None:
    full = running()
    full.config = {"maxPods": 1}
    full.there = There(containers=[in_runtime("a"), in_runtime("s", "side")])
    assert full.broken() == set()
    full.also = {"v": full.pod() | {"metadata": {"name": "web2", "uid": "v"}}}
    full.there = There(containers=[in_runtime("a"), in_runtime("b", uid="v")])
    assert full.broken() == {"no-more-than-fits"}


def test_the_port_of_a_pod_that_is_over_or_deleted_at_once_is_free() -> None:
    over = with_ports(8080)
    over.show(10.5, "Failed")
    assert over.broken() == set()
    gone = with_ports(8080)
    gone.user_deletes(10.5, 0)
    assert "ports-given-once" not in gone.broken()
