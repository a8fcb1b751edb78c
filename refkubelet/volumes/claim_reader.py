"""Asks for the claims of a pod's volumes and what they are bound to (NODE-214, NODE-215)."""

from __future__ import annotations

from lightkube.models.core_v1 import Volume

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import CLAIMS, VOLUMES
from refkubelet.model.objects import Pod
from refkubelet.model.pod import all_containers
from refkubelet.volumes.claims import (
    ClaimedVolume,
    binding_problem,
    claim_of,
    claim_problem,
    foreign,
    mode_problem,
    no_plugin,
)
from refkubelet.volumes.plan import used_volumes


class ClaimError(Exception):
    """A volume of a claim cannot be had; the text is upstream's."""


async def claimed_volumes(
    pod: Pod, reader: ObjectReader | None
) -> tuple[dict[str, ClaimedVolume], dict[str, str]]:
    """The volumes of claims that the pod uses, and why others cannot be set up, both by the pod's
    name of the volume. `reader` None: standalone."""
    volumes: dict[str, ClaimedVolume] = {}
    errors: dict[str, str] = {}
    for volume in used_volumes(pod).values():
        name = claim_of(pod, volume) if volume is not None else None
        if volume is None or name is None:
            continue
        try:
            volumes[volume.name] = await _claimed(pod, volume, name, reader)
        except ClaimError as error:
            errors[volume.name] = str(error)
    return volumes, errors


async def _claimed(
    pod: Pod, volume: Volume, name: str, reader: ObjectReader | None
) -> ClaimedVolume:
    where = f"error processing PVC {pod.metadata.namespace or ''}/{name}"
    try:
        if reader is None:
            raise ApiError(0, "NoApiServer", "a kubelet without API server reads no claims")
        claim = await reader.get(CLAIMS, name, pod.metadata.namespace or "")
    except ApiError as error:
        text = f"failed to fetch PVC from API server: {error.message}"
        raise ClaimError(f"{where}: {text}") from None
    stranger = foreign(pod, volume, claim)
    if stranger is not None:
        raise ClaimError(stranger)
    why = claim_problem(claim)
    if why is not None:
        raise ClaimError(f"{where}: {why}")
    volume_name = (claim.spec.volumeName if claim.spec is not None else None) or ""
    try:
        persistent = await reader.get(VOLUMES, volume_name)
    except ApiError as error:
        text = f"failed to fetch PV {volume_name} from API server: {error.message}"
        raise ClaimError(f"{where}: {text}") from None
    why = binding_problem(persistent, claim)
    if why is not None:
        raise ClaimError(f"{where}: {why}")
    source = volume.persistentVolumeClaim
    claimed = ClaimedVolume(volume, persistent, bool(source and source.readOnly), claim)
    _check_use(pod, claimed)
    return claimed


def _check_use(pod: Pod, claimed: ClaimedVolume) -> None:
    """Raises `ClaimError` for a volume that the pod's containers cannot use."""
    containers = tuple(all_containers(pod))
    mounted = {m.name for c in containers for m in c.volumeMounts or ()}
    devices = {d.name for c in containers for d in c.volumeDevices or ()}
    why = mode_problem(claimed, mounted, devices)
    if why:
        raise ClaimError(why)
    served = claimed.path is not None or claimed.is_of_csi
    if not served or claimed.volume.name in devices:
        raise ClaimError(no_plugin(claimed.name))
