"""Looks at CSI drivers: what they were asked, and what they have done."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from fakecri.recording.plain import plain
from kubelet_conformance.scenarios.look.view import Look, View, count_fits, listed
from kubelet_conformance.scenarios.shape.csi import CsiCalls, CsiDriverShown
from kubelet_conformance.scenarios.shape.ranges import is_in
from kubelet_conformance.scenarios.shape.selectors import CsiCallSelector


def csi_calls(view: View, what: CsiCalls) -> Look:
    """So many calls."""
    fitting = csi_calls_of(view, what)
    told = fitting or _similar(view, what)
    note = "" if fitting or not told else "0 that fit; others: "
    lines = [_call_words(view, call) for call in told]
    return Look(count_fits(what.count, len(fitting)), note + listed(lines))


def csi_calls_of(view: View, what: CsiCallSelector) -> list[Any]:
    """The calls that a selector chooses, in order of arrival."""
    return [call for call in _similar(view, what) if _fits(view, call, what)]


def _similar(view: View, what: CsiCallSelector) -> list[Any]:
    return [
        call
        for call in view.csi_drivers[what.driver].calls
        if call.method == what.method
        and view.in_time(view.node.since_start_s(call.started_s), what)
    ]


def _fits(view: View, call: Any, what: CsiCallSelector) -> bool:
    if what.volume is not UNSET and call.request.volume_id != view.volume_handle(what.volume):
        return False
    if what.failed is not UNSET and (call.error is not None) is not what.failed:
        return False
    if what.code is not UNSET and (call.error or ("",))[0] != what.code:
        return False
    return what.request is UNSET or is_in(what.request, plain(call.request))


def _call_words(view: View, call: Any) -> str:
    at_s = view.node.since_start_s(call.started_s)
    why = f" -> {call.error[0]}: {call.error[1]}" if call.error else ""
    return f"{call.method} {plain(call.request)} at {at_s:.2f} s{why}"


def csi_driver(view: View, what: CsiDriverShown) -> Look:
    """A driver as CSINode names it, and what it has staged and published."""
    driver = view.csi_drivers[what.name]
    registered = bool(view.node.storage.listed_driver(what.name))
    staged, published = len(driver.staged), len(driver.published)
    fits = [
        what.registered is UNSET or what.registered is registered,
        what.staged is UNSET or what.staged.holds(staged),
        what.published is UNSET or what.published.holds(published),
    ]
    words = "registered" if registered else "not registered"
    return Look(all(fits), f"{words}, {staged} staged, {published} published")
