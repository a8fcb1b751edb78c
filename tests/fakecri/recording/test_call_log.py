"""The file of passing calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from criapi.v1 import api_pb2 as cri
from google.protobuf.message import Message

from fakecri.errors import CriError
from fakecri.recording.call_log import CallLog
from simtime import VirtualClock, run_virtual

_START = datetime(2026, 1, 1, tzinfo=UTC)


class SlowTarget:
    """Version takes 1.5 s, StopContainer fails, Status never ends, events are two."""

    def __init__(self) -> None:
        self.requests: list[Message] = []

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        self.requests.append(request)
        if method == "StopContainer":
            raise CriError(grpc.StatusCode.UNKNOWN, "boom")
        await asyncio.sleep(1.5 if method == "Version" else 1000)
        return cri.VersionResponse(version="0.1.0")

    async def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        for number in range(2):
            yield cri.ContainerEventResponse(container_id=f"c{number}")


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def logged(path: Path, body: Any) -> list[dict[str, Any]]:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        log = CallLog(SlowTarget(), path, VirtualClock(loop, _START))
        await body(log)
        log.close()

    run_virtual(main)
    return rows_of(path)


def test_answers_and_errors_are_lines_like_the_recorded_runs(tmp_path: Path) -> None:
    async def body(log: CallLog) -> None:
        await log.call("Version", cri.VersionRequest(version="x"), timeout_s=120)
        with pytest.raises(grpc.RpcError):
            await log.call("StopContainer", cri.StopContainerRequest(container_id="c"))

    assert logged(tmp_path / "calls.jsonl", body) == [
        {
            "t_start": 0.0,
            "t_end": 1.5,
            "method": "Version",
            "deadline_s": 120,
            "request": {"version": "x"},
            "response": {"version": "0.1.0"},
        },
        {
            "t_start": 1.5,
            "t_end": 1.5,
            "method": "StopContainer",
            "deadline_s": None,
            "request": {"container_id": "c"},
            "error": {"code": "UNKNOWN", "message": "boom"},
        },
    ]


def test_a_caller_that_goes_away_is_written_as_cancelled(tmp_path: Path) -> None:
    async def body(log: CallLog) -> None:
        task = asyncio.create_task(log.call("Status", cri.StatusRequest()))
        await asyncio.sleep(1)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    (row,) = logged(tmp_path / "calls.jsonl", body)
    assert row["error"]["code"] == "CANCELLED"


def test_streams_write_each_message_and_their_number(tmp_path: Path) -> None:
    async def body(log: CallLog) -> None:
        async for _ in log.stream("GetContainerEvents", cri.GetEventsRequest()):
            pass

    rows = logged(tmp_path / "calls.jsonl", body)
    assert [row.get("response", row.get("messages")) for row in rows] == [
        {"container_id": "c0"},
        {"container_id": "c1"},
        2,
    ]


def test_credentials_of_a_pull_are_masked_CRI_097(tmp_path: Path) -> None:
    auth = cri.AuthConfig(username="u", password="secret", identity_token="secret")

    async def body(log: CallLog) -> None:
        request = cri.PullImageRequest(image=cri.ImageSpec(image="x"), auth=auth)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await log.call("PullImage", request)
        assert request.auth == auth

    (row,) = logged(tmp_path / "calls.jsonl", body)
    assert "secret" not in json.dumps(row)
    assert row["request"]["image"] == {"image": "x"}


def test_a_later_log_adds_to_the_file(tmp_path: Path) -> None:
    async def body(log: CallLog) -> None:
        await log.call("Version", cri.VersionRequest())

    logged(tmp_path / "calls.jsonl", body)
    assert len(logged(tmp_path / "calls.jsonl", body)) == 2
