"""Why the resource claims of a pod cannot be prepared, in the kubelet's words (LIFE-130).

There are no drivers here: a claim with devices ends at the driver that is not registered, as on a
node where it was never installed. A claim without devices needs no driver, and the pod starts.
Upstream: pkg/kubelet/cm/dra/manager.go: prepareResources;
staging/src/k8s.io/dynamic-resource-allocation/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lightkube.models.core_v1 import PodResourceClaim

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import RESOURCE_CLAIMS
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

Json = Mapping[str, Any]


class ClaimError(Exception):
    """A claim cannot be prepared; the text is the kubelet's."""


async def prepare_error(pod: Pod, claims: ObjectReader | None) -> str | None:
    """Why the first claim that cannot be prepared cannot; None: there is nothing to prepare.

    `claims` None: standalone, where no claim can be read.
    """
    try:
        for claim_entry in pod.spec.resourceClaims or ():
            name = claim_name(pod, claim_entry)
            if name is not None:
                claim = await _fetched(pod, name, claims)
                check_claim(pod, claim_entry, name, claim)
    except ClaimError as error:
        return f"prepare dynamic resources: {error}"
    return None


def claim_name(pod: Pod, wanted: PodResourceClaim) -> str | None:
    """The name of the claim; None: none is needed, says who makes them of templates. Raises
    ClaimError."""
    if wanted.resourceClaimName is not None:
        return wanted.resourceClaimName
    where = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    if wanted.resourceClaimTemplateName is None:
        raise ClaimError(
            f'{where}, spec.resourceClaim "{wanted.name}": none of the supported fields are set'
        )
    claim_statuses = (pod.status.resourceClaimStatuses or ()) if pod.status is not None else ()
    for status in claim_statuses:
        if status.name == wanted.name:
            return status.resourceClaimName
    raise ClaimError(f"{where}: ResourceClaim not created yet")


async def _fetched(pod: Pod, name: str, claims: ObjectReader | None) -> Json:
    try:
        if claims is None:
            raise ApiError(0, "NoApiServer", "a kubelet without API server reads no claims")
        return await claims.get(RESOURCE_CLAIMS, name, pod.metadata.namespace or "")
    except ApiError as error:
        raise ClaimError(f"fetch ResourceClaim {name}: {error.message}") from None


def check_claim(pod: Pod, wanted: PodResourceClaim, name: str, claim: Json) -> None:
    """Raise ClaimError if the claim is not the pod's, not reserved for it, not allocated, or needs
    a driver."""
    metadata, status = claim.get("metadata") or {}, claim.get("status") or {}
    namespace = pod.metadata.namespace
    is_made_of_template = wanted.resourceClaimName is None
    if is_made_of_template and not _is_controlled_by(metadata, uid(pod)):
        raise ClaimError(
            f"ResourceClaim {namespace}/{name} was not created for Pod "
            f"{namespace}/{pod.metadata.name} (Pod is not owner)"
        )
    if all(who.get("uid") != uid(pod) for who in status.get("reservedFor") or ()):
        raise ClaimError(
            f"pod {pod.metadata.name} ({uid(pod)}) is not allowed to use ResourceClaim "
            f"{name} ({metadata.get('uid', '')})"
        )
    allocation = status.get("allocation")
    if allocation is None:
        raise ClaimError(f"ResourceClaim {name}: not allocated")
    for result in (allocation.get("devices") or {}).get("results") or ():
        raise ClaimError(f"DRA driver {result.get('driver', '')} is not registered")


def _is_controlled_by(metadata: Json, owner: str) -> bool:
    return any(
        ref.get("uid") == owner and ref.get("controller")
        for ref in metadata.get("ownerReferences") or ()
    )
