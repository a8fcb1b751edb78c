"""Checks the ports of containers. Pure.

Upstream: validateContainerPorts, AccumulateUniqueHostPorts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubeobjects.causes import Cause, duplicate, required
from kubeobjects.pods.common.checks import Object, port_name, port_number, word

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def port_causes(container: Object, path: str) -> Iterator[Cause]:
    """What is wrong with the ports of one container, each by itself and among the others."""
    names: set[str] = set()
    for i, port in enumerate(container.get("ports") or ()):
        port_path, name = f"{path}.ports[{i}]", port.get("name") or ""
        wrong = list(port_name(name, f"{port_path}.name")) if name else []
        yield from wrong
        if name and not wrong:
            if name in names:
                yield duplicate(f"{port_path}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield required(f"{port_path}.containerPort")
        else:
            yield from port_number(port["containerPort"], f"{port_path}.containerPort")
        yield from port_number(port.get("hostPort") or 1, f"{port_path}.hostPort")
        yield from word(port.get("protocol"), f"{port_path}.protocol", _PROTOCOLS)


def host_port_causes(containers: Sequence[Object], path: str) -> Iterator[Cause]:
    """Ports of the host that more than one port of these containers takes."""
    addresses: set[str] = set()
    for index, container in enumerate(containers):
        for i, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            address = f"{port.get('protocol', '')}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if address in addresses:
                yield duplicate(f"{path}[{index}].ports[{i}].hostPort", address)
            addresses.add(address)
