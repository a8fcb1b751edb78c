"""Answers and questions of the main port as a whole: no field too few, none too many."""

from __future__ import annotations

from typing import Any

from kubelet_conformance.cases.server.access import ACCESS_REVIEWS, REVIEWED, bearer
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
PATHS = {
    "/pods": ("pods", "proxy"),
    "/pods/": ("pods", "proxy"),
    "/runningpods/": ("pods", "proxy"),
    "/healthz": ("healthz", "proxy"),
    "/healthz/ping": ("healthz", "proxy"),
    "/configz": ("configz", "proxy"),
    "/stats/summary": ("stats",),
    "/metrics/cadvisor": ("metrics",),
    "/logs/": ("log",),
    "/checkpoint/a/b/c": ("checkpoint",),
    "/exec/a/b/c": ("proxy",),
}
"""Path -> the subresources of the node of which one must be allowed, in the order in which they are
asked about."""
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@conformance(
    id="access-review-whole",
    rules=["SRV-012", "SRV-014"],
    needs=[API, STATUS],
    node_config=REVIEWED,
    since="1.33",
)
async def a_review_says_who_wants_what_and_no_more(node: Node) -> None:
    """The whole SubjectAccessReview of each kind of path and each method: verb, version, resource,
    subresource and name of the node, and of the user name, groups, UID and extra facts."""
    extra = {"example.com/team": ["blue", "red"]}
    node.api.add_user("secret", "alice", "dev", "ops", uid="17", extra=extra)
    node.api.deny(user="alice")
    expected = []
    for path, method in (*((path, "GET") for path in PATHS), *(("/pods", m) for m in VERBS)):
        answer = await node.kubelet.http(method=method, path=path, headers=bearer("secret"))
        names = " ".join(PATHS[path])
        words = (
            f"Forbidden (user=alice, verb={VERBS[method]}, resource=nodes, "
            f"subresource(s)=[{names}])\n"
        )
        expect_equal(node, (answer.status, answer.text), (403, words), f"{method} {path}")
        expected += [asked(node, VERBS[method], subresource) for subresource in PATHS[path]]
    specs = [request.body["spec"] for request in node.api.requests("POST", ACCESS_REVIEWS)]
    told = {str(sorted_deep(spec)) for spec in specs}
    expect_equal(node, told, {str(sorted_deep(spec)) for spec in expected}, "specs of the reviews")


def asked(node: Node, verb: str, subresource: str) -> dict[str, Any]:
    """The spec of the review of an access of alice's."""
    return {
        "resourceAttributes": {
            "verb": verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": subresource,
            "name": node.name,
        },
        "user": "alice",
        "groups": ["dev", "ops", "system:authenticated"],
        "uid": "17",
        "extra": {"example.com/team": ["blue", "red"]},
    }


def sorted_deep(value: Any) -> Any:
    """The same with mappings in the order of their keys."""
    if isinstance(value, dict):
        return {key: sorted_deep(value[key]) for key in sorted(value)}
    return value


@conformance(id="server-no-pods", rules=["SRV-010.1", "MIRR-035"], needs=[STATUS], alone=True)
async def a_node_without_pods_has_lists_without_items(node: Node) -> None:
    """Without pods /pods and /runningpods/ are lists whose items are null."""
    expected: dict[str, Any] = {
        **{"kind": "PodList", "apiVersion": "v1", "metadata": {}},
        "items": None,
    }
    for path in ("/pods", "/runningpods/"):
        answer = await node.kubelet.get(path)
        expect_equal(node, answer.json(), expected, f"the whole of {path}")
        kind = answer.headers["content-type"]
        expect_equal(node, kind, "application/json", f"content type of {path}")


@conformance(id="server-running-pods-whole", rules=["SRV-010.1"], needs=[STATUS], alone=True)
async def running_pods_have_names_and_images_and_no_more(node: Node) -> None:
    """The whole of /runningpods/: of each pod name, namespace and UID, of each container name and
    image."""
    await node.apply_static(pod("web", container("main"), container("side")))
    await node.wait_running("web", "main")
    await node.wait_running("web", "side")
    metadata = node.calls("RunPodSandbox", pod="web")[0].request.config.metadata
    images = {
        call.request.config.metadata.name: call.request.config.image.image
        for call in node.calls("CreateContainer", pod="web")
    }
    document = (await node.kubelet.get("/runningpods/")).json()
    for item in document["items"]:
        item["spec"]["containers"].sort(key=lambda shown: shown["name"])
    expected = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {},
        "items": [
            {
                "metadata": {
                    "name": metadata.name,
                    "namespace": metadata.namespace,
                    "uid": metadata.uid,
                },
                "spec": {
                    "containers": [
                        {"name": name, "image": images[name], "resources": {}}
                        for name in ("main", "side")
                    ]
                },
                "status": {},
            }
        ],
    }
    expect_equal(node, document, expected, "the whole of /runningpods/")
