"""The fake storage driver: a call target for the CSI Node service, and GetPluginInfo of Identity.

It keeps what it was asked (`calls`), does on the disk what a driver does, but without mounts, and
fails as it was told. As CSI demands, a call that is repeated has the same answer. What must never
happen here: a message shared with the caller; a wait that virtual time cannot see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from google.protobuf.message import Message
from kubecri.csi import api_pb2 as api

from fakecri.csi.trees import remove_tree
from fakecri.errors import CriError, status_code

METHODS: Final = (
    *("GetPluginInfo", "NodeGetInfo", "NodeGetCapabilities", "NodeStageVolume"),
    *("NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "NodeGetVolumeStats"),
    "NodeExpandVolume",
)
STAGE: Final = "STAGE_UNSTAGE_VOLUME"
ID_FILE: Final = "volume_id"
"""The file of a published volume; it has the volume's ID."""


class CsiCall(NamedTuple):
    """One call of a kubelet."""

    method: str
    request: Any


@dataclass(slots=True)
class _Fault:
    """What happens to the next `times` calls of a method; None: to all of them."""

    text: str | None = None
    code: str = "INTERNAL"
    delay_s: float = 0.0
    hangs: bool = False
    done: bool = False
    times: int | None = None


@dataclass(slots=True)
class FakeCsiDriver:
    """A driver of that name, which calls the node `node_id`, lets it have `max_volumes` (0: any
    number) and finds it at `topology`. `capabilities` are names of NodeServiceCapability.

    `used`: what NodeGetVolumeStats tells of bytes and inodes, each as (total, used).
    `leaves`: it is a bad driver, whose NodeUnpublishVolume leaves "nothing", the empty "directory"
    or all "files".
    `calls`: the calls of kubelets, in order. `staged`: volume ID -> directory; `published`:
    directory -> volume ID. `on_call` is called with every call as it comes. Change what you like at
    any time; it counts from the next call on.
    """

    name: str
    node_id: str = "node-1"
    max_volumes: int = 0
    topology: dict[str, str] = field(default_factory=dict)
    capabilities: Iterable[str] = (STAGE,)
    used: dict[str, tuple[int, int]] = field(default_factory=lambda: {"BYTES": (1 << 30, 1 << 20)})
    leaves: Literal["nothing", "directory", "files"] = "nothing"
    calls: list[CsiCall] = field(default_factory=list)
    staged: dict[str, str] = field(default_factory=dict)
    published: dict[str, str] = field(default_factory=dict)
    on_call: Callable[[CsiCall], object] = lambda _: None
    _faults: dict[str, _Fault] = field(default_factory=dict, repr=False)

    # What it is told

    def fails(
        self,
        method: str,
        text: str,
        *,
        code: str = "INTERNAL",
        times: int | None = None,
        done: bool = False,
    ) -> None:
        """The next `times` calls of `method` fail with the gRPC status `code` and `text`; None: all
        calls until `works`. `done`: they do their work first. Raises ValueError for a method that
        the driver does not have, as do `delays`, `hangs` and `works`."""
        self._faults[_known(method)] = _Fault(text, code, done=done, times=times)

    def delays(self, method: str, delay_s: float, *, times: int | None = None) -> None:
        """The next `times` calls of `method` take `delay_s` seconds longer; None: all calls."""
        self._faults[_known(method)] = _Fault(delay_s=delay_s, times=times)

    def hangs(self, method: str, *, times: int | None = None) -> None:
        """The next `times` calls of `method` are never answered; None: all calls."""
        self._faults[_known(method)] = _Fault(hangs=True, times=times)

    def works(self, method: str) -> None:
        """Undo `fails`, `delays` and `hangs` for `method`."""
        self._faults.pop(_known(method), None)

    # What it was asked

    def methods(self, *names: str) -> list[str]:
        """The methods of all calls so far, in order; with `names`, of those methods only."""
        return [call.method for call in self.calls if not names or call.method in names]

    def requests(self, method: str) -> list[Any]:
        """The requests of that method so far, in order."""
        return [call.request for call in self.calls if call.method == _known(method)]

    # A call target

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        """Answer one call. Raises CriError for a fault that was set, for what cannot be done, and
        when it takes longer than `timeout_s`."""
        copy = type(request)()
        copy.CopyFrom(request)
        self.calls.append(CsiCall(_known(method), copy))
        self.on_call(self.calls[-1])
        fault = self._next_fault(method)
        try:
            async with asyncio.timeout(timeout_s):
                await _wait(fault)
        except TimeoutError:
            raise CriError(status_code("DEADLINE_EXCEEDED"), "context deadline exceeded") from None
        failure = None if fault.text is None else CriError(status_code(fault.code), fault.text)
        if failure is not None and not fault.done:
            raise failure
        answer: Message = getattr(self, f"_{method}")(copy)
        if failure is not None:
            raise failure
        return answer

    def _next_fault(self, method: str) -> _Fault:
        fault = self._faults.get(method)
        if fault is None or fault.times == 0:
            return _Fault()
        if fault.times is not None:
            fault.times -= 1
        return fault

    def _GetPluginInfo(self, _request: Any) -> Message:
        return api.GetPluginInfoResponse(name=self.name, vendor_version="1.0")

    def _NodeGetInfo(self, _request: Any) -> Message:
        info = api.NodeGetInfoResponse(node_id=self.node_id, max_volumes_per_node=self.max_volumes)
        if self.topology:
            info.accessible_topology.segments.update(self.topology)
        return info

    def _NodeGetCapabilities(self, _request: Any) -> Message:
        answer = api.NodeGetCapabilitiesResponse()
        for name in self.capabilities:
            answer.capabilities.add(rpc=api.NodeServiceCapability.RPC(type=name))
        return answer

    def _NodeStageVolume(self, request: Any) -> Message:
        self._want(STAGE)
        if not Path(request.staging_target_path).is_dir():
            raise _internal(f"no directory to stage to: {request.staging_target_path}")
        self.staged[request.volume_id] = request.staging_target_path
        return api.NodeStageVolumeResponse()

    def _NodeUnstageVolume(self, request: Any) -> Message:
        self._want(STAGE)
        self.staged.pop(request.volume_id, None)
        return api.NodeUnstageVolumeResponse()

    def _NodePublishVolume(self, request: Any) -> Message:
        target, volume = Path(request.target_path), request.volume_id
        staging = request.staging_target_path
        if staging and self.staged.get(volume) != staging:
            text = f"volume {volume} is not staged at {staging}"
            raise CriError(status_code("FAILED_PRECONDITION"), text)
        if not target.parent.is_dir():
            raise _internal(f"no directory to publish in: {target.parent}")
        target.mkdir(exist_ok=True)
        (target / ID_FILE).write_text(volume)
        self.published[request.target_path] = volume
        return api.NodePublishVolumeResponse()

    def _NodeUnpublishVolume(self, request: Any) -> Message:
        target = Path(request.target_path)
        if self.leaves != "files":
            remove_tree(target)
        if self.leaves == "directory" and target.parent.is_dir():
            target.mkdir()
        self.published.pop(request.target_path, None)
        return api.NodeUnpublishVolumeResponse()

    def _NodeGetVolumeStats(self, request: Any) -> Message:
        self._want("GET_VOLUME_STATS")
        if not Path(request.volume_path).exists():
            raise CriError(status_code("NOT_FOUND"), f"no volume at {request.volume_path}")
        answer = api.NodeGetVolumeStatsResponse()
        for unit, (total, used) in self.used.items():
            answer.usage.add(
                unit=api.VolumeUsage.Unit.Value(unit),
                total=total,
                used=used,
                available=total - used,
            )
        return answer

    def _NodeExpandVolume(self, request: Any) -> Message:
        self._want("EXPAND_VOLUME")
        return api.NodeExpandVolumeResponse(capacity_bytes=request.capacity_range.required_bytes)

    def _want(self, capability: str) -> None:
        if capability not in self.capabilities:
            text = f"{self.name} has not the capability {capability}"
            raise CriError(status_code("UNIMPLEMENTED"), text)


async def _wait(fault: _Fault) -> None:
    if fault.hangs:
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(fault.delay_s)


def _internal(text: str) -> CriError:
    return CriError(status_code("INTERNAL"), text)


def _known(method: str) -> str:
    if method not in METHODS:
        raise ValueError(f"{method!r} is no method of a CSI driver; wanted {', '.join(METHODS)}")
    return method
