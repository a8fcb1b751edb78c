"""Eviction decisions at their borders: a number more or less, an equal one, a word of a text."""

from __future__ import annotations

from typing import Any

import pytest
from eviction_world import MI, hard, row, soft, uses
from pods import container, make_pod

from refkubelet.admission.node_fit import MEMORY_TAINT, admit_under_pressure
from refkubelet.config.eviction_grammar import ThresholdError, parse_thresholds
from refkubelet.config.eviction_thresholds import SIGNALS, Threshold, ThresholdValue
from refkubelet.eviction.cycle import CycleMemory, Observation, evaluate
from refkubelet.eviction.layout import (
    Layout,
)
from refkubelet.eviction.messages import eviction_text
from refkubelet.eviction.ranking import rank_pods
from refkubelet.host.disk_use import DiskUse
from refkubelet.model.objects import Pod
from refkubelet.stats.usage import PodFiles, PodUsage


def ranked(signal: str, *rows: tuple[Pod, PodUsage | None]) -> list[str]:
    pods = [pod for pod, _ in rows]
    usage = {pod.metadata.uid or "": used for pod, used in rows if used and pod.metadata}
    found = rank_pods(signal, pods, usage, Layout.ONE)
    return [pod.metadata.name or "" for pod in found if pod.metadata]


def test_as_much_as_requested_is_not_more_EVIC_080_EVIC_081() -> None:
    asks = container(memory="1Mi", storage="1Mi")
    equal, more = make_pod(asks, name="equal"), make_pod(asks, name="more", priority=9)
    for signal in ("memory.available", "nodefs.available"):
        rows = ((equal, uses(MI, MI)), (more, uses(MI + 1, MI + 1)))
        assert ranked(signal, *rows) == ["more", "equal"]


def test_one_inode_is_more_than_none_EVIC_081() -> None:
    none, one = make_pod(name="none"), make_pod(name="one", priority=9)
    rows = ((none, uses(inodes=0)), (one, uses(inodes=1)))
    assert ranked("nodefs.inodesFree", *rows) == ["one", "none"]


def test_inodes_are_ranked_by_inodes_and_disk_by_bytes_EVIC_081() -> None:
    rows = (
        (make_pod(name="bytes"), uses(disk=900, inodes=1)),
        (make_pod(name="files"), uses(disk=1, inodes=9)),
    )
    assert ranked("nodefs.inodesFree", *rows) == ["files", "bytes"]
    assert ranked("nodefs.available", *rows) == ["bytes", "files"]


@pytest.mark.parametrize("signal", sorted(SIGNALS))
def test_without_statistics_the_priority_decides_and_then_the_name_EVIC_083(signal: str) -> None:
    rows = [
        (make_pod(name=name, priority=priority), None)
        for name, priority in (("b", 1), ("c", 0), ("a", 1), ("d", -1))
    ]
    assert ranked(signal, *rows) == ["d", "c", "a", "b"]


def test_overhead_counts_with_the_request_EVIC_080() -> None:
    heavy = make_pod(container(memory="1Mi"), name="heavy", overhead={"memory": "1Mi"})
    plain = make_pod(container(memory="1Mi"), name="plain", priority=9)
    rows = ((heavy, uses(2 * MI)), (plain, uses(2 * MI)))
    assert ranked("memory.available", *rows) == ["plain", "heavy"]


def cycle(
    threshold: Threshold, available: int, before: CycleMemory, now_s: float, **more: Any
) -> Any:
    time_ns = more.get("time_ns", int(now_s * 10**9) + 1)
    seen = {threshold.signal: Observation(available, 1000, time_ns)}
    return evaluate(
        [threshold], seen, memory=before, now_s=now_s, transition_s=more.get("transition_s", 30.0)
    )


def test_grace_ends_with_its_last_second_EVIC_053() -> None:
    threshold = soft("memory.available", "100", "10s")
    first = cycle(threshold, 1, CycleMemory(), 0.0)
    assert cycle(threshold, 1, first.memory, 9.9).acting == ()
    assert cycle(threshold, 1, first.memory, 10.0).acting == (threshold,)


def test_a_condition_lasts_less_than_the_period_EVIC_053() -> None:
    threshold = hard("memory.available", "100")
    memory = cycle(threshold, 1, CycleMemory(), 0.0).memory
    assert cycle(threshold, 500, memory, 29.9).conditions == ("MemoryPressure",)
    assert cycle(threshold, 500, memory, 30.0).conditions == ()


