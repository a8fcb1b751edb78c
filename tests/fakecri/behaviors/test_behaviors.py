"""Behaviours as plain data, and what a run makes of them."""

from __future__ import annotations

import asyncio
import re
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as cri
from plain_words import behavior_of

import fakecri
from fakecri import (
    Behavior,
    FakeCRI,
    RegistryImage,
    exits,
    ignores,
    oom_at,
    oom_kills_child,
    prints,
    ready_after,
    replies,
    runs,
    start_fails,
    start_hangs,
    stops,
    uses,
    writes_termination_message,
)
from fakecri.behaviors.plan import next_reply, plan_for
from fakecri.options import OptionFields, Options
from fakecri.words.behaviors import ExecContext, Reply
from fakecri.words.curves import at, ramp
from fakecri.words.kinds import WordError
from fakecri.words.word import to_dict

SECONDS = st.floats(0, 1e6, allow_nan=False)
BYTES = st.integers(0, 1 << 40)
CURVES = st.one_of(BYTES, st.lists(st.tuples(SECONDS, BYTES), max_size=4))
BEHAVIORS: st.SearchStrategy[Behavior] = st.one_of(
    st.builds(exits, st.integers(0, 255), after_s=SECONDS, reason=st.text(), message=st.text()),
    st.builds(stops, st.none() | st.integers(1, 255), after_s=SECONDS, message=st.text()),
    st.builds(ignores, st.sampled_from(["SIGTERM", "SIGINT"]), for_s=SECONDS),
    st.builds(prints, st.text(), at_s=SECONDS, stream=st.sampled_from(["stdout", "stderr"])),
    st.builds(replies, st.lists(st.text(min_size=1), max_size=3), st.integers(0, 255), st.text()),
    st.builds(uses, memory_bytes=CURVES, cpu_millicores=CURVES, disk_bytes=CURVES, pids=CURVES),
    st.builds(start_hangs, SECONDS),
    st.builds(ready_after, SECONDS, st.none() | st.lists(st.text(min_size=1), max_size=3)),
    st.builds(runs, st.none() | st.lists(st.text(min_size=1), max_size=3)),
    st.builds(start_fails, st.text()),
    st.builds(oom_kills_child, at_s=SECONDS),
    st.builds(oom_at, SECONDS),
    st.builds(uses, cache_bytes=CURVES, inodes=CURVES),
    st.builds(writes_termination_message, st.text()),
)


@given(BEHAVIORS)
def test_every_behaviour_travels_as_plain_data(behavior: Behavior) -> None:
    assert behavior_of(to_dict(behavior)) == behavior


def test_a_signal_that_is_none_is_refused_where_it_is_written() -> None:
    with pytest.raises(WordError, match=r"ignores.signal: 'SIGNOPE' is no signal"):
        ignores("SIGNOPE")
    with pytest.raises(ValueError, match="'nope' is no signal"):
        RegistryImage(stop_signal="nope")


def test_plain_data_is_short() -> None:
    assert to_dict(exits(1, after_s=2)) == {"exits": {"code": 1, "after_s": 2}}
    assert to_dict(stops()) == {"stops": {}}


def test_python_handlers_have_no_plain_data() -> None:
    with pytest.raises(WordError, match=r"runs\(program=\.\.\.\) is Python code"):
        to_dict(runs(lambda run: 0))
    with pytest.raises(WordError, match="no plain-data form"):
        to_dict(replies(handler=lambda command: Reply()))


@given(st.lists(st.tuples(SECONDS, BYTES), max_size=5), SECONDS)
def test_a_curve_has_the_value_of_its_last_step(points: list[tuple[float, int]], t: float) -> None:
    curve = uses(memory_bytes=points).memory_bytes
    before = [value for at_s, value in curve if at_s <= t]
    assert at(curve, t) == (before[-1] if before else 0)


def test_later_rules_replace_kind_by_kind() -> None:
    plan = plan_for([(exits(1), prints("a"), prints("b")), (exits(2),), (stops(9),)])
    assert plan.exits == exits(2)
    assert plan.stops == stops(9)
    assert [line.text for line in plan.prints] == ["a", "b"]
    assert plan_for([(prints("a"),), (prints("c"),)]).prints == (prints("c"),)


def test_without_a_rule_a_container_runs_and_ends_with_143() -> None:
    plan = plan_for([])
    assert plan.exits is None
    assert (plan.stops.code, plan.stop_delay_s(1.0)) == (None, 0.0)


def test_a_signal_may_be_ignored_for_a_while() -> None:
    plan = plan_for([(ignores("SIGTERM", for_s=5),)])
    assert plan.stop_delay_s(4.9) is None
    assert plan.stop_delay_s(5.0) == 0.0


def test_the_newest_reply_that_fits_answers() -> None:
    anything = replies(stdout="any")
    early = replies("ready?", 1, until_s=3)
    plan = plan_for([(anything,), (early,)])
    assert plan.reply_rule(["ready?"], 1.0) is early
    assert plan.reply_rule(["ready?"], 3.0) is anything
    assert plan.reply_rule(["other"], 1.0) is anything
    assert plan_for([]).reply_rule(["x"], 0.0) is None


def test_no_reply_counts_before_it_is_ready() -> None:
    plan = plan_for([(ready_after(5), replies("ready?", stdout="yes"))])
    early, late = plan.reply_rule(["ready?"], 4.9), plan.reply_rule(["ready?"], 5.0)
    assert early is not None
    assert late is not None
    assert (early.answers[0].exit_code, early.answers[0].stderr) == (1, "not ready yet")
    assert late.answers[0].stdout == "yes"
    assert plan_for([(ready_after(5, "other"),)]).reply_rule(["ready?"], 0.0) is None


