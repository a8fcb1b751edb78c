"""The feature gates that refkubelet knows; all others are accepted, without effect. Pure.

What must never happen here: a gate that some code asks for is missing (tested).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

GATES: Final = (
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
    "ContainerRestartRules",
    "DisableCPUQuotaWithExclusiveCPUs",
    "EventedPLEG",
    "GracefulNodeShutdown",
    "GracefulNodeShutdownBasedOnPodPriority",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletInUserNamespace",
    "MemoryQoS",
    "NodeDeclaredFeatures",
    "PodAndContainerStatsFromCRI",
    "PodLevelResources",
    "ReduceDefaultCrashLoopBackOffDecay",
    "ResourceHealthStatus",
    "RestartAllContainersOnContainerExits",
)


def others(names: Iterable[str]) -> list[str]:
    """Those of `names` that have no effect here, each with a guess if it looks misspelt."""
    return [_with_guess(name) for name in names if name not in GATES]


def _with_guess(name: str) -> str:
    lowered = {gate.lower(): gate for gate in GATES}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.95)
    return f"{name} (did you mean {lowered[near[0]]}?)" if near else name
