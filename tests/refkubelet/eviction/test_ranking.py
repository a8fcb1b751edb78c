"""The order in which pods are evicted."""

from __future__ import annotations

from typing import Any

from eviction_world import MI, uses
from hypothesis import given
from hypothesis import strategies as st
from pods import container, make_pod

from refkubelet.config.eviction_thresholds import SIGNALS
from refkubelet.eviction.layout import Layout
from refkubelet.eviction.ranking import rank_pods
from refkubelet.stats.usage import PodUsage


def names(signal: str, pods: Any, usage: dict[str, PodUsage]) -> list[str]:
    by_uid = {f"uid-{name}": used for name, used in usage.items()}
    ranked = rank_pods(signal, pods, by_uid, Layout.ONE)
    return [pod.metadata.name or "" for pod in ranked if pod.metadata]


def test_memory_ranking_EVIC_080_EVIC_083_EVIC_084() -> None:
    request = container(memory="100Mi")
    pods = [
        make_pod(request, name="within"),
        make_pod(request, name="over-high", priority=10),
        make_pod(request, name="over-little"),
        make_pod(request, name="over-much"),
        make_pod(name="best-effort"),
        make_pod(request, name="no-stats", priority=99),
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
    pods = [make_pod(container(storage="1Gi"), name="a"), make_pod(name="b"), make_pod(name="c")]
    usage = {"a": uses(disk=900 * MI), "b": uses(disk=MI), "c": uses(disk=2 * MI)}
    assert names("nodefs.available", pods, usage) == ["c", "b", "a"]


def test_inodes_ranking_subtracts_the_storage_request_EVIC_081() -> None:
    pods = [make_pod(container(storage="1Gi"), name="a"), make_pod(name="b")]
    assert names("nodefs.inodesFree", pods, {"a": uses(inodes=50), "b": uses(inodes=5)}) == [
        "b",
        "a",
    ]


def counts(processes: int) -> PodUsage:
    return PodUsage((), processes=processes)


def test_pid_ranking_asks_for_priority_first_EVIC_082_EVIC_083() -> None:
    pods = [
        make_pod(name="high", priority=5),
        make_pod(name="few"),
        make_pod(name="many"),
        make_pod(name="none"),
    ]
    usage = {"high": counts(90), "few": counts(1), "many": counts(9)}
    assert names("pid.available", pods, usage) == ["none", "many", "few", "high"]


PODS = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(0, 3), st.none() | st.integers(0, 300)),
    max_size=6,
)


@given(PODS, st.sampled_from(sorted(SIGNALS)), st.randoms(use_true_random=False))
def test_ranking_is_a_total_order_EVIC_080(rows: Any, signal: str, shuffle: Any) -> None:
    pods = [
        make_pod(container(memory=f"{request}00Mi"), name=f"p{i}", priority=priority)
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
