"""What a scenario can see of its node: names, marks, and the objects that conditions look at."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import grpc
from kubecri.v1 import api_pb2 as cri
from msgspec import UNSET, Struct, field

from fakecri.csi import FakeCsiDriver
from fakecri.deviceplugin import FakeDevicePlugin
from fakecri.errors import CriError
from kubelet_conformance.harness.expect import ExpectationFailed
from kubelet_conformance.harness.kubelets.base import HttpAnswer
from kubelet_conformance.harness.node import Node
from kubelet_conformance.scenarios.shape.ranges import Range, Wording
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubeobjects.strict.reader import Strict

LIST_S: Final = 10.0
MOST: Final = 8
"""So many observations a failure shows, the last ones."""


class Look(Struct, frozen=True):
    """What a look at a condition has found."""

    holds: bool
    seen: str
    """What was there, for the text of a failure."""


class MarkSet(Struct, frozen=True):
    """What was there when a mark was set."""

    at_s: float
    statuses: Mapping[str, int] = field(default_factory=dict)
    """How many statuses each pod had had."""
    events: Mapping[str, int] = field(default_factory=dict)
    """The count of each event, by its name."""
    logins: Mapping[str, int] = field(default_factory=dict)
    """How often each credential plug-in had run."""


class View:
    """The node of a scenario under the names that the scenario uses."""

    def __init__(self, scenario: Scenario, node: Node) -> None:
        self.scenario = scenario
        self.node = node
        self._names = {
            key: str(pod.manifest(key)["metadata"]["name"]) for key, pod in scenario.pods.items()
        }
        self.marks: dict[str, MarkSet] = {}
        self.device_plugins: dict[str, FakeDevicePlugin] = {}
        """The newest device plug-in of each resource."""
        self.csi_drivers: dict[str, FakeCsiDriver] = {}
        """The CSI drivers, by their names."""
        self.asked: dict[str, asyncio.Task[HttpAnswer]] = {}
        """The newest request to the kubelet under each label."""

    # --- names ----------------------------------------------------------------------------

    def name(self, key: str) -> str:
        """The name in the manifest of the pod of that key; other words are names already."""
        return self._names.get(key, key)

    def runtime_name(self, key: str) -> str:
        """Its name in the runtime and at the API."""
        return self.node.runtime.pod_name(self.name(key))

    def volume_handle(self, key: str) -> str:
        """What its driver calls the volume of that key."""
        return self.scenario.csi_volumes[key].handle_of(key)

    # --- marks ----------------------------------------------------------------------------

    def set_mark(self, name: str) -> None:
        """Remember this moment under that name."""
        status_counts = {key: len(self.node.statuses(self.name(key))) for key in self.scenario.pods}
        counts = {e["metadata"]["name"]: int(e.get("count") or 1) for e in self.node.events()}
        names = [
            each.name for s in self.scenario.steps if s.logins is not UNSET for each in s.logins
        ]
        runs = {each: len(self.node.logins.asked(each)) for each in names}
        self.marks[name] = MarkSet(self.node.now_s, status_counts, counts, runs)

    def mark(self, name: str) -> MarkSet:
        """That mark. Raises ExpectationFailed while it is not set."""
        if name not in self.marks:
            raise ExpectationFailed(
                f"expected: mark {name}\nseen:     it was not set", shows_bug=False
            )
        return self.marks[name]

    def in_time(self, at_s: float, chosen: Any) -> bool:
        """Whether a moment lies between the marks `since` and `until` of a selector."""
        since, until = chosen.since, getattr(chosen, "until", UNSET)
        if since is not UNSET and at_s < self.mark(since).at_s - 1e-9:
            return False
        return until is UNSET or until not in self.marks or at_s <= self.mark(until).at_s

    # --- the runtime, past the record and the faults ----------------------------------------

    async def containers(self, key: Any = UNSET, name: Any = UNSET) -> list[Any]:
        """The containers that the runtime has, oldest first; none while it is down."""
        answer = await self._listed("ListContainers", cri.ListContainersRequest())
        rows = [
            c
            for c in (answer.containers if answer else ())
            if name is UNSET or c.metadata.name == name
        ]
        if key is not UNSET:
            name_of_pod = self.runtime_name(key)
            rows = [c for c in rows if c.labels.get("io.kubernetes.pod.name") == name_of_pod]
        return sorted(rows, key=lambda c: c.created_at)

    async def sandboxes(self, key: Any = UNSET) -> list[Any]:
        """The sandboxes that the runtime has, oldest first; none while it is down."""
        answer = await self._listed("ListPodSandbox", cri.ListPodSandboxRequest())
        rows = list(answer.items) if answer else []
        if key is not UNSET:
            name_of_pod = self.runtime_name(key)
            rows = [sandbox for sandbox in rows if sandbox.metadata.name == name_of_pod]
        return sorted(rows, key=lambda sandbox: sandbox.created_at)

    async def images(self) -> list[Any]:
        """The images that the runtime has."""
        answer = await self._listed("ListImages", cri.ListImagesRequest())
        return list(answer.images) if answer else []

    async def status_of(self, container_id: str) -> Any:
        """What the runtime says of a container; None when it cannot say."""
        request = cri.ContainerStatusRequest(container_id=container_id)
        answer = await self._listed("ContainerStatus", request)
        return answer and answer.status

    async def _listed(self, method: str, request: Any) -> Any:
        try:
            return await self.node.runtime.asked(method, request, timeout_s=LIST_S)
        except (CriError, grpc.RpcError):
            return None


def said(what: Any) -> str:
    """A struct of a scenario in words, as it was written."""
    if isinstance(what, Strict):
        words = {encoded: getattr(what, name) for name, encoded in _encoded(what)}
        words_given = {name: value for name, value in words.items() if value not in (UNSET, (), "")}
        return ", ".join(f"{name} {_part(value)}" for name, value in words_given.items())
    return _part(what)


def _encoded(what: Strict) -> list[tuple[str, str]]:
    return list(zip(what.__struct_fields__, what.__struct_encode_fields__, strict=True))


def _part(value: Any) -> str:
    if isinstance(value, Strict):
        return f"({said(value)})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_part(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_part(item)}' for key, item in value.items())}}}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | Range | Wording) else f"{value!s}"


def count_fits(count: Any, seen: int) -> bool:
    """Whether the number is what was asked for: by default at least one."""
    return seen >= 1 if count is UNSET else bool(count.holds(seen))


def listed(lines: list[str]) -> str:
    """How many there are, and the last of them."""
    last_lines = lines[-MOST:]
    more = "the last of them: " if len(last_lines) < len(lines) else ""
    return f"{len(lines)}{': ' if last_lines else ''}{more}{'; '.join(last_lines)}"
