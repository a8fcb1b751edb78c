"""Looks at what the kubelet and the API server show: pods, containers, the Node, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import UNSET

from kubelet_conformance.harness.observing.looked import shortly
from kubelet_conformance.harness.observing.snapshots import container_status
from kubelet_conformance.harness.observing.words import describe, state_name
from kubelet_conformance.scenarios.look.view import Look, View, count_fits, listed
from kubelet_conformance.scenarios.shape.conditions import (
    ContainerShown,
    Events,
    History,
    NodeShown,
    PodShown,
)
from kubelet_conformance.scenarios.shape.ranges import is_in, text_fits


def _object(view: View, key: str, source: str) -> dict[str, Any] | None:
    name = view.name(key)
    return view.node.api.pod(name) if source == "api" else view.node.pod(name)


def pod(view: View, what: PodShown) -> Look:
    """A pod and its status."""
    pod_object = _object(view, what.name, what.source)
    if pod_object is None or not what.there:
        return Look((pod_object is not None) is what.there, _pod_words(pod_object))
    status = pod_object.get("status") or {}
    conditions = _conditions(status)
    expected_conditions = {} if what.conditions is UNSET else what.conditions
    fits = [
        _fits(what.phase, status.get("phase")),
        _fits(what.reason, status.get("reason")),
        _fits(what.message, status.get("message")),
        all(conditions.get(kind, "") == state for kind, state in expected_conditions.items()),
        what.ip in (UNSET, bool(status.get("podIP"))),
        what.terminating in (UNSET, "deletionTimestamp" in pod_object["metadata"]),
        what.has is UNSET or is_in(what.has, pod_object),
    ]
    words = _pod_words(pod_object)
    if expected_conditions:
        words += f"; conditions {conditions}"
    if what.has is not UNSET:
        words += _parts_of(what.has, pod_object)
    return Look(all(fits), words)


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
    status = container_status(_object(view, what.pod, what.source), what.name)
    state = status.get("state") or {}
    kind = next(iter(state), "none")
    inside = state.get(kind) or {}
    fits = [
        what.state in (UNSET, kind),
        _fits(what.reason, inside.get("reason")),
        _fits(what.message, inside.get("message")),
        what.exit_code is UNSET
        or ("exitCode" in inside and what.exit_code.holds(inside["exitCode"])),
        what.restarts is UNSET or what.restarts.holds(status.get("restartCount", 0)),
        what.ready in (UNSET, bool(status.get("ready"))),
        what.started in (UNSET, bool(status.get("started"))),
        what.has is UNSET or is_in(what.has, status),
        bool(status) or what.state == "none",
    ]
    if not status:
        return Look(all(fits), "there is no such container")
    words = f"{state_name(state)}, restarts {status.get('restartCount', 0)}"
    words += ", ready" if status.get("ready") else ", not ready"
    words += f", started {str(status.get('started')).lower()}"
    if inside.get("message"):
        words += f", message {inside['message']!r}"
    if kind == "terminated":
        words += f", reason {inside.get('reason')}"
    return Look(all(fits), words + ("" if what.has is UNSET else _parts_of(what.has, status)))


def history(view: View, what: History) -> Look:
    """The phases of a pod, or the states of a container, one after the other."""
    statuses = view.node.statuses(view.name(what.pod))
    if what.since is not UNSET:
        # The status that was there at the mark counts.
        statuses = statuses[max(0, view.mark(what.since).statuses.get(what.pod, 0) - 1) :]
    names = [name for name, _ in groupby(_names(statuses, what)) if name]
    has = () if what.has is UNSET else what.has
    has_not = () if what.has_not is UNSET else what.has_not
    position = 0
    for pattern in has:
        rest = [n for n, name in enumerate(names) if n >= position and text_fits(name, pattern)]
        if not rest:
            return Look(False, ", ".join(names) or "nothing")
        position = rest[0] + 1
    bad = any(text_fits(name, pattern) for name in names for pattern in has_not)
    return Look(not bad, ", ".join(names) or "nothing")


def _names(statuses: Sequence[Mapping[str, Any]], what: History) -> list[str]:
    if what.container is UNSET:
        return [str(status.get("phase", "")) for status in statuses]
    shown_states = [container_status({"status": status}, what.container) for status in statuses]
    return [state_name(c.get("state") or {}) for c in shown_states]


def node(view: View, what: NodeShown) -> Look:
    """The Node."""
    node_object = view.node.api.node_object()
    conditions = _conditions(node_object.get("status") or {})
    taints = [taint["key"] for taint in view.node.api.taints()]
    expected_conditions = {} if what.conditions is UNSET else what.conditions
    must = () if what.taints is UNSET else what.taints
    must_not = () if what.no_taints is UNSET else what.no_taints
    fits = [
        bool(node_object),
        all(conditions.get(kind, "") == state for kind, state in expected_conditions.items()),
        set(must) <= set(taints),
        not set(must_not) & set(taints),
        what.has is UNSET or is_in(what.has, node_object),
    ]
    words = f"conditions {conditions}, taints {taints}" if node_object else "there is no Node"
    return Look(all(fits), words + ("" if what.has is UNSET else _parts_of(what.has, node_object)))


def event(view: View, what: Events) -> Look:
    """So many events."""
    pod = None if what.pod is UNSET else view.name(what.pod)
    before = {} if what.since is UNSET else view.mark(what.since).events
    about = view.node.events(pod=pod)
    fitting = [e for e in about if _event_fits(e, what)]
    counts = [int(e.get("count") or 1) - before.get(e["metadata"]["name"], 0) for e in fitting]
    new = [(e, n) for e, n in zip(fitting, counts, strict=True) if n > 0]
    lines = [f"{e['reason']}: {e['message']} ({n} times)" for e, n in new]
    if not lines and about:
        lines_of_others = [f"{e['reason']}: {e['message']}" for e in about]
        words = f"0 that fit; others: {listed(lines_of_others)}"
    else:
        words = listed(lines)
    return Look(count_fits(what.count, sum(n for _, n in new)), words)


def _event_fits(found: Mapping[str, Any], what: Events) -> bool:
    return (
        bool(what.reason.fits(found["reason"]))
        and _fits(what.message, found.get("message"))
        and what.type in (UNSET, found.get("type"))
    )
