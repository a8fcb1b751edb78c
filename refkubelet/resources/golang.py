"""Go's way of reading a boolean and a whole number, with its words when it cannot. Pure.

Policy options are texts in the configuration, and the kubelet reads them with Go's strconv: what
is accepted there, and what the error says, is part of the interface. Upstream: Go's strconv:
ParseBool, Atoi.
"""

from __future__ import annotations

import json
import re
from typing import Final

TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
INT64: Final = range(-(2**63), 2**63)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def parse_bool(text: str) -> bool:
    """True or False. Raises ValueError with Go's text.

    >>> parse_bool("T"), parse_bool("false")
    (True, False)
    """
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax")


def atoi(text: str) -> int:
    """A decimal number of 64 bits. Raises ValueError with Go's text.

    >>> atoi("-7")
    -7
    """
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    if (value := int(text)) not in INT64:
        raise ValueError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return value


def quoted(text: str) -> str:
    r"""The text in double quotes, as Go's %q writes it.

    >>> print(quoted('a"b'))
    "a\"b"
    """
    return json.dumps(text, ensure_ascii=False)
