"""Which signal stops a container, and with which code it then ends. Pure (CRI-061).

The wire's `Signal` numbers are not signal numbers (SIGTERM is 23 there): names travel here.
"""

from __future__ import annotations

import signal
from typing import Final

from kubecri.v1 import api_pb2 as pb

DEFAULT: Final = "SIGTERM"
_BY_NUMBER: Final = {number: name for name, number in pb.Signal.items()}


def effective(requested: int, of_image: str) -> str:
    """The request's signal, else the image's, else SIGTERM. A number the wire does not know
    counts as no request.

    >>> effective(pb.RUNTIME_DEFAULT, "SIGQUIT"), effective(pb.SIGINT, "SIGQUIT")
    ('SIGQUIT', 'SIGINT')
    """
    name = _BY_NUMBER.get(requested, "")
    return name if requested and name else normal(of_image) or DEFAULT


def normal(name: str) -> str:
    """`TERM`, `sigterm` and `15` are all SIGTERM; "" stays "". Raises ValueError.

    >>> normal("term"), normal("15")
    ('SIGTERM', 'SIGTERM')
    """
    if not name:
        return ""
    if name.isdecimal() and int(name) in {number.value for number in signal.Signals}:
        return signal.Signals(int(name)).name
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    if full not in pb.Signal.keys():  # noqa: SIM118 (an enum wrapper, not a dict)
        raise ValueError(f"{name!r} is no signal; wanted a name like SIGTERM")
    return full


def wire_value(name: str) -> pb.Signal:
    """The number that stands for a signal on the wire."""
    value: pb.Signal = pb.Signal.Value(name)  # type: ignore[assignment]
    return value


def exit_code(name: str) -> int:
    """128 + the signal's number, what a process ends with that the signal kills (CRI-070).

    >>> exit_code("SIGTERM"), exit_code("SIGRTMINPLUS1")
    (143, 163)
    """
    base, _, offset = name.replace("MINUS", "PLUS-").partition("PLUS")
    number = signal.Signals[base].value if base in signal.Signals.__members__ else signal.SIGTERM
    return 128 + number + int(offset or 0)
