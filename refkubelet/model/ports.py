"""The port of a probe or hook: a number, or the name of one of the container's own ports. Pure.

Rule: PROBE-061. Upstream: pkg/probe/util.go: ResolveContainerPort.
"""

from __future__ import annotations

import json
import re
from typing import Final

from refkubelet.model.objects import Container

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


class PortError(ValueError):
    """The port cannot be told, or is none; the text is upstream's."""


def resolve_port(port: int | str, container: Container) -> int:
    """A number, a name among the container's own ports, or digits; 1 to 65535.

    Raises `PortError`: the run is discarded, so a wrong name never kills anything.
    """
    number = port
    if isinstance(port, str):
        number = next((p.containerPort for p in container.ports or () if p.name == port), port)
    if isinstance(number, str):
        if not _WHOLE_NUMBER.fullmatch(number):
            quoted = json.dumps(number, ensure_ascii=False)
            raise PortError(f"strconv.Atoi: parsing {quoted}: invalid syntax")
        number = int(number)
    if not 0 < number < 65536:
        raise PortError(f"invalid port number: {number}")
    return number
