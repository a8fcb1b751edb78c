"""In-place resize: decisions, the order of updates, what the runtime is told (CG-064, CG-065)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from loops import virtual_loop
from pods import container, make_pod, sidecar
from runtime_doubles import Events, Failure, Probes, ScriptedTarget, record, status

from refkubelet.allocation.state import ACTUATED_FILE, ResourceState
from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import (
    MemoryOptions,
    ResourceOptions,
    RuntimeOptions,
)
from refkubelet.kuberuntime.decisions.actions import compute_pod_actions
from refkubelet.kuberuntime.decisions.resize_actions import ComputeAmounts, wanted_resources
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.kuberuntime.resizing.actuated import ActuatedResources
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers, pod_ref, uid
from refkubelet.model.probe_results import ProbeResult
from simclock import Ids, Rng

pytestmark = pytest.mark.virtual_time

MIB = 1 << 20


def given(cpu: tuple[int, int], memory_mib: tuple[int, int]) -> ComputeAmounts:
    return ComputeAmounts(*cpu, memory_mib[0] * MIB, memory_mib[1] * MIB)


BEFORE = given((100, 200), (64, 128))


def decide(pod: Pod, known: dict[str, ComputeAmounts], probes: Probes | None = None) -> Any:
    state = status(*(record(pod, c.name) for c in containers(pod)))
    return compute_pod_actions(pod, state, probes or Probes(), known)


def steps(actions: Any) -> list[tuple[str, str]]:
    return [(u.container.name, u.resource) for u in actions.updates]


@pytest.mark.parametrize(
    ("cpu", "memory", "wanted"),
    [
        ("100m/200m", "64Mi/128Mi", []),
        ("150m/200m", "64Mi/128Mi", ["cpu"]),
        ("100m/300m", "64Mi/128Mi", ["cpu"]),
        ("100m/200m", "96Mi/128Mi", ["memory"]),
        ("100m/200m", "64Mi/192Mi", ["memory"]),
        ("150m/300m", "96Mi/192Mi", ["memory", "cpu"]),
    ],
)
def test_what_changed_is_updated_memory_first_CG_064_CG_065(
    cpu: str, memory: str, wanted: list[str]
) -> None:
    actions = decide(make_pod(container("main", cpu=cpu, memory=memory)), {"main": BEFORE})
    assert [resource for _, resource in steps(actions)] == wanted
    assert (actions.kills, actions.containers_to_start) == ((), ())
    assert not actions.kill_pod


POLICY = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


@pytest.mark.parametrize(
    ("cpu", "memory", "restarts"),
    [
        ("100m/200m", "64Mi/192Mi", True),
        ("150m/200m", "96Mi/128Mi", True),
        ("150m/300m", "64Mi/128Mi", False),
    ],
)
def test_a_resource_may_need_a_restart_LIFE_115_CG_064(
    cpu: str, memory: str, restarts: bool
) -> None:
    pod = make_pod(
        container("main", cpu=cpu, memory=memory, resizePolicy=POLICY), restartPolicy="Never"
    )
    actions = decide(pod, {"main": BEFORE})
    assert bool(actions.updates) is not restarts
    kills = [(k.name, k.message) for k in actions.kills]
    assert kills == ([("main", "Container main resize requires restart")] if restarts else [])
    assert [c.name for c in actions.containers_to_start] == (["main"] if restarts else [])


def test_containers_with_unknown_resources_are_left_alone_CG_064() -> None:
    changed = container("main", cpu="500m/500m", memory="64Mi/128Mi")
    assert decide(make_pod(changed), {}).updates == ()


def test_static_pods_are_resized_CG_064() -> None:
    changed = container("main", cpu="500m/500m", memory="64Mi/128Mi")
    assert decide(make_pod(changed, static=True), {"main": BEFORE}).updates != ()


def test_a_failed_probe_comes_before_a_resize_LIFE_115() -> None:
    pod = make_pod(container("main", cpu="500m/500m", memory="64Mi/128Mi"))
    probes = Probes(liveness={"main-0": ProbeResult.FAILURE})
    actions = decide(pod, {"main": BEFORE}, probes)
    assert [k.message for k in actions.kills] == [
        "Container main failed liveness probe, will be restarted"
    ]
    assert actions.updates == ()


def test_decreases_come_before_increases_CG_065() -> None:
    pod = make_pod(
        container("up", cpu="100m/200m", memory="64Mi/256Mi"),
        container("down", cpu="50m/100m", memory="64Mi/64Mi"),
        container("also-down", cpu="100m/200m", memory="32Mi/128Mi"),
        init=(sidecar("side", cpu="100m/150m", memory="64Mi/128Mi"),),
    )
    known = dict.fromkeys(("up", "down", "also-down", "side"), BEFORE)
    assert steps(decide(pod, known)) == [
        ("also-down", "memory"),
        ("down", "memory"),
        ("up", "memory"),
        ("down", "cpu"),
        ("side", "cpu"),
    ]


def test_a_running_init_container_is_resized_and_a_sidecar_restarted_CG_064() -> None:
    plain = make_pod(init=(container("setup", cpu="300m/300m", memory="64Mi/128Mi"),))
    state = status(record(plain, "setup"))
    actions = compute_pod_actions(plain, state, Probes(), {"setup": BEFORE})
    assert steps(actions) == [("setup", "cpu")]
    side = sidecar("side", cpu="100m/200m", memory="64Mi/192Mi", resizePolicy=POLICY)
    actions = decide(make_pod(init=(side,)), {"side": BEFORE})
    assert [k.message for k in actions.kills] == ["Container side resize requires restart"]
    assert [c.name for c in actions.init_to_start] == ["side"]


@pytest.mark.parametrize(("result", "resized"), [(None, []), (ProbeResult.SUCCESS, ["memory"])])
def test_a_sidecar_is_resized_when_it_has_been_probed_LIFE_120(
    result: ProbeResult | None, resized: list[str]
) -> None:
    probe = {"livenessProbe": {"exec": {"command": ["true"]}}}
    side = sidecar("side", cpu="100m/200m", memory="64Mi/192Mi", **probe)
    probes = Probes(liveness={} if result is None else {"side-0": result})
    actions = decide(make_pod("main", init=(side,)), {"side": BEFORE}, probes)
    assert [resource for _, resource in steps(actions)] == resized


def test_a_missing_limit_is_the_pods_own_CG_064() -> None:
    pod = make_pod("main", resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    wanted = wanted_resources(pod.spec.containers[0], pod)
    assert wanted == ComputeAmounts(0, 2000, 0, 1 << 30)


# -- what the runtime is told --------------------------------------------------------------------


class Bench:
    def __init__(self, root: Path, **answers: Any) -> None:
        self.target = ScriptedTarget(**answers)
        deps = RuntimeDeps(virtual_loop().clock, Ids(Rng(0)), Events())
        options = RuntimeOptions(
            root_dir=root,
            pod_logs_dir=root / "logs",
            container_logs_dir=None,
            resources=ResourceOptions(memory=MemoryOptions(capacity_bytes=24_105 * MIB)),
        )
        self.manager = RuntimeManager(CriClient(self.target), deps, options)

    async def sync(self, pod: Pod) -> Any:
        return await self.manager.sync_pod(pod, status(record(pod, "main")), Probes())

    def told(self) -> list[tuple[int, int, int, int]]:
        return [
            (r.linux.cpu_shares, r.linux.cpu_quota, r.linux.memory_limit_in_bytes // MIB,
             r.linux.oom_score_adj)
            for r in self.target.requests("UpdateContainerResources")
        ]  # fmt: skip


SMALL = container("main", cpu="100m/200m", memory="64Mi/128Mi")
BIG = container("main", cpu="150m/300m", memory="96Mi/192Mi")


async def test_each_update_carries_what_is_there_and_what_is_new_CG_065(tmp_path: Path) -> None:
    """The two calls recorded in s25."""

    bench = Bench(tmp_path)
    assert (await bench.sync(make_pod(SMALL))).ok
    assert bench.told() == []
    result = await bench.sync(make_pod(BIG))
    assert result.ok
    assert result.actions == 1
    assert result.resized
    assert bench.told() == [(102, 20_000, 192, 997), (153, 30_000, 192, 997)]
    await bench.sync(make_pod(BIG))
    assert len(bench.told()) == 2


async def test_a_failed_update_is_tried_again_from_where_it_stopped_CG_065(tmp_path: Path) -> None:
    failures = [None, Failure(grpc.StatusCode.UNKNOWN, "busy")]

    def answer(request: Any) -> Any:
        return failures.pop(0) if failures else None

    bench = Bench(tmp_path, UpdateContainerResources=answer)
    await bench.sync(make_pod(SMALL))
    result = await bench.sync(make_pod(BIG))
    assert [(e.action.value, e.target, e.reason, e.message) for e in result.errors] == [
        (
            "ResizePodInPlace",
            pod_ref(make_pod(BIG)),
            "ResizePodInPlaceError",
            "rpc error: code = Unknown desc = busy",
        )
    ]
    assert (await bench.sync(make_pod(BIG))).ok
    assert [t[:3] for t in bench.told()] == [
        (102, 20_000, 192),
        (153, 30_000, 192),
        (153, 30_000, 192),
    ]


async def test_a_started_container_has_what_its_spec_asks_for_CG_064(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.manager.sync_pod(make_pod(SMALL), status(), Probes())
    assert bench.target.requests("StartContainer")
    await bench.sync(make_pod(BIG))
    assert len(bench.told()) == 2


async def test_a_container_whose_resources_cannot_be_noted_is_not_made_CG_060(
    tmp_path: Path,
) -> None:
    (tmp_path / f".{ACTUATED_FILE}.tmp").mkdir()

    bench = Bench(tmp_path)
    result = await bench.manager.sync_pod(make_pod(SMALL), status(), Probes())
    assert [(e.target, e.reason) for e in result.errors] == [("main", "CreateContainerConfigError")]
    assert bench.target.requests("CreateContainer") == []
    (tmp_path / f".{ACTUATED_FILE}.tmp").rmdir()
    assert (await bench.manager.sync_pod(make_pod(SMALL), status(), Probes())).ok
    assert (tmp_path / ACTUATED_FILE).exists()


def test_a_kubelet_without_a_checkpoint_goes_by_the_last_status_CG_064(tmp_path: Path) -> None:
    told = {
        "containerStatuses": [
            {
                "name": "main",
                "containerID": "containerd://main-0",
                "resources": SMALL["resources"],
                "image": "i",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
            }
        ]
    }
    pod = make_pod(BIG)
    running, now = status(record(pod, "main")), given((150, 300), (96, 192))
    known = make_pod(BIG, status=told)
    assert ActuatedResources(ResourceState(tmp_path / ACTUATED_FILE)).of(known, running) == {
        "main": BEFORE
    }
    other = status(record(pod, "main", attempt=1))
    assert ActuatedResources(ResourceState(tmp_path / ACTUATED_FILE)).of(known, other) == {
        "main": now
    }
    assert ActuatedResources(ResourceState(tmp_path / ACTUATED_FILE)).of(pod, running) == {
        "main": now
    }
    assert (
        ActuatedResources(ResourceState(tmp_path / ACTUATED_FILE)).of(
            pod, status(record(pod, "main", "exited"))
        )
        == {}
    )


def test_what_containers_were_given_survives_the_kubelet_until_the_pod_is_gone_CG_060(
    tmp_path: Path,
) -> None:
    pod = make_pod(SMALL)
    first = ResourceState(tmp_path / ACTUATED_FILE)
    ActuatedResources(first).set(pod, pod.spec.containers[0])
    first.save()
    later = ActuatedResources(ResourceState(tmp_path / ACTUATED_FILE))
    big = make_pod(BIG)
    assert later.of(big, status()) == {"main": BEFORE}
    later.forget_unless(lambda pod_uid: pod_uid == uid(pod))
    assert later.of(big, status()) == {"main": BEFORE}
    later.forget_unless(lambda pod_uid: False)
    assert later.of(big, status()) == {}


def test_without_their_gate_plain_init_containers_are_left_alone_CG_061() -> None:
    pod = make_pod(init=(container("setup", cpu="300m/300m", memory="64Mi/128Mi"),))
    for switched, expected in ((True, [("setup", "cpu")]), (False, [])):
        actions = compute_pod_actions(
            pod,
            status(record(pod, "setup")),
            Probes(),
            {"setup": BEFORE},
            resizes_init_containers=switched,
        )
        assert steps(actions) == expected


@pytest.mark.parametrize(("switched", "limits"), [(True, {"cpu": "400m"}), (False, None)])
def test_without_the_gate_limits_of_the_pod_are_not_those_of_a_container_CG_061(
    tmp_path: Path, switched: bool, limits: dict[str, str] | None
) -> None:
    pod = make_pod(container("main"), resources={"limits": {"cpu": "400m"}})
    state = ResourceState(tmp_path / ACTUATED_FILE)
    actuated = ActuatedResources(state, resizes_pods=switched)
    actuated.set(pod, pod.spec.containers[0])
    actuated.set_pod_level(pod)
    recorded = actuated.container(uid(pod), "main")
    assert recorded is not None
    assert recorded.limits == limits
    known = actuated.of(pod, status())["main"]
    assert known.cpu_limit_millicores == (400 if switched else 0)
    assert (actuated.pod_level(uid(pod)) is not None) is switched
