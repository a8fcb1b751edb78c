"""The feature gates with an effect in refkubelet; all others are accepted and ignored. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

GATES: Final = (
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
    "CRIListStreaming",
    "ContainerCheckpoint",
    "ContainerRestartRules",
    "DisableCPUQuotaWithExclusiveCPUs",
    "EventedPLEG",
    "GracefulNodeShutdown",
    "GracefulNodeShutdownBasedOnPodPriority",
    "InPlacePodLevelResourcesVerticalScaling",
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
)


def others(names: Iterable[str]) -> list[str]:
    """The gates of `names` without an effect, each with a suggestion if it looks misspelt."""
    return [_with_guess(name) for name in names if name not in GATES]


def _with_guess(name: str) -> str:
    lowered = {gate.lower(): gate for gate in GATES}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.95)
    return f"{name} (did you mean {lowered[near[0]]}?)" if near else name
