"""A fake systemd-logind on a D-Bus of its own, for kubelets in processes of their own.

`dbus-daemon` is a bus of its own; kubelets find it through DBUS_SYSTEM_BUS_ADDRESS.
Locks are descriptors, as logind's are: they hold until the kubelet closes its end. Needs the
program `dbus-daemon` and the library dbus-fast (extra `logind`). What must never happen here: the
machine's own bus is touched.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fakecri.machine.logind import FakeLogind

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

NAME: Final = "org.freedesktop.login1"
PATH: Final = "/org/freedesktop/login1"
PROGRAM: Final = "dbus-daemon"
SOCKET: Final = "system-bus"
LONGEST_START_S: Final = 10.0
CONFIG: Final = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/>
    <allow send_type="method_call"/><allow send_type="signal"/>
    <allow send_type="method_return"/><allow send_type="error"/>
    <allow receive_type="method_call"/><allow receive_type="signal"/>
    <allow receive_type="method_return"/><allow receive_type="error"/>
  </policy>
</busconfig>
"""


def can_serve() -> bool:
    """Whether this machine has what it takes."""
    from importlib.util import find_spec

    return shutil.which(PROGRAM) is not None and find_spec("dbus_fast") is not None


@asynccontextmanager
async def serve_logind(logind: FakeLogind, directory: Path) -> AsyncIterator[str]:
    """Serve `logind` on a bus with its socket in `directory`; gives the address of the bus."""
    from dbus_fast.aio import MessageBus

    socket, config = directory / SOCKET, directory / "bus.xml"
    config.write_text(CONFIG.format(socket=socket))
    flags = ("--nofork", "--nopidfile", "--nosyslog", "--print-address")
    daemon = await asyncio.create_subprocess_exec(
        *(PROGRAM, f"--config-file={config}", *flags),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(LONGEST_START_S):
            address = (await daemon.stdout.readline()).decode().strip() if daemon.stdout else ""
        bus = await MessageBus(address, negotiate_unix_fd=True).connect()
        served = _Served(logind, bus)
        await bus.request_name(NAME)
        try:
            yield address
        finally:
            await served.close()
            bus.disconnect()
    finally:
        if daemon.returncode is None:
            daemon.kill()
        await daemon.wait()


class _Served:
    """Answers what kubelets ask, and passes on what logind tells."""

    def __init__(self, logind: FakeLogind, bus: MessageBus) -> None:
        self._logind = logind
        self._bus = bus
        self._tasks: set[asyncio.Task[None]] = set()
        bus.add_message_handler(self._asked)
        self._begin(self._tell())

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _asked(self, message: Message) -> Message | bool | None:
        from dbus_fast import Message, Variant

        if message.member == "Inhibit":
            self._begin(self._give_lock(message))
            return True
        if message.member == "Get" and message.body[1:] == ["InhibitDelayMaxUSec"]:
            delay = Variant("t", round(self._logind.delay_s * 1e6))
            return Message.new_method_return(message, "v", [delay])
        return None

    async def _give_lock(self, asked: Message) -> None:
        """The kubelet's end of a pipe; when it is closed, the lock is released."""
        from dbus_fast import Message

        lock, loop = await self._logind.inhibit(), asyncio.get_running_loop()
        read_end, write_end = os.pipe()
        closed = asyncio.Event()
        loop.add_reader(read_end, closed.set)
        try:
            await self._bus.send(Message.new_method_return(asked, "h", [0], unix_fds=[write_end]))
            os.close(write_end)
            await closed.wait()
        finally:
            loop.remove_reader(read_end)
            os.close(read_end)
            await lock.release()

    async def _tell(self) -> None:
        from dbus_fast import Message

        async with aclosing(self._logind.signals()) as signals:
            async for begins in signals:
                signal_parts = f"{NAME}.Manager", "PrepareForShutdown", "b", [begins]
                await self._bus.send(Message.new_signal(PATH, *signal_parts))
