"""While a TCP probe waits for its peer the kubelet's thread sleeps, in whatever state the peer is.

How often the loop looks at its sockets is counted, not the time that passes, so that a busy machine
judges as an idle one does.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import pytest

from refkubelet.host.network import NetworkError, SocketNetwork

LOOPBACK: Final = "127.0.0.1"
WAIT_S: Final = 0.3
FEW: Final = 60
"""Looks of a loop that sleeps: about ten. One that does not sleep looks some thousand times."""


class CountingSelector(selectors.DefaultSelector):
    looks = 0

    def select(self, timeout: float | None = None) -> Any:
        self.looks += 1
        return super().select(timeout)


@contextmanager
def full_listener() -> Iterator[int]:
    """A port whose queue of connections is full: the kernel drops what asks for another one."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((LOOPBACK, 0))
        listener.listen(0)
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@contextmanager
def listener_that(does: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port on which `does` gets each connection, as soon as the loop that runs sees it."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        kept = []

        def accept() -> None:
            connection, _ = listener.accept()
            kept.append(connection)
            does(connection)

        loop.add_reader(listener, accept)
        try:
            yield listener.getsockname()[1]
        finally:
            loop.remove_reader(listener)
            for connection in kept:
                connection.close()


def says_nothing(connection: socket.socket) -> None:
    return


def ends_its_half(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def looks_during(probe: Callable[[], Any]) -> int:
    """How often a loop looks at its sockets while it runs the probe, and for a moment after."""
    selector = CountingSelector()

    async def run() -> None:
        await probe()
        await asyncio.sleep(WAIT_S)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(run())
    return selector.looks


def test_a_connection_that_is_not_taken_is_waited_for_asleep_PROBE_071() -> None:
    async def probe() -> None:
        with full_listener() as port:
            try:
                await SocketNetwork().tcp_connect(LOOPBACK, port, WAIT_S)
            except NetworkError as error:
                if "i/o timeout" in str(error):
                    return
            pytest.skip("this kernel does not drop what a full queue has no room for")

    assert looks_during(probe) < FEW


@pytest.mark.parametrize("does", [says_nothing, ends_its_half, resets])
def test_a_connection_that_is_over_is_not_looked_at_any_more_PROBE_071(
    does: Callable[[socket.socket], None],
) -> None:
    async def probe() -> None:
        with listener_that(does) as port:
            with suppress(NetworkError):  # a reset may come before the answer
                await SocketNetwork().tcp_connect(LOOPBACK, port, 60)
            await asyncio.sleep(WAIT_S)

    assert looks_during(probe) < FEW
