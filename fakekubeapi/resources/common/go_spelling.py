"""How objects differ, as refusals of changes show it: line by line, in the JSON of Go's internal
types (`kubeobjects.schema.internal`). Pure.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from kubeobjects.schema.internal import internal
from kubeobjects.schema.messages import message

Object = Mapping[str, Any]


def node_driver(driver: Object) -> dict[str, Any]:
    """A driver of a CSINode. How many volumes it takes may change and is not shown."""
    document = internal(driver, message("storage.v1.CSINodeDriver"))
    return {**document, "Allocatable": None}


def attachment_spec(spec: Object) -> dict[str, Any]:
    """The spec of a VolumeAttachment."""
    return internal(spec, message("storage.v1.VolumeAttachmentSpec"))


def sources_differ(old: Object, new: Object) -> str:
    """How the sources of two persistent volumes' specs differ, line by line."""
    source = message("core.v1.PersistentVolumeSource")
    return _differ(internal(old, source), internal(new, source))


def claims_differ(old: Object, new: Object) -> str:
    """How the specs of two claims differ, line by line."""
    spec = message("core.v1.PersistentVolumeClaimSpec")
    return _differ(internal(old, spec), internal(new, spec))


def _differ(old: Object, new: Object) -> str:
    was, after = (json.dumps(value, indent=1).splitlines() for value in (old, new))
    lines = list(difflib.unified_diff(was, after, lineterm=""))[2:]  # without the names of files
    return "".join(f"{line}\n" for line in lines)
