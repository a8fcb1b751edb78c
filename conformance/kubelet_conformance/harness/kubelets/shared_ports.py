"""The ports of the pods of several tenants, for a kubelet in this process."""

from __future__ import annotations

from typing import Any

from fakecri.programs.ports import NotServed, Ports
from fakecri.words.behaviors import serves


class SharedPorts:
    """Asks the `Ports` of the fake whose pods have the address."""

    def __init__(self) -> None:
        self._by_network: dict[str, Ports] = {}

    def add(self, network: str, ports: Ports) -> None:
        """From now on `ports` has the addresses that begin so: `10.88`."""
        self._by_network[f"{network}."] = ports

    def _of(self, host: str) -> Ports:
        for network, ports in self._by_network.items():
            if host.startswith(network):
                return ports
        raise NotServed

    def connect(self, host: str, port: int) -> str:
        """See `Ports.connect`."""
        return self._of(host).connect(host, port)

    async def http(self, host: str, *arguments: Any, **more: Any) -> serves:
        """See `Ports.http`."""
        return await self._of(host).http(host, *arguments, **more)

    async def health(self, host: str, port: int, service: str) -> str:
        """See `Ports.health`."""
        return await self._of(host).health(host, port, service)
