"""Which laws can be asked of a recording, and what the others want. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubelet_conformance.laws import (
    LAWS,
    Breach,
    Law,
    ask,
    beginnings,
    calm,
    fitting,
    noticing,
    probing,
    promptness,
    reasons,
    remembering,
    telling,
)
from kubelet_conformance.recordings.history import Known, Recording

OF_WORLDS: Final = (
    beginnings,
    calm,
    fitting,
    noticing,
    probing,
    promptness,
    reasons,
    remembering,
    telling,
)
"""The modules of laws that are asked of worlds of search alone."""
ENDS: Final[tuple[Known, ...]] = ("ends",)
POD: Final[tuple[Known, ...]] = ("pods",)
STATUSES: Final[tuple[Known, ...]] = ("pods", "statuses")
WANTS: Final[Mapping[str, tuple[Known, ...]]] = {
    "one-running": ENDS,
    "one-sandbox": (),
    "one-static": (),
    "attempts-grow": (),
    "nothing-after-its-end": STATUSES,
    "init-in-order": (*POD, *ENDS),
    "policy-obeyed": POD,
    "backed-off": (*POD, "configuration"),
    "no-mistaken-call": (),
    "removed-when-over": ENDS,
    "grace-kept": (),
    "nothing-in-what-is-over": (),
    "given-once": (*POD, *ENDS),
    "user-ids-given-once": (),
    "cgroups-given-once": (),
    "phases-go-on": STATUSES,
    "restarts-go-up": STATUSES,
    "ready-while-running": STATUSES,
    "conditions-agree": STATUSES,
    "transitions-have-times": STATUSES,
    "as-the-runtime-had-it": STATUSES,
    "counted-as-made": STATUSES,
    "start-time-kept": STATUSES,
    "addresses-of-sandbox": STATUSES,
    "generation-not-back": STATUSES,
}
"""Law -> what it wants beside the calls. `grace-kept` asks without the pods only for the 2 s that
each container has."""
NEVER: Final[Mapping[str, str]] = {
    "only-what-it-may": "requests to the API server",
    "nothing-refused": "requests to the API server",
    "no-equal-writes": "requests to the API server",
    "events-as-often": "events",
    "events-of-what-is-there": "events",
    "unpublished-when-unused": "calls to storage drivers",
    "unstaged-when-unpublished": "calls to storage drivers",
    "volumes-are-ended": "calls to storage drivers",
    "nothing-left": "a look at a node without pods",
    "no-unexpected-error": "the kubelet's log",
    **{
        law.name: "a node that is left alone in the end"
        for law in LAWS
        if law.breaches.__module__ in {module.__name__ for module in OF_WORLDS}
    },
}
"""Law -> what no recording has that it wants."""
WORDS: Final[Mapping[Known, str]] = {
    "pods": "the pods (pods.jsonl beside cri.jsonl)",
    "statuses": "their statuses",
    "configuration": "the kubelet's configuration (--kubelet-config)",
    "ends": "a kubelet that does not listen to events of the runtime",
}
"""What is known of a recording, for the text of what is not."""


def asked_of(recording: Recording) -> list[Law]:
    """The laws that can be asked of it."""
    return [law for law in LAWS if set(WANTS.get(law.name, ("never",))) <= recording.known]


def breaches_of(recording: Recording) -> list[Breach]:
    """What of it is against these."""
    return list(ask(asked_of(recording), recording.history))


def left_out(recording: Recording) -> dict[str, str]:
    """The names of the other laws, and what each wants."""
    asked = {law.name for law in asked_of(recording)}
    wanted = {}
    for law in LAWS:
        if law.name in NEVER:
            wanted[law.name] = NEVER[law.name]
        elif law.name not in asked:
            missing = [each for each in WANTS[law.name] if each not in recording.known]
            wanted[law.name] = " and ".join(WORDS[each] for each in missing)
    return wanted
