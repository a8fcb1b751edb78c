"""From recorded calls to a scenario: `fakecri proxy --record` in front of a real runtime, then
`kubelet-conformance learn`. Pure.

The scenario makes the same pods at the same times on a fake runtime that does what the recorded one
did, and expects the calls that were recorded. It is a beginning: which of them is the bug, the
writer knows. What must never happen here: a guess that is not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, Final

import yaml

from fakecri.recording.learning import learned_script
from fakecri.recording.recorded import Exchange
from kubelet_conformance.scenarios.learn.learned_pods import (
    RecordedPod,
    manifest_names,
    recorded_pods,
    spec_of,
)

_ORDERED: Final = ("RunPodSandbox", "CreateContainer", "StartContainer")
_MOST: Final = 20
"""So many calls an expected order has at most."""
_AT_ONCE_S: Final = 0.1
_SECTIONS: Final = ("registry", "behaviors", "faults")


class NothingToLearn(ValueError):
    """The record shows no pod from its beginning on."""


def learned_text(calls: Sequence[Exchange], name: str, pods: Sequence[str], node: str) -> str:
    """The scenario as a file; `name`: its ID. `pods`: names or patterns of those that count (of the
    runtime), all if there are none; `node`: the node's name, "" if it is to be guessed. Raises
    NothingToLearn."""
    chosen = [p for p in recorded_pods(calls) if not pods or _chosen(p.name, pods)]
    if not chosen:
        missing = f"no pod {' or '.join(pods)}" if pods else "no pod"
        raise NothingToLearn(f"{missing} begins in the record: wanted a RunPodSandbox")
    scenario = _scenario(calls, chosen, name, manifest_names(chosen, node))
    head = [
        "# yaml-language-server: $schema=scenario.schema.json",
        "# Learned from recorded calls. To do: leave out what does not matter, say what is wrong",
        "# (title, says), and name what is known of it (upstream, affected, rules).",
    ]
    guesses = [f"# guessed: {pod.name}: {guess}" for pod in chosen for guess in pod.guesses]
    text = yaml.safe_dump(
        scenario, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )
    return "\n".join([*head, *guesses, text])


def _chosen(name: str, pods: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in pods)


def _scenario(
    calls: Sequence[Exchange], pods: Sequence[RecordedPod], name: str, names: dict[str, str]
) -> dict[str, Any]:
    end_s = max(call.end_s for call in calls)
    script = _script(calls, names)
    return {
        "id": name,
        "title": f"What was recorded as {name}",
        "needs": ["api"],
        **({"script": script} if script else {}),
        "pods": {names[pod.name]: {"spec": spec_of(pod, end_s)} for pod in pods},
        "steps": list(_steps(calls, pods, names, end_s)),
        "expect": [entry for pod in pods for entry in _expected(pod, names[pod.name])],
    }


def _script(calls: Sequence[Exchange], names: dict[str, str]) -> dict[str, Any]:
    """What the fake has to do, for the pods of the scenario."""
    learned = learned_script(calls)
    sections: dict[str, Any] = {}
    for section in _SECTIONS:
        entries = learned.get(section)
        if not entries:
            continue
        if section == "registry":
            sections[section] = entries
            continue
        own = [e for e in entries if e.get("pod") in names]
        if own:
            sections[section] = [{**entry, "pod": names[entry["pod"]]} for entry in own]
    return sections


# -- what happened ---------------------------------------------------------------------------


def _steps(
    calls: Sequence[Exchange], pods: Sequence[RecordedPod], names: dict[str, str], end_s: float
) -> Iterator[dict[str, Any]]:
    """Pods come and go, the kubelet restarts; between that time passes."""
    happened: list[tuple[float, dict[str, Any]]] = []
    for pod in pods:
        name = names[pod.name]
        begin_s = pod.of("RunPodSandbox")[0].start_s
        happened.append((begin_s, {"apply" if pod.static else "create": name}))
        stop = _deleted(pod)
        if stop is not None:
            grace = {"pod": name, "grace": f"{stop.request.timeout}s"}
            happened.append((stop.start_s, {"remove": name} if pod.static else {"delete": grace}))
    first_s = min(at_s for at_s, _ in happened)
    restarts = [at_s for at_s in kubelet_starts(calls) if at_s > first_s]
    happened += [(at_s, {"kubelet": "restart"}) for at_s in restarts]
    now_s = first_s
    for at_s, step in sorted(happened, key=lambda event: event[0]):
        yield from _passes(at_s - now_s)
        yield step
        now_s = at_s
    yield from _passes(end_s - now_s)


def kubelet_starts(calls: Sequence[Exchange]) -> list[float]:
    """When a kubelet started: those from 1.28 on ask for RuntimeConfig only then; of others, when
    Version, Status and ListImages came at once, of which each alone comes at any time. A start asks
    for Version twice (CRI-002)."""
    config_calls_s = [call.start_s for call in calls if call.method == "RuntimeConfig"]
    if config_calls_s:
        return config_calls_s
    starts_s: list[float] = []
    for call in calls:
        is_same_start = bool(starts_s) and call.start_s - starts_s[-1] < _AT_ONCE_S
        if call.method == "Version" and not is_same_start:
            near = {c.method for c in calls if abs(c.start_s - call.start_s) < _AT_ONCE_S}
            if {"Status", "ListImages"} <= near:
                starts_s.append(call.start_s)
    return starts_s


def _passes(time_s: float) -> Iterator[dict[str, Any]]:
    if time_s >= 0.1:
        yield {"advance": f"{time_s:.1f}s"}


def _deleted(pod: RecordedPod) -> Exchange | None:
    """The stop of a running container with which the end of the pod began; None when it goes on, or
    has ended by itself."""
    ends = pod.of("StopPodSandbox")
    if not ends or ends[-1].start_s < pod.of("RunPodSandbox")[-1].start_s:
        return None
    last_start_s = max((call.end_s for call in pod.of("StartContainer")), default=0.0)
    stops = [c for c in pod.of("StopContainer") if last_start_s < c.start_s < ends[-1].start_s]
    return stops[0] if stops else None


# -- what is expected ------------------------------------------------------------------------


def _expected(pod: RecordedPod, name: str) -> Iterator[dict[str, Any]]:
    """The calls for that pod: how many, in which order, how far apart, with which grace."""
    count = len(pod.of("RunPodSandbox"))
    yield _entry(f"the pod {name} got another number of sandboxes",
                 calls={"method": "RunPodSandbox", "pod": name, "count": count})  # fmt: skip
    for container in pod.containers:
        starts = pod.of("CreateContainer", container)
        chosen = {"method": "CreateContainer", "pod": name, "container": container}
        title = f"the container {container} of {name}"
        yield _entry(f"{title} was made more or less often", calls={**chosen, "count": len(starts)})
        if len(starts) > 2:
            spans = [_span(later.start_s - call.start_s) for call, later in pairwise(starts)]
            yield _entry(f"{title} was restarted at other times", gaps={**chosen, "are": spans})
        for stop in pod.of("StopContainer", container)[-1:]:
            grace = {"request": {"timeout": stop.request.timeout}}
            stop_selector = {**chosen, "method": "StopContainer", **grace}
            yield _entry(f"{title} was stopped with another grace period", calls=stop_selector)
    order = [_named(call, name) for call in pod.calls if call.method in _ORDERED][:_MOST]
    if len(order) > 1:
        yield _entry(f"the calls for {name} came in another order", order={"calls": order})


def _entry(says: str, **condition: Any) -> dict[str, Any]:
    return {**condition, "says": f"Unlike in the recording, {says}"}


def _named(call: Exchange, pod: str) -> dict[str, Any]:
    container = {"container": call.subject.container} if call.subject.container else {}
    return {"method": call.method, "pod": pod, **container}


def _span(gap_s: float) -> str:
    """A time that another run may take as well: a wait is spread by up to a half (BACK-011)."""
    return f"{max(0.0, gap_s / 1.5 - 1.5):.1f}s..{gap_s * 1.5 + 3:.1f}s"
