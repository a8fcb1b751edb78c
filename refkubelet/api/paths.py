"""Paths and parameters of the kubelet's requests to the API server. Pure."""

from __future__ import annotations

from typing import Final

WATCH_LASTS_S: Final = 300  # then the server ends it (timeoutSeconds)
SIGNING_REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TRUST_BUNDLES: Final = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
STORAGE: Final = "/apis/storage.k8s.io/v1"
CSI_DRIVERS: Final = f"{STORAGE}/csidrivers"
CSI_NODES: Final = f"{STORAGE}/csinodes"


def leases(namespace: str) -> str:
    """The leases of a namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def resource_claims(namespace: str) -> str:
    """The ResourceClaims of a namespace."""
    return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def on_node(node_name: str) -> dict[str, str]:
    """The parameters that choose the pods bound to that node."""
    return {"fieldSelector": f"spec.nodeName={node_name}"}


def named(name: str) -> dict[str, str]:
    """The parameters that choose the object of that name."""
    return {"fieldSelector": f"metadata.name={name}"}


def watching(resource_version: str) -> dict[str, str]:
    """The parameters of a watch behind that version, which the server ends after
    `WATCH_LASTS_S`."""
    return {
        "watch": "true",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(WATCH_LASTS_S),
    }
