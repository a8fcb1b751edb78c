"""Volumes of CSI drivers, with a fake API server and a fake driver, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from lightkube.models.core_v1 import PersistentVolume, Volume
from loops import virtual_loop
from pods import container, make_pod

from fakecri.csi import FakeCsiDriver
from fakecri.csi.in_process import InProcessCsi
from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.events.queued_recorder import QueuedEventRecorder
from refkubelet.model.objects import Node, Pod
from refkubelet.object_manager.csi_drivers import CsiDriverObjects
from refkubelet.object_manager.tokens import TokenManager
from refkubelet.volumes.claims import ClaimedVolume, VolumeOnNode
from refkubelet.volumes.csi.attachments import Attachments, VolumeUse
from refkubelet.volumes.csi.drivers import CsiDrivers
from refkubelet.volumes.csi.expand_calls import ExpandCalls
from refkubelet.volumes.csi.expander import Expander
from refkubelet.volumes.csi.node_info import CsiNodeInfo
from refkubelet.volumes.csi.publishing import Publishing
from refkubelet.volumes.csi.staging import Staging
from refkubelet.volumes.csi.volumes import CsiParts, CsiVolumes
from simclock import Rng

DRIVER = "disks.example"
HANDLE = "disk-1"
NODE = "n1"
CLAIM = Volume.from_dict({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})


def claimed(*, read_only: bool = False, **spec: Any) -> ClaimedVolume:
    """A claim of the persistent volume `pv` of the driver; `spec` changes that."""
    source = {"driver": DRIVER, "volumeHandle": HANDLE}
    wanted = {"csi": source, "accessModes": ["ReadWriteOnce"], **spec}
    volume = PersistentVolume.from_dict({"metadata": {"name": "pv"}, "spec": wanted})
    return ClaimedVolume(CLAIM, volume, read_only)


def inline(**source: Any) -> Volume:
    """An inline volume of the driver."""
    return Volume.from_dict({"name": "v", "csi": {"driver": DRIVER, **source}})


def web(uid: str = "uid-web", **context: Any) -> Pod:
    """A pod with the volume `v`."""
    main = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return make_pod(main, uid=uid, volumes=[CLAIM.to_dict()], securityContext=context)


class CsiWorld:
    """Made anew over the same `root` it is the next kubelet."""

    def __init__(self, root: Path, driver: FakeCsiDriver | None = None) -> None:
        self.clock = virtual_loop().clock
        self.root, self.socket = root, root / "driver.sock"
        self.driver = driver or FakeCsiDriver(DRIVER)
        self.api = FakeApi(clock=self.clock)
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        self.sockets = InProcessCsi()
        self.node: Node | None = None
        self.info = CsiNodeInfo(self.client, NODE, self.clock)
        self.drivers = CsiDrivers(self.sockets, self.info)
        self.use = VolumeUse()
        self.attachments = Attachments(self.client, NODE, lambda: self.node)
        self.objects = CsiDriverObjects(self.client, self.clock, Rng(1))
        self.volumes = CsiVolumes(str(root), self._parts(), self.clock)

    def _parts(self) -> CsiParts:
        root = str(self.root)
        self.staging = staging = Staging(root, self.drivers, self.clock, use=self.use)
        self.events = QueuedEventRecorder(self.client, self.clock, NODE)
        expander = Expander(
            NODE,
            calls=ExpandCalls(root, self.drivers, self.client),
            claims=self.client,
            recorder=self.events,
            clock=self.clock,
            lock=staging.lock,
        )
        return CsiParts(
            drivers=self.drivers,
            objects=self.objects,
            attachments=self.attachments,
            use=self.use,
            staging=staging,
            expander=expander,
            publishing=Publishing(
                root, NODE, self.client, TokenManager(self.client, self.clock, Rng(1))
            ),
        )

    async def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A request that must be answered."""
        answer = await self.api.request(method, path, body=body)
        assert answer.ok, answer.body
        found: dict[str, Any] = answer.body
        return found

    async def add_node(self) -> dict[str, Any]:
        return await self.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})

    async def describe(self, **spec: Any) -> None:
        """Make the driver's CSIDriver object; it attaches nothing, unless `spec` says so."""
        body = {"metadata": {"name": DRIVER}, "spec": {"attachRequired": False, **spec}}
        await self.request("POST", "/apis/storage.k8s.io/v1/csidrivers", body)

    async def register(self) -> None:
        """Let the driver listen, and register it."""
        self.socket.touch()
        self.sockets.listen_at(str(self.socket), self.driver)
        await self.drivers.register(DRIVER, str(self.socket), ("1.0.0",))

    async def set_up(
        self, pod: Pod, volume: ClaimedVolume, check: Callable[[], None] = lambda: None
    ) -> VolumeOnNode:
        """Make the volume of a claim ready."""
        return await self.volumes.set_up(pod, volume, check)

    def methods(self) -> list[str]:
        """What the driver was asked to do with volumes, in short: `stage`, `publish`, ..."""
        asked = (m for m in self.driver.methods() if m.endswith("Volume"))
        return [m.removeprefix("Node").removesuffix("Volume").lower() for m in asked]


@asynccontextmanager
async def csi_world(
    root: Path, driver: FakeCsiDriver | None = None, *, registered: bool = True, **spec: Any
) -> AsyncIterator[CsiWorld]:
    """A world that runs, with Node and CSIDriver object; `spec`: of that."""
    world = CsiWorld(root, driver)
    await world.add_node()
    await world.describe(**spec)
    if registered:
        await world.register()
    parts = (world.info.run, world.objects.run, world.volumes.run)
    tasks = [asyncio.create_task(part()) for part in parts]
    try:
        yield world
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await world.client.aclose()
