"""Where a pod has amounts, and what the written ones mean. Pure.

An amount is read as it is written in JSON: `1e3` keeps its exponent, and an integer may have any
number of digits. YAML is converted to JSON first, in which Go writes 1000.
Rules: SRC-036.3, SRC-036.9..11. Upstream: apimachinery pkg/api/resource: Quantity.UnmarshalJSON;
pkg/apis/core/v1/zz_generated.defaults.go (which amounts are rounded).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kubeobjects.quantity import QuantityError, from_json, parse
from kubeobjects.schema.messages import Message, Shape, message
from kubeobjects.yaml.written import EscapedText, WrittenFloat

POD: Final = "core.v1.Pod"
ANY: Final = "*"
EXACT: Final = "an amount"
ROUNDED: Final = "an amount in thousandths"


@cache
def places() -> Mapping[str, Any]:
    """Where a pod has amounts: by field, for the items of a list as for the list; `ANY`: whatever
    the name is. Amounts by resource are rounded to thousandths, single ones are exact."""
    return _places(message(POD))


def _places(of: Message) -> dict[str, Any]:
    below: dict[str, Any] = {}
    for name, field in of.in_json.items():
        inner = of.of(field)
        if field.type == "Quantity":
            below[name] = {ANY: ROUNDED} if field.shape is Shape.MAP else EXACT
        elif inner is not None and (deeper := _places(inner)):
            below[name] = deeper
    return below


class AmountError(ValueError):
    """A value is no amount. `path`: where it is."""

    def __init__(self, path: tuple[str | int, ...], why: str) -> None:
        super().__init__(why)
        self.path = path


def with_amounts(pod: Any) -> Any:
    """A copy of a read pod of plain values that shares no part, with its amounts in the API's form.

    Raises: AmountError.
    """
    return _with_amounts(pod, places(), ())


def _with_amounts(value: Any, kinds: Any, path: tuple[str | int, ...]) -> Any:
    """The same for a part of it; `kinds`: the amounts below it, or the kind that it is."""
    if kinds in (EXACT, ROUNDED) and not isinstance(value, list):
        return _amount(value, kinds, path)
    if isinstance(value, dict):
        below = kinds if isinstance(kinds, dict) else {}
        return {
            key: _with_amounts(item, below.get(key, below.get(ANY)), (*path, key))
            if item is not None or ANY not in below
            else "0"
            for key, item in value.items()
        }
    if isinstance(value, list):
        if kinds in (EXACT, ROUNDED):
            raise AmountError(path, "wanted an amount, found a list")
        return [_with_amounts(item, kinds, (*path, i)) for i, item in enumerate(value)]
    if isinstance(value, EscapedText):
        return str(value)
    return float(value) if isinstance(value, WrittenFloat) else value


def _amount(value: Any, kind: str, path: tuple[str | int, ...]) -> str | None:
    if value is None:
        return None
    if isinstance(value, EscapedText):
        raise AmountError(path, f"{str(value)!r} is no quantity: it is written with a backslash")
    if isinstance(value, bool | dict):
        found_type = "a mapping" if isinstance(value, dict) else "true or false"
        raise AmountError(path, f"wanted an amount, found {found_type}")
    try:
        amount = parse(value.written) if isinstance(value, WrittenFloat) else from_json(value)
    except QuantityError as error:
        raise AmountError(path, str(error)) from None
    return str(amount.in_thousandths() if kind == ROUNDED else amount)
