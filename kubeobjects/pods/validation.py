"""All that is wrong with a pod, in the order in which an API server says it. Pure.

Upstream: pkg/apis/core/validation: ValidatePodCreate, ValidatePodSpec.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubeobjects.causes import Cause
from kubeobjects.pods.annotations import special_annotation_causes
from kubeobjects.pods.common.checks import Object
from kubeobjects.pods.containers import container_causes, image_spaces_causes
from kubeobjects.pods.containers.env import file_volume_causes
from kubeobjects.pods.fields import (
    creation_causes,
    pod_field_causes,
    pod_metadata_causes,
    resource_claim_causes,
)
from kubeobjects.pods.volumes import volume_causes
from kubeobjects.pods.volumes.projections import token_causes


def pod_causes(pod: Object, *, static: bool) -> list[Cause]:
    """What is wrong with a new pod that has its defaults; empty: it is valid.

    `static`: the pod is a kubelet's own, read from a file or URL. An API server drops fields that
    are switched off (`stopSignal`) before it checks a pod; a kubelet checks them.
    """
    return [
        *pod_metadata_causes(pod["metadata"]),
        *spec_causes(pod, static=static),
        *creation_causes(pod),
    ]


def spec_causes(pod: Object, *, static: bool) -> Iterator[Cause]:
    """What is wrong with a pod, new or not, beside its metadata."""
    spec = pod["spec"]
    yield from special_annotation_causes(pod)
    name = pod["metadata"].get("name") or ""
    volumes, causes = volume_causes(spec, pod_name=name, static=static)
    yield from causes
    yield from resource_claim_causes(pod)
    yield from container_causes(spec, volumes, static=static)
    yield from pod_field_causes(pod, static=static)
    yield from file_volume_causes(spec)
    yield from token_causes(spec)
    yield from image_spaces_causes(spec)
