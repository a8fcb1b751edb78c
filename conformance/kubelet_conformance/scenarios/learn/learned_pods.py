"""Makes manifests of recorded calls: what RunPodSandbox and CreateContainer say of a pod. No I/O.

What the calls do not tell is guessed from what happened, and `guesses` says so: which containers
are init containers, the restart policy, which probe an exec belongs to.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from fakecri.recording.recorded import Exchange

_SOURCE: Final = "kubernetes.io/config.source"
_GRACE: Final = "io.kubernetes.pod.terminationGracePeriod"
_PRE_STOP: Final = "io.kubernetes.container.preStopHandler"
_QUIET_S: Final = 15.0
"""A container that ended so long before the end of the record would have been restarted."""
_KILL_S: Final = 2.0
"""A stop so soon after a failed exec is taken for the work of a liveness probe."""


@dataclass(slots=True)
class RecordedPod:
    """What a record tells of one pod."""

    name: str
    """In the runtime: that of a static pod ends with the node's."""
    sandbox: Any
    """The configuration of its first sandbox."""
    calls: list[Exchange] = field(default_factory=list)
    guesses: list[str] = field(default_factory=list)

    @property
    def static(self) -> bool:
        """Whether its manifest was a file."""
        return str(self.sandbox.annotations.get(_SOURCE, "api")) == "file"

    def of(self, method: str, container: str | None = None) -> list[Exchange]:
        """Its calls of that method, of that container."""
        return [
            call
            for call in self.calls
            if call.method == method and container in (None, call.subject.container)
        ]

    @property
    def containers(self) -> list[str]:
        """Its containers in the order in which they were first made."""
        return list(dict.fromkeys(call.subject.container for call in self.of("CreateContainer")))


def recorded_pods(calls: Iterable[Exchange]) -> list[RecordedPod]:
    """The pods whose sandboxes were made in the record, in that order."""
    by_name: dict[str, RecordedPod] = {}
    for call in calls:
        name = call.subject.pod
        if call.method == "RunPodSandbox" and name not in by_name:
            by_name[name] = RecordedPod(name, call.request.config)
        if name in by_name:
            by_name[name].calls.append(call)
    return list(by_name.values())


def manifest_names(pods: Sequence[RecordedPod], node: str = "") -> dict[str, str]:
    """The pods' names in their manifests by their names in the runtime. `node` "": its name is
    taken from what the names of static pods have in common, or from the last word of one."""
    if not node:
        node = _node_name([pod.name for pod in pods if pod.static])
    return {p.name: p.name.removesuffix(f"-{node}") if p.static else p.name for p in pods}


def _node_name(names: Sequence[str]) -> str:
    """What static pods' names end with: as many words as all of them have in common, leaving one;
    of a single name the last word.

    >>> _node_name(["web-rack-7", "log-db-rack-7"]), _node_name(["web-a"]), _node_name([])
    ('rack-7', 'a', '')
    """
    if len(names) < 2:
        return names[0].rpartition("-")[2] if names else ""
    words = [name.split("-") for name in names]
    most = min(len(parts) for parts in words) - 1
    lengths = (n for n in range(most, 0, -1) if len({tuple(parts[-n:]) for parts in words}) == 1)
    return "-".join(words[0][-next(lengths, 0) :]) if most else ""


def spec_of(pod: RecordedPod, end_s: float) -> dict[str, Any]:
    """The spec of a pod; `end_s`: the end of the record."""
    inits = _init_containers(pod)
    pulled = {call.request.image.image for call in pod.of("PullImage")}
    spec: dict[str, Any] = {}
    if inits:
        spec["initContainers"] = [_container(pod, name, pulled) for name in inits]
    regular = [name for name in pod.containers if name not in inits]
    if regular:
        spec["containers"] = [_container(pod, name, pulled) for name in regular]
    graces = [_annotation(pod, name, _GRACE) for name in pod.containers]
    if seconds := next((grace for grace in graces if grace), ""):
        spec["terminationGracePeriodSeconds"] = int(seconds)
    network = pod.sandbox.linux.security_context.namespace_options.network
    if network == cri.NODE:
        spec["hostNetwork"] = True
    if _never_restarts(pod, regular, end_s):
        pod.guesses.append("restartPolicy Never: a container ended and was not started again")
        spec["restartPolicy"] = "Never"
    return spec


