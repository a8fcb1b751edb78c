"""Bugs that were planted in refkubelet and that no case noticed at first: each has a case now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import load_cases
from kubeobjects.structs import replace
from refkubelet import kubelet  # noqa: F401 - so that no import happens while something is wrong
from refkubelet.cri.listings import container_list_request, sandbox_list_request
from refkubelet.cri.records import ContainerState
from refkubelet.eviction import ranking
from refkubelet.kuberuntime.decisions.init_actions import InitPlan
from refkubelet.kuberuntime.images.choice import detect
from refkubelet.kuberuntime.kill import ContainerKiller
from refkubelet.model import hashes
from refkubelet.model.objects import OwnerReference
from refkubelet.model.pod import full_name
from refkubelet.model.probe_results import ProbeResult
from refkubelet.pleg import compute
from refkubelet.probes import decide
from refkubelet.status import generate, readiness
from refkubelet.status.writer import StatusWriter
from simclock.clock import NANOSECONDS

CASES = {case.id: case for case in load_cases()}
RUNTIME = "refkubelet.kuberuntime"


def thresholds(success: int | None = None, more_failures: int = 0) -> Any:
    def of(target: Any) -> dict[ProbeResult, int]:
        probe = target.probe
        return {
            ProbeResult.SUCCESS: success or probe.successThreshold or 1,
            ProbeResult.FAILURE: (probe.failureThreshold or 3) + more_failures,
        }

    return property(of)


EXCEEDING = ranking._exceeding
STATIC_UID = hashes.static_pod_uid
WITH_PROBES = readiness._Scope._with_probes
EVENTS = compute.compute_events
WITH_PHASE = generate._with_phase
SEND = StatusWriter._send
PLAIN = InitPlan._plain
PRE_STOP = ContainerKiller._pre_stop
COUNT_OUTCOME = decide.count_outcome


def by_usage(pod: Any, used: int, request: int, subtracted: int) -> Any:
    return EXCEEDING(pod, used, request, 0)


def uid_without_spec(pod: dict[str, Any], **place: str) -> str:
    return STATIC_UID({**pod, "spec": None}, **place)


def stays_ready(scope: Any, status: Any, container: Any, *, init: bool) -> Any:
    found = WITH_PROBES(scope, status, container, init=init)
    ran = status.restartCount or status.state.terminated is not None
    return replace(found, ready=True) if ran and status.state.running is None else found


async def gives_the_hook_up(killer: Any, *about: Any) -> int:
    rest = await PRE_STOP(killer, *about)
    for call in list(killer._running_hooks.values()):
        call.cancel()
    return rest


def failures_add_up(target: Any, state: Any, result: Any) -> Any:
    if result is ProbeResult.SUCCESS and state.last is ProbeResult.FAILURE:
        return state, result
    return COUNT_OUTCOME(target, state, result)


async def waits_for_the_next_look(registrar: Any) -> None:
    await asyncio.Event().wait()


def since_last_start(pod: Any, status: Any, now: Any) -> bool:
    seconds = pod.spec.activeDeadlineSeconds
    if seconds is None or status is None or status.startTime is None:
        return False
    states = [c.state for c in status.containerStatuses or ()]
    starts = [s.running.startedAt for s in states if s and s.running and s.running.startedAt]
    return bool((now - max([status.startTime, *starts])).total_seconds() >= seconds)


def phase_anew(pod: Any, status: Any, runtime_status: Any, known: Any, inputs: Any) -> Any:
    return WITH_PHASE(replace(pod, status=None), status, runtime_status, None, inputs)


def one_death(old: Any, new: Any) -> list[Any]:
    events = EVENTS(old, new)
    deaths = [event for event in events if event.type is compute.DIED]
    return [event for event in events if event not in deaths[1:]]


def counts_in_memory() -> Callable[..., int]:
    counts: dict[tuple[int, str], int] = {}

    def next_attempt(starter: Any, pod: Any, container: Any, status: Any) -> int:
        key = id(starter), container.name
        counts[key] = counts.get(key, -1) + 1
        return counts[key]

    return next_attempt


async def confirms_what_is_newest(writer: Any, api: Any, pod_uid: str) -> None:
    await SEND(writer, api, pod_uid)
    entry = writer._statuses.get(pod_uid)
    if entry is not None:
        writer._confirmed[pod_uid] = entry.version


async def detects_running_only(gc: Any) -> None:
    alive = await gc._client.list_containers(running_only=True)
    known = await gc._client.list_images()
    used = {container.image_id for container in alive}
    gc._known = detect(gc._known, known, used, gc._clock.monotonic_s())


def init_again(plan: Any, container: Any, record: Any, following: Any) -> None:
    regular = [plan.status.newest(c.name) for c in plan.pod.spec.containers]
    done = record.state is ContainerState.EXITED and record.exit_code == 0
    if done and any(r and r.finished_at_ns > record.finished_at_ns for r in regular):
        plan.starts.append(container)
        return
    PLAIN(plan, container, record, following)


PLANTED: dict[str, tuple[str, Any, str]] = {
    "liveness fails one failure late": (
        "refkubelet.probes.decide.ProbeTarget.threshold", thresholds(more_failures=1),
        "liveness-restarts",
    ),
    "startup fails one failure late": (
        "refkubelet.probes.decide.ProbeTarget.threshold", thresholds(more_failures=1),
        "startup-failure",
    ),
    "readiness fails one failure late": (
        "refkubelet.probes.decide.ProbeTarget.threshold", thresholds(more_failures=1),
        "readiness-thresholds",
    ),
    "one success is enough": (
        "refkubelet.probes.decide.ProbeTarget.threshold", thresholds(success=1),
        "readiness-thresholds",
    ),
    "exec probes have a second": (
        "refkubelet.probes.decide.ProbeTarget.timeout_s", property(lambda _: 1),
        "exec-timeout-given",
    ),
    "HTTP and gRPC probes have a second": (
        "refkubelet.probes.decide.ProbeTarget.timeout_s", property(lambda _: 1),
        "http-timeout-given",
    ),
    "failures add up": (
        "refkubelet.probes.worker.count_outcome", failures_add_up, "liveness-flapping",
    ),
    "a late hook is given up": (
        f"{RUNTIME}.kill.ContainerKiller._pre_stop", gives_the_hook_up, "prestop-goes-on",
    ),
    "a node is ready at its next look": (
        "refkubelet.node.register.NodeRegistrar.get_ready", waits_for_the_next_look,
        "node-soon-ready",
    ),
    "memory is ranked by usage": (
        "refkubelet.eviction.ranking._exceeding", by_usage, "memory-larger-first",
    ),
    "disk use is ranked without requests": (
        "refkubelet.eviction.ranking._exceeding", by_usage, "disk-request-counts",
    ),
    "images of finished containers are collected": (
        f"{RUNTIME}.images.gc.ImageGC._detect", detects_running_only, "image-gc-unused",
    ),
    "the UID of a static pod ignores its spec": (
        "refkubelet.model.defaults.static_pod_uid", uid_without_spec, "static-edit-spec",
    ),
    "ready stays after a crash": (
        "refkubelet.status.readiness._Scope._with_probes", stays_ready, "not-ready-after-its-end",
    ),
    "the deadline counts from the last start": (
        "refkubelet.sync_loop.pod_handlers.past_active_deadline",
        since_last_start, "active-deadline",
    ),
    "a vanished pod has a second": (
        "refkubelet.pod_workers.updates.effective_grace_period", lambda *_: 1, "vanished",
    ),
    "one death of two is told": (
        "refkubelet.pleg.generic.compute_events", one_death, "dead-containers-removed",
    ),
    "restarts are counted in memory": (
        f"{RUNTIME}.containers.ContainerStarter.next_attempt", counts_in_memory(),
        "restart-count-kept",
    ),
    "a terminal phase is not kept": (
        "refkubelet.status.generate._with_phase", phase_anew,
        "phase-from-outside",
    ),
    "what was not sent is confirmed": (
        "refkubelet.status.writer.StatusWriter._send", confirms_what_is_newest,
        "status-changed-meanwhile",
    ),
    "the crash loop forgets the UID": (
        f"{RUNTIME}.containers.restart_key", lambda pod, c: repr((full_name(pod), c.name, c.image)),
        "backoff-new-uid",
    ),
    "the crash loop forgets the image": (
        f"{RUNTIME}.containers.restart_key", lambda pod, c: f"{pod.metadata.uid} {c.name}",
        "backoff-new-image",
    ),
    "the crash loop forgets the resources": (
        f"{RUNTIME}.containers.restart_key", lambda pod, c: f"{pod.metadata.uid} {c.name}",
        "backoff-new-resources",
    ),
    "init containers run again after a crash": (
        f"{RUNTIME}.decisions.init_actions.InitPlan._plain", init_again, "init-not-again",
    ),
    "twice the maximum resets the delay": (
        f"{RUNTIME}.decisions.backoff.EXPIRY_NS", 40 * NANOSECONDS, "backoff-kept-short-maximum",
    ),
    "the owner blocks": (
        "refkubelet.pods.mirror.OwnerReference",
        lambda **fields: OwnerReference(**fields, blockOwnerDeletion=True), "mirror-created",
    ),
    "sandboxes are listed whole": (
        "refkubelet.cri.client.sandbox_list_request",
        lambda uid, _: sandbox_list_request(uid, False),
        "list-filters",
    ),
    "containers of one pod are listed with all": (
        "refkubelet.cri.client.container_list_request",
        lambda _, alive: container_list_request("", alive), "list-filters",
    ),
    "not implemented is a failure": (
        f"{RUNTIME}.resizing.resize.NOT_IMPLEMENTED", "never said",
        "resize-sandbox-not-implemented",
    ),
    "classes stay as they are after a kill": (
        "refkubelet.pod_workers.steps.PodSteps._share_cpu",
        lambda _: None, "class-update-after-kills",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_noticed(
    bug: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place, wrong, case = PLANTED[bug]
    monkeypatch.setattr(place, wrong)
    result = run_virtual_case(CASES[case], Choice())
    broken = [
        record.exc_text or record.getMessage() for record in caplog.records if record.exc_info
    ]
    assert broken == [], "the bug is another one: whatever is called raises"
    assert result.outcome is Outcome.FAILED, f"{case}: {result.outcome.value} {result.detail}"


@pytest.mark.parametrize("case", sorted({case for _, _, case in PLANTED.values()}))
def test_the_case_passes_without_it(case: str) -> None:
    result = run_virtual_case(CASES[case], Choice())
    assert result.outcome is Outcome.PASSED, result.detail
