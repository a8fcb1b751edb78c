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
from typing import Any, Final, Literal

from google.protobuf.message import Message
from kubecri.csi import api_pb2 as api

from fakecri.csi.faults import CsiFault, CsiFaults
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


@dataclass(slots=True)
class CsiCall:
    """One call of a kubelet. Times are of the loop's clock; `error`: the gRPC status and the text
    that it failed with; `disturbed`: whether a fault has happened to it."""

    method: str
    request: Any
    started_s: float = field(default=0.0, compare=False)
    ended_s: float | None = field(default=None, compare=False)
    error: tuple[str, str] | None = field(default=None, compare=False)
    disturbed: bool = field(default=False, compare=False)


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
    is_down: bool = False
    """Whether its process has died (`kill`)."""
    faults: CsiFaults = field(default_factory=CsiFaults, repr=False)

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
        self._only(CsiFault(method, text, code, done=done, times=times))

    def delays(self, method: str, delay_s: float, *, times: int | None = None) -> None:
        """The next `times` calls of `method` take `delay_s` seconds longer; None: all calls."""
        self._only(CsiFault(method, delay_s=delay_s, times=times))

    def hangs(self, method: str, *, times: int | None = None) -> None:
        """The next `times` calls of `method` are never answered; None: all calls."""
        self._only(CsiFault(method, hangs=True, times=times))

    def works(self, method: str) -> None:
        """Undo `fails`, `delays`, `hangs` and `add_fault` for `method`."""
        self.faults.drop_all(_known(method))

    def _only(self, rule: CsiFault) -> None:
        self.works(rule.method)
        self.add_fault(rule)

    def add_fault(self, rule: CsiFault) -> CsiFault:
        """Put a rule in force beside those that are; the newest one that takes a call counts.
        Raises ValueError for a method that the driver does not have."""
        _known(rule.method)
        return self.faults.add(rule)

    def kill(self) -> None:
        """Let its process die: calls under way are broken off, others are refused until `restart`.
        What is mounted stays, and its socket."""
        self.is_down = True
        self.faults.break_off()

    def restart(self) -> None:
        """Let it run again after `kill`; whoever it listens for has to be told of it anew."""
        self.is_down = False

    def reboot(self) -> None:
        """The machine boots: nothing is mounted any more."""
        self.staged.clear()
        for target in self.published:
            (Path(target) / ID_FILE).unlink(missing_ok=True)
        self.published.clear()

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
        clock = asyncio.get_running_loop()
        call = CsiCall(_known(method), copy, clock.time())
        self.calls.append(call)
        self.on_call(call)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._answer(call)
        except TimeoutError:
            call.error = ("DEADLINE_EXCEEDED", "context deadline exceeded")
            raise CriError(status_code(call.error[0]), call.error[1]) from None
        except CriError as error:
            call.error = (error.code().name, error.details())
            raise
        except asyncio.CancelledError:
            call.error = ("CANCELLED", "context canceled")
            raise
        finally:
            call.ended_s = clock.time()

    async def _answer(self, call: CsiCall) -> Message:
        if self.is_down:
            raise CriError(status_code("UNAVAILABLE"), "connection refused")
        rule = self.faults.struck(call.method, call.request)
        work: Callable[[Any], Message] = getattr(self, f"_{call.method}")
        if rule is None:
            return work(call.request)
        call.disturbed = True
        answer = work(call.request) if rule.done else None
        rule.on_strike(call)
        await rule.wait()
        if rule.failure is not None:
            raise rule.failure
        return work(call.request) if answer is None else answer

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


def _internal(text: str) -> CriError:
    return CriError(status_code("INTERNAL"), text)


def _known(method: str) -> str:
    if method not in METHODS:
        raise ValueError(f"{method!r} is no method of a CSI driver; wanted {', '.join(METHODS)}")
    return method
