"""The shape of a trace: `Trace`, made of `Entry`. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

Kind = Literal["call", "reads", "probe", "hook", "state", "wait", "status", "event", "api", "user"]
KINDS: Final[dict[Kind, str]] = {
    "call": "CRI call that changes something, or failed",
    "reads": "CRI calls that only look, counted",
    "probe": "probe, and its result",
    "hook": "HTTP request of a lifecycle hook, and its answer",
    "state": "state of a container or a sandbox in the runtime",
    "wait": "back-off or other wait before a try is repeated",
    "status": "pod status, as the kubelet shows it",
    "event": "event, as it was sent to the API server",
    "api": "request of the kubelet to the API server that changes something",
    "user": "request of the case to the API server",
}
"""The kinds of entries, in words."""


class Entry(Struct, omit_defaults=True, frozen=True):
    """One thing that happened. Ids are names: `sandbox:web/0`, `ctr:web/main/0`, `uid:web`."""

    at_s: Annotated[float, Meta(description="when it began, seconds since the case began")]
    kind: Kind
    what: Annotated[
        str,
        Meta(
            description="call, probe: the method; probe over the network, hook: the protocol (http,"
            " https, tcp, grpc); state: created, running, exited, ready, notready;"
            " wait: restart or pull; status: the phase; event: the reason; api, user: the HTTP"
            " method and the path"
        ),
    ]
    pod: Annotated[str, Meta(description="its name in the runtime; empty: about no pod")] = ""
    container: str = ""
    attempt: int | None = None
    until_s: Annotated[
        float | None, Meta(description="when it ended; none: at once, or not in this trace")
    ] = None
    error: Annotated[str, Meta(description="code and message of a failure; of a probe, too")] = ""
    told: Annotated[str, Meta(description="the rest in a few words")] = ""
    detail: Annotated[
        dict[str, Any],
        Meta(description="call: request and response; reads: method -> number; others: the object"),
    ] = {}


class Trace(Struct, omit_defaults=True, frozen=True):
    """What happened in one case, in order of `at_s`."""

    entries: tuple[Entry, ...] = ()
    end_s: Annotated[float, Meta(description="when the observation ended")] = 0.0


def in_order(entries: list[Entry], end_s: float) -> Trace:
    """The entries as a trace."""
    return Trace(tuple(sorted(entries, key=lambda entry: entry.at_s)), round(end_s, 4))


def about(entry: Entry) -> str:
    """Pod, container and attempt of an entry as one word: `web/main#1`; "" where it has none.

    >>> about(Entry(0, "call", "StartContainer", "web", "main", 1))
    'web/main#1'
    """
    place = "/".join(part for part in (entry.pod, entry.container) if part)
    return place if entry.attempt is None or not place else f"{place}#{entry.attempt}"
