"""The file of passing calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop

from fakecri.errors import CriError
from fakecri.recording.call_log import CallLog


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


def rows_in(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "calls.jsonl").read_text().splitlines()]


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[CallLog]:
    log = log_in(tmp_path)
    yield log
    log.close()


def log_in(directory: Path) -> CallLog:
    return CallLog(SlowTarget(), directory / "calls.jsonl", virtual_loop().clock)


@pytest.mark.virtual_time
async def test_answers_and_errors_are_lines_like_the_recorded_runs(
    log: CallLog, tmp_path: Path
) -> None:
    await log.call("Version", cri.VersionRequest(version="x"), timeout_s=120)
    with pytest.raises(grpc.RpcError):
        await log.call("StopContainer", cri.StopContainerRequest(container_id="c"))
    assert rows_in(tmp_path) == [
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


@pytest.mark.virtual_time
async def test_a_caller_that_goes_away_is_written_as_cancelled(
    log: CallLog, tmp_path: Path
) -> None:
    task = asyncio.create_task(log.call("Status", cri.StatusRequest()))
    await asyncio.sleep(1)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    (row,) = rows_in(tmp_path)
    assert row["error"]["code"] == "CANCELLED"


@pytest.mark.virtual_time
async def test_streams_write_each_message_and_their_number(log: CallLog, tmp_path: Path) -> None:
    async for _ in log.stream("GetContainerEvents", cri.GetEventsRequest()):
        pass
    assert [row.get("response", row.get("messages")) for row in rows_in(tmp_path)] == [
        {"container_id": "c0"},
        {"container_id": "c1"},
        2,
    ]


@pytest.mark.virtual_time
async def test_credentials_of_a_pull_are_masked_CRI_097(log: CallLog, tmp_path: Path) -> None:
    auth = cri.AuthConfig(username="u", password="secret", identity_token="secret")
    request = cri.PullImageRequest(image=cri.ImageSpec(image="x"), auth=auth)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await log.call("PullImage", request)
    assert request.auth == auth
    (row,) = rows_in(tmp_path)
    assert "secret" not in json.dumps(row)
    assert row["request"]["image"] == {"image": "x"}


@pytest.mark.virtual_time
async def test_a_later_log_adds_to_the_file(tmp_path: Path) -> None:
    for _ in range(2):
        log = log_in(tmp_path)
        await log.call("Version", cri.VersionRequest())
        log.close()
    assert len(rows_in(tmp_path)) == 2
