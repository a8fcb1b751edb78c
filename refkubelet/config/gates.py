"""The feature gates with an effect in refkubelet; all others are accepted and ignored. Pure.

What kubelets know, and where they ask it, is in results/gates.json.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

GATES: Final = (
    "AllowDNSOnlyNodeCSR",
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
    "CRIListStreaming",
    "ClusterTrustBundleProjection",
    "ContainerCheckpoint",
    "ContainerRestartRules",
    "DisableCPUQuotaWithExclusiveCPUs",
    "EventedPLEG",
    "ExtendWebSocketsToKubelet",
    "GracefulNodeShutdown",
    "GracefulNodeShutdownBasedOnPodPriority",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingExclusiveCPUs",
    "InPlacePodVerticalScalingExclusiveMemory",
    "InPlacePodVerticalScalingInitContainers",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletFineGrainedAuthz",
    "KubeletInUserNamespace",
    "KubeletServiceAccountTokenForCredentialProviders",
    "LoggingAlphaOptions",
    "MemoryQoS",
    "NodeDeclaredFeatures",
    "PodAndContainerStatsFromCRI",
    "PodLevelResources",
    "PodLogsQuerySplitStreams",
    "ReduceDefaultCrashLoopBackOffDecay",
    "ResourceHealthStatus",
    "RestartAllContainersOnContainerExits",
    "RotateKubeletServerCertificate",
)


_API: Final = "the API server, not the kubelet, takes such fields away"
WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "AllAlpha": "each gate is set by its name",
    "AllBeta": "each gate is set by its name",
    "CSIVolumeHealth": "no health of volumes is asked for",
    "ChangeContainerStatusOnKubeletRestart": "containers stay ready over a restart of the kubelet",
    "ClearingNominatedNodeNameAfterBinding": _API,
    "ComponentFlagz": "there is no /flagz",
    "ComponentStatusz": "there is no /statusz",
    "ContainerStopSignals": "stop signals are not handed on",
    "ContextualLogging": "the log is refkubelet's own",
    "CustomCPUCFSQuotaPeriod": "any valid cpuCFSQuotaPeriod is taken",
    "DRAExtendedResource": "there are no drivers for resource claims",
    "DRANodeAllocatableResources": "there are no drivers for resource claims",
    "DRAWorkloadResourceClaims": "there are no drivers for resource claims",
    "EnvFiles": "files of variables are always read",
    "GenericWorkload": _API,
    "HostnameOverride": "hostnameOverride always acts",
    "ImageVolumeWithDigest": "statuses do not name digests of image volumes",
    "KubeletPodResourcesListUseActivePods": "active pods are always listed",
    "KubeletRegistrationGetOnExistsOnly": "a Node that may not be created is always asked for",
    "KubeletSeparateDiskGC": "a separate disk of containers is always looked at",
    "LocalStorageCapacityIsolationFSQuotaMonitoring": "there are no quotas of filesystems",
    "MatchLabelKeysInPodTopologySpread": _API,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _API,
    "MutablePVNodeAffinity": _API,
    "PLEGOnDemandRelist": "a sync that acted always asks for a relist",
    "PodCertificateRequest": "no certificates are requested for pods",
    "PodDeletionCost": _API,
    "PodLevelResourceManagers": "pods get no CPUs and no memory of NUMA nodes as a whole",
    "PodReadyToStartContainersCondition": "the condition is always there",
    "PodsAPI": "there is no Pods API",
    "PreventStaticPodAPIReferences": "static pods may never refer to API objects",
    "QOSReserved": "no memory is held back for QoS classes",
    "RelaxedServiceNameValidation": _API,
    "ReloadKubeletClientCAFile": "the file is always read again",
    "ReloadKubeletServerCertificateFile": "the files are always read again",
    "ResourceHealthStatusMessage": "there are no drivers for resource claims",
    "RuntimeClassInImageCriApi": "images have no runtime class",
    "SELinuxMount": "volumes have no SELinux options",
    "StrictIPCIDRValidation": "addresses are always checked strictly",
    "TaintTolerationComparisonOperators": "tolerations are not compared by number",
    "TopologyManagerPolicyAlphaOptions": "there are no such options",
    "TopologyManagerPolicyBetaOptions": "there are no such options",
    "UserNamespacesHostNetworkSupport": "no runtime supports it",
    "WindowsCPUAndMemoryAffinity": "it is about Windows",
    "WindowsGracefulNodeShutdown": "it is about Windows",
}
"""The other gates that the kubelet asks, each with what holds here whatever it says."""


def others(names: Iterable[str]) -> list[str]:
    """The gates of `names` without an effect, each with the reason, or with a suggestion if it
    looks misspelt."""
    return [_with_guess(name) for name in names if name not in GATES]


def _with_guess(name: str) -> str:
    if name in WITHOUT_EFFECT:
        return f"{name} ({WITHOUT_EFFECT[name]})"
    lowered = {gate.lower(): gate for gate in GATES}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.95)
    return f"{name} (did you mean {lowered[near[0]]}?)" if near else name
