"""Tables, which `kubectl get` prints and asks for with `Accept: application/json;as=Table`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from fakekubeapi.resources import Resource

Object = dict[str, Any]
Cells = list[Any]
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))
_WIDE: Final = 1


def to_table(resource: Resource, found: Object, now: datetime, include: str = "Metadata") -> Object:
    """A list of objects of that resource, or one object, as a Table.

    `now` is for the column Age. `include`: what each row holds of its object, `None` (nothing),
    `Metadata` or `Object` (all of it).
    """
    items = _items(resource, found)
    columns, cells_of = _LAYOUTS.get(resource.qualified, _PLAIN)
    metadata = {"resourceVersion": found["metadata"].get("resourceVersion", "")}
    for field in ("continue", "remainingItemCount"):
        if field in found["metadata"] and found.get("kind") != resource.kind:
            metadata[field] = found["metadata"][field]
    rows: list[Object] = []
    for item in items:
        rows.append({"cells": cells_of(item, now)})
        if include != "None":
            rows[-1]["object"] = _whole(resource, item) if include == "Object" else _metadata(item)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": priority,
            }
            for name, priority in columns
        ],
        "rows": rows,
    }


def to_partial(resource: Resource, found: Object) -> Object:
    """A list of objects of that resource, or one object, with metadata alone
    (PartialObjectMetadata)."""
    if found.get("kind") != f"{resource.kind}List":
        return _metadata(found)
    kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return {**kind, "metadata": found["metadata"], "items": list(map(_metadata, found["items"]))}


def _items(resource: Resource, found: Object) -> list[Object]:
    return found["items"] if found.get("kind") == f"{resource.kind}List" else [found]


def _whole(resource: Resource, item: Object) -> Object:
    return {"kind": resource.kind, "apiVersion": resource.api_version, **item}


def _metadata(item: Object) -> Object:
    kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**kind, "metadata": item["metadata"]}


def _age(item: Object, now: datetime) -> str:
    """How long ago the object was created, in kubectl's short form: `45s`, `3m`, `2d`."""
    made = item["metadata"].get("creationTimestamp")
    if not made:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(made)).total_seconds())
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def _plain_cells(item: Object, now: datetime) -> Cells:
    return [item["metadata"]["name"], _age(item, now)]


def _pod_cells(pod: Object, now: datetime) -> Cells:
    status, spec = pod.get("status", {}), pod.get("spec", {})
    containers = status.get("containerStatuses", [])
    ready = sum(1 for container in containers if container.get("ready"))
    restarts = sum(container.get("restartCount", 0) for container in containers)
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers', []))}",
        _pod_status(pod),
        str(restarts),
        _age(pod, now),
        status.get("podIP", "<none>"),
        spec.get("nodeName", "<none>"),
    ]


def _pod_status(pod: Object) -> str:
    """The column Status: the reason of a container or of the pod, else the phase."""
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    shown = status.get("reason") or status.get("phase", "Unknown")
    for container in status.get("containerStatuses", []):
        state = container.get("state", {})
        for kind in ("waiting", "terminated"):
            shown = state.get(kind, {}).get("reason") or shown
    return str(shown)


def _node_cells(node: Object, now: datetime) -> Cells:
    status = node.get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    words = {"True": "Ready", "False": "NotReady"}
    shown = words.get(conditions.get("Ready", ""), "Unknown")
    if node.get("spec", {}).get("unschedulable"):
        shown += ",SchedulingDisabled"
    kubelet = status.get("nodeInfo", {}).get("kubeletVersion", "")
    return [node["metadata"]["name"], shown, "<none>", _age(node, now), kubelet]


def _event_cells(event: Object, now: datetime) -> Cells:
    about = event.get("involvedObject", {})
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    seen = {"metadata": {"creationTimestamp": event.get("lastTimestamp")}}
    return [
        _age(seen if event.get("lastTimestamp") else event, now),
        event.get("type", ""),
        event.get("reason", ""),
        subject,
        event.get("message", ""),
    ]


_Layout = tuple[list[tuple[str, int]], Callable[[Object, datetime], Cells]]
_PLAIN: Final[_Layout] = ([("Name", 0), ("Age", 0)], _plain_cells)
_LAYOUTS: Final[dict[str, _Layout]] = {
    "pods": (
        [
            ("Name", 0),
            ("Ready", 0),
            ("Status", 0),
            ("Restarts", 0),
            ("Age", 0),
            ("IP", _WIDE),
            ("Node", _WIDE),
        ],
        _pod_cells,
    ),
    "nodes": (
        [("Name", 0), ("Status", 0), ("Roles", 0), ("Age", 0), ("Version", 0)],
        _node_cells,
    ),
    "events": (
        [("Last Seen", 0), ("Type", 0), ("Reason", 0), ("Object", 0), ("Message", 0)],
        _event_cells,
    ),
}
