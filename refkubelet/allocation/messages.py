"""The messages of resize events: a few words, and the pod's resources as JSON (CG-063). Pure.

Upstream: pkg/kubelet/events/resize.go.
"""

from __future__ import annotations

from typing import Any, Final

from lightkube.models.core_v1 import ResourceRequirements

from kubeobjects.golang.json import go_json
from refkubelet.allocation.resources import canonical_resources
from refkubelet.model.objects import Container, Pod

DEFERRED: Final = "ResizeDeferred"
INFEASIBLE: Final = "ResizeInfeasible"
STARTED: Final = "ResizeStarted"
COMPLETED: Final = "ResizeCompleted"
ERROR: Final = "ResizeError"


def started(pod: Pod, generation: int) -> str:
    """The message of the event ResizeStarted."""
    return _message("Pod resize started", pod, generation)


def completed(pod: Pod, generation: int) -> str:
    """The message of the event ResizeCompleted."""
    return _message("Pod resize completed", pod, generation)


def failed(pod: Pod, generation: int, error: str) -> str:
    """The message of the event ResizeError."""
    return _message("Pod resize error", pod, generation, error)


def pending(pod: Pod, generation: int, reason: str, error: str) -> str:
    """`reason`: of the handler that refused, for example OutOfcpu."""
    return _message(f"Pod resize {reason}", pod, generation, error)


def _message(words: str, pod: Pod, generation: int, error: str = "") -> str:
    summary: dict[str, Any] = {}
    spec = pod.spec
    if spec.initContainers:
        summary["initContainers"] = [_container(c) for c in spec.initContainers]
    if spec.containers:
        summary["containers"] = [_container(c) for c in spec.containers]
    summary["generation"] = generation
    if error:
        summary["error"] = error
    return f"{words}: {go_json(summary)}"


def _container(container: Container) -> dict[str, Any]:
    return {"name": container.name, "resources": resources_json(container.resources)}


def resources_json(resources: ResourceRequirements | None) -> dict[str, Any]:
    """The resources as JSON: limits before requests, names sorted, empty parts left out."""
    clean = canonical_resources(resources)
    document: dict[str, Any] = {}
    if clean.limits:
        document["limits"] = clean.limits
    if clean.requests:
        document["requests"] = clean.requests
    if clean.claims:
        document["claims"] = [
            {"name": c.name} | ({"request": c.request} if c.request else {}) for c in clean.claims
        ]
    return document
