"""What a pod wants of a CSI driver, and what the driver's CSIDriver object says to that. Pure.

Rules: NODE-217, NODE-218. Upstream: pkg/volume/csi/csi_mounter.go: SetUpAt, supportsFSGroup,
supportsVolumeLifecycleMode, getFSGroupPolicy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lightkube.models.core_v1 import PersistentVolumeSpec, Volume
from lightkube.models.storage_v1 import CSIDriver, CSIDriverSpec
from msgspec import Struct, field

from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.volumes.claims import ONCE_POD, ClaimedVolume
from refkubelet.volumes.csi.names import inline_handle, unique_volume_name

PERSISTENT: Final = "Persistent"
EPHEMERAL: Final = "Ephemeral"
ONCE: Final = "ReadWriteOnce"
BY_FS_TYPE: Final = "ReadWriteOnceWithFSType"

SecretKey = tuple[str, str]
"""Namespace and name of a secret."""


class CsiMount(Struct, frozen=True):
    """A volume for a pod. `name`: the persistent volume's, or the pod's of an inline volume;
    `mode`: PERSISTENT or EPHEMERAL, which is inline; `access_modes` of an inline volume: ONCE."""

    name: str
    driver: str
    handle: str
    mode: str = PERSISTENT
    read_only: bool = False
    fs_type: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    mount_options: tuple[str, ...] = ()
    access_modes: tuple[str, ...] = ()
    stage_secret: SecretKey | None = None
    publish_secret: SecretKey | None = None
    expand_secret: SecretKey | None = None

    @property
    def is_inline(self) -> bool:
        """Neither attached nor staged."""
        return self.mode == EPHEMERAL

    @property
    def unique_name(self) -> str:
        """Its name in the Node's volumesInUse."""
        return unique_volume_name(self.driver, self.handle)

    @property
    def access_mode(self) -> str:
        """The one that counts."""
        return self.access_modes[0] if self.access_modes else ONCE


def csi_mount_of_claim(claimed: ClaimedVolume) -> CsiMount:
    """Of a claim whose persistent volume has a CSI source."""
    spec = claimed.persistent.spec
    source = spec.csi if spec is not None else None
    if spec is None or source is None:
        raise ValueError(f"persistent volume {claimed.name} is not of a CSI driver")
    return CsiMount(
        name=claimed.name,
        driver=source.driver,
        handle=source.volumeHandle,
        read_only=claimed.read_only,
        fs_type=source.fsType or "",
        attributes=dict(source.volumeAttributes or {}),
        mount_options=tuple(spec.mountOptions or ()),
        access_modes=_modes(spec),
        stage_secret=_secret(source.nodeStageSecretRef),
        publish_secret=_secret(source.nodePublishSecretRef),
        expand_secret=_secret(source.nodeExpandSecretRef),
    )


def csi_mount_of_volume(pod: Pod, volume: Volume) -> CsiMount:
    """Of an inline volume of the pod."""
    source = volume.csi
    if source is None:
        raise ValueError(f"volume {volume.name} is not of a CSI driver")
    reference = source.nodePublishSecretRef
    secret = (pod.metadata.namespace or "", reference.name or "") if reference else None
    return CsiMount(
        name=volume.name,
        driver=source.driver,
        handle=inline_handle(uid(pod), volume.name),
        mode=EPHEMERAL,
        read_only=bool(source.readOnly),
        fs_type=source.fsType or "",
        attributes=dict(source.volumeAttributes or {}),
        access_modes=(ONCE,),
        publish_secret=secret,
    )


def driver_spec(driver: CSIDriver | None) -> CSIDriverSpec | None:
    """What a driver's object says; None: there is no such object."""
    return driver.spec if driver is not None else None


def is_attachable(mount: CsiMount, driver: CSIDriver | None) -> bool:
    """Whether a controller must attach the volume to the node first."""
    spec = driver_spec(driver)
    return not mount.is_inline and (spec is None or spec.attachRequired is not False)


def mode_refusal(mount: CsiMount, driver: CSIDriver | None) -> str | None:
    """Why the driver is not for such volumes; None: it is."""
    spec, refusal = driver_spec(driver), f'volume mode "{mount.mode}" not supported by driver'
    if spec is None:
        return f"{refusal} {mount.driver} (no CSIDriver object)" if mount.is_inline else None
    modes = spec.volumeLifecycleModes or []
    if mount.mode in modes:
        return None
    modes_text = " ".join(f'"{mode}"' for mode in modes)
    return f"{refusal} {mount.driver} (only supports [{modes_text}])"


def belongs_to_group(mount: CsiMount, driver: CSIDriver | None) -> bool:
    """Whether the kubelet gives what is in the volume to the pod's fsGroup."""
    spec = driver_spec(driver)
    policy = (spec.fsGroupPolicy if spec is not None else None) or BY_FS_TYPE
    if mount.read_only or policy == "None":
        return False
    by_one = ONCE in mount.access_modes or ONCE_POD in mount.access_modes
    return policy == "File" or (bool(mount.fs_type) and by_one)


def pod_info(pod: Pod, mount: CsiMount) -> dict[str, str]:
    """What the volume's context says of the pod, where the driver wants that."""
    prefix = "csi.storage.k8s.io"
    return {
        f"{prefix}/pod.name": pod.metadata.name or "",
        f"{prefix}/pod.namespace": pod.metadata.namespace or "",
        f"{prefix}/pod.uid": uid(pod),
        f"{prefix}/serviceAccount.name": pod.spec.serviceAccountName or "",
        f"{prefix}/ephemeral": "true" if mount.is_inline else "false",
    }


def _modes(spec: PersistentVolumeSpec) -> tuple[str, ...]:
    return tuple(spec.accessModes or ())


def _secret(reference: Any) -> SecretKey | None:
    return (reference.namespace or "", reference.name or "") if reference is not None else None
