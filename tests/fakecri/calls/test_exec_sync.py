"""ExecSync in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from runtime_calls import now_s, refused, run_exec, started

from fakecri import (
    FakeCRI,
    replies,
)


@pytest.mark.virtual_time
async def test_exec_answers_in_turn_and_the_last_one_stays_CRI_111() -> None:
    fake = FakeCRI()
    fake.behaves(replies("cat /ready", exit_code=1, stderr="not yet", until_s=5))
    fake.behaves(replies("cat /ready", stdout="ok", from_s=5), container="other")
    container = await started(fake)
    first = await run_exec(fake, container, "cat", "/ready")
    assert (first.exit_code, first.stderr) == (1, b"not yet")
    assert (await run_exec(fake, container, "true")).exit_code == 0
    await asyncio.sleep(6)
    assert (await run_exec(fake, container, "cat", "/ready")).exit_code == 0


@pytest.mark.virtual_time
async def test_exec_stops_at_its_time_out_CRI_112() -> None:
    fake = FakeCRI()
    fake.behaves(replies("slow", delay_s=10))
    container = await started(fake)
    before = now_s()
    code, text = await refused(run_exec(fake, container, "slow", timeout_s=1))
    assert code == "DEADLINE_EXCEEDED"
    assert "timeout 1s exceeded" in text
    assert now_s() - before == pytest.approx(1.0, abs=1e-3)
