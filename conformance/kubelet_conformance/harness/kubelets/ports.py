"""Ports for kubelet processes: no two kubelets on this machine get the same one, even if they
belong to two runs at the same time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import islice
from typing import Final

FIRST: Final = 10_300
BLOCK: Final = 100
BLOCKS: Final = 200
"""All below the range from which the system takes ports for outgoing connections."""
HOST: Final = "127.0.0.1"


class Ports:
    """Gives ports that are not in use, each only once: a port that was given may still look unused,
    as its kubelet begins to listen later.

    Ports come in blocks. A run that holds a block is bound to its first port until `close`, or
    until its process ends, so that other runs on this machine take other blocks.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []
        self._ports = self._free()

    def take(self, count: int) -> list[int]:
        """That many ports. Raises RuntimeError when all blocks are in use."""
        ports = list(islice(self._ports, count))
        if len(ports) < count:
            last = FIRST + BLOCK * BLOCKS - 1
            raise RuntimeError(f"no {count} free ports from {FIRST} to {last}")
        return ports

    def close(self) -> None:
        """Release all blocks, after every kubelet has ended; the next port is again the first."""
        for bound_socket in self._held:
            bound_socket.close()
        self._held.clear()
        self._ports = self._free()

    def _free(self) -> Iterator[int]:
        """The ports of one free block after the other."""
        for block in range(FIRST, FIRST + BLOCK * BLOCKS, BLOCK):
            blocker = _bound(block)
            if blocker is None:
                continue
            self._held.append(blocker)
            for port in range(block + 1, block + BLOCK):
                probe = _bound(port)
                if probe is not None:
                    probe.close()
                    yield port


def _bound(port: int) -> socket.socket | None:
    """A socket bound to that port, which does not listen; None when the port is in use."""
    sock = socket.socket()
    try:
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        return None
    return sock
