"""From recorded calls to a script that makes the fake do what the recorded runtime did.

So a run in front of a real runtime (`fakecri proxy --record`) becomes a scenario that needs none:
how each container ended, what it answered to exec, which calls failed. Pure. What must never happen
here: something is invented that the record does not show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kubecri.v1 import api_pb2 as pb

from fakecri.behaviors.matching import Match, Subject
from fakecri.recording.recorded import Exchange
from fakecri.words.behaviors import Reply, exits, ignores, replies, start_fails, stops
from fakecri.words.word import to_dict
from kubeobjects.structs import replace

_NATURAL: Final = frozenset({"NOT_FOUND", "CANCELLED"})
"""Errors that the caller brings about: an object that is gone, a caller that went away."""
_OF_CONTAINERS: Final = frozenset({"StartContainer", "ExecSync", "ContainerStatus"})
_DIGITS: Final = 1
"""Times are given to a tenth of a second; smaller differences come from the machine."""


def learned_script(calls: Sequence[Exchange]) -> dict[str, Any]:
    """The script as plain data (see `fakecri.scripts.script`); empty sections are left out."""
    calls = list(_undisturbed(calls))
    sections = {
        "images": _images(calls),
        "registry": _registry(calls),
        "behaviors": [*_ends(calls), *_answers(calls)],
        "faults": _faults(calls),
    }
    return {name: section for name, section in sections.items() if section}


def _undisturbed(calls: Sequence[Exchange]) -> Iterator[Exchange]:
    """The calls without the traces of rules that a proxy applied: their errors are left out, and
    the time of a call that a rule acted on is taken as nothing. How a container ended is not known
    if a rule acted on its stop: whether and when the runtime heard of it is in no record."""
    stops = [call for call in calls if call.disturbed and call.method == "StopContainer"]
    unclear = {call.request.container_id for call in stops}
    for call in calls:
        if call.method == "ContainerStatus" and call.request.container_id in unclear:
            continue
        if not call.disturbed:
            yield call
        elif call.error is None:
            yield replace(call, end_s=call.start_s)


def _images(calls: Iterable[Exchange]) -> list[str]:
    """The images that were there before anything pulled them."""
    pulled: set[str] = set()
    present: dict[str, None] = {}
    for call in calls:
        if call.method == "PullImage":
            pulled.add(call.request.image.image)
        elif call.method == "ImageStatus" and call.response is not None:
            if call.response.HasField("image") and call.request.image.image not in pulled:
                present[call.request.image.image] = None
        elif call.method == "CreateContainer" and call.response is not None:
            image = call.request.config.image
            name = image.user_specified_image or image.image
            if name not in pulled and not name.startswith("sha256:"):
                present[name] = None
    return list(present)


def _registry(calls: Iterable[Exchange]) -> dict[str, Any]:
    """How long the pulls took that succeeded."""
    took: dict[str, Any] = {}
    for call in calls:
        if call.method == "PullImage" and call.error is None:
            pull_s = round(call.end_s - call.start_s, _DIGITS)
            if pull_s > 0:
                took.setdefault(call.request.image.image, {"pull_s": pull_s})
    return took


# -- how containers ended ------------------------------------------------------------------------


def _ends(calls: Sequence[Exchange]) -> Iterator[dict[str, Any]]:
    """An entry for each attempt of a container that ended or did not start; one for all, if all of
    them did alike."""
    attempts_made: dict[tuple[str, str], set[int]] = defaultdict(set)
    for call in calls:
        if call.method == "CreateContainer" and call.response is not None:
            attempts_made[call.subject.pod, call.subject.container].add(call.subject.attempt or 0)
    ends: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for subject, end in _attempts(calls):
        ends[subject.pod, subject.container][subject.attempt or 0] = end
    for (pod, container), attempts in ends.items():
        selectors = {"pod": pod, "container": container}
        all_ended = attempts_made[pod, container] <= attempts.keys()
        if len(attempts) > 1 and all_ended and _alike(list(attempts.values())):
            yield {**selectors, **attempts[max(attempts)]}
            continue
        for number, end in sorted(attempts.items()):
            yield {**selectors, "attempt": number, **end}


def _alike(ends: Sequence[dict[str, Any]]) -> bool:
    return all(end == ends[0] for end in ends)


def _attempts(calls: Sequence[Exchange]) -> Iterator[tuple[Subject, dict[str, Any]]]:
    stops: dict[str, Exchange] = {}
    last: dict[str, tuple[Subject, pb.ContainerStatus]] = {}
    for call in calls:
        if call.method == "StopContainer":
            identity = call.request.container_id
            last_seen = last.get(identity)
            if last_seen is None or last_seen[1].state != pb.CONTAINER_EXITED:
                stops.setdefault(identity, call)
        elif call.method == "ContainerStatus" and call.response is not None:
            last[call.request.container_id] = (call.subject, call.response.status)
        elif call.method == "StartContainer" and call.error and call.error[0] not in _NATURAL:
            yield call.subject, to_dict(start_fails(call.error[1]))
    for identity, (subject, status) in last.items():
        if status.state == pb.CONTAINER_EXITED and status.started_at:
            end = _end(status, stops.get(identity))
            if not _is_default(end):
                yield subject, end


def _end(status: pb.ContainerStatus, stop: Exchange | None) -> dict[str, Any]:
    """How a container came to its end: by itself, or by its stop signal."""
    if stop is None:
        after_s = round((status.finished_at - status.started_at) / 1e9, _DIGITS)
        natural = "Completed" if status.exit_code == 0 else "Error"
        reason = "" if status.reason == natural else status.reason
        end = exits(status.exit_code, after_s=after_s, reason=reason, message=status.message)
        return to_dict(end)
    took_s = round(stop.end_s - stop.start_s, _DIGITS)
    if status.exit_code == 137 and took_s >= stop.request.timeout:
        return to_dict(ignores())
    return to_dict(stops(status.exit_code, after_s=took_s))


def _is_default(end: dict[str, Any]) -> bool:
    """Whether a container without any behaviour ends in this way."""
    return end == to_dict(stops(143))


# -- what they answered --------------------------------------------------------------------------


def _answers(calls: Iterable[Exchange]) -> Iterator[dict[str, Any]]:
    """One entry for each container and command, with the answers in their order."""
    replies_of: dict[tuple[str, str, int | None, tuple[str, ...]], list[Reply]] = defaultdict(list)
    for call in calls:
        if call.method == "ExecSync" and (reply := _reply(call)) is not None:
            subject = call.subject
            key = (subject.pod, subject.container, subject.attempt, tuple(call.request.cmd))
            replies_of[key].append(reply)
    for (pod, container, attempt, command), answers in replies_of.items():
        while len(answers) > 1 and answers[-1] == answers[-2]:
            answers.pop()  # the last one repeats by itself
        selectors = {"pod": pod, "container": container, "attempt": attempt}
        chosen = {key: value for key, value in selectors.items() if value not in ("", None)}
        yield {**chosen, **to_dict(replies(command, answers=answers))}


def _reply(call: Exchange) -> Reply | None:
    if call.error is not None:
        late = call.error[0] == "DEADLINE_EXCEEDED" and call.request.timeout > 0
        return Reply(delay_s=call.request.timeout + 1.0) if late else None
    took_s = call.end_s - call.start_s
    return Reply(
        call.response.exit_code,
        call.response.stdout.decode("utf-8", "replace"),
        call.response.stderr.decode("utf-8", "replace"),
        round(took_s, _DIGITS),
    )


# -- which calls failed --------------------------------------------------------------------------


def _faults(calls: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Every failure that the caller did not bring about, with the number of its call among those
    that the fault is about."""
    faults = []
    for number, call in enumerate(calls):
        if call.error is None or call.method in _OF_CONTAINERS or call.error[0] in _NATURAL:
            continue
        selectors = _selectors(call.subject)
        match = Match(**selectors)
        earlier = (c for c in calls[:number] if c.method == call.method)
        nth = 1 + sum(match.fits(earlier_call.subject) for earlier_call in earlier)
        code, message = call.error
        fails = {"code": code, "message": message, "times": 1}
        faults.append({"on": call.method, **selectors, "nth": nth, "fails": fails})
    return faults


def _selectors(subject: Subject) -> dict[str, Any]:
    named = {
        "pod": subject.pod or subject.uid,
        "container": subject.container,
        "image": "" if subject.container else subject.image,
        "attempt": subject.attempt,
    }
    return {key: value for key, value in named.items() if value not in ("", None)}
