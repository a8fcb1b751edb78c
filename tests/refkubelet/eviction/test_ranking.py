"""The order in which pods are evicted."""

from __future__ import annotations

from typing import Any

from eviction_helpers import MI, make_pod, uses
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.config.eviction_thresholds import SIGNALS
from refkubelet.eviction.layout import Layout
from refkubelet.eviction.ranking import rank_pods
from refkubelet.stats.usage import PodUsage


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
