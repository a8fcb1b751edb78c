"""What is wrong with the claim of a volume that lives as long as its pod. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
from kubeobjects.claims import claim_spec_causes
from kubeobjects.golang.strconv import quoted
from kubeobjects.metadata import annotation_causes
from kubeobjects.names import subdomain_problems
from kubeobjects.pods.common.checks import Object
from kubeobjects.selectors import label_causes

_NOT_IN_TEMPLATES: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"),
    *("finalizers", "managedFields"),
)
_SHOWN: Final = {"uid": "uID"}


def template_causes(source: Object, path: str) -> Iterator[Cause]:
    """What is wrong with an `ephemeral` source, at `path`."""
    template, base = source.get("volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        yield required(base)
        return
    metadata = template.get("metadata") or {}
    yield from annotation_causes(metadata.get("annotations") or {}, f"{base}.metadata.annotations")
    yield from label_causes(metadata.get("labels"), f"{base}.metadata.labels")
    for field in _NOT_IN_TEMPLATES:
        if metadata.get(field):
            yield forbidden_field(f"{base}.metadata.{_SHOWN.get(field, field)}", "cannot be set")
    yield from claim_spec_causes(template.get("spec") or {}, f"{base}.spec")


def claim_name_causes(pod_name: str, volume_name: str, path: str) -> Iterator[Cause]:
    """What is wrong with the name that the claim gets. It is said of the volume at `path`."""
    name = f"{pod_name}-{volume_name}"
    for problem in subdomain_problems(name):
        yield invalid_value(f"{path}.name", volume_name, f"PVC name {quoted(name)}: {problem}")
