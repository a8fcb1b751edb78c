"""The network interfaces of the machine, as /proc/net/dev lists them.

Those of pods and of the node itself (`lo`, `veth`, `docker`, `nerdctl` and what follows) are left
out, as cAdvisor does. Rules: SRV-030. Upstream: cAdvisor, container/libcontainer/handler.go:
scanInterfaceStats.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from refkubelet.model.traffic import InterfaceTraffic

IGNORED: Final = ("lo", "veth", "docker", "nerdctl")
_HEADER_LINES: Final = 2
_COLUMNS: Final = 16
_RX_BYTES, _RX_ERRORS, _TX_BYTES, _TX_ERRORS = 0, 2, 8, 10


def read_interfaces(file: Path) -> tuple[InterfaceTraffic, ...]:
    """The interfaces that `file`, /proc/net/dev, lists; none if it cannot be read."""
    try:
        return parse_interfaces(file.read_text())
    except OSError:
        return ()


def parse_interfaces(text: str) -> tuple[InterfaceTraffic, ...]:
    """The interfaces in the text of /proc/net/dev; a line that is of another form is left out.

    >>> row = "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"
    >>> parse_interfaces(f"Inter-\\n face\\n{row}")[0].tx_errors
    11
    """
    interfaces = []
    for line in text.splitlines()[_HEADER_LINES:]:
        name, _, rest = line.strip().rpartition(":")
        columns = rest.split()
        if len(columns) < _COLUMNS or not all(c.isdecimal() for c in columns):
            continue
        if name and not name.lower().startswith(IGNORED):
            values = (int(columns[i]) for i in (_RX_BYTES, _RX_ERRORS, _TX_BYTES, _TX_ERRORS))
            interfaces.append(InterfaceTraffic(name, *values))
    return tuple(interfaces)
