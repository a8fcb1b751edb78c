"""What the kubelet asks the API server for: paths, selectors, and the parameters of a watch."""

from __future__ import annotations

from refkubelet.api import kinds, paths


def test_paths_have_group_version_and_namespace() -> None:
    assert kinds.PODS.path("p", "ns") == "/api/v1/namespaces/ns/pods/p"
    assert kinds.PODS.path() == "/api/v1/pods"
    assert kinds.NODES.path("n1") == "/api/v1/nodes/n1"
    assert kinds.SECRETS.path("", "ns") == "/api/v1/namespaces/ns/secrets/"
    assert kinds.LEASES.path(namespace="ns") == "/apis/coordination.k8s.io/v1/namespaces/ns/leases"


def test_only_what_concerns_the_node_is_asked_for_SRC_050() -> None:
    assert paths.chosen(paths.on_node("n1")) == {"fieldSelector": "spec.nodeName=n1"}
    assert paths.chosen(paths.named("c")) == {"fieldSelector": "metadata.name=c"}
    assert paths.chosen("") == {}


def test_a_watch_goes_on_where_the_list_ended_with_bookmarks_SRC_050() -> None:
    assert paths.watching("7") == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }
