"""Tables, which `kubectl get` prints and asks for with `Accept: application/json;as=Table`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from fakekubeapi.resources import Resource
from fakekubeapi.resources.table_cells import CELLS, cell

Object = dict[str, Any]


_ENDED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def to_table(resource: Resource, found: Object, now: datetime, include: str = "Metadata") -> Object:
    """A list of objects of that resource, or one object, as a Table.

    `now` is for the column Age. `include`: what each row holds of its object, `None` (nothing),
    `Metadata` or `Object` (all of it).
    """
    items = _items(resource, found)
    metadata = {"resourceVersion": found["metadata"].get("resourceVersion", "")}
    for field in ("continue", "remainingItemCount"):
        if field in found["metadata"] and found.get("kind") != resource.kind:
            metadata[field] = found["metadata"][field]
    rows: list[Object] = []
    for item in items:
        rows.append({"cells": [cell(item, of, now) for of in CELLS[resource.qualified]]})
        forms = {"None": None, "Object": _whole(resource, item)}
        rows[-1]["object"] = forms.get(include, _metadata(item))
        phase = (item.get("status") or {}).get("phase")
        if resource.qualified == "pods" and phase in _ENDED:
            completed = {"type": "Completed", "status": "True", "reason": phase}
            rows[-1]["conditions"] = [{**completed, "message": _ENDED[phase]}]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {**column._asdict(), "description": ""} for column in resource.columns
        ],
        "rows": rows,
    }


def to_partial(resource: Resource, found: Object) -> Object:
    """A list of objects of that resource, or one object, with metadata alone
    (PartialObjectMetadata)."""
    if found.get("kind") != f"{resource.kind}List":
        return _metadata(found)
    kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return {
        **kind,
        "metadata": found["metadata"],
        "items": list(map(_metadata, found["items"])) or None,
    }


def _items(resource: Resource, found: Object) -> list[Object]:
    return found["items"] if found.get("kind") == f"{resource.kind}List" else [found]


def _whole(resource: Resource, item: Object) -> Object:
    return {"kind": resource.kind, "apiVersion": resource.api_version, **item}


def _metadata(item: Object) -> Object:
    kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**kind, "metadata": item["metadata"]}
