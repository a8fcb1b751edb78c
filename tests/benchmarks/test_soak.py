"""The soak of the benchmarks, short: what takes a minute there takes so many pods here."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest
import soak
from workload import cycle, fake_process

from fakecri import FakeCRI
from fakecri.recording import subjects


async def test_eight_clients_at_full_rate_lose_no_call_and_the_ring_keeps_the_last() -> None:
    async with fake_process("--keep-calls", "100") as fake:
        seen = await soak.soak(fake, duration_s=30.0, pods=5)
    assert seen.made["RunPodSandbox"] == soak.CLIENTS * 5
    assert seen.counted == seen.made
    assert (seen.lost, seen.kept) == (0, 100)


def test_a_call_that_was_counted_and_not_made_is_lost_too() -> None:
    seen = soak.Soak()
    seen.made.update({"Version": 3, "Status": 1})
    seen.counted.update({"Version": 2, "ListImages": 1})
    assert seen.lost == 3


def test_growth_is_told_from_the_end_of_the_warm_up() -> None:
    warm = [10, 20, 30, 40]
    assert soak.Soak(memory_bytes=[*warm, 50, 50, *[50] * 6]).growth_bytes == 0
    assert soak.Soak(memory_bytes=[*warm, 50, 50, *range(50, 56)]).growth_bytes == 4.5


OURS = [tracemalloc.Filter(True, f"*/{package}/*") for package in ("fakecri", "simclock")]


def kept_by_the_fake() -> int:
    """Bytes that live and were asked for by our code; those of the test run do not count."""
    living = tracemalloc.take_snapshot().filter_traces(OURS)
    return sum(kept.size for kept in living.statistics("filename"))


@pytest.mark.virtual_time
async def test_a_fake_whose_pods_come_and_go_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "_GONE_IDS_KEPT", 50)
    samples, pods = 40, 15
    tracemalloc.start()
    try:
        cri = FakeCRI(call_limit=50)
        sizes = []
        for sample in range(samples):
            for number in range(pods):
                await cycle(cri, sample * pods + number)
                await asyncio.sleep(0)  # the loop drops the timers of deadlines that are over
            gc.collect()
            sizes.append(kept_by_the_fake())
    finally:
        tracemalloc.stop()
    sizes = sizes[samples // 4 :]
    half = len(sizes) // 2
    grown_bytes = min(sizes[half:]) - min(sizes[:half])  # caches fill and are emptied in between
    assert grown_bytes / (half * pods) < 100, "bytes that a pod leaves behind"
