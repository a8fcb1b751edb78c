"""When a run looks at a kubelet."""

from types import SimpleNamespace
from typing import Any

from kubelet_conformance.harness.observing.activity import Activity


class Node:
    """A runtime and an API server of which only these numbers are asked."""

    def __init__(self) -> None:
        self.calls = 0
        self.api = SimpleNamespace(revision=1)

    def activity(self) -> int:
        return self.calls


def looks(activity: Activity, *at_s: float) -> list[float]:
    return [now_s for now_s in at_s if activity.wants_look(now_s)]


def test_a_quiet_kubelet_is_looked_at_now_and_then() -> None:
    node: Any = Node()
    activity = Activity(node, None, quiet_s=5.0)
    assert looks(activity, 0.0, 0.5, 1.0) == [0.0, 0.5, 1.0], "it may still be at work"
    assert looks(activity, 1.1, 2.0, 5.9, 6.0, 6.1, 11.0) == [6.0, 11.0]


def test_a_call_a_change_at_the_api_and_what_the_case_does_wake_it() -> None:
    node: Any = Node()
    activity = Activity(node, node.api, quiet_s=100.0)
    looks(activity, 0.0)
    node.calls += 1
    assert looks(activity, 10.0, 10.5, 12.0) == [10.0, 10.5]
    node.api.revision += 1
    assert looks(activity, 20.0, 20.5, 22.0) == [20.0, 20.5]
    activity.stir(30.0)
    assert looks(activity, 30.1, 31.0, 31.1) == [30.1, 31.0]


def test_without_such_a_pause_every_tick_looks() -> None:
    node: Any = Node()
    activity = Activity(node, None, quiet_s=0.0)
    assert looks(activity, 0.0, 50.0, 50.1, 50.2) == [0.0, 50.0, 50.1, 50.2]
