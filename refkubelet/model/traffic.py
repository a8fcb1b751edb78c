"""What network interfaces have carried. Pure."""

from __future__ import annotations

from msgspec import Struct


class InterfaceTraffic(Struct, frozen=True):
    """Bytes and errors of one interface since it exists; None: not told."""

    name: str
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None


class Traffic(Struct, frozen=True):
    """The traffic of a node or pod. `default`: its interface to the world, None if it is not known;
    `interfaces`: as its source lists them, with or without the default one."""

    time_ns: int
    default: InterfaceTraffic | None = None
    interfaces: tuple[InterfaceTraffic, ...] = ()

    def each(self) -> tuple[InterfaceTraffic, ...]:
        """Every interface once, the default one first."""
        if self.default is None:
            return self.interfaces
        name = self.default.name
        return (self.default, *(i for i in self.interfaces if i.name != name))
