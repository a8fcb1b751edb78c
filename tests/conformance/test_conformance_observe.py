"""What the harness makes of recorded calls and statuses."""

from types import SimpleNamespace

from conformance.harness.limits import restart_after
from conformance.harness.observing.snapshots import describe, is_write, state_name, write_name
from conformance.harness.runtimes.call_index import CallIndex


class Recorder:
    """A recorder that forgets all but the last three calls."""

    def __init__(self) -> None:
        self.kept: list[SimpleNamespace] = []

    def add(self, method: str, container: str = "") -> None:
        seq = self.kept[-1].seq + 1 if self.kept else 1
        made = SimpleNamespace(seq=seq, method=method, pod="p", container=container)
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


def test_names_of_calls_and_states() -> None:
    call = SimpleNamespace(method="RunPodSandbox", container="", attempt=0)
    assert write_name(call) == "RunPodSandbox/0"
    assert is_write(call)
    assert not is_write(SimpleNamespace(method="ListContainers"))
    assert state_name({"waiting": {"reason": "CrashLoopBackOff"}}) == "waiting(CrashLoopBackOff)"
    entry = {"name": "main", "state": {"running": {}}, "ready": True, "restartCount": 2}
    status = {"phase": "Running", "containerStatuses": [entry]}
    assert describe(status) == "Running; main=running ready restarts=2"


def test_restart_tolerances_BACK_011() -> None:
    """From d to 1.5 d (steps of at most 60 s), plus reading the queue and the relists."""
    assert 10.0 in restart_after(10)
    assert 9.9 not in restart_after(10)
    assert 17.9 in restart_after(10)
    assert 300 + 30 in restart_after(300)
    assert 300 + 40 not in restart_after(300)
    assert 1.0 in restart_after(0)
