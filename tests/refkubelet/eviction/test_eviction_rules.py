"""Thresholds, cycle, ranking, texts and admission: the pure parts of eviction."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri import FakeNode
from refkubelet.config.eviction_grammar import ThresholdError, parse_thresholds
from refkubelet.config.eviction_thresholds import SIGNALS, Threshold, ThresholdValue
from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.cri.usage import ContainerUsage, FilesystemUsage, ImageFilesystems
from refkubelet.eviction.admission import admit_under_pressure
from refkubelet.eviction.cycle import (
    CycleMemory,
    CycleResult,
    EvictionConfig,
    Observation,
    evaluate,
    grace_override_s,
    thresholds_met,
)
from refkubelet.eviction.layout import Layout, reclaim_steps
from refkubelet.eviction.local_storage import Violation, local_storage_violation
from refkubelet.eviction.messages import (
    evicted_status,
    eviction_text,
    node_condition_message,
    reclaim_message,
)
from refkubelet.eviction.observer import NodeObservations, Observer
from refkubelet.eviction.ranking import rank_pods
from refkubelet.host.machine import FilesystemStats, MemoryStats
from refkubelet.model.objects import Pod, PodStatus, decode_pod
from refkubelet.stats.usage import DiskUse, PodUsage, rows_by_pod

MI = 1 << 20


def hard(signal: str, text: str, reclaim: str = "") -> Threshold:
    minimum = {signal: reclaim} if reclaim else {}
    (found,) = parse_thresholds({signal: text}, {}, {}, minimum)
    return found


def soft(signal: str, text: str, grace: str) -> Threshold:
    (found,) = parse_thresholds({}, {signal: text}, {signal: grace}, {})
    return found


def make_pod(name: str = "p", *, priority: int | None = None, **more: Any) -> Pod:
    """`requests`, `limits`, `static`, `tolerations` of a pod with one container `main`."""
    resources = {key: more[key] for key in ("requests", "limits") if key in more}
    annotations = {"kubernetes.io/config.source": "file"} if more.get("static") else {}
    return decode_pod(
        {
            "metadata": {"name": name, "namespace": "n", "uid": name, "annotations": annotations},
            "spec": {
                "priority": priority,
                "terminationGracePeriodSeconds": more.get("grace"),
                "tolerations": more.get("tolerations", []),
                "containers": [{"name": "main", "resources": resources}],
            },
        }
    )


def uses(memory: int | None = 0, disk: int | None = 0, inodes: int = 0) -> PodUsage:
    row = ContainerUsage(
        container_id="id",
        name="main",
        pod_uid="p",
        pod_name="p",
        pod_namespace="n",
        memory_working_set_bytes=memory,
        memory_time_ns=0,
        cpu_usage_core_ns=None,
        cpu_usage_nano_cores=None,
        rootfs_used_bytes=disk,
        rootfs_inodes_used=inodes,
    )
    return PodUsage((row,))


# -- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize("where", range(4))
def test_unknown_signals_are_refused_EVIC_001(where: int) -> None:
    maps: list[dict[str, str]] = [{}, {}, {}, {}]
    maps[where] = {"memory.free": "1s" if where == 2 else "1Mi"}
    with pytest.raises(ThresholdError, match=r"^unsupported eviction signal memory.free$"):
        parse_thresholds(*maps)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1%", "eviction percentage threshold nodefs.available must be >= 0%: -1%"),
        ("101%", "eviction percentage threshold nodefs.available must be <= 100%: 101%"),
        ("0", "eviction threshold nodefs.available must be positive: 0"),
        ("-5Mi", "eviction threshold nodefs.available must be positive: -5Mi"),
        ("lots", "evictionHard: nodefs.available: quantities must match the regular expression"),
        ("", "evictionHard: nodefs.available: quantities must match the regular expression '^("),
        ("1K", "evictionHard: nodefs.available: unable to parse quantity's suffix; wanted"),
        ("Ei", "evictionHard: nodefs.available: unable to parse numeric part of quantity; w"),
        ("Mi", "eviction threshold nodefs.available must be positive: 0"),
        ("x%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "x": invalid syn'),
        ("+nan%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "+nan": inval'),
        ("1__0%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "1__0": inval'),
        ("1_%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "1_": invalid'),
        ("0x1%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "0x1": invalid'),
        ("1e400%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "1e400": val'),
        ("Inf%", "eviction percentage threshold nodefs.available must be <= 100%: Inf%"),
        ("-inf%", "eviction percentage threshold nodefs.available must be >= 0%: -inf%"),
    ],
)
def test_wrong_values_EVIC_003(text: str, message: str) -> None:
    with pytest.raises(ThresholdError) as error:
        hard("nodefs.available", text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1_0%", 10),
        ("0x1p-1%", 0),
        ("100.000001%", 100),
        ("1e-46%", 0),
        ("-1e-45%", 0),
        ("10%%", 10),
        ("NaN%", -(2**63)),
    ],
)
def test_percentages_are_floats_of_go_EVIC_003(text: str, amount: int) -> None:
    (threshold,) = parse_thresholds({"nodefs.available": text}, {}, {}, {})
    assert threshold.value.amount(100) == amount


@pytest.mark.parametrize("text", ["0%", "100%"])
def test_switching_one_signal_off_EVIC_003(text: str) -> None:
    assert parse_thresholds({"memory.available": text}, {}, {}, {}) == ()


def test_soft_needs_a_grace_period_EVIC_004() -> None:
    with pytest.raises(ThresholdError, match="grace period must be specified for the soft evic"):
        parse_thresholds({}, {"memory.available": "1Gi"}, {}, {})
    with pytest.raises(ThresholdError, match="invalid eviction grace period specified: -1s"):
        soft("memory.available", "1Gi", "-1s")
    assert parse_thresholds({}, {}, {"memory.available": "1m"}, {}) == ()
    assert soft("memory.available", "1Gi", "0s").hard
    assert not soft("memory.available", "1Gi", "1m30s").hard


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("10", 'time: missing unit in duration "10"'),
        ("1m10", 'time: missing unit in duration "1m10"'),
        ("10 s", 'time: unknown unit " s" in duration "10 s"'),
        ("-1d", 'time: unknown unit "d" in duration "-1d"'),
        ("soon", 'time: invalid duration "soon"'),
        ("", 'time: invalid duration ""'),
        ("+", 'time: invalid duration "+"'),
    ],
)
def test_wrong_grace_periods_EVIC_004(text: str, complaint: str) -> None:
    with pytest.raises(ThresholdError) as error:
        soft("memory.available", "1Gi", text)
    assert str(error.value) == f"evictionSoftGracePeriod: memory.available: {complaint}"


def test_a_soft_threshold_that_is_off_needs_no_grace_period_EVIC_003_EVIC_004() -> None:
    assert parse_thresholds({}, {"memory.available": "0%"}, {}, {}) == ()


def test_allocatable_memory_has_the_hard_thresholds_of_memory_EVIC_008() -> None:
    signal, other = "memory.available", "nodefs.available"
    maps: Any = (
        {signal: "1Gi", other: "5%"},
        {signal: "2Gi"},
        {signal: "1m"},
        {signal: "100Mi"},
    )
    found = parse_thresholds(*maps, enforced=["pods", "kube-reserved"])
    (copy,) = [t for t in found if t.signal == "allocatableMemory.available"]
    hard = found[0]
    assert (copy.value, copy.min_reclaim, copy.hard) == (hard.value, hard.min_reclaim, True)
    assert len(found) == 4
    assert len(parse_thresholds(*maps, enforced=["none"])) == 3
    instant = parse_thresholds(
        {}, {signal: "2Gi"}, soft_grace_period={signal: "0s"}, minimum_reclaim={}, enforced=["pods"]
    )
    assert [t.signal for t in instant] == [signal, "allocatableMemory.available"]


def test_minimum_reclaim_belongs_to_both_kinds_EVIC_005() -> None:
    signal = "memory.available"
    both = parse_thresholds({signal: "1Gi"}, {signal: "2Gi"}, {signal: "1s"}, {signal: "5%"})
    assert [t.min_reclaim for t in both] == [ThresholdValue("5%", percent=5.0)] * 2
    with pytest.raises(ThresholdError, match="must be positive: 0%"):
        hard(signal, "1Gi", "0%")
    with pytest.raises(ThresholdError, match="negative eviction minimum reclaim spec"):
        hard(signal, "1Gi", "-1")


def test_percentages_show_float32_rounding_EVIC_009() -> None:
    assert hard("nodefs.available", "10%").value.amount(107374182400) == 10737418400


@given(st.integers(1, 1 << 45), st.integers(1, 99))
def test_a_percentage_is_close_to_exact_EVIC_009(capacity: int, percent: int) -> None:
    amount = hard("nodefs.available", f"{percent}%").value.amount(capacity)
    assert abs(amount - capacity * percent / 100) <= 1 + capacity * 1e-6


def test_settings_make_a_configuration_EVIC_002_EVIC_007() -> None:
    config = EvictionConfig.of(
        KubeletConfiguration(
            eviction_hard={"memory.available": "100Mi"},
            eviction_pressure_transition_period_s=0,
            enforce_node_allocatable=(),
        )
    )
    assert config.pressure_transition_s == 300
    assert [t.signal for t in config.thresholds] == ["memory.available"]


# -- signals --------------------------------------------------------------------------------------


class Disks(FakeNode):
    def memory(self) -> MemoryStats:
        return MemoryStats(1000, 300, 7)

    def filesystem(self, path: str) -> FilesystemStats:
        if path not in ("/root", "/images"):
            raise FileNotFoundError(path)
        return FilesystemStats(
            device=path,
            capacity_bytes=100,
            available_bytes=40,
            inodes=20,
            inodes_free=10,
            time_ns=3,
        )


def test_observations_EVIC_020_EVIC_022_EVIC_023() -> None:
    seen = look("/images")
    assert seen.layout is Layout.DEDICATED
    assert dict(seen.signals) == {
        "memory.available": Observation(700, 1000, 7),
        "pid.available": Observation(32668, 32768, 0),  # EVIC-025
        "nodefs.available": Observation(40, 100, 7),
        "nodefs.inodesFree": Observation(10, 20, 7),
        "imagefs.available": Observation(40, 100, 5),  # EVIC-028: only mount point and time
        "imagefs.inodesFree": Observation(10, 20, 5),
        "containerfs.available": Observation(40, 100, 5),  # EVIC-024: the same
        "containerfs.inodesFree": Observation(10, 20, 5),
    }
    assert look("/root").layout is Layout.ONE


def look(image_mount: str) -> NodeObservations:
    filesystems = ImageFilesystems((FilesystemUsage(image_mount, 999, 99, 5),))
    return Observer(Disks(), "/root").observe(filesystems, set(SIGNALS))


def test_an_unknown_image_disk_stops_the_cycle_EVIC_041() -> None:
    with pytest.raises(FileNotFoundError):
        look("/nowhere")
    with pytest.raises(FileNotFoundError, match="imagefs device is not found"):
        Observer(Disks(), "/root").observe(ImageFilesystems(()), set(SIGNALS))


# -- the cycle ------------------------------------------------------------------------------------

LOW, PLENTY = 50 * MI, 500 * MI


def run_cycle(
    thresholds: Any, available: int, before: CycleMemory, now_s: float, **more: Any
) -> CycleResult:
    observation = Observation(available, 1000 * MI, more.get("time_ns", int(now_s * 10**9) + 1))
    seen = {"memory.available": observation}
    return evaluate(
        thresholds, seen, memory=before, now_s=now_s, transition_s=more.get("transition_s", 30)
    )


def test_hard_thresholds_act_at_once_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi")
    result = run_cycle([threshold], LOW, CycleMemory(), 5)
    assert (result.conditions, result.acting) == (("MemoryPressure",), (threshold,))


def test_comparison_is_strict_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi")
    assert run_cycle([threshold], 100 * MI, CycleMemory(), 5).acting == ()


def test_soft_thresholds_wait_for_their_grace_EVIC_053() -> None:
    threshold = soft("memory.available", "100Mi", "15s")
    memory, acted = CycleMemory(), []
    for now_s in (0, 10, 20):
        result = run_cycle([threshold], LOW, memory, now_s)
        assert result.conditions == ("MemoryPressure",)  # step 4: regardless of grace
        memory, acted = result.memory, [*acted, bool(result.acting)]
    assert acted == [False, False, True]


def test_recovery_restarts_the_grace_clock_EVIC_053() -> None:
    threshold = soft("memory.available", "100Mi", "15s")
    memory = run_cycle([threshold], LOW, CycleMemory(), 0).memory
    memory = run_cycle([threshold], PLENTY, memory, 10).memory
    assert memory.first_seen_s == {}
    assert run_cycle([threshold], LOW, memory, 20).acting == ()


def test_conditions_outlive_pressure_by_the_transition_period_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi")
    memory = run_cycle([threshold], LOW, CycleMemory(), 0).memory
    seen = []
    for now_s in (10, 20, 29.9, 30):
        result = run_cycle([threshold], PLENTY, memory, now_s)
        memory, seen = result.memory, [*seen, bool(result.conditions)]
    assert seen == [True, True, True, False]


def test_minimum_reclaim_keeps_a_met_threshold_acting_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi", "50Mi")
    memory = run_cycle([threshold], LOW, CycleMemory(), 0).memory
    between = run_cycle([threshold], 120 * MI, memory, 10)
    assert between.acting == (threshold,)
    assert run_cycle([threshold], 150 * MI, between.memory, 20).acting == ()
    assert run_cycle([threshold], 120 * MI, CycleMemory(), 0).acting == ()


def test_a_frozen_measurement_acts_once_EVIC_054() -> None:
    threshold = hard("memory.available", "100Mi")
    first = run_cycle([threshold], LOW, CycleMemory(), 0, time_ns=9)
    second = run_cycle([threshold], LOW, first.memory, 10, time_ns=9)
    third = run_cycle([threshold], LOW, second.memory, 20, time_ns=10)
    assert [bool(r.acting) for r in (first, second, third)] == [True, False, True]


def test_no_observation_is_no_pressure_EVIC_027() -> None:
    threshold = hard("allocatableMemory.available", "100Mi")
    assert thresholds_met([threshold], {}, enforce_min_reclaim=True) == ()


def test_memory_comes_before_disk_EVIC_055() -> None:
    disk, memory = hard("nodefs.available", "10%"), hard("memory.available", "100Mi")
    seen = {s: Observation(0, 100, 1) for s in ("nodefs.available", "memory.available")}
    result = evaluate([disk, memory], seen, memory=CycleMemory(), now_s=0, transition_s=30)
    assert result.acting == (memory, disk)
    assert result.conditions == ("DiskPressure", "MemoryPressure")


def test_resources_and_conditions_of_signals_EVIC_060_EVIC_061_EVIC_062() -> None:
    """EVIC-056."""
    assert SIGNALS["memory.available"] == ("memory", "MemoryPressure")
    assert SIGNALS["imagefs.available"] == ("ephemeral-storage", "DiskPressure")
    assert SIGNALS["nodefs.inodesFree"] == ("inodes", "DiskPressure")
    assert SIGNALS["pid.available"] == ("pids", "PIDPressure")
    assert reclaim_message("memory") == "Attempting to reclaim memory"


LEVELS = st.lists(st.tuples(st.integers(0, 200), st.floats(0.1, 40)), max_size=12)


@given(LEVELS)
def test_an_acting_soft_threshold_was_low_for_its_whole_grace_EVIC_053(levels: Any) -> None:
    threshold = soft("memory.available", "100Mi", "15s")
    memory, now_s, low_since = CycleMemory(), 0.0, None
    for available, step_s in levels:
        now_s += step_s
        result = run_cycle([threshold], available * MI, memory, now_s)
        memory = result.memory
        low_since = (low_since if low_since is not None else now_s) if available < 100 else None
        expected = low_since is not None and now_s - low_since >= 15
        assert bool(result.acting) == expected


# -- ranking --------------------------------------------------------------------------------------


def names(signal: str, pods: Any, usage: dict[str, PodUsage]) -> list[str]:
    ranked = rank_pods(signal, pods, usage, Layout.ONE)
    return [pod.metadata.name or "" for pod in ranked if pod.metadata]


def test_memory_ranking_EVIC_080_EVIC_083_EVIC_084() -> None:
    request = {"memory": "100Mi"}
    pods = [
        make_pod("within", requests=request),
        make_pod("over-high", requests=request, priority=10),
        make_pod("over-little", requests=request),
        make_pod("over-much", requests=request),
        make_pod("best-effort"),
        make_pod("no-stats", requests=request, priority=99),
    ]
    usage = {
        "within": uses(99 * MI),
        "over-high": uses(900 * MI),
        "over-little": uses(110 * MI),
        "over-much": uses(300 * MI),
        "best-effort": uses(50 * MI),
    }
    assert names("memory.available", pods, usage) == [
        "no-stats",
        "over-much",
        "best-effort",
        "over-little",
        "over-high",
        "within",
    ]


def test_disk_ranking_EVIC_081() -> None:
    pods = [make_pod("a", requests={"ephemeral-storage": "1Gi"}), make_pod("b"), make_pod("c")]
    usage = {"a": uses(disk=900 * MI), "b": uses(disk=MI), "c": uses(disk=2 * MI)}
    assert names("nodefs.available", pods, usage) == ["c", "b", "a"]


def test_inodes_ranking_subtracts_the_storage_request_EVIC_081() -> None:
    pods = [make_pod("a", requests={"ephemeral-storage": "1Gi"}), make_pod("b")]
    assert names("nodefs.inodesFree", pods, {"a": uses(inodes=50), "b": uses(inodes=5)}) == [
        "b",
        "a",
    ]


def counts(processes: int) -> PodUsage:
    return PodUsage((), processes=processes)


def test_pid_ranking_asks_for_priority_first_EVIC_082_EVIC_083() -> None:
    pods = [make_pod("high", priority=5), make_pod("few"), make_pod("many"), make_pod("none")]
    usage = {"high": counts(90), "few": counts(1), "many": counts(9)}
    assert names("pid.available", pods, usage) == ["none", "many", "few", "high"]


PODS = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(0, 3), st.none() | st.integers(0, 300)),
    max_size=6,
)


@given(PODS, st.sampled_from(sorted(SIGNALS)), st.randoms(use_true_random=False))
def test_ranking_is_a_total_order_EVIC_080(rows: Any, signal: str, shuffle: Any) -> None:
    pods = [
        make_pod(f"p{i}", priority=priority, requests={"memory": f"{request}00Mi"})
        for i, (priority, request, _) in enumerate(rows)
    ]
    usage = {
        f"p{i}": uses(used * MI, used, used)
        for i, (_, _, used) in enumerate(rows)
        if used is not None
    }
    ranked = names(signal, pods, usage)
    assert sorted(ranked) == sorted(f"p{i}" for i in range(len(rows)))
    shuffle.shuffle(pods)
    assert names(signal, pods, usage) == ranked


def test_usage_is_added_up_per_pod_EVIC_029() -> None:
    rows = [
        ContainerUsage(
            container_id="1",
            name="a",
            pod_uid="u",
            pod_name="p",
            pod_namespace="n",
            memory_working_set_bytes=10,
            memory_time_ns=0,
            cpu_usage_core_ns=None,
            cpu_usage_nano_cores=None,
            rootfs_used_bytes=1,
            rootfs_inodes_used=None,
        ),
        ContainerUsage(
            container_id="2",
            name="b",
            pod_uid="u",
            pod_name="p",
            pod_namespace="n",
            memory_working_set_bytes=None,
            memory_time_ns=0,
            cpu_usage_core_ns=None,
            cpu_usage_nano_cores=None,
            rootfs_used_bytes=2,
            rootfs_inodes_used=4,
        ),
    ]
    usage = PodUsage(rows_by_pod(rows, ["1", "2"])["u"])
    assert (usage.memory_bytes, usage.layers) == (10, DiskUse(3, 4))
    assert [row.name for row in rows_by_pod(rows, ["2"])["u"]] == ["b"]
    assert rows_by_pod(rows, []) == {}


# -- texts ----------------------------------------------------------------------------------------


def text_of(pod: Pod, usage: PodUsage | None, threshold: Threshold, available: int) -> Any:
    seen = {threshold.signal: Observation(available, 24105 * MI, 1)}
    return eviction_text(
        pod, usage, resource=threshold.resource, acting=[threshold], observations=seen
    )


def test_the_recorded_message_EVIC_091_golden_s22() -> None:
    """EVIC-092, EVIC-093."""
    pod = make_pod(requests={"memory": "64Mi"})
    text = text_of(pod, uses(719048 << 10), hard("memory.available", "20275Mi"), 20742884 << 10)
    assert text.message == (
        "The node was low on resource: memory. Threshold quantity: 20275Mi, available: "
        "20742884Ki. Container main was using 719048Ki, request is 64Mi, has larger "
        "consumption of memory. "
    )
    assert text.annotations == {
        "starved_resource": "memory",
        "offending_containers": "main",
        "offending_containers_usage": "719048Ki",
    }


def test_without_request_and_within_request_EVIC_091_golden_s22b() -> None:
    threshold = hard("memory.available", "22139Mi")
    message = text_of(make_pod(), uses(1232232 << 10), threshold, 21572136 << 10).message
    assert message.endswith(
        "Container main was using 1232232Ki, request is 0, has larger consumption of memory. "
    )
    within = text_of(make_pod(requests={"memory": "2Gi"}), uses(MI), threshold, 1 << 30)
    assert within.message.endswith("available: 1Gi. ")
    assert within.annotations["offending_containers"] == ""


def test_a_pod_without_statistics_EVIC_091_EVIC_093() -> None:
    text = text_of(make_pod(), None, hard("nodefs.inodesFree", "5%"), 5000)
    assert text.message == (
        "The node was low on resource: inodes. Threshold quantity: 1263796242, available: 5k. "
    )
    assert text.annotations == {}


def test_pod_level_memory_is_named_first_EVIC_091() -> None:
    pod = make_pod()
    assert pod.spec is not None
    pod = decode_pod(
        {
            "metadata": {"name": "p"},
            "spec": {
                "resources": {"requests": {"memory": "1Gi"}},
                "containers": [{"name": "main"}],
            },
        }
    )
    text = text_of(pod, uses(2 * MI), hard("memory.available", "1Gi"), 1)
    assert "available: 1. Pod p was using 2Mi, request is 1Gi, has larger" in text.message
    assert text.annotations["offending_pod_usage"] == "2Mi"


def test_status_of_an_evicted_pod_EVIC_094() -> None:
    status = evicted_status(make_pod(), "m", True)(PodStatus(phase="Running"))
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "m")
    (condition,) = status.conditions or ()
    assert (condition.type, condition.status) == ("DisruptionTarget", "True")
    assert (condition.reason, condition.message) == ("TerminationByKubelet", "m")
    assert not evicted_status(make_pod(), "m", False)(PodStatus()).conditions


@pytest.mark.parametrize(
    ("threshold", "own", "wanted"),
    [
        (hard("memory.available", "1Mi"), 60, 1),
        (soft("memory.available", "1Mi", "1s"), 60, 4),
        (soft("memory.available", "1Mi", "1s"), 2, 2),
        (soft("memory.available", "1Mi", "1s"), None, 4),
    ],
)
def test_grace_of_an_eviction_EVIC_087(threshold: Threshold, own: Any, wanted: int) -> None:
    assert grace_override_s(threshold, make_pod(grace=own), 4) == wanted


@pytest.mark.parametrize(
    ("signal", "layout", "wanted"),
    [
        ("memory.available", Layout.ONE, ()),
        ("nodefs.available", Layout.ONE, ("containers", "images")),
        ("nodefs.available", Layout.DEDICATED, ()),
        ("imagefs.inodesFree", Layout.DEDICATED, ("containers", "images")),
        ("containerfs.available", Layout.SPLIT, ("containers",)),
        ("imagefs.available", Layout.SPLIT, ("images",)),
        ("pid.available", Layout.ONE, ()),
    ],
)
def test_what_can_be_reclaimed_EVIC_044_EVIC_045_EVIC_046(
    signal: str, layout: Layout, wanted: Any
) -> None:
    assert reclaim_steps(signal, layout) == wanted


@pytest.mark.parametrize(
    ("limits", "used", "message"),
    [
        (
            {"ephemeral-storage": "1Mi"},
            2 * MI,
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        ({"ephemeral-storage": "4Mi"}, 2 * MI, None),
        ({}, 2 * MI, None),
    ],
)
def test_local_storage_of_the_pod_EVIC_101(limits: Any, used: int, message: Any) -> None:
    violation = local_storage_violation(make_pod(limits=limits), uses(disk=used), Layout.ONE)
    assert (violation and violation.message) == message


def test_local_storage_of_one_container_EVIC_102() -> None:
    limit = {"limits": {"ephemeral-storage": "1Mi"}}
    spare = {"limits": {"ephemeral-storage": "1Gi"}}
    pod = decode_pod(
        {
            "spec": {
                "containers": [
                    {"name": "main", "resources": limit},
                    {"name": "b", "resources": spare},
                ]
            }
        }
    )
    assert local_storage_violation(pod, uses(disk=2 * MI), Layout.ONE) == Violation(
        "ephemeralcontainerfs.limit",
        "EVIC-102",
        'Container main exceeded its local ephemeral storage limit "1Mi". ',
    )
    assert local_storage_violation(pod, uses(disk=2 * MI), Layout.DEDICATED) is None


# -- admission ------------------------------------------------------------------------------------

TOLERATES = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("pod", "conditions", "admitted"),
    [
        (make_pod(), (), True),
        (make_pod(), ("MemoryPressure",), False),
        (make_pod(requests={"memory": "1Mi"}), ("MemoryPressure",), True),
        (make_pod(tolerations=TOLERATES), ("MemoryPressure",), True),
        (make_pod(tolerations=[{"operator": "Exists"}]), ("MemoryPressure",), True),
        (
            make_pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}]),
            ("MemoryPressure",),
            False,
        ),
        (make_pod(requests={"memory": "1Mi"}), ("DiskPressure",), False),
        (make_pod(tolerations=TOLERATES), ("DiskPressure", "MemoryPressure"), False),
        (make_pod(static=True), ("DiskPressure",), True),
        (make_pod(priority=2_000_000_000), ("DiskPressure",), True),
    ],
)
def test_admission_under_pressure_EVIC_110_LIFE_221(
    pod: Pod, conditions: Any, admitted: bool
) -> None:
    assert (admit_under_pressure(pod, conditions) is None) is admitted


def test_the_rejection_names_the_conditions_EVIC_111() -> None:
    rejection = admit_under_pressure(make_pod(), ("MemoryPressure",))
    assert rejection is not None
    assert rejection.reason == "Evicted"
    assert rejection.message == "The node had condition: [MemoryPressure]. "
    assert node_condition_message(["A", "B"]) == "The node had condition: [A B]. "
