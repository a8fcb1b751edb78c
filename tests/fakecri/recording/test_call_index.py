"""Questions about calls: the answer is that of a look at all of them, after a short look."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as pb

from fakecri.behaviors.matching import Match, Subject
from fakecri.recording.call import Call, Question
from fakecri.recording.call_index import CallIndex
from fakecri.recording.questions import Query, query
from fakecri.recording.recorder import Recorder
from simclock import Rng

METHODS = ("StartContainer", "StopContainer", "Version")
QUESTION = Question(pb.VersionRequest, b"")


def call(seq: int, method: str, pod: str, at_s: float) -> Call:
    uid = f"uid-{pod}" if pod else ""
    return Call(seq, method, Subject(pod=pod, uid=uid), at_s, None, at_s, QUESTION)


def asked(rng: Any) -> Query:
    pod = rng.choice((None, None, "p1", "p2", "uid-p2", "p*", "?1", "[p]1", "", "none"))
    since_s = rng.choice((float("-inf"), 0.0, rng.uniform(0, 100)))
    return query(rng.choice((None, *METHODS)), pod=pod, since_s=since_s)


@pytest.mark.parametrize("seed", range(40))
def test_the_answer_is_that_of_a_look_at_all(seed: int) -> None:
    """Whatever comes in between: calls are forgotten one by one or all at once, and time begins
    anew."""
    rng, now_s, seq = Rng(seed).stream("calls"), 0.0, 0
    calls: deque[Call] = deque(maxlen=rng.choice((3, 20, 1000)))
    index = CallIndex(calls)
    for _ in range(300):
        what = rng.random()
        if what < 0.6:
            for _ in range(int(rng.uniform(0, 6))):
                seq += 1
                now_s += rng.random()
                pod = rng.choice(("p1", "p2", "uid-p2", "p3", ""))
                calls.append(call(seq, rng.choice(METHODS), pod, now_s))
        elif what > 0.99:
            calls.clear()
        elif what > 0.98:
            now_s = 0.0
        else:
            wanted = asked(rng)
            found = [each for each in index.candidates(wanted) if not wanted.differences(each)]
            assert found == [each for each in calls if not wanted.differences(each)], wanted


def test_what_is_forgotten_is_not_kept() -> None:
    """A recorder of ten calls that is asked after each of ten thousand."""
    calls: deque[Call] = deque(maxlen=10)
    index = CallIndex(calls)
    for seq in range(1, 10_001):
        calls.append(call(seq, "Version", f"p{seq}", float(seq)))
        assert len(list(index.candidates(query("Version")))) == min(seq, 10)
        kept = [*index._by_method.values(), *index._by_pod.values()]
        assert sum(map(len, kept)) <= 3 * 3 * 10


class Counting(Recorder):
    """A recorder that counts the calls that its questions look at."""

    looks = 0

    def select(self, wanted: Query) -> list[Call]:
        self.looks += len(list(self._index.candidates(wanted)))
        return super().select(wanted)


@pytest.mark.parametrize(
    "which", [{"pod": "p{number}"}, {"pod": "uid-p{number}"}, {"since_s": None}], ids=str
)
def test_a_question_after_each_step_looks_at_that_step(which: dict[str, Any]) -> None:
    recorder = Counting()
    for number in range(1000):
        meta = pb.PodSandboxMetadata(name=f"p{number}", uid=f"uid-p{number}")
        request = pb.RunPodSandboxRequest(config=pb.PodSandboxConfig(metadata=meta))
        recorder.begin("RunPodSandbox", request, float(number), None)
        words = {
            key: float(number) if value is None else value.format(number=number)
            for key, value in which.items()
        }
        assert recorder.count(**words) == 1
    assert recorder.looks == 1000


def test_patterns_are_looked_for_among_all() -> None:
    calls = deque([call(1, "Version", "p1", 0.0), call(2, "Version", "q1", 0.0)])
    wanted = Query(match=Match(pod="p*"))
    assert len(list(CallIndex(calls).candidates(wanted))) == 2
