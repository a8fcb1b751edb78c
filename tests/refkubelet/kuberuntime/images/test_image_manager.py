"""How many images are pulled at a time, how often, and what is told of it: BACK-204, BACK-208."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_bench import ABSENT, PULLED, Bench, login, only
from kubecri.v1 import api_pb2 as cri
from pods import IMAGE
from runtime_doubles import IMAGE_ID, Slow

from refkubelet.kuberuntime.common.runtime_options import (
    ImageOptions,
)
from refkubelet.kuberuntime.images.manager import (
    whole_milliseconds,
)
from refkubelet.model.token_bucket import TokenBucket

pytestmark = pytest.mark.virtual_time


async def test_a_rate_refuses_at_once_and_counts_as_a_failure_BACK_208(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, ImageOptions(pull_qps=2.0, pull_burst=2), ImageStatus=ABSENT, PullImage=PULLED
    )
    await bench.ensure(policy="Always", uid="a")
    await bench.ensure(policy="Always", uid="b")
    assert await bench.reason(policy="Always", uid="c") == ("ErrImagePull", "pull QPS exceeded")
    assert len(bench.target.requests("PullImage")) == 2
    await asyncio.sleep(0.5)
    assert (await bench.reason(policy="Always", uid="c"))[0] == "ImagePullBackOff"
    await bench.ensure(policy="Always", uid="d")


async def test_a_rate_counts_pulls_not_credentials_BACK_208(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageOptions(pull_burst=1), ImageStatus=ABSENT, PullImage=only("bob"))
    await bench.ensure(login("ann"), login("bob"))
    assert bench.users() == ["ann", "bob"]


async def test_a_token_is_taken_when_the_turn_comes_BACK_208(tmp_path: Path) -> None:
    """Three pulls wait for each other longer than the rate asks: none is refused."""
    options = ImageOptions(pull_qps=1.0, pull_burst=1)
    bench = Bench(tmp_path, options, ImageStatus=ABSENT, PullImage=Slow(1, PULLED))
    await asyncio.gather(*(bench.ensure(policy="Always", uid=u) for u in "abc"))
    assert bench.clock.monotonic_s() == 3


async def test_a_rate_of_zero_is_none_BACK_208(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, ImageOptions(pull_qps=0.0, pull_burst=1), ImageStatus=ABSENT, PullImage=PULLED
    )
    for number in range(50):
        await bench.ensure(policy="Always", uid=f"u{number}")
    assert bench.clock.monotonic_s() == 0


@pytest.mark.parametrize(
    ("options", "most", "in_all_s"),
    [
        (ImageOptions(), 1, 8),
        (ImageOptions(serialize_pulls=False), 4, 2),
        (ImageOptions(serialize_pulls=False, max_parallel_pulls=3), 3, 4),
        (ImageOptions(serialize_pulls=True, max_parallel_pulls=1), 1, 8),
    ],
)
async def test_how_many_pull_at_a_time_BACK_208(
    tmp_path: Path, options: ImageOptions, most: int, in_all_s: int
) -> None:
    pull = Slow(2, PULLED)
    bench = Bench(tmp_path, options, ImageStatus=ABSENT, PullImage=pull)
    await asyncio.gather(*(bench.ensure(policy="Always", uid=u) for u in "abcd"))
    assert pull.most == most
    assert bench.clock.monotonic_s() == in_all_s


async def test_the_times_include_the_look_for_the_size_BACK_204(tmp_path: Path) -> None:
    look = cri.ImageStatusResponse(image=cri.Image(id=IMAGE_ID, size=77))
    bench = Bench(tmp_path, ImageStatus=Slow(0.5, look), PullImage=Slow(1.2349, PULLED))
    await asyncio.gather(*(bench.ensure(policy="Always", uid=u) for u in "ab"))
    texts = [message for _, reason, message, _ in bench.events.seen if reason == "Pulled"]
    front = f'Successfully pulled image "{IMAGE}" in 1.734s'
    assert texts == [
        f"{front} (1.734s including waiting). Image size: 77 bytes.",
        f"{front} (3.469s including waiting). Image size: 77 bytes.",
    ]


@given(
    st.lists(st.floats(0, 5), min_size=1, max_size=40),
    st.integers(1, 5),
    st.sampled_from([0.5, 1.0, 2.0, 5.0]),
)
def test_no_span_has_more_pulls_than_the_rate_allows(
    pauses: list[float], burst: int, per_s: float
) -> None:
    """Between any two allowed pulls: at most the burst, and the rate times the span; and one is
    allowed whenever a token's time has passed since the last refusal or pull."""
    bucket, now_s = TokenBucket(burst, per_s), 0.0
    allowed: list[float] = []
    for pause_s in pauses:
        now_s += pause_s
        ok = bucket.take(now_s)
        if ok:
            allowed.append(now_s)
        assert 0.0 <= bucket.tokens <= burst
        assert ok or pause_s * per_s < 1.0 + 1e-9
    for first in range(len(allowed)):
        for last in range(first, len(allowed)):
            span_s = allowed[last] - allowed[first]
            assert last - first + 1 <= burst + per_s * span_s + 1e-6


@given(st.integers(0, 10**7))
def test_durations_are_cut_not_rounded(micros: int) -> None:
    assert whole_milliseconds(micros / 1e6) == whole_milliseconds(micros // 1000 / 1e3)
