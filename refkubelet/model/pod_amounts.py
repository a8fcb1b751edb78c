"""Where a pod has amounts, and what the written ones mean. Pure.

An amount is read as it is written in JSON: `1e3` keeps its exponent, and an integer may have any
number of digits. YAML is converted to JSON first, in which Go writes 1000.
Rules: SRC-036.3, SRC-036.9..11. Upstream: apimachinery pkg/api/resource: Quantity.UnmarshalJSON;
pkg/apis/core/v1/zz_generated.defaults.go (which amounts are rounded).
"""

from __future__ import annotations

from typing import Any, Final

from kubeobjects.quantity import QuantityError, from_json, parse
from kubeobjects.yaml.written import EscapedText, WrittenFloat

ANY: Final = "*"
EXACT: Final = "an amount"
ROUNDED: Final = "an amount in thousandths"

_AMOUNTS: Final = {ANY: ROUNDED}
_RESOURCES: Final = {"limits": _AMOUNTS, "requests": _AMOUNTS}
_REFERENCE: Final = {"resourceFieldRef": {"divisor": EXACT}}
_FILES: Final = {"items": _REFERENCE}
_CONTAINER: Final = {"resources": _RESOURCES, "env": {"valueFrom": _REFERENCE}}
_STATUS: Final = {"allocatedResources": _AMOUNTS, "resources": _RESOURCES}
_VOLUME: Final = {
    "emptyDir": {"sizeLimit": EXACT},
    "downwardAPI": _FILES,
    "projected": {"sources": {"downwardAPI": _FILES}},
    "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": _RESOURCES}}},
}
PLACES: Final[dict[str, Any]] = {
    "spec": {
        **dict.fromkeys(("containers", "initContainers", "ephemeralContainers"), _CONTAINER),
        "resources": _RESOURCES,
        "overhead": _AMOUNTS,
        "volumes": _VOLUME,
    },
    "status": {
        **_STATUS,
        **dict.fromkeys(
            ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"), _STATUS
        ),
    },
}
"""Where a pod has amounts; the items of a list have the place of the list."""


class AmountError(ValueError):
    """A value is no amount. `path`: where it is."""

    def __init__(self, path: tuple[str | int, ...], why: str) -> None:
        super().__init__(why)
        self.path = path


def with_amounts(value: Any, places: Any = PLACES, path: tuple[str | int, ...] = ()) -> Any:
    """A copy of a read pod of plain values that shares no part, with its amounts in the API's form.

    Raises: AmountError.
    """
    if places in (EXACT, ROUNDED) and not isinstance(value, list):
        return _amount(value, places, path)
    if isinstance(value, dict):
        below = places if isinstance(places, dict) else {}
        return {
            key: with_amounts(item, below.get(key, below.get(ANY)), (*path, key))
            if item is not None or ANY not in below
            else "0"
            for key, item in value.items()
        }
    if isinstance(value, list):
        if places in (EXACT, ROUNDED):
            raise AmountError(path, "wanted an amount, found a list")
        return [with_amounts(item, places, (*path, i)) for i, item in enumerate(value)]
    if isinstance(value, EscapedText):
        return str(value)
    return float(value) if isinstance(value, WrittenFloat) else value


def _amount(value: Any, kind: str, path: tuple[str | int, ...]) -> str | None:
    if value is None:
        return None
    if isinstance(value, EscapedText):
        raise AmountError(path, f"{str(value)!r} is no quantity: it is written with a backslash")
    if isinstance(value, bool | dict):
        what = "a mapping" if isinstance(value, dict) else "true or false"
        raise AmountError(path, f"wanted an amount, found {what}")
    try:
        amount = parse(value.written) if isinstance(value, WrittenFloat) else from_json(value)
    except QuantityError as error:
        raise AmountError(path, str(error)) from None
    return str(amount.in_thousandths() if kind == ROUNDED else amount)
