"""How a world ends: what API server, kubelet and runtime have of each pod when all is calm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.laws.history import There

NAME: Final = "io.kubernetes.container.name"
POD: Final = "io.kubernetes.pod.name"
MIRROR: Final = "kubernetes.io/config.mirror"
INLINE: Final = "inline volumes"
KINDS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class ContainerEnd(Struct, frozen=True):
    """The status of a container."""

    kind: str
    """running, terminated or waiting"""
    for_s: float
    """Seconds since it began to run, or ended."""
    reason: str = ""
    exit_code: int = 0
    restarts: int = 0
    ready: bool = False


class PodEnd(Struct, frozen=True, kw_only=True):
    """What is known of a pod."""

    phase: str
    reason: str
    policy: str
    deleted: bool
    conditions: Mapping[str, bool]
    containers: Mapping[str, ContainerEnd]


class End(Struct, frozen=True, kw_only=True):
    """What is there at the end of a world."""

    at_api: Mapping[str, PodEnd]
    """The pods of the API server, by name, without mirrors."""
    mirrors: Mapping[str, PodEnd]
    listed: Mapping[str, PodEnd]
    """Those in `/pods` of the kubelet."""
    sandboxes: Mapping[str, int]
    """Pod -> how many sandboxes of it are ready."""
    running: Sequence[tuple[str, str]]
    """Pod and name of the containers that run, once each instance."""
    left_out: Sequence[int]
    """The steps that could not be done, by their places."""
    volumes: Mapping[str, str] = {}
    """Volume of a storage driver -> where it is."""


def end_of(
    there: There, now_s: float, left_out: Sequence[int], drivers: Sequence[FakeCsiDriver] = ()
) -> End:
    """What is there. `now_s`: the wall clock of the node, seconds since 1970."""
    pods = {name: _pod(pod, now_s) for name, pod in there.at_api.items()}
    mirrors = {name for name, pod in there.at_api.items() if _is_mirror(pod)}
    ready = [box for box in there.sandboxes if box.state == cri.SANDBOX_READY]
    names = sorted(box.metadata.name for box in ready)
    return End(
        at_api={name: pod for name, pod in pods.items() if name not in mirrors},
        mirrors={name: pod for name, pod in pods.items() if name in mirrors},
        listed={name: _pod(pod, now_s) for name, pod in there.listed.items()},
        sandboxes={name: names.count(name) for name in names},
        running=sorted(
            (one.labels[POD], one.labels[NAME])
            for one in there.containers
            if one.state == cri.CONTAINER_RUNNING
        ),
        left_out=left_out,
        volumes=dict(_volumes(drivers)),
    )


def _volumes(drivers: Sequence[FakeCsiDriver]) -> Iterator[tuple[str, str]]:
    """Where the volumes are; those that are a pod's alone have IDs of their own, and are one."""
    for driver in drivers:
        published = Counter(map(_volume, driver.published.values()))
        staged = set(map(_volume, driver.staged))
        for volume in sorted(published.keys() | staged):
            where = f"published {published[volume]} times"
            yield f"{driver.name}/{volume}", f"{where}, staged" if volume in staged else where


def _volume(handle: str) -> str:
    return INLINE if handle.startswith("csi-") else handle


def _is_mirror(pod: Mapping[str, Any]) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _pod(pod: Mapping[str, Any], now_s: float) -> PodEnd:
    status = pod.get("status") or {}
    return PodEnd(
        phase=status.get("phase", ""),
        reason=status.get("reason", ""),
        policy=pod["spec"].get("restartPolicy", "Always"),
        deleted=bool(pod["metadata"].get("deletionTimestamp")),
        conditions={one["type"]: one["status"] == "True" for one in status.get("conditions") or ()},
        containers={
            one["name"]: _container(one, now_s) for kind in KINDS for one in status.get(kind) or ()
        },
    )


def _container(status: Mapping[str, Any], now_s: float) -> ContainerEnd:
    state = status.get("state") or {}
    kind = next(iter(state), "waiting")
    what = state.get(kind) or {}
    at = what.get("finishedAt") or what.get("startedAt")
    since_s = now_s if at is None else datetime.fromisoformat(at).timestamp()
    return ContainerEnd(
        kind=kind,
        for_s=round(now_s - since_s, 1),
        reason=what.get("reason", ""),
        exit_code=what.get("exitCode", 0),
        restarts=status.get("restartCount", 0),
        ready=bool(status.get("ready")),
    )
