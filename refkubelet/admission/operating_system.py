"""Whether a pod is for this node's operating system (LIFE-224). Pure.

Upstream: pkg/kubelet/lifecycle/predicate.go: rejectPodAdmissionBasedOnOSSelector,
rejectPodAdmissionBasedOnOSField.
"""

from __future__ import annotations

from typing import Final

from refkubelet.admission.handlers import Rejection
from refkubelet.model.objects import Pod
from refkubelet.model.pod import labels

NODE_OS: Final = "linux"
LABEL: Final = "kubernetes.io/os"


def operating_system(pod: Pod) -> Rejection | None:
    """Refuses a pod whose label (a label, no selector) or whose field names another one."""
    if labels(pod).get(LABEL, NODE_OS) != NODE_OS:
        text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch", text)
    named = pod.spec.os.name if pod.spec.os is not None else NODE_OS
    if named != NODE_OS:
        text = "Failed to admit pod as the OS field doesn't match node OS"
        return Rejection("PodOSNotSupported", text)
    return None
