"""The trace of a case, made of what its node recorded: calls, requests, statuses, probes.

Most cases pass and their traces are not kept, so nothing is made before a case has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.words import describe
from kubelet_conformance.traces.calls import READS, SHOWS, entries_of
from kubelet_conformance.traces.entries import Entry, Trace, in_order
from kubelet_conformance.traces.naming import Names
from kubelet_conformance.traces.requests import request_entry, status_entry
from kubelet_conformance.traces.visits import visit_entry
from kubelet_conformance.traces.waits import waits_of

_QUIET: Final = READS - SHOWS
"""Calls whose answers say nothing of pods: they are only counted."""


def trace_of(parts: Parts, watch: Watch) -> Trace:
    """What happened on the node up to now."""
    names = Names({str(parts.paths.base): "$CASE"})
    start_s = watch.start_s
    calls = parts.runtime.calls(None, None, None)
    entries = entries_of(_rows(calls, start_s), names)
    entries += _requests(parts, start_s, names)
    entries += _statuses(watch, names)
    entries += _visits(parts, calls, parts.clock.wall_ns() / 1e9 - watch.now_s)
    entries.sort(key=lambda entry: entry.at_s)
    return in_order([*entries, *waits_of(entries)], watch.now_s)


def _rows(calls: Iterable[Any], start_s: float) -> Iterator[dict[str, Any]]:
    """The calls as rows. A list that shows what the one before showed is only counted."""
    last: dict[str, Any] = {}
    for call in calls:
        lists = call.method in SHOWS and call.method.startswith("List")
        again = lists and last.get(call.method) is call.response
        if call.error is None and (call.method in _QUIET or again):
            yield {
                "t_start": round(call.started_s - start_s, 4),
                "t_end": None if call.ended_s is None else round(call.ended_s - start_s, 4),
                "method": call.method,
            }
            continue
        if lists:
            last[call.method] = call.response
        yield call.to_dict(t0_s=start_s)


def _requests(parts: Parts, start_s: float, names: Names) -> Iterator[Entry]:
    """What kubelet and case asked the API server to change."""
    if parts.api is None:
        return
    for record in parts.api.fake.requests():
        entry = request_entry(
            method=record.method,
            path=record.path,
            body=names.named(record.body),
            status=record.status,
            at_s=round(record.started_s - start_s, 4),
            until_s=round(record.ended_s - start_s, 4),
            by_kubelet=record.seq not in parts.api.by_users,
        )
        if entry is not None:
            yield entry


def _statuses(watch: Watch, names: Names) -> Iterator[Entry]:
    for one in watch.snapshots.history:
        at_s = round(watch.since_start_s(one.at_s), 4)
        yield status_entry(one.pod, names.named(one.status), at_s, describe(one.status))


def _visits(parts: Parts, calls: Sequence[Any], start_s: float) -> Iterator[Entry]:
    """The connections to containers: probes, and hooks over HTTP. Only a fake knows them; its
    times, and `start_s`, are of the wall clock."""
    for pod in sorted({call.pod for call in calls if call.method == "RunPodSandbox"}):
        try:
            visits = [*parts.runtime.visits(pod), *parts.runtime.turned_away(pod)]
        except RuntimeError:  # a real runtime
            return
        for visit in visits:
            yield visit_entry(visit, start_s)