def test_minimum_reclaim_is_a_border_too_EVIC_053() -> None:
    threshold = hard("memory.available", "100", "50")
    memory = cycle(threshold, 99, CycleMemory(), 0.0).memory
    assert cycle(threshold, 149, memory, 10.0).acting == (threshold,)
    assert cycle(threshold, 150, memory, 10.0).acting == ()
    assert cycle(threshold, 149, CycleMemory(), 10.0).acting == ()


def test_an_unknown_time_is_always_new_and_an_equal_one_never_EVIC_053() -> None:
    threshold = hard("memory.available", "100")
    memory = cycle(threshold, 1, CycleMemory(), 0.0, time_ns=0).memory
    assert cycle(threshold, 1, memory, 10.0, time_ns=0).acting == (threshold,)
    memory = cycle(threshold, 1, CycleMemory(), 0.0, time_ns=7).memory
    assert cycle(threshold, 1, memory, 10.0, time_ns=7).acting == ()
    assert cycle(threshold, 1, memory, 10.0, time_ns=8).acting == (threshold,)


def test_amounts_and_how_they_are_shown_EVIC_009_EVIC_092() -> None:
    share = ThresholdValue("50%", percent=50.0)
    assert (share.amount(3000), share.shown(4096)) == (1500, "2Ki")
    fixed = ThresholdValue("1000M", quantity=10**9)
    assert (fixed.amount(7), fixed.shown(7)) == (10**9, "1G")
    assert ThresholdValue("0%", percent=None).amount(500) == 0


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (
            ({"nodefs.available": "lots"}, {}, {}, {}),
            "evictionHard: nodefs.available: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'; wanted a quantity such as 100Mi, or a "
            "share such as 10%",
        ),
        (
            ({}, {"nodefs.available": "x%"}, {}, {}),
            'evictionSoft: nodefs.available: strconv.ParseFloat: parsing "x": invalid syntax; '
            "wanted a number before the %, such as 10%",
        ),
        (
            ({}, {}, {}, {"nodefs.available": "1K"}),
            "evictionMinimumReclaim: nodefs.available: unable to parse quantity's suffix; wanted a "
            "quantity such as 100Mi, or a share such as 10%",
        ),
        (
            ({}, {}, {}, {"nodefs.available": "x%"}),
            'evictionMinimumReclaim: nodefs.available: strconv.ParseFloat: parsing "x": invalid '
            "syntax; wanted a number before the %, such as 10%",
        ),
        (
            ({}, {"nodefs.available": "1Gi"}, {}, {}),
            "grace period must be specified for the soft eviction threshold nodefs.available",
        ),
        (
            ({}, {}, {"nodefs.available": "-1s"}, {}),
            "invalid eviction grace period specified: -1s, must be a positive value",
        ),
        (
            ({}, {}, {}, {"nodefs.available": "0%"}),
            "eviction percentage minimum reclaim nodefs.available must be positive: 0%",
        ),
        (
            ({}, {}, {}, {"nodefs.available": "-1"}),
            "negative eviction minimum reclaim specified for nodefs.available",
        ),
    ],
)
def test_every_error_in_full_EVIC_003_EVIC_004_EVIC_005(maps: Any, message: str) -> None:
    with pytest.raises(ThresholdError) as error:
        parse_thresholds(*maps)
    assert str(error.value) == message


def test_borders_that_are_allowed_EVIC_003_EVIC_004_EVIC_005() -> None:
    signal = "nodefs.available"
    (low,) = parse_thresholds({signal: "-0%"}, {}, {}, {})
    assert low.value.percent == 0.0
    (high,) = parse_thresholds({signal: "100.0%"}, {}, {}, {signal: "0"})
    assert (high.value.percent, high.min_reclaim) == (100.0, ThresholdValue("0", quantity=0))
    (one,) = parse_thresholds({signal: "1"}, {}, {}, {signal: "0.5%"})
    assert (one.value.quantity, one.min_reclaim) == (1, ThresholdValue("0.5%", percent=0.5))
    assert parse_thresholds({signal: "10%%"}, {}, {}, {})[0].value.percent == 10.0
    assert soft(signal, "1Gi", "0").hard


def test_hard_and_soft_of_one_signal_EVIC_004() -> None:
    signal = "memory.available"
    first, second = parse_thresholds({signal: "1Mi"}, {signal: "2Mi"}, {signal: "1m30s"}, {})
    assert (first.hard, first.grace_s, second.hard, second.grace_s) == (True, 0.0, False, 90.0)


