"""Real sockets in front of `Ports`: what containers serve can be reached at their pods' addresses.

Only for a pod network inside 127.0.0.0/8, where every address is this machine's. Host ports and
pods on the host's network are at 127.0.0.1 then. A socket listens while its container serves the
port; what it answers is decided by `Ports`. No socket is opened in virtual time. A port that is
taken by another program is a warning in the log, nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from fakecri import programs
from fakecri.core.objects import Sandbox
from fakecri.core.runtime import News
from fakecri.programs.ports import Ports, host_ports
from simclock import VirtualLoop

log = logging.getLogger("fakecri")
Place: TypeAlias = tuple[str, int, str]
"""Address, port, protocol."""
_NODE: Final = "127.0.0.1"


class Listening:
    """Opens and closes sockets as containers begin and end to serve ports. `tls`: the context for
    https ports; without it they are not opened."""

    def __init__(self, ports: Ports) -> None:
        self.tls: ssl.SSLContext | None = None
        self._ports = ports
        self._open: dict[Place, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def refresh(self, news: News | None = None) -> None:
        """Open and close what is due. `news`: the change that it is called for, if it is for
        one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # programmed between two loops
        if isinstance(loop, VirtualLoop):
            return
        wanted = set(self._wanted())
        for place in [p for p in self._open if p not in wanted]:
            self._open.pop(place).cancel()
        for place in sorted(wanted - self._open.keys()):
            self._bind(place, loop)
        self._set_timer(loop)

    async def stop(self) -> None:
        """Close all sockets."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._open.values())
        self._open.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _wanted(self) -> list[Place]:
        return [
            (host, port, rule.protocol)
            for container, rules in self._ports.listening()
            for rule in rules
            for host, port in _places(container.sandbox, rule.port)
        ]

    def _bind(self, place: Place, loop: asyncio.AbstractEventLoop) -> None:
        """Open a socket. It listens when this returns, so that a client that comes at once is not
        refused."""
        host, port, protocol = place
        if protocol == "https" and self.tls is None:
            log.warning("%s:%d: https needs a certificate", host, port)
            return
        try:
            bound = socket.create_server((host, port)) if protocol != "grpc" else None
        except OSError as error:
            log.warning("cannot listen on %s:%d: %s", host, port, error)
            return
        serving = programs.SERVE[protocol](self._ports, place, bound, self.tls)
        task = loop.create_task(_until_cancelled(serving))
        self._open[place] = task

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waits = list(self._ports.waits_s())
        if waits:
            self._timer = loop.call_later(max(min(waits), 0.001), self.refresh)


def _places(sandbox: Sandbox, port: int) -> list[tuple[str, int]]:
    """Where a port of a pod is reached: at its address, or on the node's loopback address for pods
    on the host's network and for host ports."""
    at_node = [(_NODE, on_host) for on_host, inside in host_ports(sandbox) if inside == port]
    if sandbox.on_host_network:
        return [(_NODE, port)]
    return [(sandbox.ip, port), *at_node] if sandbox.ip else []


async def _until_cancelled(serving: Awaitable[Callable[[], Awaitable[None]]]) -> None:
    stop: Callable[[], Awaitable[None]] | None = None
    try:
        stop = await serving
        await asyncio.Event().wait()
    except (OSError, RuntimeError) as error:
        log.warning("a port of a container cannot be served: %s", error)
    finally:
        if stop is not None:
            await stop()
