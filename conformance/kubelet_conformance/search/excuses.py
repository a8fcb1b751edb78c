"""Breaches that are known: which laws which kubelets are known to break, where that is written, and
how narrow it is. A breach that is excused is counted, and is no failure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.runs.offered import IN_PROCESS
from kubelet_conformance.laws.moments import STARTED_SINCE
from kubelet_conformance.search.circumstances import (
    WAITS,
    Holds,
    a_list_failed,
    came_back,
    changed_before_a_start,
    deleted_before_a_start,
    edited_and_shut_down,
    ends_for_good,
    goes_on,
    has_a_crashing_sidecar,
    has_deadline,
    has_hooks,
    has_probes,
    in_worlds_of,
    init_records_stay,
    is_back,
    is_dropped,
    is_evented,
    lost_its_sandbox,
    lost_state,
    panics_for_devices,
    reboots_with_init_containers,
    says,
)
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.playing import Breach


class Excuse(Struct, frozen=True):
    """One known breach."""

    name: str
    """A fixture (`138446`), a row of docs/gaps.md (`MIRR-003`), or a heading of docs/found.md."""
    law: str
    why: str
    """What is known, in a sentence."""
    holds: Holds
    """Whether this breach in this world is that one."""
    refkubelet: bool = False
    """Whether refkubelet breaks the law so, too; others are kubelets' alone."""


EXCUSES: Final = (
    Excuse(
        "112814",
        "one-static",
        "a static pod whose manifest was changed before a kubelet starts runs beside the old one, "
        "which only the runtime knows (kubernetes#112814, kubernetes#23186)",
        changed_before_a_start,
        refkubelet=True,
    ),
    *(
        Excuse(
            "static-edited-before-shutdown",
            law,
            "a static pod that was edited before a shutdown is shown Pending for ever, its mirror "
            "Running",
            edited_and_shut_down,
        )
        for law in ("mirrors-agree", "wanted-pods-go-on")
    ),
    *(
        Excuse(
            "evented-old-sandbox",
            law,
            "with EventedPLEG a pod is started a second time when its old sandbox is collected",
            is_evented,
        )
        for law in ("one-sandbox", "never-two-at-once", "no-other-sandboxes")
    ),
    Excuse(
        "static-shown-ended",
        "told-as-it-is",
        "a static pod that was away for a second runs, and is shown as ended for ever",
        came_back,
    ),
    Excuse(
        "static-back-unadmitted",
        "no-more-than-fits",
        "a static pod that comes back while it stops is started again unasked, also on a node that "
        "is full meanwhile",
        is_back,
    ),
    *(
        Excuse(
            "137710",
            law,
            "init containers that could not be removed before a new sandbox count as done in it "
            "(kubernetes#137710)",
            init_records_stay,
        )
        for law in ("initialized-again", "init-in-order")
    ),
    *(
        Excuse(
            "deadline-shown-ready",
            law,
            "a pod past its deadline is shown ready while it stops, although no probe has passed",
            has_deadline,
        )
        for law in ("ready-when-probed", "started-when-probed")
    ),
    *(
        Excuse(
            "deletion-shown-ready",
            law,
            "a pod deleted before a kubelet starts is shown ready while it stops, although no "
            "probe has passed",
            deleted_before_a_start,
        )
        for law in ("ready-when-probed", "started-when-probed")
    ),
    Excuse(
        "136021",
        "kubelet-lives",
        "a panic when two pods are given devices at the same time (kubernetes#136021)",
        panics_for_devices,
    ),
    Excuse(
        "142305",
        "started-when-probed",
        "a container that has not started yet counts as started for the next kubelet "
        "(kubernetes#142305)",
        says(STARTED_SINCE),
    ),
    Excuse(
        "135795-c",
        "ready-when-probed",
        "a container that has just been started is shown ready by a kubelet that starts, until its "
        "first probe",
        says(STARTED_SINCE),
    ),
    Excuse(
        "136969",
        "wanted-pods-go-on",
        "the ended containers of a pod of which no other one runs are not started again while one "
        "of its sidecars does not run (kubernetes#136969)",
        has_a_crashing_sidecar,
        refkubelet=True,
    ),
    *(
        Excuse(
            "STAT-008",
            law,
            "a static pod that runs again although its mirror shows that its containers have ended "
            "for good is shown as its mirror shows it (case ended-in-the-mirror)",
            ends_for_good,
            refkubelet=True,
        )
        for law in ("wanted-pods-go-on", "mirrors-agree")
    ),
    Excuse(
        "118321",
        "wanted-pods-go-on",
        "a pod that is never restarted and has lost its sandbox before all of its containers were "
        "started stays Pending (kubernetes#118321)",
        lost_its_sandbox,
        refkubelet=True,
    ),
    *(
        Excuse(
            "evented-lost-state",
            law,
            "with EventedPLEG a pod that only events have told of stays as it was when the runtime "
            "forgets it (docs/search.md)",
            lost_state,
            refkubelet=True,
        )
        for law in ("wanted-pods-go-on", "told-as-it-is")
    ),
    Excuse("116032, 127339", "stopped-in-time", "a hook holds up the end of its pod", has_hooks),
    Excuse(
        "125050",
        "nothing-begun-at-the-end",
        "a pod that was deleted while a step of its sync waited, such as for an image, is started",
        goes_on,
    ),
    *(
        Excuse("136962", law, "a copy beside a manifest is read, too", in_worlds_of("copies kept"))
        for law in ("wanted-pods-go-on", "mirrors-agree", "one-static", "nothing-else-runs")
    ),
    Excuse(
        "140309",
        "init-in-order",
        "what was created before a reboot counts as initialized",
        reboots_with_init_containers,
    ),
    *(
        Excuse(
            "141155",
            law,
            "what an earlier instance had reached counts for the next one",
            has_probes,
        )
        for law in ("startup-first", "started-when-probed")
    ),
    Excuse(
        "29845",
        "mirrors-agree",
        "the mirror of a static pod that has finished is not made again",
        says("has no mirror"),
    ),
    Excuse(
        "51142",
        "done-stays-done",
        "a container that the runtime has no record of is started, however it has ended",
        is_dropped,
    ),
    Excuse(
        "91667",
        "ends-shown",
        "the end of a container is not shown while a sync of its pod is under way",
        says(WAITS),
    ),
    Excuse(
        "evented-list-fails",
        "ends-noticed",
        "with EventedPLEG a list that failed is done again after 300 s only",
        a_list_failed,
    ),
    Excuse(
        "lost-exit",
        "ends-stay",
        "an instance that never ran hides the one before it",
        says("is told no more"),
    ),
    Excuse(
        "never-ran",
        "last-run-kept",
        "an instance that never ran takes the place of the one before it",
        says("is removed"),
    ),
)
"""All of them, in the order in which they are asked."""


def excuse_of(
    world: World, breach: Breach, *, kubelet: str, excuses: Iterable[Excuse] = EXCUSES
) -> Excuse | None:
    """The first excuse for that breach on that kubelet; None: there is none. `kubelet`: as
    `--kubelet` has it."""
    for excuse in excuses:
        if not excuse.refkubelet and kubelet.startswith(IN_PROCESS):
            continue
        if excuse.law == breach.law and excuse.holds(world, breach):
            return excuse
    return None
