"""Looks at CRI calls and at requests to the API server: how many, in which order, how far apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from fakecri.recording.plain import plain
from kubelet_conformance.harness.observing.words import write_name
from kubelet_conformance.scenarios.look.csi import csi_calls_of
from kubelet_conformance.scenarios.look.view import Look, View, count_fits, listed, said
from kubelet_conformance.scenarios.shape.conditions import Calls, Gap, Gaps, Order, Requests
from kubelet_conformance.scenarios.shape.ranges import Range, is_in
from kubelet_conformance.scenarios.shape.selectors import (
    CallSelector,
    ContainerRef,
    Moment,
    RequestSelector,
)


def calls(view: View, what: Calls) -> Look:
    """So many calls."""
    fitting = calls_of(view, what)
    listed_calls = fitting or _similar(view, what)
    note = "" if fitting or not listed_calls else "0 that fit; others: "
    return Look(
        count_fits(what.count, len(fitting)),
        note + listed([_call_words(view, call, what) for call in listed_calls]),
    )


def calls_of(view: View, what: CallSelector) -> list[Any]:
    """The calls that a selector chooses, in order of arrival."""
    similar = _similar(view, what)
    return [call for call in similar if _fits(call, what)]


def _similar(view: View, what: CallSelector) -> list[Any]:
    """The calls of that method for that pod and container, in its time."""
    node = view.node
    pod = None if what.pod is UNSET else view.name(what.pod)
    container = None if what.container is UNSET else what.container
    calls_of_method = list(node.calls(what.method, pod=pod, container=container))
    return [call for call in calls_of_method if view.in_time(node.time_s(call), what)]


def _fits(call: Any, what: CallSelector) -> bool:
    if what.image is not UNSET and not what.image.fits(call.image):
        return False
    if what.attempt is not UNSET and call.attempt != what.attempt:
        return False
    if what.failed is not UNSET and (call.error is not None) is not what.failed:
        return False
    if what.code is not UNSET and (call.error or ("",))[0] != what.code:
        return False
    if what.request is not UNSET and not is_in(what.request, plain(call.request)):
        return False
    if what.response is UNSET:
        return True
    return bool(call.succeeded) and is_in(what.response, plain(call.response))


def _call_words(view: View, call: Any, what: CallSelector) -> str:
    """A call in words, with what the selector asks of it."""
    words = f"{write_name(call)} at {view.node.time_s(call):.2f} s"
    if isinstance(what.request, dict):
        request = plain(call.request)
        asked_fields = {key: request.get(key) for key in what.request}
        words += f" {asked_fields}"
    return words + (f" -> {call.error[0]}: {call.error[1]}" if call.error else "")


def order(view: View, what: Order) -> Look:
    """Calls in that order."""
    after = -1
    calls_in_order: list[str] = []
    for selector in what.calls:
        later = [call for call in calls_of(view, selector) if call.seq > after]
        if not later:
            words = f"{', '.join(calls_in_order) or 'nothing'}; then no ({said(selector)})"
            return Look(False, words)
        after = later[0].seq
        calls_in_order.append(_call_words(view, later[0], selector))
    return Look(True, ", ".join(calls_in_order))


def gaps(view: View, what: Gaps) -> Look:
    """The times between successive calls."""
    selected = calls_of(view, what)
    node = view.node
    ends = [node.ended_s(c) if what.ended else node.time_s(c) for c in selected]
    starts = [node.time_s(call) for call in selected[1:]]
    gaps_s = [start - end for start, end in zip(starts, ends, strict=False)]
    fit = [_gap_fits(view, span, gap) for span, gap in zip(what.are, gaps_s, strict=False)]
    gap_words = ", ".join(f"{gap:.2f}" for gap in gaps_s) or "none"
    return Look(len(gaps_s) >= len(what.are) and all(fit), f"gaps of {gap_words} s")


async def gap(view: View, what: Gap) -> Look:
    """The time from one moment to another."""
    start_s, end_s = await moment_s(view, what.start), await moment_s(view, what.end)
    for at_s, moment in ((start_s, what.start), (end_s, what.end)):
        if at_s is None:
            return Look(False, f"no such moment: {said(moment)}")
    length_s = (end_s or 0.0) - (start_s or 0.0)
    fits = _gap_fits(view, what.length, length_s)
    return Look(fits, f"{length_s:.2f} s, from {start_s:.2f} s to {end_s:.2f} s")


def _gap_fits(view: View, span: Range, gap_s: float) -> bool:
    """Whether a measured time is in the span: it may be 0.01 s too short, and too long by what
    measuring adds."""
    return span.holds(gap_s + 0.01, view.node.slack_s + 0.01)


async def moment_s(view: View, what: Moment) -> float | None:
    """When that was, seconds since the case began; None: it was not."""
    if what.mark is not UNSET:
        return view.mark(what.mark).at_s
    if what.exit is not UNSET:
        return await _exit_s(view, what.exit)
    if what.request is not UNSET:
        request = _nth(requests_of(view, what.request), what.request.nth)
        return None if request is None else view.node.since_start_s(request.started_s)
    asked: Any = what.call if what.call is not UNSET else what.csi_call
    if asked is UNSET:
        return None
    fitting = calls_of(view, asked) if what.call is not UNSET else csi_calls_of(view, asked)
    call = _nth(fitting, asked.nth)
    if call is None or (asked.ended and call.ended_s is None):
        return None
    return view.node.ended_s(call) if asked.ended else view.node.time_s(call)


def _nth(found: Sequence[Any], nth: int) -> Any:
    number = nth - 1 if nth > 0 else nth
    return found[number] if -len(found) <= number < len(found) else None


async def _exit_s(view: View, what: ContainerRef) -> float | None:
    """The end of the newest such container that has ended."""
    for container in reversed(await view.containers(what.pod, what.name)):
        if what.attempt in (UNSET, container.metadata.attempt):
            status = await view.status_of(container.id)
            if status is not None and status.finished_at:
                ago_s: float = view.node.unix_s - status.finished_at / 1e9
                return view.node.now_s - ago_s
    return None


def requests(view: View, what: Requests) -> Look:
    """So many requests."""
    fitting = requests_of(view, what)
    listed_requests = fitting or _similar_requests(view, what)
    note = "" if fitting or not listed_requests else "0 that fit; others: "
    lines = [
        f"{r.method} {r.path} at {view.node.since_start_s(r.started_s):.2f} s -> {r.status}"
        for r in listed_requests
    ]
    if what.body is not UNSET:
        lines = [f"{line} {r.body}" for line, r in zip(lines, listed_requests, strict=True)]
    return Look(count_fits(what.count, len(fitting)), note + listed(lines))


def requests_of(view: View, what: RequestSelector) -> list[Any]:
    """The requests that a selector chooses, in order of arrival."""
    return [
        request
        for request in _similar_requests(view, what)
        if (what.status is UNSET or what.status.holds(request.status))
        and (what.body is UNSET or is_in(what.body, request.body))
    ]


def _similar_requests(view: View, what: RequestSelector) -> list[Any]:
    if what.pod is UNSET:
        path = "" if what.path is UNSET else what.path
    else:
        under = "(/[a-z]+)?" if what.subresource is UNSET else f"/{what.subresource}"
        under = "" if under == "/" else under
        path = f"/pods/{re.escape(view.runtime_name(what.pod))}{under}$"
    records = view.node.api.requests(what.method, path, of_users=False)
    return [r for r in records if view.in_time(view.node.since_start_s(r.started_s), what)]
