"""Measures the volumes of claims and of CSI drivers (SRV-030.8, SRV-030.9).

A local volume is as large as the filesystem that it is on, a driver is asked for its own, and a
path of the node is not measured. What cannot be measured is left out until the next time.
Upstream: pkg/volume/metrics_statfs.go, pkg/volume/csi/csi_metrics.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from kubeobjects.machine import FilesystemStats
from kubeobjects.structs import replace
from refkubelet.failures import Complaints
from refkubelet.host.disk_use import VolumeSize, used_of
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref, uid
from refkubelet.telemetry.metrics import HistogramVec
from refkubelet.telemetry.volume_metrics import ASKED
from refkubelet.volumes.claims import VolumeOnNode, claim_of
from refkubelet.volumes.drivers import DriverVolumes
from refkubelet.volumes.mount_errors import NotMeasured
from simclock import Clock, call_aside

log = logging.getLogger(__name__)


class VolumeSizes:
    """`places`: pod UID -> where its volumes of claims and drivers are, by the pod's names;
    `filesystem`: statfs of the filesystem that holds a path, raises OSError; `drivers` None: no
    drivers are known."""

    def __init__(
        self,
        places: Callable[[str], Mapping[str, VolumeOnNode]],
        filesystem: Callable[[str], FilesystemStats],
        clock: Clock,
        drivers: DriverVolumes | None = None,
        measuring: HistogramVec | None = None,
    ) -> None:
        self._clock = clock
        self._measuring = measuring
        self._places = places
        self._filesystem = filesystem
        self._drivers = drivers
        self._complaints = Complaints(log, clock)

    async def of(self, pod: Pod) -> dict[str, VolumeSize]:
        """The sizes of those of the pod's volumes that can be measured, by the pod's names. A
        driver may need two minutes for each."""
        places = dict(self._places(uid(pod)))
        sizes: dict[str, VolumeSize] = {}
        for volume in pod.spec.volumes or ():
            place = places.get(volume.name)
            size = await self._measured(pod, volume.name, place) if place is not None else None
            if size is not None:
                sizes[volume.name] = replace(size, claim=claim_of(pod, volume) or "")
        return sizes

    def _timed(self, source: str) -> AbstractContextManager[None]:
        """A context for one measurement."""
        if self._measuring is None:
            return nullcontext()
        return self._measuring.timed(self._clock, source)

    async def _measured(self, pod: Pod, name: str, place: VolumeOnNode) -> VolumeSize | None:
        """The size; None: it is not known."""
        complaint = f"the size of volume {name} of {pod_ref(pod)} is unknown"
        size: VolumeSize | None = None
        try:
            if place.is_local:
                read = partial(self._filesystem, place.path)
                with self._timed(ASKED):
                    room = await call_aside(f"the filesystem of {place.path}", read)
                size = VolumeSize(used_of(room), room.time_ns, local=False, room=room)
            elif place.driver and self._drivers is not None:
                with self._timed(place.driver):
                    size = await self._drivers.measure(place)
        except Exception as error:
            self._complaints.failed(complaint, error, NotMeasured, OSError)
            return None
        self._complaints.over(complaint)
        return size
