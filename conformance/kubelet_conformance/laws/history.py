"""The history of a case, which laws are asked about: one record of what happened on its node.

Times are of the clock of the run, in seconds; `History.since` makes them seconds of the case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, Final, Literal

from msgspec import Struct

PlannedKind = Literal[
    "stop",
    "kill",
    "start",
    "fault",
    "outside",
    "stopped",
    "server",
    "user",
    "manifest",
    "driver",
    "calm",
]
"""What a case does to its node beside pods: the kubelet is stopped, killed, started; calls of the
kubelet fail, are late or hang (`fault`); something happens in the runtime without the kubelet
(`outside`; about `reboot`: the machine boots), or a container or sandbox is stopped there
(`stopped`); requests to the API server fail or are late (`server`); objects are changed without a
request (`user`), manifests that were there are changed, renamed or removed (`manifest`, about the
file); a storage driver stops, dies or comes back, or calls to it fail, are late or hang (`driver`,
about its name); from then on nothing is done to it any more (`calm`)."""


REBOOT: Final = "reboot"
"""What happens outside when the machine boots: it is about that."""


class Shown(Struct, frozen=True):
    """A status as the kubelet's `/pods` showed it first at that moment."""

    at_s: float
    pod: str
    """The name of the pod there."""
    uid: str
    status: Mapping[str, Any]
    again: bool = False
    """Whether the pod is there anew: at the look before it was not."""


class Planned(Struct, frozen=True):
    """Something that the case did to its node."""

    at_s: float
    """nan: it is not known when."""
    kind: PlannedKind
    about: str = ""
    """The method of the calls, the path of the requests, the name of the pod or file; "": all."""


class Left(Struct, frozen=True):
    """What was there when all pods had been removed and the node was still."""

    asked: bool = False
    """Whether it came so far: the kubelet ran, and time could pass."""
    pods: tuple[str, ...] = ()
    """Names that `/pods` still shows."""
    running: tuple[str, ...] = ()
    """`pod/container` of containers that still run, and `pod` of sandboxes that are ready."""
    directories: tuple[str, ...] = ()
    """UIDs that still have a directory below the kubelet's root."""
    at_api: tuple[str, ...] = ()
    """Names of pods of the node that the API server still has."""


class Manifest(Struct, frozen=True):
    """A file of a static pod."""

    pod: Mapping[str, Any]
    read: bool = True
    """Whether kubelets read files of that name; False: some do (a copy beside a manifest)."""


class There(Struct, frozen=True, kw_only=True):
    """What was there at the end of a case, before its pods were removed."""

    containers: Sequence[Any] = ()
    """What the runtime has (`ContainerStatus` of the CRI)."""
    sandboxes: Sequence[Any] = ()
    """Likewise (`PodSandbox` of the CRI)."""
    listed: Mapping[str, Mapping[str, Any]] = {}
    """Name -> pod, as `/pods` shows it."""
    at_api: Mapping[str, Mapping[str, Any]] = {}
    """Name -> pod of the node, as the API server has it, mirrors included."""
    configmaps: frozenset[str] = frozenset()
    """The names of those that the API server has."""
    manifests: Mapping[str, Sequence[Manifest]] | None = None
    """Name -> the manifests of that name in the kubelet's directory, of static pods that the case
    has written; None: nobody has looked."""


class History(Struct, frozen=True, kw_only=True):
    """What happened on the node of a case, up to now."""

    start_s: float
    """When the case began."""
    end_s: float
    """When it ended: what came later belongs to the removal of its pods."""
    start_ns: int = 0
    """The wall clock when the case began, nanoseconds since 1970."""
    node_name: str = "node"
    config: Mapping[str, Any] = {}
    """The KubeletConfiguration that the kubelet was started with last."""
    calls: Sequence[Any] = ()
    """The kubelet's calls (fakecri's `Call`), in order of arrival."""
    requests: Sequence[Any] = ()
    """The kubelet's requests to the API server that were answered (fakekubeapi's `RequestRecord`),
    in order of arrival."""
    by_users: Sequence[Any] = ()
    """The requests of the case, likewise."""
    shown: Sequence[Shown] = ()
    """The successive statuses of all pods."""
    pods: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    """UID -> the pod as it was given: as `/pods` showed it at first and after each change of its
    generation."""
    events: Sequence[Mapping[str, Any]] = ()
    """The events as the API server has them."""
    stored: Mapping[str, Mapping[str, Any]] = {}
    """Name -> pod, as the API server had it at `end_s`."""
    driver_calls: Mapping[str, Sequence[Any]] = {}
    """Name of a storage driver -> the kubelet's calls to it (fakecri's `CsiCall`), in order."""
    silent_drivers: frozenset[str] = frozenset()
    """The names of those that could not be called in the end, or of which calls failed."""
    log: Sequence[str] = ()
    """The lines of the kubelet's log that are kept."""
    planned: Sequence[Planned] = ()
    """What the case did to the node, in order."""
    there: There | None = None
    """What was there at `end_s`; None: nobody has looked, or the node was not left alone before."""
    left: Left = Left()

    def since(self, at_s: float) -> str:
        """A moment in seconds of the case, for the text of a breach."""
        return f"{at_s - self.start_s:.3f} s"

    def did(self, *kinds: PlannedKind) -> bool:
        """Whether the case did one of these things."""
        return any(each.kind in kinds for each in self.planned)

    def did_between(self, begin_s: float, end_s: float, *kinds: PlannedKind) -> bool:
        """Whether the case did one of these things in this time, or may have."""
        return any(
            each.kind in kinds and (begin_s <= each.at_s <= end_s or isnan(each.at_s))
            for each in self.planned
        )