def _annotation(pod: RecordedPod, container: str, key: str) -> str:
    call = pod.of("CreateContainer", container)[0]
    return str(call.request.config.annotations.get(key, ""))


def _container(pod: RecordedPod, name: str, pulled: set[str]) -> dict[str, Any]:
    """One container. Its command is left out: its behaviours play it."""
    config = pod.of("CreateContainer", name)[0].request.config
    spec: dict[str, Any] = {"name": name}
    image = config.image.user_specified_image or config.image.image
    if image in pulled:
        spec["image"] = image
    if resources := _resources(config.linux.resources):
        spec["resources"] = resources
    hook = _annotation(pod, name, _PRE_STOP)
    if hook:
        spec["lifecycle"] = {"preStop": json.loads(hook)}
    hook_command = (json.loads(hook).get("exec") or {}).get("command") if hook else None
    return {**spec, **_probe(pod, name, hook_command)}


def _resources(given: Any) -> dict[str, Any]:
    """Requests and limits, as far as the cgroup's numbers tell them."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if given.cpu_shares > 2:
        requests["cpu"] = f"{-(-given.cpu_shares * 1000 // 1024)}m"
    if given.cpu_quota > 0 and given.cpu_period:
        limits["cpu"] = f"{given.cpu_quota * 1000 // given.cpu_period}m"
    if given.memory_limit_in_bytes > 0:
        limits["memory"] = str(given.memory_limit_in_bytes)
    return {k: v for k, v in (("requests", requests), ("limits", limits)) if v}


def _probe(pod: RecordedPod, name: str, hook: Any) -> dict[str, Any]:
    """A probe for the command that was executed again and again."""
    by_command: dict[tuple[str, ...], list[Exchange]] = defaultdict(list)
    for call in pod.of("ExecSync", name):
        by_command[tuple(call.request.cmd)].append(call)
    for command, calls in by_command.items():
        if list(command) == hook or len(calls) < 2:
            continue
        gaps = [later.start_s - earlier.start_s for earlier, later in pairwise(calls)]
        kind = "livenessProbe" if _kills(pod, name, calls) else "readinessProbe"
        pod.guesses.append(f"{kind} of {name}: the command {' '.join(command)} was run repeatedly")
        period_s = max(1, round(statistics.median(gaps)))
        return {kind: {"exec": {"command": list(command)}, "periodSeconds": period_s}}
    return {}


def _kills(pod: RecordedPod, name: str, execs: Sequence[Exchange]) -> bool:
    """Whether a failed exec was followed by a stop of the container."""
    failed = [c.end_s for c in execs if c.response is not None and c.response.exit_code]
    stops = [call.start_s for call in pod.of("StopContainer", name)]
    return any(0 <= stop - end <= _KILL_S for stop in stops for end in failed)


def _init_containers(pod: RecordedPod) -> list[str]:
    """The containers that had ended well before the next one was made for the first time."""
    names = pod.containers
    inits = []
    for name, following in pairwise(names):
        next_s = pod.of("CreateContainer", following)[0].start_s
        if not _ended_well(pod, name, next_s):
            break
        inits.append(name)
    if inits:
        pod.guesses.append(f"init containers {', '.join(inits)}: they ended before the next began")
    return inits


def _ended_well(pod: RecordedPod, name: str, before_s: float) -> bool:
    return any(
        call.response is not None
        and call.response.status.state == cri.CONTAINER_EXITED
        and call.response.status.exit_code == 0
        and call.end_s <= before_s
        for call in pod.of("ContainerStatus", name)
    )


def _never_restarts(pod: RecordedPod, names: Sequence[str], end_s: float) -> bool:
    """Whether a container ended by itself, and no other took its place in time."""
    for name in names:
        ended = [
            call.end_s
            for call in pod.of("ContainerStatus", name)
            if call.response is not None and call.response.status.state == cri.CONTAINER_EXITED
        ]
        again = len(pod.of("CreateContainer", name)) > 1 or pod.of("StopContainer", name)
        if ended and not again and end_s - ended[0] > _QUIET_S:
            return True
    return False
