"""Calls of CSI drivers, with their time limit and errors in the kubelet's words.

What must never happen here: a call without a time limit; a secret in a log.
Upstream: pkg/volume/csi/csi_client.go.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import grpc
from kubecri.csi import api_pb2 as api

from kubeobjects.golang.grpc_codes import rpc_error
from refkubelet.host.plugin_socket import PluginConnection
from refkubelet.volumes.csi.requests import capability_names

CALL_LIMIT_S: Final = 120.0
UNCERTAIN: Final = frozenset(
    {"CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"}
)
"""Codes after which the driver may still be at work, or have done it."""


class CsiError(Exception):
    """A call failed. `is_final`: the driver has done nothing, and does nothing any more; `code`:
    the name of the gRPC status, "" for an answer without sense."""

    def __init__(self, text: str, *, is_final: bool, code: str = "") -> None:
        super().__init__(text)
        self.is_final = is_final
        self.code = code


class CsiSockets(Protocol):
    """The way to the sockets of CSI drivers."""

    def connect(self, path: str) -> PluginConnection:
        """The socket of a driver. Raises OSError if nothing listens there."""


class CsiClient:
    """The driver that listens at a socket, which is connected to for each call."""

    def __init__(self, sockets: CsiSockets, endpoint: str) -> None:
        self._sockets = sockets
        self._endpoint = endpoint

    async def call(self, method: str, request: Any) -> Any:
        """The driver's answer. Raises `CsiError`."""
        try:
            connection = self._sockets.connect(self._endpoint)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            why = f"dial unix {self._endpoint}: connect: {why}"
            text = f'connection error: desc = "transport: Error while dialing: {why}"'
            failure = rpc_error("UNAVAILABLE", text)
            raise CsiError(failure, is_final=False, code="UNAVAILABLE") from None
        try:
            return await connection.call(method, request, timeout_s=CALL_LIMIT_S)
        except grpc.RpcError as error:
            raise _told(error) from None
        finally:
            await connection.close()

    async def capabilities(self) -> frozenset[str]:
        """What the driver can do. Raises `CsiError`."""
        request = api.NodeGetCapabilitiesRequest()
        return capability_names(await self.call("NodeGetCapabilities", request))


def _told(error: Any) -> CsiError:
    code = error.code().name
    text = rpc_error(code, error.details())
    return CsiError(text, is_final=code not in UNCERTAIN, code=code)
