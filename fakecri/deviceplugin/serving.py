"""Fake device plugins on real sockets, in the device-plugins directory of a real kubelet.

    async with serve(plugin, "/var/lib/kubelet/device-plugins"):
        ...

In real time only: grpc runs threads of its own. A faithful plugin looks whether its socket is still
there: a kubelet that starts removes it, and then the plugin listens and registers again. What must
never happen here: a socket is left behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from kubecri.deviceplugin import api_pb2_grpc as services

from fakecri.deviceplugin.plugin import FakeDevicePlugin
from fakecri.errors import CriError, status_code

log = logging.getLogger("fakecri.deviceplugin")

KUBELET_SOCKET: Final = "kubelet.sock"
LOOK_PERIOD_S: Final = 0.2
REGISTER_LIMIT_S: Final = 10.0


async def passed(plugin: Any, method: str, request: Any, context: Any) -> Any:
    """The plugin's answer to a call over gRPC; its error ends the call."""
    try:
        return await plugin.call(method, request, timeout_s=context.time_remaining())
    except CriError as error:
        await context.abort(error.code(), error.details())


class DeviceService(services.DevicePluginServicer):
    """The five methods, each passed to the plugin."""

    def __init__(self, plugin: FakeDevicePlugin) -> None:
        self._plugin = plugin

    async def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:
        return await passed(self._plugin, "GetDevicePluginOptions", request, context)

    async def GetPreferredAllocation(self, request: Any, context: Any) -> Any:
        return await passed(self._plugin, "GetPreferredAllocation", request, context)

    async def Allocate(self, request: Any, context: Any) -> Any:
        return await passed(self._plugin, "Allocate", request, context)

    async def PreStartContainer(self, request: Any, context: Any) -> Any:
        return await passed(self._plugin, "PreStartContainer", request, context)

    async def ListAndWatch(self, request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for answer in self._plugin.stream("ListAndWatch", request):
                yield answer
        except CriError as error:
            await context.abort(error.code(), error.details())


class _Served:
    """One plugin and its server."""

    def __init__(self, plugin: FakeDevicePlugin, directory: Path) -> None:
        self.plugin = plugin
        self.path = directory / plugin.endpoint
        self._server: Any = None

    async def listen(self) -> None:
        await self.stop()
        self._server = grpc.aio.server()
        services.add_DevicePluginServicer_to_server(DeviceService(self.plugin), self._server)
        self._server.add_insecure_port(f"unix:{self.path}")
        await self._server.start()

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)
            self.path.unlink(missing_ok=True)


class ServedPlugins:
    """Plugins that listen in one directory; it has the methods of `InProcessPlugins`. `close`
    it."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self._served: dict[str, _Served] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}

    async def start(self, plugin: FakeDevicePlugin, *, faithful: bool = True) -> None:
        """Let a plugin listen and register; one that was started already dies first.

        Raises CriError when the kubelet refuses it, and UNAVAILABLE when there is no kubelet; a
        faithful plugin then registers with the next one that starts.
        """
        await self.stop(plugin)
        served = self._served[plugin.endpoint] = _Served(plugin, self.directory)
        await served.listen()
        if faithful:
            keeper = asyncio.create_task(self._keep(served), name=f"plugin {plugin.endpoint}")
            self._keepers[plugin.endpoint] = keeper
        await self._register(served.plugin)

    async def stop(self, plugin: FakeDevicePlugin) -> None:
        """Let a plugin die: its socket and its streams are gone."""
        keeper = self._keepers.pop(plugin.endpoint, None)
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        served = self._served.pop(plugin.endpoint, None)
        if served is not None:
            plugin.end_streams()
            await served.stop()

    async def close(self) -> None:
        """Stop all plugins."""
        for served in list(self._served.values()):
            await self.stop(served.plugin)

    async def _keep(self, served: _Served) -> None:
        """Listen and register again when the socket is gone and a kubelet is there."""
        kubelet = self.directory / KUBELET_SOCKET
        while True:
            await asyncio.sleep(LOOK_PERIOD_S)
            if served.path.exists() or not kubelet.exists():
                continue
            await served.listen()
            with suppress(CriError):  # `refusals` tells
                await self._register(served.plugin)

    async def _register(self, plugin: FakeDevicePlugin) -> None:
        target = f"unix:{self.directory / KUBELET_SOCKET}"
        options = [("grpc.default_authority", "localhost")]
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            stub = services.RegistrationStub(channel)
            try:
                await stub.Register(
                    plugin.registration(),
                    timeout=REGISTER_LIMIT_S,
                )
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    plugin.refusals.append(error.details() or "")
                raise CriError(status_code(error.code()), error.details() or "") from None


@asynccontextmanager
async def serve(plugin: FakeDevicePlugin, directory: Path | str) -> AsyncIterator[ServedPlugins]:
    """Let one plugin listen in `directory` and register there, until the block ends. Errors as
    `ServedPlugins.start`."""
    plugins = ServedPlugins(directory)
    try:
        await plugins.start(plugin)
        yield plugins
    finally:
        await plugins.close()
