"""Fields that the API has twice: one value, and a list whose first element it is."""

from __future__ import annotations

from fakekubeapi.resources.common.strategy import Object


def settle_first(fields: Object, single: str, several: str, *, inside: str | None = None) -> None:
    """Make a value and the first of its list say the same. What the value says counts, and the list
    is then the value alone; an empty value takes the first of the list. `inside`: the elements are
    objects, which have the value in that field.

    >>> spec = {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24", "fd00::/64"]}
    >>> settle_first(spec, "podCIDR", "podCIDRs")
    >>> spec
    {'podCIDR': '10.1.0.0/24', 'podCIDRs': ['10.1.0.0/24']}
    >>> status = {"podIPs": [{"ip": "10.1.0.2"}, {"ip": "fd00::2"}]}
    >>> settle_first(status, "podIP", "podIPs", inside="ip")
    >>> status["podIP"]
    '10.1.0.2'
    """
    value, values = fields.get(single), fields.get(several)
    element = {inside: value} if inside else value
    if value and (not values or values[0] != element):
        fields[several] = [element]
    elif values:
        fields[single] = values[0].get(inside, "") if inside else values[0]
