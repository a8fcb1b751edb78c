"""The device-plugins directory of a real node: unix sockets and gRPC.

Only for real time, because grpc uses its own threads; it is imported when the directory is opened.
What must never happen here: a file that is not a socket is removed.
Upstream: pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go, client.go; manager.go:
CleanupPluginDirectory.
"""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any, Final

from refkubelet.container_manager.devices.plugins import PluginError, Register
from refkubelet.host.plugin_socket import PluginSocket, dialled
from refkubelet.host.untrusted_files import looked_at
from refkubelet.model.names import UnsafeNameError, safe_path

log = logging.getLogger(__name__)

KUBELET_SOCKET: Final = "kubelet.sock"
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
        """Connect to the plugin at that socket. Raises OSError, as `dialled`."""
        from kubecri.deviceplugin.api_pb2_grpc import DevicePluginStub

        return await dialled(path, DevicePluginStub)

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
