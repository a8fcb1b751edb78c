"""What becomes of an event, and its form in the API (BACK-012)."""

from __future__ import annotations

from typing import Any

from kubeobjects.structs import replace
from refkubelet.events.correlator import (
    CACHE_SIZE,
    SIMILAR_LIMIT,
    SPAM_BURST,
    EventCorrelator,
    InvolvedObject,
    RecordedEvent,
)

POD = InvolvedObject("Pod", "web", "ns", "uid", "7", "spec.containers{c}")
SECOND = 10**9


def event(message: str = "no", **fields: Any) -> RecordedEvent:
    told: dict[str, Any] = {"involved": POD, "type": "Warning", "reason": "Failed", **fields}
    return RecordedEvent("", message=message, first_ns=SECOND, last_ns=SECOND, **told)


def correlator() -> EventCorrelator:
    return EventCorrelator()


def written(known: EventCorrelator, one: RecordedEvent, now_s: float) -> RecordedEvent:
    """The event, which is not dropped."""
    found = known.correlate(one, now_s)
    assert found is not None
    return found


def test_the_form_of_an_event_BACK_012() -> None:
    one = replace(event(), name="web.1", last_ns=2 * SECOND, count=3, annotations=(("a", "b"),))
    assert one.to_json("n1") == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "ns", "annotations": {"a": "b"}},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "web",
            "namespace": "ns",
            "uid": "uid",
            "resourceVersion": "7",
            "fieldPath": "spec.containers{c}",
        },
        "reason": "Failed",
        "message": "no",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "1970-01-01T00:00:01Z",
        "lastTimestamp": "1970-01-01T00:00:02Z",
        "count": 3,
        "type": "Warning",
        "reportingComponent": "kubelet",
        "reportingInstance": "n1",
    }
    assert one.to_patch() == {
        "count": 3,
        "lastTimestamp": "1970-01-01T00:00:02Z",
        "message": "no",
    }


def test_what_is_empty_is_left_out_BACK_012() -> None:
    shown = event(involved=InvolvedObject("Node", "n1"), combined=True).to_json("n1")
    assert shown["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert shown["metadata"] == {"name": "", "namespace": "default"}
    assert not {"reportingComponent", "reportingInstance"} & shown.keys()


def test_a_new_event_gets_a_name_and_keeps_it_BACK_012() -> None:
    known = correlator()
    first = written(known, event(annotations=(("a", "b"),)), 0)
    name, _, digits = first.name.rpartition(".")
    assert (name, int(digits, 16), first.count) == ("web", SECOND, 1)
    assert first == replace(event(annotations=(("a", "b"),)), name=first.name)
    later = replace(event(), first_ns=5 * SECOND, last_ns=6 * SECOND)
    second = known.correlate(later, 5)
    assert second == replace(later, name=first.name, first_ns=SECOND, count=2)


def test_names_are_in_the_order_of_time_BACK_012() -> None:
    known = correlator()
    told = [written(known, event(f"{i}"), 0) for i in range(3)]
    later = replace(event("later"), first_ns=2 * SECOND, last_ns=2 * SECOND)
    told.append(written(known, later, 1))
    assert [int(one.name.rpartition(".")[2], 16) for one in told] == [
        *(SECOND, SECOND + 1, SECOND + 2, 2 * SECOND)
    ]


def test_what_is_combined_loses_its_annotations_BACK_012() -> None:
    known = correlator()
    told = [written(known, event(f"{i}", annotations=(("a", "b"),)), 0) for i in range(10)]
    assert (told[-2].message, told[-2].combined) == ("8", False)
    assert told[-1] == replace(
        event("(combined from similar events): 9", combined=True), name=told[-1].name
    )


def test_other_objects_types_and_reasons_are_not_similar_BACK_012() -> None:
    others = [
        {"involved": replace(POD, name="b")},
        {"involved": replace(POD, namespace="b")},
        {"involved": replace(POD, uid="b")},
        {"involved": replace(POD, kind="Node")},
        {"type": "Normal"},
        {"reason": "Killing"},
    ]
    known = correlator()
    for i in range(SIMILAR_LIMIT - 1):
        known.correlate(event(f"{i}"), 1000)
    for fields in others:
        assert not written(known, event("new", **fields), 1000).combined
    for change in ({"field_path": "b"}, {"resource_version": "8"}):
        similar = event(f"new {change}", involved=replace(POD, **change))
        assert written(known, similar, 1000).combined


def test_a_pause_is_counted_from_the_last_event_BACK_012() -> None:
    known = correlator()
    for i in range(SIMILAR_LIMIT - 1):
        known.correlate(event(f"{i}"), 1000 + i)
    assert written(known, event("a"), 1608).combined
    assert not written(known, event("b"), 2208.5).combined


def test_floods_are_of_one_object_and_type_BACK_012() -> None:
    known = correlator()
    assert all(known.correlate(event(), 0) for _ in range(SPAM_BURST))
    assert known.correlate(event(), 0) is None
    assert known.correlate(event(reason="Killing"), 0) is None
    assert known.correlate(event(type="Normal"), 0) is not None
    assert known.correlate(event(involved=replace(POD, uid="b")), 0) is not None
    assert known.correlate(event(), 299) is None
    assert written(known, event(), 301).count == SPAM_BURST + 3


def test_what_was_used_least_is_forgotten_BACK_012() -> None:
    def of(number: int) -> RecordedEvent:
        return event(involved=replace(POD, uid=f"{number}"))

    known = correlator()
    for number in (*range(CACHE_SIZE), 0):
        known.correlate(of(number), 0)
    assert written(known, of(1), 0).count == 2
    known.correlate(of(CACHE_SIZE), 0)  # takes the place of 2
    assert [written(known, of(number), 0).count for number in (0, 1, 2)] == [3, 3, 1]