def test_a_container_at_its_request_is_not_named_EVIC_091() -> None:
    threshold = hard("memory.available", "100")
    seen = {"memory.available": Observation(5, 1000, 1)}
    pod = make_pod(container(memory="1Mi"))
    text = eviction_text(pod, uses(MI), resource="memory", acting=[threshold], observations=seen)
    assert text.message == (
        "The node was low on resource: memory. Threshold quantity: 100, available: 5. "
    )
    text = eviction_text(pod, uses(MI + 1), resource="memory", acting=[], observations={})
    assert text.message == (
        "The node was low on resource: memory. Container main was using 1048577, request is 1Mi, "
        "has larger consumption of memory. "
    )


def test_numbers_are_those_of_the_same_resource_EVIC_092() -> None:
    acting = [hard("memory.available", "100"), hard("nodefs.inodesFree", "5k")]
    seen = {
        "memory.available": Observation(5, 1000, 1),
        "nodefs.inodesFree": Observation(2000, 9000, 1),
    }
    text = eviction_text(make_pod(), None, resource="inodes", acting=acting, observations=seen)
    assert text.message == (
        "The node was low on resource: inodes. Threshold quantity: 5k, available: 2k. "
    )
    text = eviction_text(make_pod(), None, resource="pids", acting=acting, observations=seen)
    assert text.message == "The node was low on resource: pids. "


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        ({"key": MEMORY_TAINT, "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": MEMORY_TAINT, "operator": "Equal", "value": ""}, True),
        ({"key": MEMORY_TAINT}, True),
        ({"key": MEMORY_TAINT, "operator": "Equal", "value": "x"}, False),
        ({"key": MEMORY_TAINT, "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "other"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_tolerations_of_memory_pressure_EVIC_110(toleration: Any, admitted: bool) -> None:
    pod = make_pod(tolerations=[toleration])
    assert (admit_under_pressure(pod, ("MemoryPressure",)) is None) == admitted


def test_the_reason_of_a_refusal_EVIC_111() -> None:
    found = admit_under_pressure(make_pod(), ("DiskPressure", "MemoryPressure"))
    assert found is not None
    assert (found.reason, found.message) == (
        "Evicted",
        "The node had condition: [DiskPressure MemoryPressure]. ",
    )


def storage_use(*rows: tuple[str, int | None], logs: int = 1) -> PodUsage:
    usages = tuple(row(name, disk=size, inodes=1) for name, size in rows)
    return PodUsage(usages, files=PodFiles({name: DiskUse(logs, 1) for name, _ in rows}))


def test_who_is_named_for_storage_EVIC_091() -> None:
    """Not an ephemeral container; not one without a layer; none when inodes run short."""
    usage = storage_use(("debugger", 7), ("main", 5))
    ending = (
        "Container main was using 6, request is 0, has larger consumption of ephemeral-storage. "
    )
    low = "The node was low on resource: ephemeral-storage. "
    assert (
        eviction_text(
            make_pod(), usage, resource="ephemeral-storage", acting=[], observations={}
        ).message
        == low + ending
    )
    unknown = storage_use(("main", None))
    assert (
        eviction_text(
            make_pod(), unknown, resource="ephemeral-storage", acting=[], observations={}
        ).message
        == low
    )
    text = eviction_text(make_pod(), usage, resource="inodes", acting=[], observations={})
    assert text.message == "The node was low on resource: inodes. "
    assert text.annotations == {
        "starved_resource": "inodes",
        "offending_containers": "",
        "offending_containers_usage": "",
    }


def test_several_containers_are_named_in_the_order_of_statistics_EVIC_091_EVIC_093() -> None:
    pod = make_pod("main", "side", init=["init"])
    usage = storage_use(("side", 1), ("init", 2), ("main", 3))
    text = eviction_text(pod, usage, resource="ephemeral-storage", acting=[], observations={})
    assert text.annotations["offending_containers"] == "side,init,main"
    assert text.annotations["offending_containers_usage"] == "2,3,4"


def test_requests_of_the_pod_are_named_for_memory_alone_EVIC_091() -> None:
    pod = make_pod(resources={"requests": {"memory": "1024Mi"}})
    low = "The node was low on resource: "
    text = eviction_text(pod, uses(5), resource="memory", acting=[], observations={})
    named = "Pod web was using 5, request is 1Gi, has larger consumption of memory. "
    container = "Container main was using 5, request is 0, has larger consumption of memory. "
    assert text.message == f"{low}memory. {named}{container}"
    assert text.annotations["offending_pod"] == "web"
    assert (
        "offending_pod"
        not in eviction_text(pod, uses(5), resource="pids", acting=[], observations={}).annotations
    )
