"""Resource claims of pods: what keeps them from being prepared (LIFE-130)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lightkube.models.core_v1 import PodResourceClaim, PodResourceClaimStatus, PodStatus
from pods import make_pod

from refkubelet.api.client import ApiError
from refkubelet.api.kinds import Kind
from refkubelet.kuberuntime.resource_claims import prepare_error
from refkubelet.model.objects import Pod

NAMED = PodResourceClaim(name="gpu", resourceClaimName="gpu-1")
OF_TEMPLATE = PodResourceClaim(name="gpu", resourceClaimTemplateName="gpus")


class Claims:
    """An API server with one claim."""

    def __init__(self, claim: dict[str, Any]) -> None:
        self.claim = claim

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        if (namespace, name) != ("default", self.claim["metadata"]["name"]):
            text = f'resourceclaims.resource.k8s.io "{name}" not found'
            raise ApiError(404, "NotFound", text)
        return self.claim


def pod(*wanted: PodResourceClaim, made: str | None = "") -> Pod:
    """`made`: the claim that was made of the template "gpu"; "": the status says nothing."""
    found = make_pod()
    found.metadata.uid = "u1"
    found.spec.resourceClaims = list(wanted)
    if made != "":
        status = PodResourceClaimStatus(name="gpu", resourceClaimName=made)
        found.status = PodStatus(resourceClaimStatuses=[status])
    return found


def claim(name: str = "gpu-1", *, owner: str = "u1", **status: Any) -> dict[str, Any]:
    ref = {"uid": owner, "controller": True}
    return {
        "metadata": {"name": name, "uid": "c1", "ownerReferences": [ref]},
        "status": {"reservedFor": [{"uid": "u1"}], "allocation": {}, **status},
    }


def why(asks: Pod, found: dict[str, Any]) -> str | None:
    return asyncio.run(prepare_error(asks, Claims(found)))


WITH_DEVICE = {"devices": {"results": [{"driver": "gpu.example.com"}]}}


@pytest.mark.parametrize(
    ("asks", "found", "text"),
    [
        (pod(OF_TEMPLATE), claim(), 'pod "default/web": ResourceClaim not created yet'),
        (
            pod(PodResourceClaim(name="x")),
            claim(),
            'pod "default/web", spec.resourceClaim "x": none of the supported fields are set',
        ),
        (
            pod(NAMED),
            claim("other"),
            'fetch ResourceClaim gpu-1: resourceclaims.resource.k8s.io "gpu-1" not found',
        ),
        (
            pod(OF_TEMPLATE, made="gpu-1"),
            claim(owner="u2"),
            "ResourceClaim default/gpu-1 was not created for Pod default/web (Pod is not owner)",
        ),
        (
            pod(NAMED),
            claim(reservedFor=[{"uid": "u2"}]),
            "pod web (u1) is not allowed to use ResourceClaim gpu-1 (c1)",
        ),
        (pod(NAMED), claim(allocation=None), "ResourceClaim gpu-1: not allocated"),
        (
            pod(NAMED),
            claim(allocation=WITH_DEVICE),
            "DRA driver gpu.example.com is not registered",
        ),
        (
            pod(OF_TEMPLATE, made="gpu-1"),
            claim(allocation=WITH_DEVICE),
            "DRA driver gpu.example.com is not registered",
        ),
    ],
)
def test_why_a_claim_cannot_be_prepared_LIFE_130(
    asks: Pod, found: dict[str, Any], text: str
) -> None:
    assert why(asks, found) == f"prepare dynamic resources: {text}"


@pytest.mark.parametrize(
    "asks",
    [
        pod(),
        pod(OF_TEMPLATE, made=None),  # whoever makes claims says that none is needed
        pod(NAMED),  # allocated, without devices
        pod(OF_TEMPLATE, made="gpu-1"),
    ],
)
def test_a_pod_whose_claims_need_no_driver_LIFE_130(asks: Pod) -> None:
    assert why(asks, claim()) is None


def test_a_claim_with_a_name_may_belong_to_somebody_else_LIFE_130() -> None:
    assert why(pod(NAMED), claim(owner="u2")) is None


def test_without_an_api_server_no_claim_can_be_read() -> None:
    found = asyncio.run(prepare_error(pod(NAMED), None))
    assert found is not None
    assert found.startswith("prepare dynamic resources: fetch ResourceClaim gpu-1: ")
