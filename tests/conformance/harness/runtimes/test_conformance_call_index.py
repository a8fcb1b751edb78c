"""The index of recorded calls."""

from types import SimpleNamespace

from kubelet_conformance.harness.runtimes.call_index import CallIndex


class Recorder:
    """A recorder that forgets all but the last three calls."""

    def __init__(self) -> None:
        self.kept: list[SimpleNamespace] = []

    def add(self, method: str, container: str = "") -> None:
        seq = self.kept[-1].seq + 1 if self.kept else 1
        made = SimpleNamespace(seq=seq, method=method, pod="p", container=container, ended_s=None)
        self.kept = [*self.kept, made][-3:]

    def last(self, number: int) -> list[SimpleNamespace]:
        return self.kept[-number:]


def test_the_index_keeps_what_the_recorder_forgets() -> None:
    recorder = Recorder()
    index = CallIndex(recorder)
    for number in range(5):
        recorder.add("StartContainer" if number % 2 else "ListContainers", f"c{number}")
        index.select(None, None, None)
    assert [c.seq for c in index.select(None, None, None)] == [1, 2, 3, 4, 5]
    assert [c.container for c in index.select("StartContainer", "p", None)] == ["c1", "c3"]
    assert index.select("StartContainer", "p", "c0") == []
    assert index.select(None, "other", None) == []


def test_calls_that_begin_and_calls_that_end_are_counted_without_the_regular_ones() -> None:
    recorder = Recorder()
    index = CallIndex(recorder)
    regular = {"ListContainers"}
    assert index.beginnings_and_ends(regular) == 0
    recorder.add("ListContainers")
    assert index.beginnings_and_ends(regular) == 0
    recorder.add("StartContainer")
    started = recorder.kept[-1]
    assert index.beginnings_and_ends(regular) == 1
    assert index.beginnings_and_ends(regular) == 1
    started.ended_s = 3.0
    recorder.add("StopContainer")
    assert index.beginnings_and_ends(regular) == 3
