"""Recorded runs of the real kubelet, reduced to what a run of ours can be compared with.

Kept: the order of changing calls and image look-ups, with names and attempts; timeouts of stops.
Dropped: times, ids, periodic calls, status reads. Calls that a kubelet makes at the same time for
several containers (hooks and stops, removals) are sorted by container, because their order is
chance; those of one container keep theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from conformance.harness.observe import READS, write_name

KEPT_READS: Final = frozenset({"ImageStatus"})
PARALLEL: Final = {"StopContainer": "stop", "ExecSync": "stop", "RemoveContainer": "remove"}


def recorded_order(file: Path) -> list[str]:
    """The normalised calls of a `cri.jsonl`."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    kept = [row for row in rows if _kept(row.get("method", "Version"))]
    return in_order(_recorded_name(row) for row in kept)


def order_of(calls: Sequence[Any]) -> list[str]:
    """The same for recorded `Call`s."""
    return in_order(_name(call) for call in calls if _kept(call.method))


def in_order(names: Iterable[str]) -> list[str]:
    """Neighbours of one parallel kind sorted by container.

    >>> in_order(["StopContainer b/0", "ExecSync a/0", "StopContainer a/0", "StopPodSandbox/0"])
    ['ExecSync a/0', 'StopContainer a/0', 'StopContainer b/0', 'StopPodSandbox/0']
    """
    ordered: list[str] = []
    for kind, group in groupby(names, key=lambda name: PARALLEL.get(name.split()[0])):
        together = list(group)
        ordered += sorted(together, key=lambda name: name.split()[1]) if kind else together
    return ordered


def _kept(method: str) -> bool:
    return method not in READS or method in KEPT_READS


def _name(call: Any) -> str:
    if call.method in KEPT_READS:
        return str(call.method)
    timeout = f" timeout={call.request.timeout}" if call.method == "StopContainer" else ""
    return write_name(call) + timeout


def _recorded_name(row: dict[str, Any]) -> str:
    method, request = row["method"], row["request"]
    if method in KEPT_READS:
        return str(method)
    if method == "RunPodSandbox":
        return f"{method}/{request['config']['metadata'].get('attempt', 0)}"
    if method == "CreateContainer":
        metadata = request["config"]["metadata"]
        return f"{method} {metadata['name']}/{metadata.get('attempt', 0)}"
    if "container_id" in request:
        _, container, attempt = request["container_id"].removeprefix("ctr:").split("/")
        timeout = f" timeout={request.get('timeout', 0)}" if method == "StopContainer" else ""
        return f"{method} {container}/{attempt.split('#')[0]}{timeout}"
    if "pod_sandbox_id" in request:
        return f"{method}/{request['pod_sandbox_id'].split('/')[-1].split('#')[0]}"
    return str(method)
