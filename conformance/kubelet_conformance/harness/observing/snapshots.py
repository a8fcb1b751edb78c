"""Snapshots of what can be seen of a kubelet, and the history of its pod statuses.

A refresh reads `/pods` and, where there is one, the API server; it changes nothing. The history
keeps each status that differs from the one before, with the time it was first seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final

from kubelet_conformance.harness.api_server import ApiServer
from kubelet_conformance.harness.kubelets.base import Kubelet
from kubelet_conformance.harness.observing.words import describe, state_name
from kubelet_conformance.laws.history import Shown
from simclock import Clock

SOURCE: Final = "kubernetes.io/config.source"


class Snapshots:
    """What the kubelet and the API server showed at the last refresh, and all pod statuses so far.

    `pods` and `api_pods` are by name, as in the runtime (`web-node` for a static pod); `statuses`
    has the successive distinct statuses of each pod: of a static one as `/pods` showed it, of one
    of the API server each that was written there, which `/pods` shows, too (MIRR-035), but a look
    may miss. `api` None: there is no API server, and the snapshots of it stay empty.
    """

    def __init__(
        self, kubelet: Kubelet, api: ApiServer | None, clock: Clock, node_name: str
    ) -> None:
        self._kubelet = kubelet
        self._api = api
        self._clock = clock
        self._node_name = node_name
        self.asked = False
        """Whether somebody has asked for what only the kubelet shows, since it was set to False."""
        self._pods: dict[str, dict[str, Any]] = {}
        self.api_pods: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.node: dict[str, Any] = {}
        self._statuses: dict[str, list[dict[str, Any]]] = {}
        self._shown_uids: dict[str, str] = {}  # of those with the last statuses
        self.history: list[Shown] = []
        self.given: dict[str, list[dict[str, Any]]] = {}
        """UID -> the pod as it was seen first and after each change of its generation."""
        self._revision = -1  # of the API server's objects when they were looked at
        self._happened: int | None = None  # on the clock, likewise

    @property
    def pods(self) -> dict[str, dict[str, Any]]:
        self.asked = True
        return self._pods

    @property
    def statuses(self) -> dict[str, list[dict[str, Any]]]:
        self.asked = True
        return self._statuses

    async def look(self) -> None:
        """Look again where something can have changed: in virtual time nothing does while only the
        case runs, which has not called anybody since it looked last. Raises KubeletDied."""
        happened = self._clock.happened()
        if happened is None or happened != self._happened:
            await self.refresh()

    async def refresh(self) -> None:
        """Look again. Raises KubeletDied."""
        self._happened = self._clock.happened()
        listed = await self._kubelet.pods()
        before, self._pods = self._pods, {pod["metadata"]["name"]: pod for pod in listed}
        for pod in listed:  # of two files with a pod of one name both are listed for a moment
            if _is_static(pod):
                self._note_given(pod)
        if self._api is not None and self._api.revision != self._revision:
            for pod in self._api.changed_pods(self._node_name):
                self._note_given(pod)
                self._note_status(pod["metadata"]["name"], pod)
            self._revision = self._api.revision
            self.api_pods = self._api.pods()
            self.events = self._api.events()
            self.node = self._api.node(self._node_name)
        uids = {pod["metadata"].get("uid") for pod in before.values()}
        for name in sorted(self._pods):
            pod = self._pods[name]
            if _is_static(pod):
                self._note_status(name, pod, again=pod["metadata"].get("uid") not in uids)

    def _note_status(self, name: str, pod: dict[str, Any], *, again: bool = False) -> None:
        status = pod.get("status") or {}
        uid = str(pod["metadata"].get("uid"))
        statuses = self._statuses.setdefault(name, [])
        if not statuses or statuses[-1] != status:
            statuses.append(status)
        elif self._shown_uids[name] == uid and not again:
            return
        self._shown_uids[name] = uid
        self.history.append(Shown(self._clock.monotonic_s(), name, uid, status, again))

    def _note_given(self, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        given = self.given.setdefault(str(metadata.get("uid")), [])
        if not given or given[-1]["metadata"].get("generation") != metadata.get("generation"):
            given.append(pod)

    def states(self, pod: str, container: str) -> list[str]:
        """Successive distinct states of one container, init containers included."""
        named = [
            state_name(entry.get("state") or {})
            for status in self.statuses.get(pod, [])
            for kind in ("containerStatuses", "initContainerStatuses")
            for entry in status.get(kind) or []
            if entry["name"] == container
        ]
        return [state for state, _ in groupby(named)]

    def phases(self, pod: str) -> list[str]:
        """Successive distinct phases of one pod."""
        named = [str(status.get("phase", "")) for status in self.statuses.get(pod, [])]
        return [phase for phase, _ in groupby(named)]

    def status_lines(self, start_s: float) -> list[str]:
        """The statuses of all pods, one line each, with the seconds since `start_s`."""
        return [
            f"{one.at_s - start_s:9.3f} {one.pod} {describe(one.status)}" for one in self.history
        ]


def _is_static(pod: Mapping[str, Any]) -> bool:
    """Whether a pod in `/pods` is from a manifest (MIRR-001)."""
    return str((pod["metadata"].get("annotations") or {}).get(SOURCE, "api")) != "api"


def container_status(pod: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """The status of a container of any kind in a pod object; {} when there is none, or no pod."""
    status = (pod or {}).get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(kind) or []:
            if entry["name"] == name:
                return dict(entry)
    return {}
