"""Which statuses of a pod follow each other, and what a kubelet has forgotten between two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubelet_conformance.laws.history import Shown
from kubelet_conformance.laws.law import Seen

MIRROR_S: Final = 5.0
"""Within this time a status is made anew after its mirror was."""
PUT_RIGHT_S: Final = 2.0
"""Within this time a status is made anew after the result of a probe."""


def is_static(seen: Seen, uid: str) -> bool:
    """Whether the pod of that UID is from a manifest: it may come back as if it were new."""
    given = seen.history.pods.get(uid)
    notes = given[0]["metadata"].get("annotations") or {} if given else {}
    return bool(notes.get("kubernetes.io/config.source", "file") != "api")


def successive(seen: Seen) -> Iterator[tuple[Shown, Shown]]:
    """Each status of a pod with the one before."""
    last: dict[str, Shown] = {}
    for one in seen.history.shown:
        before = last.get(one.uid)
        if before is not None:
            yield before, one
        last[one.uid] = one


def of_one_life(seen: Seen) -> Iterator[tuple[Shown, Shown]]:
    """The same, without those of static pods whose manifest came back: with its UID, as if it were
    new, perhaps so soon that nobody saw it gone. Its old status may be shown at first; only
    startTime tells when it is a new one."""
    back: dict[str, Any] = {}
    files = [each for each in seen.history.planned if each.kind == "manifest"]
    for before, after in successive(seen):
        start = after.status.get("startTime")
        moved = any(
            before.at_s - PUT_RIGHT_S <= each.at_s <= after.at_s
            and each.about.startswith(after.pod.removesuffix(f"-{seen.history.node_name}"))
            for each in files
        )
        if (after.again or moved) and is_static(seen, after.uid):
            back[after.uid] = before.status.get("startTime")
        elif after.uid in back:
            if start not in (None, back[after.uid]):
                del back[after.uid]
        else:
            yield before, after


def remembered(seen: Seen) -> Iterator[tuple[Shown, Shown]]:
    """The same, without those between which a kubelet was started that may not know the one
    before, or the mirror of a static pod was made again, or is about to be: a status that meets
    another mirror than its own is forgotten."""
    mirrors = replaced_mirrors(seen)
    for before, after in of_one_life(seen):
        if is_forgotten(seen, mirrors, before, after):
            continue
        if not has_started(seen, before, after):
            yield before, after


def has_started(seen: Seen, before: Shown, after: Shown) -> bool:
    """Whether a kubelet has started between two statuses."""
    starts = (each.at_s for each in seen.history.planned if each.kind == "start")
    return any(before.at_s <= at <= after.at_s for at in starts)


def replaced_mirrors(seen: Seen) -> list[tuple[float, str]]:
    """When the kubelet has made or deleted a pod at the API server, and its name."""
    return [(one.started_s, _replaced(one)) for one in seen.history.requests if _replaced(one)]


def is_forgotten(seen: Seen, mirrors: list[tuple[float, str]], before: Shown, after: Shown) -> bool:
    """Whether a status of a static pod may have met another mirror than its own before the next
    one: it is forgotten then."""
    return is_static(seen, after.uid) and any(
        name == after.pod and before.at_s - MIRROR_S <= at <= after.at_s for at, name in mirrors
    )


def made_pod(request: Any) -> str:
    """The name of the pod that a request has made; "": it has made none."""
    if request.method != "POST" or not request.path.endswith("/pods") or request.status >= 300:
        return ""
    return str(request.body["metadata"]["name"])


def _replaced(request: Any) -> str:
    """The name of the pod that a request has made, or wants to delete to make it again;
    "": it has done neither."""
    if request.method == "DELETE" and "/pods/" in request.path:
        return str(request.path.rpartition("/")[2])
    return made_pod(request)
