"""The reasons under which the metrics count refusals: a fixed set, however pods are made. Pure.

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
    """The label of the metric for a refusal with this reason.

    >>> reason_label("OutOfcpu"), reason_label("OutOfexample.com/gpu"), reason_label("NodePorts")
    ('OutOfcpu', 'OutOfExtendedResources', 'Other')
    """
    if reason in KNOWN:
        return reason
    return "OutOfExtendedResources" if reason.startswith("OutOf") else "Other"
