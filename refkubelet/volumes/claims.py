"""Volumes of claims: which claim, whether it and its persistent volume belong together, and what
keeps the pod from it (NODE-214, NODE-215). Pure.

Upstream: pkg/kubelet/volumemanager/populator: createVolumeSpec, getPVCExtractPV;
getPVSpec; component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from lightkube.models.core_v1 import PersistentVolume, PersistentVolumeClaim, Volume
from msgspec import Struct, field

from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

PROTECTION: Final = "kubernetes.io/pvc-protection"
ONCE_POD: Final = "ReadWriteOncePod"
FILESYSTEM: Final = "Filesystem"


class ClaimedVolume(Struct, frozen=True):
    """A volume of a pod with the persistent volume that its claim is bound to. `read_only`: the pod
    asked for the claim so."""

    volume: Volume
    persistent: PersistentVolume
    read_only: bool = False
    claim: PersistentVolumeClaim = field(default_factory=PersistentVolumeClaim)

    @property
    def name(self) -> str:
        """The persistent volume's, which events tell."""
        meta = self.persistent.metadata
        return (meta.name if meta is not None else None) or ""

    @property
    def path(self) -> str | None:
        """The path on the node of a local or hostPath volume; None: it is of another kind."""
        spec = self.persistent.spec
        source = spec and (spec.local or spec.hostPath)
        return source.path if source else None

    @property
    def is_of_csi(self) -> bool:
        """Whether a CSI driver serves it."""
        spec = self.persistent.spec
        return spec is not None and spec.csi is not None

    @property
    def only_for_one_pod(self) -> bool:
        """Whether a second pod must wait until the first has ended."""
        spec = self.persistent.spec
        return spec is not None and list(spec.accessModes or ()) == [ONCE_POD]


class VolumeOnNode(Struct, frozen=True):
    """Where a volume of a claim or of a driver is on the node, and whether containers may only read
    it. `name`: the persistent volume's, "" for one that has only the pod's name; `is_local`: it is
    a `local` volume; `driver`: the CSI driver that serves it, which calls it `handle`, or ""."""

    path: str
    read_only: bool
    name: str = ""
    is_local: bool = False
    driver: str = ""
    handle: str = ""


def claim_of(pod: Pod, volume: Volume) -> str | None:
    """The name of the volume's claim; None if it has none. That of an ephemeral volume has the
    names of pod and volume."""
    if volume.persistentVolumeClaim is not None:
        return volume.persistentVolumeClaim.claimName
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_problem(claim: PersistentVolumeClaim) -> str | None:
    """Why the claim names no volume yet; None: it does."""
    meta, spec = claim.metadata, claim.spec
    protected = PROTECTION in ((meta.finalizers if meta is not None else None) or ())
    if meta is not None and meta.deletionTimestamp is not None and not protected:
        return "PVC is being deleted"
    if claim.status is None or claim.status.phase != "Bound":
        return "PVC is not bound"
    if spec is None or not spec.volumeName:
        return "PVC has empty pvc.Spec.VolumeName"
    return None


def binding_problem(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str | None:
    """Why a claim may not have the persistent volume that it names; None: both know each other."""
    name = volume.metadata.name if volume.metadata is not None else ""
    bound = volume.spec.claimRef if volume.spec is not None else None
    if bound is None:
        return (
            f"found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet "
            "bound to the claim"
        )
    claim_uid = (claim.metadata.uid if claim.metadata is not None else None) or ""
    if (bound.uid or "") != claim_uid:
        return (
            f"found PV object {name} but its pv.Spec.ClaimRef.UID {bound.uid or ''} does not point "
            f"to claim.UID {claim_uid}"
        )
    return None


def mode_problem(claimed: ClaimedVolume, mounted: Collection[str], devices: Collection[str]) -> str:
    """Why containers cannot use a volume in its mode; "": they can. `mounted`, `devices`: the names
    of the volumes in their volumeMounts and volumeDevices."""
    spec, name = claimed.persistent.spec, claimed.volume.name
    mode = spec.volumeMode if spec is not None else None
    if not mode:
        return f"cannot get volumeMode for volume: {claimed.name}"
    wrong = [
        where
        for where, used, usable_mode in (
            ("volumeMounts", mounted, FILESYSTEM),
            ("volumeDevices", devices, "Block"),
        )
        if name in used and mode != usable_mode
    ]
    return f"volume {name} has volumeMode {mode}, but is specified in {wrong[0]}" if wrong else ""


def foreign(pod: Pod, volume: Volume, claim: PersistentVolumeClaim) -> str | None:
    """The error for an ephemeral volume whose claim is not the pod's own; None: it is."""
    if volume.ephemeral is None or volume.persistentVolumeClaim is not None:
        return None
    owners = (claim.metadata.ownerReferences if claim.metadata is not None else None) or ()
    if any(owner.uid == uid(pod) and owner.controller for owner in owners):
        return None
    meta, name = pod.metadata, claim.metadata.name if claim.metadata is not None else ""
    return (
        f"PVC {meta.namespace}/{name} was not created for pod {meta.namespace}/{meta.name} "
        "(pod is not owner)"
    )


def no_plugin(name: str) -> str:
    """The error for a volume of a kind that no plugin serves."""
    return f'failed to get Plugin from volumeSpec for volume "{name}" err=no volume plugin matched'


def no_driver(driver: str) -> str:
    """The error for an inline volume of a CSI driver that is not registered."""
    return (
        "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: "
        f"driver name {driver} not found in the list of registered CSI drivers"
    )
