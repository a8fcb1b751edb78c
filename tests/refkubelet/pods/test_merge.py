"""Whole sets in, operations out (SRC-060..067, LIFE-002)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import DELETED, container, make_pod

from refkubelet.model.objects import Pod
from refkubelet.model.pod import CONFIG_SEEN, CONFIG_SOURCE, uid
from refkubelet.model.pod import annotations as annotations_of
from refkubelet.model.pod_updates import PodOperation, PodSource
from refkubelet.pods.merge import MergeResult, merge_pod_sources
from simclock import Rng

ADD, UPDATE, DELETE = PodOperation.ADD, PodOperation.UPDATE, PodOperation.DELETE
REMOVE, RECONCILE = PodOperation.REMOVE, PodOperation.RECONCILE


def pod(
    pod_uid: str,
    *,
    image: str = "i",
    phase: str = "Pending",
    meta: Mapping[str, Any] | None = None,
) -> Pod:
    main = container(image=image)
    return make_pod(main, name=f"p{pod_uid}", uid=pod_uid, phase=phase, meta=meta)


def merge(previous: Mapping[str, Pod], new: Sequence[Pod], *, first: bool = False) -> MergeResult:
    return merge_pod_sources(previous, new, PodSource.FILE, first=first, seen_at="now")


def operations(result: MergeResult) -> list[tuple[PodOperation, list[str]]]:
    return [(u.operation, [uid(p) for p in u.pods]) for u in result.updates]


def after(*pods: Pod) -> Mapping[str, Pod]:
    return merge({}, pods, first=True).pods


@pytest.mark.parametrize(
    ("old", "new", "operation"),
    [
        (pod("1"), pod("1"), None),
        (pod("1"), pod("1", image="j"), UPDATE),
        (pod("1"), pod("1", meta={"labels": {"a": "b"}}), UPDATE),
        (pod("1"), pod("1", meta={"annotations": {"a": "b"}}), UPDATE),
        (pod("1"), pod("1", meta=DELETED), DELETE),
        (
            pod("1", meta=DELETED),
            pod("1", meta={**DELETED, "deletionGracePeriodSeconds": 1}),
            DELETE,
        ),
        (pod("1"), pod("1", phase="Running"), RECONCILE),
        (pod("1"), pod("1", image="j", phase="Running"), UPDATE),
        (pod("1"), pod("1", meta={"resourceVersion": "7", "generation": 2}), None),
        (pod("1"), pod("1", meta={"finalizers": ["x"], "ownerReferences": []}), None),
        (pod("1"), pod("1", meta={"annotations": {"kubernetes.io/config.mirror": "x"}}), None),
    ],
)
def test_what_a_change_means_SRC_061_SRC_062(
    old: Pod, new: Pod, operation: PodOperation | None
) -> None:
    expected = [] if operation is None else [(operation, ["1"])]
    assert operations(merge(after(old), [new])) == expected


OTHER = {"name": "other", "generation": 7, "resourceVersion": "9", "finalizers": ["x"]}
MIRROR = "kubernetes.io/config.mirror"


def test_a_change_of_the_status_alone_leaves_the_rest_of_the_object_SRC_068() -> None:
    old = pod("1", meta={"generation": 1, "annotations": {MIRROR: "a"}})
    new = pod("1", phase="Running", meta={**OTHER, "annotations": {MIRROR: "b"}})
    before = after(old)
    (update,) = merge(before, [new]).updates
    assert update.pods[0].metadata == before["1"].metadata
    assert update.pods[0].status == new.status


def test_an_update_brings_what_is_meaningful_and_the_generation_SRC_068() -> None:
    before = after(pod("1", meta={"generation": 1, "annotations": {MIRROR: "a", "x": "1"}}))
    new = pod("1", image="j", meta={**OTHER, "annotations": {MIRROR: "b", "y": "2"}})
    (update,) = merge(before, [new]).updates
    kept = update.pods[0]
    assert kept.spec == new.spec
    assert kept.metadata is not None
    metadata = kept.metadata
    assert (metadata.name, metadata.generation, metadata.finalizers) == ("p1", 7, None)
    assert annotations_of(kept) == {
        MIRROR: "a",
        "y": "2",
        CONFIG_SOURCE: "file",
        CONFIG_SEEN: "now",
    }


def test_the_order_of_operations_SRC_064() -> None:
    before = after(pod("1"), pod("2"), pod("3"), pod("4"))
    now = [
        pod("2", phase="Running"),
        pod("3", image="j"),
        pod("4", meta=DELETED),
        pod("5"),
    ]
    assert operations(merge(before, now)) == [
        (REMOVE, ["1"]),
        (ADD, ["5"]),
        (UPDATE, ["3"]),
        (DELETE, ["4"]),
        (RECONCILE, ["2"]),
    ]


def test_a_first_empty_set_is_an_empty_add_SRC_064() -> None:
    assert operations(merge({}, [], first=True)) == [(ADD, [])]
    assert operations(merge({}, [])) == []


def test_a_pod_first_seen_with_deletion_is_an_add_SRC_063() -> None:
    assert operations(merge({}, [pod("1", meta=DELETED)])) == [(ADD, ["1"])]


def test_source_and_time_are_annotated_once_SRC_034_SRC_065() -> None:
    before = merge_pod_sources({}, [pod("1")], PodSource.API, first=True, seen_at="early").pods
    result = merge_pod_sources(
        before, [pod("1", image="j")], PodSource.API, first=False, seen_at="late"
    )
    marks = annotations_of(result.updates[0].pods[0])
    assert (marks[CONFIG_SOURCE], marks[CONFIG_SEEN]) == ("api", "early")


def test_an_edited_static_pod_is_removed_before_it_is_added_SRC_064() -> None:
    assert operations(merge(after(pod("1")), [pod("2")])) == [(REMOVE, ["1"]), (ADD, ["2"])]


def test_of_equal_full_names_the_first_wins_SRC_024() -> None:
    twin = pod("2", meta={"name": "p1"})
    result = merge({}, [pod("1"), twin], first=True)
    assert operations(result) == [(ADD, ["1"])]
    assert [dropped.pod for dropped in result.dropped] == [twin]


UIDS = st.lists(st.sampled_from("abcdef"), unique=True)


@given(UIDS, UIDS, st.integers(0, 1))
def test_operations_lead_from_one_set_to_the_other_SRC_060(
    old: list[str], new: list[str], image: int
) -> None:
    before = after(*(pod(u) for u in old))
    result = merge(before, [pod(u, image=f"i{image or ''}") for u in new])
    known = dict(before)
    for update in result.updates:
        for p in update.pods:
            if update.operation is REMOVE:
                del known[uid(p)]
            else:
                known[uid(p)] = p
    assert known == result.pods
    assert list(result.pods) == new


@pytest.mark.parametrize("seed", range(20))
def test_what_is_the_same_object_needs_no_comparison(seed: int) -> None:
    """Whatever a source tells of: the operations and what is dropped are those of a comparison of
    everything. Pods of one name and pods of one UID are among them."""
    rng = Rng(seed).stream("messages")
    quick, plain = dict[str, Pod](), dict[str, Pod]()
    came: dict[str, Pod] = {}
    message: list[Pod] = []
    for number in range(60):
        message = [p for p in message if rng.random() < 0.9]
        for _ in range(int(rng.random() * 3)):
            new = make_pod(
                container(image=rng.choice("ij")),
                name=rng.choice(("a", "b", "../c")),
                uid=rng.choice("1234"),
                phase=rng.choice(("Pending", "Running")),
                meta=rng.choice((None, DELETED)),
            )
            message = [p for p in message if uid(p) != uid(new) or rng.random() < 0.2]
            message.insert(int(rng.random() * (len(message) + 1)), new)
        same = {id(p) for p in message if came.get(uid(p)) is p}
        first = number == 0
        one = merge_pod_sources(
            quick, message, PodSource.API, first=first, seen_at="now", same=same
        )
        other = merge_pod_sources(plain, message, PodSource.API, first=first, seen_at="now")
        assert one == other
        left_out = {id(d.pod) for d in one.dropped}
        came = {uid(p): p for p in message if id(p) not in left_out}
        quick, plain = dict(one.pods), dict(other.pods)
