"""Whether a pod is for this node's operating system (LIFE-224). Pure.

Upstream: pkg/kubelet/lifecycle/predicate.go: rejectPodAdmissionBasedOnOSField.
"""

from __future__ import annotations

from typing import Final

from refkubelet.admission.handlers import PodAdmitAttributes, Rejection

NODE_OS: Final = "linux"


def operating_system(asked: PodAdmitAttributes) -> Rejection | None:
    """A handler that refuses a pod that names another operating system than this node's."""
    spec = asked.pod.spec
    named = spec.os.name if spec is not None and spec.os is not None else NODE_OS
    if named == NODE_OS:
        return None
    return Rejection(
        "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
    )
