"""The CRI calls that give an address for a stream, and the one that writes a checkpoint.

Rules: CRI-006, CRI-115. The streaming server of the runtime is reached at the address, by whoever
asked. Raises `CriCallError`, nothing else.
Upstream: staging/src/k8s.io/cri-client/pkg/remote_runtime.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from kubecri.v1 import api_pb2 as cri
from msgspec import Struct
from msgspec.structs import asdict

from refkubelet.cri.operations import NotCounted, Operations
from refkubelet.cri.target import INVALID_ANSWER, CriCallError, CriTarget, call_error


class Wanted(Struct, frozen=True):
    """Which streams of a command are wanted."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class StreamClient:
    """One method per call; `timeout_s` is runtimeRequestTimeout; `operations` counts the calls."""

    def __init__(
        self, target: CriTarget, timeout_s: float, operations: Operations | None = None
    ) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._operations = operations or NotCounted()

    async def exec(self, container_id: str, command: Sequence[str], wanted: Wanted) -> str:
        """The address of a command in a container."""
        request = cri.ExecRequest(container_id=container_id, cmd=list(command), **asdict(wanted))
        return await self._url("Exec", request)

    async def attach(self, container_id: str, wanted: Wanted) -> str:
        """The address of the main process of a container."""
        request = cri.AttachRequest(container_id=container_id, **asdict(wanted))
        return await self._url("Attach", request)

    async def port_forward(self, sandbox_id: str, ports: Sequence[int]) -> str:
        """The address of ports of a sandbox."""
        request = cri.PortForwardRequest(pod_sandbox_id=sandbox_id, port=list(ports))
        return await self._url("PortForward", request)

    async def checkpoint(self, container_id: str, location: str, timeout_s: int) -> None:
        """Write a checkpoint of a container to the file `location`. `timeout_s` is the caller's; 0:
        none. The longer of it and the request timeout is the deadline (CRI-006.4)."""
        request = cri.CheckpointContainerRequest(
            container_id=container_id, location=location, timeout=timeout_s
        )
        deadline_s = max(self._timeout_s, timeout_s)
        with self._operations.of("CheckpointContainer"):
            await self._call("CheckpointContainer", request, deadline_s)

    async def _url(self, method: str, request: Any) -> str:
        with self._operations.of(method):
            answer = await self._call(method, request, self._timeout_s)
            if not answer.url:
                raise CriCallError(method, INVALID_ANSWER, "URL is not set")
            return str(answer.url)

    async def _call(self, method: str, request: Any, timeout_s: float) -> Any:
        try:
            return await self._target.call(method, request, timeout_s=timeout_s)
        except grpc.RpcError as error:
            raise call_error(method, error) from None
