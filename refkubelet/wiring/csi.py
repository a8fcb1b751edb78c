"""Makes what works on volumes of CSI drivers, and connects it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from refkubelet.failures import Part
from refkubelet.object_manager.csi_drivers import CsiDriverObjects
from refkubelet.volumes.csi.attachments import Attachments, VolumeUse
from refkubelet.volumes.csi.drivers import CsiDrivers
from refkubelet.volumes.csi.expand_calls import ExpandCalls
from refkubelet.volumes.csi.expander import Expander
from refkubelet.volumes.csi.node_info import CsiNodeInfo
from refkubelet.volumes.csi.publishing import Publishing
from refkubelet.volumes.csi.staging import Staging
from refkubelet.volumes.csi.volumes import CsiParts, CsiVolumes
from refkubelet.wiring.base import Base
from refkubelet.wiring.objects import Objects
from refkubelet.wiring.sources import Sources


class Csi(Struct, frozen=True):
    """What runs of it, and what others ask."""

    node_info: CsiNodeInfo
    drivers: CsiDrivers
    objects: CsiDriverObjects
    volumes: CsiVolumes

    def parts(self) -> Iterator[Part]:
        """What runs."""
        yield Part("CSINode", self.node_info.run)
        yield Part("CSIDriver objects", self.objects.run)
        yield Part("CSI volumes", self.volumes.run)


def build_csi(base: Base, sources: Sources, objects: Objects | None) -> Csi | None:
    """None: standalone, or without a way to drivers, or a kubelet that keeps no Node object."""
    deps = base.deps
    if deps.api is None or deps.plugins.csi is None or objects is None or deps.node.facts is None:
        return None
    root_dir, use = str(deps.directories.root), VolumeUse()
    node_info = CsiNodeInfo(deps.api, deps.node.name, deps.clock)
    drivers = CsiDrivers(deps.plugins.csi, node_info)
    driver_objects = CsiDriverObjects(deps.api, deps.clock, deps.rng)
    staging = Staging(root_dir, drivers, deps.clock, use=use)
    expander = Expander(
        deps.node.name,
        calls=ExpandCalls(root_dir, drivers, deps.api),
        claims=deps.api,
        recorder=base.recorder,
        clock=deps.clock,
        lock=staging.lock,
    )
    parts = CsiParts(
        drivers=drivers,
        objects=driver_objects,
        attachments=Attachments(deps.api, deps.node.name, sources.node),
        use=use,
        staging=staging,
        expander=expander,
        publishing=Publishing(root_dir, deps.node.name, deps.api, objects.tokens),
    )
    volumes = CsiVolumes(root_dir, parts, deps.clock)
    return Csi(node_info, drivers, driver_objects, volumes)