async def test_answers_come_in_turn_and_the_last_stays() -> None:
    rule = replies("x", answers=[Reply(1), Reply(0)])
    asked = [ExecContext(("x",), given_before=n) for n in range(4)]
    assert [(await next_reply(rule, context)).exit_code for context in asked] == [1, 0, 0, 0]


async def test_a_handler_decides_from_its_context_and_may_await() -> None:
    async def clever(context: ExecContext) -> int:
        await asyncio.sleep(0)
        return context.given_before

    plain = replies(handler=lambda context: Reply(len(context.command), stdout=context.container))
    context = ExecContext(("a", "b"), container="web", given_before=7)
    assert await next_reply(plain, context) == Reply(2, stdout="web")
    assert await next_reply(replies(handler=clever), context) == Reply(7)


@pytest.mark.parametrize(("limit", "when"), [(0, None), (50, 0.0), (150, 4.0), (500, None)])
def test_oom_comes_when_the_curve_passes_the_limit(limit: int, when: float | None) -> None:
    plan = plan_for([(uses(memory_bytes=[(0, 100), (4, 200)]),)])
    assert plan.oom_after_s(limit) == when


loose: Any = fakecri  # what a type checker would refuse


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (lambda: loose.exits("1"), "exits.code: wanted a number, got '1'"),
        (lambda: loose.exits(256), "exits.code: wanted 0 to 255, got 256"),
        (lambda: loose.exits(1, after_s=-3), "exits.after_s: wanted 0 or more, got -3"),
        (lambda: loose.stops(-1), "stops.code: wanted 0 to 255, got -1"),
        (lambda: loose.prints(7), "prints.text: wanted a text, got 7"),
        (
            lambda: loose.prints("x", stream="log"),
            "prints.stream: wanted stdout or stderr",
        ),
        (
            lambda: loose.oom_kills_child(at_s=None),
            "oom_kills_child.at_s: wanted a number",
        ),
        (lambda: loose.Reply(exit_code=1.5), "reply.exit_code: wanted 0 to 255, got 1.5"),
        (lambda: loose.replies(3), "command: wanted words in a text or a list, got 3"),
        (
            lambda: loose.uses(memory_bytes="1Mi"),
            "wanted a whole number or a list of",
        ),
        (lambda: uses(pids=-1), "uses: wanted seconds and numbers from 0, got -1"),
        (lambda: uses(disk_bytes=[(-1, 5)]), "uses: wanted seconds and numbers from 0"),
        (lambda: uses(pids=[(float("inf"), 5)]), "uses: wanted seconds and numbers from 0"),
        (lambda: uses(pids=[(float("nan"), 5)]), "uses: wanted seconds and numbers from 0"),
        (lambda: ramp(0, 5, 10, steps=0), "ramp: wanted times from 0 and steps from 1"),
        (
            lambda: ramp(0, 5, 10, steps=10**9),
            "steps from 1 to 100000",
        ),
        (
            lambda: loose.FakeCRI().behaves("exits"),
            "wanted behaviours such as exits(1)",
        ),
        (lambda: loose.FakeCRI().behaves(exits(), times=0), "times: wanted 1 or more, got 0"),
        (
            lambda: loose.FakeCRI().behaves(exits(), first_attempts=0),
            "first_attempts: wanted 1",
        ),
        (
            lambda: loose.FakeCRI().behaves(exits(), pod=3),
            "pod: wanted a name or a pattern",
        ),
        (lambda: FakeCRI().on("Version").delays(-1), "delay_s: wanted seconds from 0, got -1"),
        (lambda: FakeCRI().on("Version").answers_late(-1), "after_s: wanted seconds from 0"),
        (lambda: loose.FakeCRI().on("Version").turns_back_time("1"), "by_s: wanted seconds"),
        (
            lambda: FakeCRI().on("GetContainerEvents").cuts_stream(-1),
            "after: wanted a number of messages from 0, got -1",
        ),
        (lambda: FakeCRI().kill(exit_code=256), "exit code: wanted 0 to 255, got 256"),
        (lambda: loose.FakeCRI().on("Version", nth=0), "nth: wanted 1 or more, got 0"),
        (
            lambda: loose.FakeCRI(image=["x"]),
            "FakeCRI has no argument 'image'; did you mean images? (it takes clock,",
        ),
    ],
)
def test_impossible_words_are_refused_where_they_are_written(word: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        word()


def test_options_are_the_same_as_fields_and_by_name() -> None:
    named, typed = get_type_hints(OptionFields), get_type_hints(Options)
    assert named == typed
    fake = FakeCRI(options=Options(images=("a:1",), runtime_name="mine"), images=("b:1",))
    assert [image.tags for image in fake.images.images.values()] == [("docker.io/library/b:1",)]
    assert fake.core.setup.identity.name == "mine"


async def test_a_method_that_cri_does_not_have_is_a_mistake_of_the_caller() -> None:
    fake = FakeCRI()
    with pytest.raises(ValueError, match="no method 'Versionn'; did you mean Version"):
        await fake.call("Versionn", cri.VersionRequest())
    with pytest.raises(ValueError, match="GetContainerEvents answers with a stream: use `stream`"):
        await fake.call("GetContainerEvents", cri.GetEventsRequest())
    with pytest.raises(ValueError, match="Version answers with one message: use `call`"):
        async for _ in fake.stream("Version", cri.VersionRequest()):
            pass
