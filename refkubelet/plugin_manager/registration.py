"""Registers one plug-in: asks what it is, hands it to the handler of its type, tells it how it went
(CG-086).

In real time a plug-in is a socket (`sockets`), in virtual time an object in this process; both are
reached through `RegistrationSockets`. Every call has a time limit.
Upstream: pkg/kubelet/pluginmanager/operationexecutor/operation_generator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import grpc
from kubecri.pluginregistration import api_pb2 as api
from msgspec import Struct

from kubeobjects.golang.grpc_codes import rpc_error
from refkubelet.host.plugin_socket import PluginConnection

INFO_LIMIT_S: Final = 1.0
NOTIFY_LIMIT_S: Final = 5.0

Registered = Callable[["PluginEntry"], None]


class RegistrationError(Exception):
    """A plug-in could not be registered; the text is the kubelet's."""


class PluginRefused(Exception):
    """A handler does not take the plug-in; the text says why."""


class PluginEntry(Struct, frozen=True):
    """A plug-in as it told of itself; `endpoint`: the path of its service's socket."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...] = ()


class PluginHandler(Protocol):
    """What takes the plug-ins of one type."""

    def validate(self, entry: PluginEntry) -> None:
        """Refuse a plug-in that cannot be used, before it is registered. Raises `PluginRefused`."""

    async def register(self, entry: PluginEntry) -> None:
        """Use the plug-in from now on. Raises `PluginRefused`."""

    async def let_go(self, entry: PluginEntry) -> None:
        """Its socket is gone, or was made anew."""


class RegistrationSockets(Protocol):
    """The way to the sockets below plugins_registry."""

    async def connect(self, path: str) -> PluginConnection:
        """A connection to the plug-in there. Raises OSError if nothing listens."""


async def register_plugin(
    path: str,
    sockets: RegistrationSockets,
    handlers: Mapping[str, PluginHandler],
    known: Registered,
) -> None:
    """Register the plug-in at that socket. `known` is called when its handler is about to take it,
    so that it can be let go even while it is being registered. Raises `RegistrationError`, after
    the plug-in was told, if it can be."""
    try:
        connection = await sockets.connect(path)
    except OSError as error:
        raise RegistrationError(f"dial failed at socket {path}, err: {error}") from None
    try:
        entry = await _info(connection, path)
        try:
            await _hand_over(entry, path, handlers, known)
        except RegistrationError as error:
            await _notify(connection, path, error=f"RegisterPlugin error -- {error}")
            raise
        await _notify(connection, path)
    finally:
        await connection.close()


async def _info(connection: PluginConnection, path: str) -> PluginEntry:
    try:
        info = await connection.call("GetInfo", api.InfoRequest(), timeout_s=INFO_LIMIT_S)
    except grpc.RpcError as error:
        raise RegistrationError(
            f"failed to get plugin info using RPC GetInfo at socket {path}, err: {_text(error)}"
        ) from None
    endpoint = info.endpoint or path
    return PluginEntry(info.type, info.name, endpoint, tuple(info.supported_versions))


async def _hand_over(
    entry: PluginEntry, path: str, handlers: Mapping[str, PluginHandler], known: Registered
) -> None:
    handler = handlers.get(entry.type)
    if handler is None:
        raise RegistrationError(
            f"no handler registered for plugin type: {entry.type} at socket {path}"
        )
    try:
        handler.validate(entry)
    except PluginRefused as refused:
        raise RegistrationError(f"plugin validation failed with err: {refused}") from None
    known(entry)
    try:
        await handler.register(entry)
    except PluginRefused as refused:
        raise RegistrationError(f"plugin registration failed with err: {refused}") from None


async def _notify(connection: PluginConnection, path: str, error: str = "") -> None:
    status = api.RegistrationStatus(plugin_registered=not error, error=error)
    try:
        await connection.call("NotifyRegistrationStatus", status, timeout_s=NOTIFY_LIMIT_S)
    except grpc.RpcError as failure:
        message_kind = "error" if error else "registration status"
        raise RegistrationError(
            f"failed to send {message_kind} at socket {path}, err: {error + ': ' if error else ''}"
            f"{_text(failure)}"
        ) from None


def _text(error: Any) -> str:
    return rpc_error(error.code().name, error.details())


class NotSupported:
    """The handler of a type whose part of the kubelet is not there: every plug-in is told so."""

    def __init__(self, what: str) -> None:
        self._what = what

    def validate(self, entry: PluginEntry) -> None:
        raise PluginRefused(f"{entry.name}: {self._what} are not supported by refkubelet")

    async def register(self, entry: PluginEntry) -> None:
        """Never called."""
        self.validate(entry)

    async def let_go(self, entry: PluginEntry) -> None:
        """Nothing was taken."""
