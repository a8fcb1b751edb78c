"""A client of systemd-logind on the system's D-Bus, which signals and delays shutdowns (NODE-060).

The library for D-Bus is imported only when it is used: most configurations ask for no graceful
shutdown (`wiring.extras` looks for the library when one does). What must never happen here: the
descriptor of a released lock stays open, or logind's own configuration file is changed.
Upstream: pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from refkubelet.host.places import ROOT_DIR
from refkubelet.node.shutdown_manager import ShutdownSourceError

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

CALL_LIMIT_S: Final = 10.0
DBUS: Final = "org.freedesktop.DBus"
DBUS_PATH: Final = "/org/freedesktop/DBus"
GET_PROPERTY: Final = f"{DBUS}.Properties.Get"
LONGEST_DELAY: Final = "InhibitDelayMaxUSec"
LOGIND: Final = "org.freedesktop.login1"
LOGIND_PATH: Final = "/org/freedesktop/login1"
MANAGER: Final = "org.freedesktop.login1.Manager"
SIGNAL: Final = "PrepareForShutdown"
SYSTEMD: Final = "org.freedesktop.systemd1"
SIGHUP: Final = 1
INHIBIT: Final = ("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay")
RULES: Final = f"type='signal',interface='{MANAGER}',member='{SIGNAL}',path='{LOGIND_PATH}'"
NOT_OURS: Final = (
    "shutdowns cannot be delayed for {:.0f} s, as shutdownGracePeriod needs: only a kubelet whose "
    f"--root-dir is {ROOT_DIR} changes the machine's logind; set InhibitDelayMaxSec in logind.conf"
)


class DescriptorLock:
    """An inhibitor lock of logind, held while its descriptor is open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    async def release(self) -> None:
        """Close the descriptor, so that a shutdown goes on; again is nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)


class Logind:
    """A `ShutdownSource`. `config`: the file with which logind is configured for a longer delay,
    written only by `set_longest_delay`; None: logind's settings are left alone. `address`: of the
    bus; None: the system bus."""

    def __init__(self, config: Path | None, address: str | None = None) -> None:
        self._config = config
        self._address = address
        self._bus: MessageBus | None = None

    async def longest_delay_s(self) -> float:
        """How long a lock can hold up a shutdown (InhibitDelayMaxUSec)."""
        answer = await self._call(
            LOGIND, LOGIND_PATH, GET_PROPERTY, types="ss", body=(MANAGER, LONGEST_DELAY)
        )
        return float(answer.body[0].value) / 1e6

    async def set_longest_delay(self, delay_s: float) -> None:
        """Write the file unless it has this content already, and make logind read it. Raises
        `ShutdownSourceError`."""
        if self._config is None:
            raise ShutdownSourceError(NOT_OURS.format(delay_s))
        text = f"# Written by refkubelet\n[Login]\nInhibitDelayMaxSec={delay_s:.0f}\n"
        try:
            self._config.parent.mkdir(parents=True, exist_ok=True)
            if not self._config.exists() or self._config.read_text(errors="replace") != text:
                self._config.write_text(text)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ShutdownSourceError(f"{self._config}: cannot be written: {reason}") from None
        kill = f"{SYSTEMD}.Manager.KillUnit"
        unit = ("systemd-logind.service", "all", SIGHUP)
        await self._call(SYSTEMD, "/org/freedesktop/systemd1", kill, types="ssi", body=unit)

    async def inhibit(self) -> DescriptorLock:
        """Hold up shutdowns until the lock is released."""
        answer = await self._call(
            LOGIND, LOGIND_PATH, f"{MANAGER}.Inhibit", types="ssss", body=INHIBIT
        )
        return DescriptorLock(answer.unix_fds[answer.body[0]])

    async def signals(self) -> AsyncGenerator[bool, None]:
        """Yields True when a shutdown begins and False when it is cancelled. Raises
        `ShutdownSourceError` when the connection ends."""
        bus = await self._connected()
        heard: asyncio.Queue[bool | None] = asyncio.Queue()

        def hear(message: Message) -> None:
            if message.interface == MANAGER and message.member == SIGNAL and message.body:
                heard.put_nowait(bool(message.body[0]))

        bus.add_message_handler(hear)
        add_match = f"{DBUS}.AddMatch"
        await self._call(DBUS, DBUS_PATH, add_match, types="s", body=(RULES,))
        lost = asyncio.ensure_future(bus.wait_for_disconnect())  # type: ignore[no-untyped-call]

        def broke_off(ended: asyncio.Future[None]) -> None:
            if not ended.cancelled():
                ended.exception()  # fetched, or asyncio would log it
            heard.put_nowait(None)

        lost.add_done_callback(broke_off)
        try:
            while (begins := await heard.get()) is not None:
                yield begins
        finally:
            lost.cancel()
            bus.remove_message_handler(hear)
            self.disconnect()
        raise ShutdownSourceError("the connection to the system bus broke off")

    async def _connected(self) -> MessageBus:
        if self._bus is not None and self._bus.connected:
            return self._bus
        from dbus_fast import BusType
        from dbus_fast.aio import MessageBus

        try:
            bus = MessageBus(self._address, BusType.SYSTEM, negotiate_unix_fd=True)
            self._bus = await bus.connect()
        except Exception as error:  # the library has no base class for what can go wrong
            raise ShutdownSourceError(f"the system bus cannot be reached: {error}") from None
        return self._bus

    async def _call(
        self, name: str, path: str, method: str, types: str, body: tuple[Any, ...]
    ) -> Message:
        """Call a method and return the answer. `method`: interface and member; `types`: the D-Bus
        signature of `body`. Raises `ShutdownSourceError`."""
        from dbus_fast import Message, MessageType

        bus = await self._connected()
        interface, _, member = method.rpartition(".")
        request = Message(name, path, interface, member, signature=types, body=list(body))
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                answer = await bus.call(request)
        except Exception as error:
            self.disconnect()
            reason = str(error) or type(error).__name__
            raise ShutdownSourceError(f"{method}: {reason}") from None
        if answer is None or answer.message_type is MessageType.ERROR:
            text = answer.body[0] if answer is not None and answer.body else "no answer"
            raise ShutdownSourceError(f"{method}: {text}")
        return answer

    def disconnect(self) -> None:
        """Close the connection; the next call opens a new one."""
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.disconnect()
