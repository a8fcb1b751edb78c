"""Trust anchors of ClusterTrustBundles in projected volumes: which bundles a source means."""

import base64
import re
from typing import Any, Final

from kubelet_conformance.cases.volumes.common import (
    UPDATE_S,
    VOLUME,
    run_with,
    wait_failed,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]
GATES: Final = ("ClusterTrustBundle", "ClusterTrustBundleProjection")
"""The second wants the first."""
ON: Final = {"featureGates": dict.fromkeys(GATES, True)}
BUNDLES: Final = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
SIGNER: Final = "example.com/one"
SINCE: Final = "1.33"
"""When certificates.k8s.io/v1beta1 came to have them."""


def pem(*names: str) -> str:
    """Certificates, as far as a kubelet looks at them: one for each name."""
    blocks = (base64.b64encode(name.encode()).decode() for name in names)
    kind = "CERTIFICATE"
    return "".join(f"-----BEGIN {kind}-----\n{b}\n-----END {kind}-----\n" for b in blocks)


def names_in(text: str) -> list[str]:
    """The names of the certificates in a file, sorted."""
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----\n(.*?)\n-----END", text, re.DOTALL)
    return sorted(base64.b64decode(block).decode() for block in blocks)


async def bundle(
    node: Node, name: str, *anchors: str, signer: str = "", labels: dict[str, str] | None = None
) -> None:
    """Make a ClusterTrustBundle with these certificates."""
    spec = {"trustBundle": pem(*anchors), **({"signerName": signer} if signer else {})}
    body = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}
    kind = {"apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle"}
    await node.api.send("POST", BUNDLES, {**kind, **body})


def trusting(*sources: dict[str, Any]) -> dict[str, Any]:
    """A projected volume of these trust bundles."""
    return {"projected": {"sources": [{"clusterTrustBundle": source} for source in sources]}}


def of_signer(path: str, **more: Any) -> dict[str, Any]:
    """A source of the bundles of a signer."""
    return {"path": path, "signerName": SIGNER, **more}


def needing(key: str, operator: str, *values: str) -> dict[str, Any]:
    """A selector of one expression."""
    requirement = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"matchExpressions": [requirement]}


@conformance(
    id="trust-bundle-selectors",
    rules=["NODE-213.1"],
    needs=NEEDS,
    node_config=ON,
    since=SINCE,
    alone=True,
)
async def a_selector_chooses_among_the_bundles_of_a_signer(node: Node) -> None:
    """A source of a signer has the certificates of those of its bundles that the selector selects,
    by labels and by expressions of every kind; an empty selector selects all; each certificate is
    there once."""
    await bundle(node, "example.com:one:a", "A", "both", signer=SIGNER, labels={"env": "prod"})
    labels = {"env": "dev", "tier": "2"}
    await bundle(node, "example.com:one:b", "B", "both", signer=SIGNER, labels=labels)
    await bundle(node, "example.com:one:c", "C", signer=SIGNER)
    await bundle(node, "example.com:two:d", "D", signer="example.com/two", labels={"env": "prod"})
    await bundle(node, "plain", "P", labels={"env": "prod"})
    labelled = {"matchLabels": {"env": "dev"}}
    selectors: dict[str, tuple[dict[str, Any], list[str]]] = {
        "all": ({}, ["A", "B", "C", "both"]),
        "labels": ({"matchLabels": {"env": "prod"}}, ["A", "both"]),
        "two": ({"matchLabels": {"env": "dev", "tier": "2"}}, ["B", "both"]),
        "in": (needing("env", "In", "prod", "dev"), ["A", "B", "both"]),
        "not-in": (needing("env", "NotIn", "prod"), ["B", "C", "both"]),
        "exists": (needing("tier", "Exists"), ["B", "both"]),
        "not-there": (needing("env", "DoesNotExist"), ["C"]),
        "labels-too": ({**labelled, **needing("tier", "NotIn", "9")}, ["B", "both"]),
        "all-of": ({**labelled, **needing("tier", "In", "2")}, ["B", "both"]),
    }
    sources = [of_signer(path, labelSelector=it) for path, (it, _) in selectors.items()]
    none = [
        of_signer("none", labelSelector={"matchLabels": {"env": "x"}}, optional=True),
        of_signer("some", labelSelector={**labelled, **needing("tier", "In", "3")}, optional=True),
    ]
    files = await run_with(node, with_volume("web", trusting(*sources, *none)))
    names_by_path = {path: names_in(text) for path, text in files.items()}
    expected_names = {path: certificate_names for path, (_, certificate_names) in selectors.items()}
    empty: dict[str, list[str]] = {"none": [], "some": []}
    expect_equal(node, names_by_path, {**expected_names, **empty}, "certificates")


