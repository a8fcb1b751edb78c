"""The kinds of fields that configuration files have: integers of 32 bits, durations, amounts, ...

A schema is a `Schema` with fields of these types. For a type checker they are what they are read
as; for the strict reader also what a file may have, and what errors call that. A field's name in
the file is upstream's: `http_check_frequency_s` is httpCheckFrequency, `cpu_cfs_quota` is
cpuCFSQuota. Where a type ends with `OrDefault`, an explicit zero means "not set", as it does for
upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from msgspec import Meta, Struct

from kubeobjects.golang.duration import format_duration, parse_duration_s
from kubeobjects.quantity import format_binary, parse_integer

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
_UNITS: Final = ("_s", "_bytes")
_WORDS: Final = (
    *("API", "CA", "CFS", "CIDR", "CPUs", "DNS", "GC", "ID", "IPTables", "OOM", "QOS", "QPS"),
    *("TLS", "TTL", "URL"),
)
"""Words of upstream's names that have capitals within."""
_SPELLINGS: Final = {word.lower(): word for word in _WORDS}


def _wire_name(name: str) -> str:
    for unit in _UNITS:
        name = name.removesuffix(unit)
    first, *others = name.split("_")
    return first + "".join(_SPELLINGS.get(word, word.capitalize()) for word in others)


class Schema(Struct, frozen=True, rename=_wire_name):
    """A mapping of a configuration file: its fields and their defaults."""


def _integer(low: int, high: int, wanted: str) -> Any:
    return Annotated[int, Meta(ge=low, le=high, extra={"wanted": wanted})]


def _written(
    base: Any, parse: Callable[[Any], Any], write: Callable[[Any], str], wanted: str
) -> Any:
    """A value with a text of its own: `write` makes it again."""
    return Annotated[base, Meta(extra={"parse": parse, "write": write, "wanted": wanted})]


def _seconds(given: str | int) -> float:
    """Of a duration, or of nanoseconds."""
    return given / 1e9 if isinstance(given, int) else parse_duration_s(given)


_ZERO: Final = Meta(extra={"zero_unset": True})

if TYPE_CHECKING:
    Int32: TypeAlias = int
    Int32OrDefault: TypeAlias = int
    Int64: TypeAlias = int
    UInt32: TypeAlias = int
    TextOrDefault: TypeAlias = str
    Path: TypeAlias = str
    PathOrDefault: TypeAlias = str
    Duration: TypeAlias = float
    DurationOrDefault: TypeAlias = float
    DurationOrNs: TypeAlias = float
    Quantity: TypeAlias = int
else:
    Int32 = _integer(-(2**31), 2**31 - 1, "an integer of 32 bits")
    Int32OrDefault = Annotated[Int32, _ZERO]
    Int64 = _integer(-(2**63), 2**63 - 1, "an integer")
    UInt32 = _integer(0, 2**32 - 1, "an integer from 0 to 4294967295")
    TextOrDefault = Annotated[str, _ZERO]
    Path = Annotated[str, Meta(extra={"path": True, "wanted": "a path"})]
    PathOrDefault = Annotated[Path, _ZERO]
    Duration = _written(str, parse_duration_s, format_duration, "a duration such as 10s or 1m30s")
    DurationOrDefault = Annotated[Duration, _ZERO]
    DurationOrNs = Annotated[
        _written(str | Int64, _seconds, format_duration, "a duration such as 5s, or nanoseconds"),
        _ZERO,
    ]
    Quantity = _written(str, parse_integer, format_binary, "a quantity such as 10Mi")
