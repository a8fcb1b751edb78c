"""Cases can fail: a refkubelet with one thing wrong is noticed by a case."""

from collections.abc import Callable
from typing import Any

import pytest

from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import load_cases
from refkubelet import kubelet  # noqa: F401 - so that no import happens while something is wrong
from refkubelet.kuberuntime.decisions.grace import container_grace_s
from refkubelet.kuberuntime.images.pull_records import PullVerdict
from refkubelet.model.probe_results import ProbeResult
from refkubelet.probes.manager import ProbeManager

CASES = {case.id: case for case in load_cases()}


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


async def async_nothing(*_: Any) -> None:
    return


def grace_s(pod: Any) -> int:
    return container_grace_s(pod, None, None)


MUTANTS: dict[str, tuple[str, Any, str]] = {
    "back-off begins at 5 s": (
        "refkubelet.kuberuntime.options_from_config.INITIAL_DELAY_S", 5.0, "backoff-series",
    ),
    "back-off for ever in force": (
        "refkubelet.kuberuntime.decisions.backoff.expired", always(False), "backoff-reset",
    ),
    "back-off forgotten each time": (
        "refkubelet.kuberuntime.decisions.backoff.expired", always(True), "backoff-series",
    ),
    "one second is enough to stop": (
        "refkubelet.kuberuntime.decisions.grace.MINIMUM_GRACE_S", 1, "stop-minimum",
    ),
    "OnFailure restarts after success": (
        "refkubelet.kuberuntime.decisions.actions.starts_at_next_sync", always(True),
        "policy-on-failure-zero",
    ),
    "nothing restarts": (
        "refkubelet.kuberuntime.decisions.actions.starts_at_next_sync", always(False),
        "killed-restarts",
    ),
    "hidden manifests are read": (
        "refkubelet.pods.file_source.is_manifest_name", always(True), "static-ignored-files",
    ),
    "a new version starts beside the old": (
        "refkubelet.pod_workers.start_order.may_start", always(True), "static-edit",
    ),
    "static pods can be evicted": (
        "refkubelet.eviction.evictor.is_critical", always(False), "evict-not-static",
    ),
    "static pods are refused under pressure": (
        "refkubelet.admission.node_fit.is_critical", always(False), "static-admitted",
    ),
    "sidecars stop together with the rest": (
        "refkubelet.kuberuntime.kill.termination_prerequisites",
        always({}), "sidecar-stops-last",
    ),
    "evictions give half a minute": (
        "refkubelet.eviction.cycle.HARD_GRACE_S", 30, "evict-hard",
    ),
    "pulls are never backed off": (
        "refkubelet.kuberuntime.images.manager.BackoffTable.wait_until", always(None),
        "pull-back-off-series",
    ),
    "the pull back-off is one for all pods": (
        "refkubelet.kuberuntime.images.manager.image_key", lambda pod_uid, image: image,
        "pull-back-off-of-one-pod",
    ),
    "logins go to every registry": (
        "refkubelet.kuberuntime.images.keyring.covers", always(True), "pull-secret-of-another-host",
    ),
    "groups of pods are left behind": (
        "refkubelet.container_manager.cgroups.manager.ContainerManager.destroy", async_nothing,
        "cgroup-removed-at-end",
    ),
    "strangers' groups stay": (
        "refkubelet.container_manager.cgroups.manager.ContainerManager.remove_orphans",
        always(None),
        "cgroup-orphan",
    ),
    "classes share as they did at the start": (
        "refkubelet.container_manager.cgroups.manager.ContainerManager.update_qos",
        always(None), "class-shares-v2",
    ),
    "a single limit limits the pod": (
        "refkubelet.model.cgroups.values.declares_limit", always(True), "cgroup-one-without-limit",
    ),
    "thresholds are no reservation": (
        "refkubelet.container_manager.cgroups.node_config.eviction_reservation",
        always({}), "node-allocatable",
    ),
    "every pod may use every present image": (
        "refkubelet.kuberuntime.images.access.ImageAccess.must_pull", always(False),
        "image-not-for-everyone",
    ),
    "no pod may use what another pulled": (
        "refkubelet.kuberuntime.images.access.verify", always(PullVerdict(must_pull=True)),
        "image-for-the-same-secret",
    ),
    "pull records are not written": (
        "refkubelet.kuberuntime.images.pull_record_files.PullRecordFiles.write", always(None),
        "image-records-stay",
    ),
    "the rate of pulls has no effect": (
        "refkubelet.kuberuntime.images.pulls.ImagePuller._take_token", always(None), "pull-rate",
    ),
    "the runtime's reasons are not told apart": (
        "refkubelet.kuberuntime.images.manager.classify",
        lambda image, error: ("ErrImagePull", error),
        "registry-unavailable",
    ),
    "housekeeping once a minute": (
        "refkubelet.sync_loop.loop.HOUSEKEEPING_PERIOD_S", 60.0, "unknown-pod-killed",
    ),
    "all redirects are final": (
        "refkubelet.host.http_get.FOLLOWED", frozenset(), "http-redirect",
    ),
    "redirects never end": ("refkubelet.host.http_get.MAX_REQUESTS", 50, "http-redirect-loop"),
    "headers as they are given": (
        "refkubelet.host.http_get.http_headers", lambda given, agent: tuple(given), "http-request",
    ),
    "probes are tried once": ("refkubelet.probes.prober.TRIES", 1, "exec-error"),
    "variables are left alone": (
        "refkubelet.probes.prober.expanded", lambda word, _: word, "exec-variables",
    ),
    "one failure is enough": (
        "refkubelet.probes.decide.ProbeTarget.threshold",
        {ProbeResult.SUCCESS: 1, ProbeResult.FAILURE: 1}, "probe-below-threshold",
    ),
    "liveness is on while a pod ends": (
        "refkubelet.probes.manager.ProbeManager.stop_liveness_and_startup", always(None),
        "termination-liveness",
    ),
    "readiness is off while a pod ends": (
        "refkubelet.probes.manager.ProbeManager.stop_liveness_and_startup",
        ProbeManager.remove_pod, "termination-readiness",
    ),
    "every container is new to the kubelet": (
        "refkubelet.probes.manager.ProbeManager.predates_kubelet", always(False),
        "restart-stays-ready",
    ),
    "nothing triggers readiness": (
        "refkubelet.probes.manager.ProbeManager.trigger_readiness", always(None),
        "readiness-at-once",
    ),
    "the pod's grace for all kills": (
        "refkubelet.kuberuntime.kill.container_grace_s",
        lambda pod, *_: grace_s(pod), "probe-grace",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_kubelet_is_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, wrong, case = MUTANTS[mutant]
    monkeypatch.setattr(place, wrong)
    result = run_virtual_case(CASES[case], Choice())
    assert result.outcome is Outcome.FAILED, f"{case}: {result.outcome.value} {result.detail}"


@pytest.mark.parametrize("case", sorted({case for _, _, case in MUTANTS.values()}))
def test_the_right_kubelet_passes(case: str) -> None:
    result = run_virtual_case(CASES[case], Choice())
    assert result.outcome is Outcome.PASSED, result.detail
