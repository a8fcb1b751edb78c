"""What the kubelet asks the API server for: paths, selectors, and the parameters of a watch."""

from __future__ import annotations

from refkubelet.api import paths


def test_paths_have_group_version_and_namespace() -> None:
    assert paths.pod_path("ns", "p") == "/api/v1/namespaces/ns/pods/p"
    assert paths.secrets("ns") == "/api/v1/namespaces/ns/secrets"
    assert paths.config_maps("ns") == "/api/v1/namespaces/ns/configmaps"
    assert paths.leases("ns") == "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
    assert paths.resource_claims("ns") == "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"


def test_only_what_concerns_the_node_is_asked_for_SRC_050() -> None:
    assert paths.on_node("n1") == {"fieldSelector": "spec.nodeName=n1"}
    assert paths.named("c") == {"fieldSelector": "metadata.name=c"}


def test_a_watch_goes_on_where_the_list_ended_with_bookmarks_SRC_050() -> None:
    assert paths.watching("7") == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }
