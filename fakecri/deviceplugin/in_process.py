"""The device-plugins directory as an object: plugins and kubelet in one process, without sockets.

For virtual time, where there are no sockets. It does what the directory does: a kubelet that starts
removes every socket, so plugins have to listen and register again; a plugin that dies breaks its
streams. It knows nothing of a kubelet but the function that takes registrations.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from google.protobuf.message import Message

from fakecri.deviceplugin.plugin import FakeDevicePlugin
from fakecri.errors import CriError, status_code, unknown

Register = Callable[[Message], Awaitable[None]]


class InProcessPlugins:
    """The device-plugins directory; give it to the kubelet under test.

    A `faithful` plugin registers again whenever the kubelet starts, as plugins do that watch the
    kubelet's socket.
    """

    def __init__(self) -> None:
        self._listening: dict[str, FakeDevicePlugin] = {}
        self._faithful: dict[str, FakeDevicePlugin] = {}
        self._elsewhere: dict[str, FakeDevicePlugin] = {}
        self._register: Register | None = None
        self._returning: set[asyncio.Task[None]] = set()

    # The plugins' side

    async def start(self, plugin: FakeDevicePlugin, *, faithful: bool = True) -> None:
        """Let a plugin listen and register.

        Raises CriError when the kubelet refuses it, and UNAVAILABLE when there is no kubelet; a
        faithful plugin then registers with the next one that starts.
        """
        self._listening[plugin.endpoint] = plugin
        if faithful:
            self._faithful[plugin.endpoint] = plugin
        if self._register is None:
            raise CriError(status_code("UNAVAILABLE"), "no kubelet takes registrations")
        await self._send(plugin)

    async def _send(self, plugin: FakeDevicePlugin) -> None:
        assert self._register is not None
        try:
            await self._register(plugin.registration())
        except Exception as error:  # whatever a service raises, its client sees as UNKNOWN
            plugin.refusals.append(str(error))
            raise unknown(str(error)) from None

    async def stop(self, plugin: FakeDevicePlugin) -> None:
        """Let a plugin die: its socket and its streams are gone."""
        self._listening.pop(plugin.endpoint, None)
        self._faithful.pop(plugin.endpoint, None)
        plugin.end_streams()

    def listen_at(self, path: str, plugin: FakeDevicePlugin) -> None:
        """Let a plugin listen at a socket outside the directory, where it does not register
        itself."""
        self._elsewhere[path] = plugin

    def leave(self, path: str) -> None:
        """Let the plugin at that socket die, if there is one."""
        plugin = self._elsewhere.pop(path, None)
        if plugin is not None:
            plugin.end_streams()

    # The kubelet's side

    async def open(self, register: Register) -> None:
        """A kubelet starts: all sockets are removed, and faithful plugins register again.
        `register`: what it does with a registration."""
        self._listening.clear()
        self._register = register
        for plugin in self._faithful.values():
            task = asyncio.create_task(self._return(plugin), name=f"plugin {plugin.endpoint}")
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _return(self, plugin: FakeDevicePlugin) -> None:
        self._listening[plugin.endpoint] = plugin
        if self._register is not None:
            with suppress(CriError):  # `refusals` tells
                await self._send(plugin)

    async def connect(self, endpoint: str) -> Connection:
        """A kubelet's connection to a plugin. Raises ConnectionRefusedError when no plugin
        listens."""
        if endpoint not in self._listening:
            raise ConnectionRefusedError(f"no plugin listens at {endpoint}")
        return Connection(self, self._listening[endpoint])

    async def connect_at(self, path: str) -> Connection:
        """A kubelet's connection to a plugin whose socket it has found elsewhere. Raises
        ConnectionRefusedError."""
        if path not in self._elsewhere:
            raise ConnectionRefusedError(f"no plugin listens at {path}")
        return Connection(self, self._elsewhere[path])

    async def close(self) -> None:
        """The kubelet ends. The plugins stay, but cannot register any more."""
        self._register = None

    def listens(self, plugin: FakeDevicePlugin) -> bool:
        """Whether it can be reached at its socket, in the directory or elsewhere."""
        is_listening = self._listening.get(plugin.endpoint) is plugin
        return is_listening or any(other is plugin for other in self._elsewhere.values())


class Connection:
    """A kubelet's connection to one plugin; calls fail once the plugin has died."""

    def __init__(self, plugins: InProcessPlugins, plugin: FakeDevicePlugin) -> None:
        self._plugins = plugins
        self._plugin = plugin

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        if not self._plugins.listens(self._plugin):
            raise CriError(status_code("UNAVAILABLE"), "connection refused")
        return await self._plugin.call(method, request, timeout_s=timeout_s)

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        return self._plugin.stream(method, request, timeout_s=timeout_s)

    async def close(self) -> None:
        """Nothing to do: no connection is held."""
