"""Certificates that were laid for the kubelet and are not quite its own, and requests that come to
nothing (SRV-004, SRV-006)."""

from __future__ import annotations

from typing import Any

from kubelet_conformance.cases.server.certificates import (
    ASKS_S,
    CURRENT,
    asked,
    has_certificate,
    lay_certificate,
    made_pair,
    posted,
    request_in,
    sign,
)
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS, Feature.RESTART]
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PAUSE_S = 2.0
"""Before the second try, at least (SRV-006.2)."""


async def own_addresses(node: Node) -> list[str]:
    """The IP addresses of the Node, once it has some."""
    await node.run_until(lambda: node.api.node_status("addresses"), within_s=ASKS_S)
    rows = node.api.node_status("addresses")
    return [row["address"] for row in rows if row["type"] == "InternalIP"]


@conformance(id="certificate-of-another", rules=["SRV-004.3", "SRV-006.4"], needs=NEEDS)
async def one_that_does_not_say_all_is_replaced_at_once(node: Node) -> None:
    """A stored certificate that is another node's, that lacks the group of nodes, or the node's
    name, is replaced at once: each time there is one request more."""
    addresses = await own_addresses(node)
    lacking: tuple[dict[str, Any], ...] = (
        {"common_name": "system:node:another"},
        {"organizations": ["system:masters"]},
        {"names": ["another.example"]},
    )
    for number, fields in enumerate(lacking, 1):
        await node.kubelet.stop()
        file = node.kubelet.certificate_file(CURRENT)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(made_pair(node, addresses, **fields)))
        await node.kubelet.start(serverTLSBootstrap=True)
        await asked(node, number)


@conformance(id="certificate-of-files", rules=["SRV-006.4"], needs=NEEDS)
async def files_of_the_configuration_serve_meanwhile(node: Node) -> None:
    """A certificate that the configuration names and that says all counts: nothing is asked for.
    Once the kubelet has one of its own, that counts, whatever the file says."""
    addresses = await own_addresses(node)
    paths = [node.kubelet.certificate_file(name) for name in ("serving.crt", "serving.key")]
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    for path, content in zip(paths, made_pair(node, addresses), strict=True):
        path.write_bytes(content)
    files = {"tlsCertFile": str(paths[0]), "tlsPrivateKeyFile": str(paths[1])}
    await node.kubelet.restart(serverTLSBootstrap=True, **files)
    await node.run_for(ASKS_S)
    expect_equal(node, len(posted(node)), 0, "requests with a certificate that has all")
    await node.kubelet.stop()
    for path, content in zip(paths, made_pair(node, ["192.0.2.99"]), strict=True):
        path.write_bytes(content)
    await node.kubelet.start()
    await asked(node)
    await node.kubelet.stop()
    lay_certificate(node, addresses)
    await node.kubelet.start()
    await node.run_for(ASKS_S)
    expect_equal(node, len(posted(node)), 1, "requests with one of its own")


def name_of_request(node: Node) -> str:
    """The name of the newest request at the API server."""
    items = node.api.fake.store.items("certificatesigningrequests.certificates.k8s.io")
    return str(
        max(items, key=lambda item: int(item["metadata"]["resourceVersion"]))["metadata"]["name"]
    )


async def expect_new_request(node: Node, count: int) -> None:
    """Expect the request of that number after the first pause, with another key."""
    ended_s = node.now_s
    record = await asked(node, count)
    expect(node, node.now_s - ended_s >= PAUSE_S - 0.2, "after a pause", node.now_s - ended_s)
    keys = {request_in(each).public_key().public_numbers() for each in posted(node)}
    expect_equal(node, len(keys), count, f"keys of the requests until {record.body}")


@conformance(id="certificate-failed", rules=["SRV-006.2"], needs=NEEDS)
async def a_request_whose_signer_fails_is_made_anew(node: Node) -> None:
    """A request that is approved and then Failed comes to nothing: another is made, with another
    key, after a pause."""
    await node.kubelet.restart(serverTLSBootstrap=True)
    await asked(node)
    path = f"{CSRS}/{name_of_request(node)}"
    approved = {"type": "Approved", "status": "True", "reason": "Ok", "message": "by the case"}
    failed = {"type": "Failed", "status": "True", "reason": "NoInk", "message": "by the case"}
    for subresource, rows in (("approval", [approved]), ("status", [approved, failed])):
        patch = {"status": {"conditions": rows}}
        await node.api.send("PATCH", f"{path}/{subresource}", patch, "application/merge-patch+json")
    await expect_new_request(node, 2)


@conformance(id="certificate-request-deleted", rules=["SRV-006.2"], needs=NEEDS)
async def a_request_that_is_deleted_is_made_anew(node: Node) -> None:
    """When somebody deletes the request that the kubelet follows, it makes another one, with
    another key, after a pause; its certificate is kept."""
    await node.kubelet.restart(serverTLSBootstrap=True)
    await asked(node)
    name = name_of_request(node)
    sign(node)
    await node.api.send("DELETE", f"{CSRS}/{name}", {})
    await expect_new_request(node, 2)
    await has_certificate(node)
