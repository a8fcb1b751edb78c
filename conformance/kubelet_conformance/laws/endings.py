"""Laws about the end: what is left when all pods are gone, and what the log says."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.laws.law import Seen, law


@law("LIFE-039.1", "LIFE-130.1")
def nothing_left(seen: Seen) -> Iterator[str]:
    """When all pods are removed, the kubelet forgets them, and nothing of them runs or is on the
    disk."""
    left = seen.history.left
    for what, names in (
        ("/pods still shows", left.pods),
        ("still runs:", left.running),
        ("a directory is left of", left.directories),
        ("the API server still has", left.at_api),
    ):
        if left.asked and names:
            yield f"{what} {', '.join(names)}"


@law("LIFE-037")
def no_unexpected_error(seen: Seen) -> Iterator[str]:
    """Nothing that a program should have foreseen, a traceback or a panic, is in the log."""
    for line in seen.history.log:
        if line.startswith("Traceback (most recent call last)") or "Observed a panic" in line:
            yield f"the log has: {line}"
