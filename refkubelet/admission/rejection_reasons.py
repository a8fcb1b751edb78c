"""Under which words refusals are counted: known reasons, so that no pod can make up others. Pure.

Upstream: pkg/kubelet/kubelet.go: admissionRejectionReasons, recordAdmissionRejection.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final = frozenset(
    {
        "AppArmor",
        "Evicted",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeShutdown",
        "OutOfcpu",
        "OutOfephemeral-storage",
        "OutOfmemory",
        "OutOfpods",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
        "VolumeAttachmentLimitExceeded",
    }
)


def reason_label(reason: str) -> str:
    """
    >>> reason_label("OutOfcpu"), reason_label("OutOfexample.com/gpu"), reason_label("NodePorts")
    ('OutOfcpu', 'OutOfExtendedResources', 'Other')
    """
    if reason in KNOWN:
        return reason
    return "OutOfExtendedResources" if reason.startswith("OutOf") else "Other"
