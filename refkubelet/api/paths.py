"""Parameters of the kubelet's requests to the API server. Pure."""

from __future__ import annotations

from typing import Final

WATCH_LASTS_S: Final = 300  # then the server ends it (timeoutSeconds)


def on_node(node_name: str) -> str:
    """The field selector of the pods bound to that node."""
    return f"spec.nodeName={node_name}"


def named(name: str) -> str:
    """The field selector of the object of that name."""
    return f"metadata.name={name}"


def chosen(fields: str) -> dict[str, str]:
    """The parameters of a list of what that field selector chooses; "" chooses all."""
    return {"fieldSelector": fields} if fields else {}


def watching(resource_version: str) -> dict[str, str]:
    """The parameters of a watch behind that version, which the server ends after
    `WATCH_LASTS_S`."""
    return {
        "watch": "true",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(WATCH_LASTS_S),
    }
