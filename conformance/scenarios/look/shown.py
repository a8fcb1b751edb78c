"""Looks at what the kubelet and the API server show: pods, containers, the Node, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import UNSET

from conformance.harness.observing.looked import shortly
from conformance.harness.observing.snapshots import container_status
from conformance.harness.observing.words import describe, state_name
from conformance.scenarios.look.view import Look, View, count_fits, listed
from conformance.scenarios.shape.conditions import (
    ContainerShown,
    Events,
    History,
    NodeShown,
    PodShown,
)
from conformance.scenarios.shape.ranges import is_in, text_fits


def _object(view: View, key: str, source: str) -> dict[str, Any] | None:
    name = view.name(key)
    return view.node.api.pod(name) if source == "api" else view.node.pod(name)


def pod(view: View, what: PodShown) -> Look:
    """A pod and its status."""
    found = _object(view, what.name, what.source)
    if found is None or not what.there:
        return Look((found is not None) is what.there, _pod_words(found))
    status = found.get("status") or {}
    conditions = _conditions(status)
    wanted = {} if what.conditions is UNSET else what.conditions
    fits = [
        _fits(what.phase, status.get("phase")),
        _fits(what.reason, status.get("reason")),
        _fits(what.message, status.get("message")),
        all(conditions.get(kind, "") == state for kind, state in wanted.items()),
        what.ip in (UNSET, bool(status.get("podIP"))),
        what.terminating in (UNSET, "deletionTimestamp" in found["metadata"]),
        what.has is UNSET or is_in(what.has, found),
    ]
    seen = _pod_words(found)
    if wanted:
        seen += f"; conditions {conditions}"
    if what.has is not UNSET:
        seen += _parts_of(what.has, found)
    return Look(all(fits), seen)


def _fits(wanted: Any, seen: Any) -> bool:
    return wanted is UNSET or bool(wanted.fits(str(seen or "")))


def _pod_words(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "there is no such pod"
    status = found.get("status") or {}
    words = describe(status)
    if status.get("message"):
        words += f"; message {status['message']!r}"
    return words + ("; terminating" if "deletionTimestamp" in found["metadata"] else "")


def _conditions(status: Mapping[str, Any]) -> dict[str, str]:
    return {c["type"]: str(c["status"]) for c in status.get("conditions") or []}


def _parts_of(wanted: Any, seen: Any) -> str:
    """Those parts of what is seen that a condition asks for, as far as keys lead there."""
    if not isinstance(wanted, Mapping) or not isinstance(seen, Mapping):
        return f"; {shortly(seen)}"
    return "".join(
        f"; {key}: {shortly(_cut_to(value, seen.get(key)))}" for key, value in wanted.items()
    )


def _cut_to(wanted: Any, seen: Any) -> Any:
    if isinstance(wanted, Mapping) and isinstance(seen, Mapping):
        return {key: _cut_to(value, seen.get(key)) for key, value in wanted.items()}
    return seen


def container(view: View, what: ContainerShown) -> Look:
    """A container's status."""
    found = container_status(_object(view, what.pod, what.source), what.name)
    state = found.get("state") or {}
    kind = next(iter(state), "none")
    inside = state.get(kind) or {}
    fits = [
        what.state in (UNSET, kind),
        _fits(what.reason, inside.get("reason")),
        _fits(what.message, inside.get("message")),
        what.exit_code is UNSET
        or ("exitCode" in inside and what.exit_code.holds(inside["exitCode"])),
        what.restarts is UNSET or what.restarts.holds(found.get("restartCount", 0)),
        what.ready in (UNSET, bool(found.get("ready"))),
        what.started in (UNSET, bool(found.get("started"))),
        what.has is UNSET or is_in(what.has, found),
        bool(found) or what.state == "none",
    ]
    if not found:
        return Look(all(fits), "there is no such container")
    words = f"{state_name(state)}, restarts {found.get('restartCount', 0)}"
    words += ", ready" if found.get("ready") else ", not ready"
    words += f", started {str(found.get('started')).lower()}"
    if inside.get("message"):
        words += f", message {inside['message']!r}"
    if kind == "terminated":
        words += f", reason {inside.get('reason')}"
    return Look(all(fits), words + ("" if what.has is UNSET else _parts_of(what.has, found)))


def history(view: View, what: History) -> Look:
    """The phases of a pod, or the states of a container, one after the other."""
    statuses = view.node.statuses(view.name(what.pod))
    if what.since is not UNSET:
        # The status that was there at the mark counts.
        statuses = statuses[max(0, view.mark(what.since).statuses.get(what.pod, 0) - 1) :]
    seen = [name for name, _ in groupby(_names(statuses, what)) if name]
    position = 0
    for wanted in what.has:
        rest = [n for n, one in enumerate(seen) if n >= position and text_fits(one, wanted)]
        if not rest:
            return Look(False, ", ".join(seen) or "nothing")
        position = rest[0] + 1
    bad = any(text_fits(one, wanted) for one in seen for wanted in what.has_not)
    return Look(not bad, ", ".join(seen) or "nothing")


def _names(statuses: Sequence[Mapping[str, Any]], what: History) -> list[str]:
    if what.container is UNSET:
        return [str(status.get("phase", "")) for status in statuses]
    found = [container_status({"status": status}, what.container) for status in statuses]
    return [state_name(one.get("state") or {}) for one in found]


def node(view: View, what: NodeShown) -> Look:
    """The Node."""
    found = view.node.api.node_object()
    conditions = _conditions(found.get("status") or {})
    taints = [taint["key"] for taint in view.node.api.taints()]
    wanted = {} if what.conditions is UNSET else what.conditions
    must = () if what.taints is UNSET else what.taints
    must_not = () if what.no_taints is UNSET else what.no_taints
    fits = [
        bool(found),
        all(conditions.get(kind, "") == state for kind, state in wanted.items()),
        set(must) <= set(taints),
        not set(must_not) & set(taints),
        what.has is UNSET or is_in(what.has, found),
    ]
    seen = f"conditions {conditions}, taints {taints}" if found else "there is no Node"
    return Look(all(fits), seen + ("" if what.has is UNSET else _parts_of(what.has, found)))


def event(view: View, what: Events) -> Look:
    """So many events."""
    pod = None if what.pod is UNSET else view.name(what.pod)
    before = {} if what.since is UNSET else view.mark(what.since).events
    about = view.node.events(pod=pod)
    found = [e for e in about if _event_fits(e, what)]
    counts = [int(e.get("count") or 1) - before.get(e["metadata"]["name"], 0) for e in found]
    new = [(e, n) for e, n in zip(found, counts, strict=True) if n > 0]
    lines = [f"{e['reason']}: {e['message']} ({n} times)" for e, n in new]
    if not lines and about:
        lines_of_others = [f"{e['reason']}: {e['message']}" for e in about]
        seen = f"0 that fit; others: {listed(lines_of_others)}"
    else:
        seen = listed(lines)
    return Look(count_fits(what.count, sum(n for _, n in new)), seen)


def _event_fits(found: Mapping[str, Any], what: Events) -> bool:
    return (
        bool(what.reason.fits(found["reason"]))
        and _fits(what.message, found.get("message"))
        and what.type in (UNSET, found.get("type"))
    )
