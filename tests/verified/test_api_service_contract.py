"""Services whose type changes: what the fake API server leaves of their fields as kube-apiserver
does; on a real one, too, where REFKUBELET_APISERVER names its URL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_sides import MERGE, URL, ApiSide, api_side

ADDRESSES = {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
INSIDE, OUTSIDE = "internalTrafficPolicy", "externalTrafficPolicy"
OF_BALANCERS = {"allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"}
PLAIN = {"type", "ports", "selector", "sessionAffinity"}
BALANCER = {"type": "LoadBalancer", "loadBalancerClass": "a.b/c", OUTSIDE: "Local"}
NAME = {"type": "ExternalName", "externalName": "example.com"}
TRAFFIC = 'Unsupported value: "Odd": supported values: "Cluster", "Local"'


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[ApiSide]:
    if request.param == "real" and not URL:
        pytest.skip("REFKUBELET_APISERVER names no server")
    async with api_side(request.param) as side:
        yield side


def services(api: ApiSide) -> str:
    return f"/api/v1/namespaces/{api.namespace}/services"


async def made(api: ApiSide, **spec: Any) -> dict[str, Any]:
    whole = {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}
    body = {"metadata": {"name": "s"}, "spec": whole}
    found: dict[str, Any] = (await api.done("POST", services(api), body))["spec"]
    return found


async def changed(api: ApiSide, **spec: Any) -> dict[str, Any]:
    path = f"{services(api)}/s"
    found: dict[str, Any] = (await api.done("PATCH", path, {"spec": spec}, kind=MERGE))["spec"]
    return found


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ({"type": "NodePort"}, {"type": "ClusterIP"}, ADDRESSES | {INSIDE}),
        (BALANCER, {"type": "ClusterIP"}, ADDRESSES | {INSIDE}),
        (BALANCER, {"type": "NodePort"}, ADDRESSES | {INSIDE, OUTSIDE}),
        ({"type": "ClusterIP"}, NAME, {"externalName"}),
        (BALANCER, NAME, {"externalName"}),
        ({"type": "ClusterIP", "externalIPs": ["1.2.3.4"]}, NAME, {"externalName", "externalIPs"}),
        (NAME, {"type": "ClusterIP", "externalName": None}, ADDRESSES | {INSIDE}),
        (
            {"type": "NodePort"},
            {"type": "LoadBalancer"},
            ADDRESSES | {INSIDE, OUTSIDE, "allocateLoadBalancerNodePorts"},
        ),
        (BALANCER, {"externalTrafficPolicy": "Cluster"}, ADDRESSES | {INSIDE, OUTSIDE}),
    ],
)
async def test_what_a_change_of_type_leaves(
    api: ApiSide, old: dict[str, Any], new: dict[str, Any], left: set[str]
) -> None:
    before = await made(api, **old)
    assert (BALANCER is not old) or before.keys() >= OF_BALANCERS
    after = await changed(api, **new)
    kept = OF_BALANCERS - {"healthCheckNodePort"} if "type" not in new else set()
    assert after.keys() == PLAIN | left | kept
    outside = after["type"] in ("NodePort", "LoadBalancer")
    assert ("nodePort" in after["ports"][0]) is outside


async def test_what_the_change_itself_says_stays_and_is_checked(api: ApiSide) -> None:
    await made(api, type="NodePort")
    body = {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30777}]}}
    status, found = await api.ask("PATCH", f"{services(api)}/s", body, kind=MERGE)
    assert status == 422
    text = "Forbidden: may not be used when `type` is 'ClusterIP'"
    assert [(c["field"], c["message"]) for c in found["details"]["causes"]] == [
        ("spec.ports[0].nodePort", text)
    ]


async def test_the_ways_of_traffic(api: ApiSide) -> None:
    body = {"metadata": {"name": "s"}, "spec": {**NAME, INSIDE: "Local"}}
    assert INSIDE not in (await api.done("POST", services(api), body))["spec"]
    odd = {"ports": [{"port": 80}], "type": "NodePort", INSIDE: "Odd", OUTSIDE: "Odd"}
    body = {"metadata": {"name": "t"}, "spec": odd}
    status, found = await api.ask("POST", services(api), body)
    causes = [(c["field"], c["message"]) for c in found["details"]["causes"]]
    assert causes == [(f"spec.{OUTSIDE}", TRAFFIC), (f"spec.{INSIDE}", TRAFFIC)]
    more = {"allocateLoadBalancerNodePorts": True}
    body = {"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}], **more}}
    status, found = await api.ask("POST", services(api), body)
    text = "Forbidden: may only be used when `type` is 'LoadBalancer'"
    causes = [(c["field"], c["message"]) for c in found["details"]["causes"]]
    assert (status, causes) == (422, [("spec.allocateLoadBalancerNodePorts", text)])


async def test_a_service_that_is_a_name_is_told_that_it_has_no_families(api: ApiSide) -> None:
    spec = {"type": "ExternalName", "ipFamilies": ["IPv6"], "ports": [{"port": 80}]}
    status, answer = await api.ask("POST", services(api), {"metadata": {"name": "s"}, "spec": spec})
    causes = [cause["field"] for cause in answer["details"]["causes"]]
    assert (status, causes) == (422, ["spec.ipFamilies", "spec.externalName"])
