"""Asks for the claims of a pod's volumes, to tell why they cannot be set up (NODE-214)."""

from __future__ import annotations

from typing import Protocol

from lightkube.models.core_v1 import PersistentVolumeClaim, Volume

from refkubelet.api.client import ApiError
from refkubelet.model.objects import Pod
from refkubelet.volumes.claims import claim_of, claim_problem, foreign, no_plugin
from refkubelet.volumes.plan import used_volumes


class ClaimReader(Protocol):
    """The part of the API client that reads claims."""

    async def get_claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        """Raises `ApiError`."""
        ...


async def claim_errors(pod: Pod, claims: ClaimReader | None) -> dict[str, str]:
    """Why the volumes of claims that the pod uses cannot be set up, by volume name (NODE-214)."""
    errors: dict[str, str] = {}
    for volume in used_volumes(pod).values():
        name = claim_of(pod, volume) if volume is not None else None
        if volume is not None and name is not None:
            errors[volume.name] = await _claim_error(pod, volume, name, claims)
    return errors


async def _claim_error(pod: Pod, volume: Volume, name: str, claims: ClaimReader | None) -> str:
    namespace = pod.metadata.namespace or ""
    try:
        if claims is None:
            raise ApiError(0, "NoApiServer", "a kubelet without API server reads no claims")
        claim = await claims.get_claim(namespace, name)
    except ApiError as error:
        text = f"failed to fetch PVC from API server: {error.message}"
        return f"error processing PVC {namespace}/{name}: {text}"
    stranger = foreign(pod, volume, claim)
    if stranger is not None:
        return stranger
    why = claim_problem(claim)
    if why is None:
        return no_plugin(claim.spec.volumeName or "" if claim.spec else "")
    return f"error processing PVC {namespace}/{name}: {why}"
