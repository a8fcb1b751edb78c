"""What an API server's conversion from v1 and back changes in a pod. Pure.

Rules: SRC-036.7, SRC-036.8. Upstream: pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

from typing import Final

from kubeobjects.structs import replace
from refkubelet.model.objects import Pod, PodIP, PodStatus

OLD_ANNOTATIONS: Final = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{suffix}"
    for stage in ("alpha", "beta")
    for suffix in ("s", "-statuses")
)
"""Of Kubernetes 1.5: init containers, before they were a field."""


def convert(pod: Pod) -> Pod:
    """The pod with one list of addresses, and without the annotations that were init containers."""
    annotations = pod.metadata.annotations
    if annotations and not OLD_ANNOTATIONS.isdisjoint(annotations):
        remaining = {k: v for k, v in annotations.items() if k not in OLD_ANNOTATIONS}
        pod = replace(pod, metadata=replace(pod.metadata, annotations=remaining or None))
    return replace(pod, status=_with_addresses(pod.status)) if pod.status else pod


def _with_addresses(status: PodStatus) -> PodStatus:
    """podIP is the first of podIPs. Where they differ podIP wins, and is the only one."""
    first = status.podIPs[0].ip if status.podIPs else None
    if status.podIP and status.podIP != first:
        return replace(status, podIPs=[PodIP(ip=status.podIP)])
    return replace(status, podIP=first or None)
