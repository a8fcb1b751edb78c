"""Fake storage drivers that a kubelet in the same process reaches by the paths of their sockets.

For virtual time, where nobody listens at a socket. As with real ones, a new connection needs the
socket's file, and no call is answered after the driver has ended.
"""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import Message

from fakecri.csi.driver import FakeCsiDriver
from fakecri.errors import CriError, status_code


class InProcessCsi:
    """The sockets of drivers; give it to the kubelet under test."""

    def __init__(self) -> None:
        self._listening: dict[str, FakeCsiDriver] = {}

    # The drivers' side

    def listen_at(self, path: str, driver: FakeCsiDriver) -> None:
        """Let the driver listen at a socket; the caller makes its file."""
        self._listening[path] = driver

    def leave(self, path: str) -> None:
        """Let the driver at that socket end, if there is one."""
        self._listening.pop(path, None)

    # The kubelet's side

    def connect(self, endpoint: str) -> CsiConnection:
        """A kubelet's connection to the driver at that socket. Raises ConnectionRefusedError when
        none listens there, or its file is gone."""
        driver = self._listening.get(endpoint)
        if driver is None or not Path(endpoint).exists():
            raise ConnectionRefusedError(f"no CSI driver listens at {endpoint}")
        return CsiConnection(self, endpoint, driver)

    def listens(self, path: str, driver: FakeCsiDriver) -> bool:
        """Whether the driver still listens at that socket."""
        return self._listening.get(path) is driver


class CsiConnection:
    """A kubelet's connection to one driver; calls fail once the driver has ended."""

    def __init__(self, sockets: InProcessCsi, endpoint: str, driver: FakeCsiDriver) -> None:
        self._sockets = sockets
        self._endpoint = endpoint
        self._driver = driver

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        """Answer one call of the Node service, or GetPluginInfo. Raises CriError."""
        if not self._sockets.listens(self._endpoint, self._driver):
            raise CriError(status_code("UNAVAILABLE"), "connection refused")
        return await self._driver.call(method, request, timeout_s=timeout_s)

    async def close(self) -> None:
        """Nothing is held."""
