"""The device-plugins directory of a real node: unix sockets and gRPC.

Only for real time, because grpc uses its own threads; it is imported when the directory is opened.
What must never happen here: a file that is not a socket is removed.
Upstream: pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go, client.go; manager.go:
CleanupPluginDirectory.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from kubeobjects.golang.grpc_deadlines import within_deadline
from refkubelet.container_manager.devices.plugins import PluginError, Register
from refkubelet.host.untrusted_files import looked_at
from refkubelet.model.names import UnsafeNameError, safe_path

log = logging.getLogger(__name__)

KUBELET_SOCKET: Final = "kubelet.sock"
DIAL_LIMIT_S: Final = 10.0
DIRECTORY_MODE: Final = 0o750


class PluginSockets:
    """A `PluginDirectory` at `directory`, made when it is opened."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server: Any = None

    async def open(self, register: Register) -> None:
        """Make the directory and serve registrations. Raises OSError if that fails."""
        import grpc.aio
        from kubecri.deviceplugin import api_pb2_grpc

        self._directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        remove_sockets(self._directory)
        path = self._directory / KUBELET_SOCKET
        self._server = grpc.aio.server()
        api_pb2_grpc.add_RegistrationServicer_to_server(_registration(register), self._server)
        try:
            self._server.add_insecure_port(f"unix:{path}")
        except RuntimeError as error:
            raise OSError(0, str(error), str(path)) from None
        await self._server.start()
        log.info("device plugins register at %s", path)

    async def connect(self, endpoint: str) -> PluginSocket:
        """Connect to the plugin at `endpoint`, a name in the directory. Raises OSError if none
        listens within `DIAL_LIMIT_S`."""
        try:
            path = Path(safe_path(str(self._directory), endpoint.lstrip("/")))
        except UnsafeNameError as error:
            raise OSError(0, str(error), endpoint) from None
        return await self.connect_at(str(path))

    async def connect_at(self, path: str) -> PluginSocket:
        """Connect to the plugin at that socket. Raises OSError if none listens within
        `DIAL_LIMIT_S`."""
        try:
            async with asyncio.timeout(DIAL_LIMIT_S):
                _, writer = await asyncio.open_unix_connection(path)
        except TimeoutError:
            raise OSError(0, "context deadline exceeded", path) from None
        writer.close()
        return PluginSocket(Path(path))

    async def close(self) -> None:
        """Listen no more, and remove the socket."""
        if self._server is not None:
            await self._server.stop(None)
            (self._directory / KUBELET_SOCKET).unlink(missing_ok=True)


def _registration(register: Register) -> Any:
    """The gRPC service Registration, which calls `register`."""
    import grpc
    from kubecri.deviceplugin import api_pb2, api_pb2_grpc

    class Registration(api_pb2_grpc.RegistrationServicer):
        async def Register(self, request: Any, context: Any) -> Any:
            try:
                await register(request)
            except PluginError as error:
                await context.abort(grpc.StatusCode.UNKNOWN, str(error))
            return api_pb2.Empty()

    return Registration()


def remove_sockets(directory: Path) -> None:
    """Remove every socket in the directory, so that the plugins register again. Other files stay; a
    socket that cannot be removed is logged."""
    for met in list(looked_at(directory.resolve())):
        if stat.S_ISSOCK(met.status.st_mode):
            path = directory / met.name
            try:
                path.unlink()
            except OSError as error:
                log.error("cannot remove the socket %s: %s", path, error)


class PluginSocket:
    """A `PluginConnection` over a unix socket."""

    def __init__(self, path: Path) -> None:
        import grpc.aio
        from kubecri.deviceplugin import api_pb2_grpc

        self._channel = grpc.aio.insecure_channel(
            f"unix:{path}",
            options=[("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0)],
        )
        self._stub = api_pb2_grpc.DevicePluginStub(self._channel)

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        answer = getattr(self._stub, method)(request, timeout=timeout_s)
        return await within_deadline(answer, timeout_s)

    async def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        async for answer in getattr(self._stub, method)(request, timeout=timeout_s):
            yield answer

    async def close(self) -> None:
        await self._channel.close()
