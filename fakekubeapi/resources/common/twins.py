"""Fields that the API has twice: one value, and a list whose first element it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakekubeapi.resources.common.strategy import Object


def settle_first(
    fields: Object, single: str, several: str, element: Callable[[str], Any] = str
) -> None:
    """Make a value and the first of its list say the same. What the value says counts, and the list
    is then the value alone; an empty value takes the first of the list. `element`: what the list
    has for a value.

    >>> spec = {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24", "fd00::/64"]}
    >>> settle_first(spec, "podCIDR", "podCIDRs")
    >>> spec
    {'podCIDR': '10.1.0.0/24', 'podCIDRs': ['10.1.0.0/24']}
    """
    value, values = fields.get(single), fields.get(several)
    if value and (not values or values[0] != element(value)):
        fields[several] = [element(value)]
    elif values:
        first = values[0]
        fields[single] = first.get("ip", "") if isinstance(first, dict) else first
