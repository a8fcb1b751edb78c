"""How a scenario writes what is wanted of a number, a time or a text. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakecri.scripts.units import seconds_of

_BOUND: Final = re.compile(r"(>=|<=|>|<)\s*(\S+)$")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?$")
NUMBER_PATTERN: Final = r"^(-?[0-9.]+|(>=|<=|>|<) ?-?[0-9.]+|-?[0-9.]+\.\.-?[0-9.]+)$"


class Range(Struct, frozen=True):
    """The numbers from `low` to `high`, without those ends that are open."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    text: str = ""
    """As it was written."""

    def holds(self, value: float, slack: float = 0.0) -> bool:
        """Whether the value lies in it; `slack` widens the upper end."""
        high = self.high + slack
        above = value > self.low if self.low_open else value >= self.low
        below = value < high if self.high_open else value <= high
        return above and below

    def __str__(self) -> str:
        return self.text


def range_of(given: float | str) -> Range:
    """The range that a number or a text means. Raises ValueError.

    >>> [range_of(text).holds(3) for text in (3, ">=3", ">3", "2..4", "<3")]
    [True, True, False, True, False]
    """
    return _range(given, _number, "a number: 2, >=2, <2 or 2..4")


def span_of(given: float | str) -> Range:
    """The range of seconds that a text means. Raises ValueError.

    >>> span_of("10s..1m").high, span_of(">=500ms").low
    (60.0, 0.5)
    """
    return _range(given, _seconds, "times: 10s..15s, >=2s or <1m")


def _range(given: float | str, number: Callable[[str], float], wanted: str) -> Range:
    text = str(given).strip()
    try:
        if bound := _BOUND.match(text):
            end = number(bound[2])
            strict = "=" not in bound[1]
            if bound[1].startswith(">"):
                return Range(low=end, low_open=strict, text=text)
            return Range(high=end, high_open=strict, text=text)
        low, dots, high = text.partition("..")
        range_ = Range(number(low), number(high if dots else low), text=text)
    except ValueError:
        raise ValueError(f"wanted {wanted}; got {text!r}") from None
    if range_.low > range_.high:
        raise ValueError(f"wanted the smaller end first; got {text!r}")
    return range_


def _number(text: str) -> float:
    if not _NUMBER.match(text.strip()):
        raise ValueError(text)
    return float(text)


def _seconds(text: str) -> float:
    text = text.strip()
    if text.startswith("-"):
        return -seconds_of(text[1:])
    return float(text) if _NUMBER.match(text) else seconds_of(text)


class Wording(Struct, frozen=True):
    """One of some texts; `*` in one stands for any text."""

    texts: tuple[str, ...]

    def fits(self, text: str) -> bool:
        """Whether the text is one of them."""
        return any(text_fits(text, pattern) for pattern in self.texts)

    def __str__(self) -> str:
        return " or ".join(self.texts)


def wording_of(given: str | Sequence[str]) -> Wording:
    """The texts that are written as one text, or as a list."""
    return Wording((given,) if isinstance(given, str) else tuple(given))


def text_fits(text: str, wanted: str) -> bool:
    """Whether the text is the wanted one; `*` stands for any text, also for none.

    >>> text_fits("Container main failed", "*main*"), text_fits("[a]", "[a]"), text_fits("ab", "a")
    (True, True, False)
    """
    pattern = ".*".join(re.escape(part) for part in wanted.split("*"))
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def is_in(wanted: Any, seen: Any) -> bool:
    """Whether what is wanted is in what is seen.

    A mapping is in one that has its keys with values that fit; each item of a list fits some item
    of the list; a text fits itself and, with `*`, others; `>=2` and `2..4` fit numbers; null fits
    what is not there; 0, false and "" also fit what is not there.

    >>> is_in({"a": [{"n": ">1"}]}, {"a": [{"n": 1}, {"n": "2"}], "b": 3})
    True
    """
    if isinstance(wanted, Mapping):
        mapping = seen if isinstance(seen, Mapping) else {}
        return (seen is None or isinstance(seen, Mapping)) and all(
            is_in(value, mapping.get(key)) for key, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        items = seen if isinstance(seen, list | tuple) else []
        return all(any(is_in(wanted_item, item) for item in items) for wanted_item in wanted)
    if not wanted:
        return not seen
    if isinstance(wanted, bool) or isinstance(seen, bool):
        return seen is wanted
    return seen is not None and _scalar_fits(wanted, seen)


def _scalar_fits(wanted: str | float, seen: Any) -> bool:
    if isinstance(seen, Mapping | list | tuple):
        return False
    number = _as_number(seen)
    if isinstance(wanted, str):
        if number is not None and (_BOUND.match(wanted) or ".." in wanted):
            try:
                return range_of(wanted).holds(number)
            except ValueError:
                pass
        return text_fits(str(seen), wanted)
    return number == wanted


def _as_number(seen: Any) -> float | None:
    if isinstance(seen, int | float):
        return float(seen)
    return float(seen) if isinstance(seen, str) and _NUMBER.match(seen) else None