@conformance(
    id="trust-bundle-by-name",
    rules=["NODE-213.1", "NODE-213.2"],
    needs=LONG,
    node_config=ON,
    since=SINCE,
    alone=True,
)
async def a_bundle_can_be_named(node: Node) -> None:
    """A source that names a bundle has its certificates, and follows it; an optional one may be
    missing, another keeps its pod waiting, and an event names it."""
    await bundle(node, "one", "A", "A", "B")
    await bundle(node, "other", "X")
    optional = {"name": "none", "path": "none", "optional": True}
    source = trusting({"name": "one", "path": "dir/one"}, optional)
    files = await run_with(node, with_volume("web", source))
    names_by_path = {path: names_in(text) for path, text in files.items()}
    expect_equal(node, names_by_path, {"dir/one": ["A", "B"], "none": []}, "certificates")
    await node.api.create_pod(with_volume("late", trusting({"name": "late", "path": "late"})))
    message = await wait_failed(node, "late")
    words = 'clustertrustbundle.certificates.k8s.io "late" not found'
    expect(node, message.endswith(words), f"a message that ends with {words}", message)
    selected = of_signer("x", labelSelector={})
    await node.api.create_pod(with_volume("unsigned", trusting(selected)))
    message = await wait_failed(node, "unsigned")
    words = "combination of signerName and labelSelector matched zero ClusterTrustBundles"
    expect(node, words in message, words, message)
    await bundle(node, "late", "L")
    await node.run_until(
        lambda: node.running("late"), within_s=20 + limits.START_S, what="late runs"
    )
    patch = {"spec": {"trustBundle": pem("C")}}
    await node.api.send("PATCH", f"{BUNDLES}/one", patch, "application/merge-patch+json")
    await node.run_until(
        lambda: names_in(node.machine.volume_files("web", VOLUME)["dir/one"]) == ["C"],
        within_s=UPDATE_S,
        what="the new certificate",
    )


@conformance(
    id="trust-bundle-without-selector",
    rules=["NODE-213.1", "NODE-213.2"],
    needs=NEEDS,
    node_config=ON,
    since=SINCE,
    alone=True,
)
async def a_source_without_a_selector_selects_nothing(node: Node) -> None:
    """A source of a signer that has no selector has no certificates, though the signer has bundles:
    it keeps its pod waiting, or is empty if it is optional."""
    await bundle(node, "example.com:one:a", "A", signer=SIGNER, labels={"env": "prod"})
    files = await run_with(node, with_volume("web", trusting(of_signer("none", optional=True))))
    expect_equal(node, files, {"none": ""}, "files")
    await node.api.create_pod(with_volume("late", trusting(of_signer("late"))))
    message = await wait_failed(node, "late")
    words = "combination of signerName and labelSelector matched zero ClusterTrustBundles"
    expect(node, words in message, words, message)


@conformance(id="trust-bundle-gate-off", rules=["NODE-213.3"], needs=NEEDS, since="1.33")
async def without_the_gate_no_bundle_is_read(node: Node) -> None:
    """Where the gate ClusterTrustBundleProjection is off, a pod with a trust bundle waits, and an
    event says why; nothing is asked of the API server."""
    await node.api.create_pod(with_volume("web", trusting({"name": "one", "path": "one"})))
    message = await wait_failed(node, "web")
    words = "ClusterTrustBundle projection is not supported in static kubelet mode"
    expect(node, words in message, words, message)
    expect_equal(node, len(node.api.requests("GET", f"{BUNDLES}")), 0, "requests for bundles")
