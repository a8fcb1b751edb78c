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
        here, name = f"{path}.ports[{i}]", port.get("name") or ""
        wrong = list(port_name(name, f"{here}.name")) if name else []
        yield from wrong
        if name and not wrong:
            if name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield required(f"{here}.containerPort")
        else:
            yield from port_number(port["containerPort"], f"{here}.containerPort")
        yield from port_number(port.get("hostPort") or 1, f"{here}.hostPort")
        yield from word(port.get("protocol"), f"{here}.protocol", _PROTOCOLS)


def host_port_causes(containers: Sequence[Object], path: str) -> Iterator[Cause]:
    """Ports of the host that more than one port of these containers takes."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for i, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            address = f"{port.get('protocol', '')}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if address in taken:
                yield duplicate(f"{path}[{index}].ports[{i}].hostPort", address)
            taken.add(address)
