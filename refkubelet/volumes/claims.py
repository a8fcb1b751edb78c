"""Why a volume of a claim cannot be set up: this kubelet has no plugin for any (NODE-214). Pure.

Upstream: pkg/kubelet/volumemanager/populator: createVolumeSpec, getPVCExtractPV;
component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from typing import Final

from lightkube.models.core_v1 import PersistentVolumeClaim, Volume

from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

PROTECTION: Final = "kubernetes.io/pvc-protection"


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
