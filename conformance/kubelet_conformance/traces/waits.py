"""What was waited for between the tries of a kubelet, found in the entries of a trace. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kubelet_conformance.traces.entries import Entry


def waits_of(entries: Iterable[Entry]) -> list[Entry]:
    """The waits between the end of a container and the creation of the next one of its name
    (`restart`), and between a pull that failed and the next one of that image (`pull`).

    The entries are in order of time; a wait without an end is none.
    """
    exits: dict[tuple[str, str], Entry] = {}
    failed: dict[tuple[str, str], Entry] = {}
    waits: list[Entry] = []
    for entry in entries:
        whose = (entry.pod, entry.container)
        image = (entry.pod, entry.told)
        if entry.kind == "state" and entry.what == "exited":
            exits[whose] = entry
        elif entry.kind == "call" and entry.what == "CreateContainer" and whose in exits:
            waits.append(_wait("restart", exits.pop(whose).at_s, entry))
        elif entry.kind == "call" and entry.what == "PullImage":
            if image in failed:
                waits.append(_wait("pull", failed.pop(image).until_s or 0.0, entry))
            if entry.error and entry.until_s is not None:
                failed[image] = entry
    return waits


def _wait(what: str, since_s: float, then: Entry) -> Entry:
    """The wait that ended when `then` began."""
    since_s = min(since_s, then.at_s)
    return Entry(
        at_s=since_s,
        kind="wait",
        what=what,
        pod=then.pod,
        container=then.container,
        attempt=then.attempt,
        until_s=then.at_s,
        told=f"{then.at_s - since_s:.1f} s",
    )
