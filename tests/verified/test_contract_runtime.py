"""A real runtime is asked again only where runc lost its own init."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from contract_runtime import Runtime
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri

LOST = "failed to start exec: waiting for init preliminary setup: read init-p: connection reset"


class Fails:
    """A runtime whose first calls fail with these texts."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.calls = 0

    async def call(self, method: str, request: Message, *, timeout_s: float) -> Any:
        self.calls += 1
        if self.texts:
            empty = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNKNOWN, empty, empty, details=self.texts.pop(0)
            )
        return cri.ExecSyncResponse(exit_code=3)


@pytest.mark.parametrize(
    ("texts", "fake", "calls", "fails"),
    [
        ((LOST,), None, 2, False),
        ((LOST, LOST), None, 2, True),
        (("no such container",), None, 1, True),
        ((LOST,), object(), 1, True),
    ],
)
async def test_an_exec_that_never_began_is_asked_again_once(
    texts: tuple[str, ...], fake: object, calls: int, fails: bool, tmp_path: Path
) -> None:
    target = Fails(*texts)
    runtime = Runtime(target, tmp_path, fake=fake)
    request = cri.ExecSyncRequest(cmd=["true"])
    if fails:
        with pytest.raises(grpc.RpcError):
            await runtime.call("ExecSync", request)
    else:
        assert (await runtime.call("ExecSync", request)).exit_code == 3
    assert target.calls == calls
