"""Values of the configuration that a kubelet must not accept, field by field (CFG-005).

Each start is refused for many fields at once, and all that is told is compared: a complaint that is
missing, worded otherwise, or about a field that is right would be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
PREFIX: Final = "invalid configuration: "
_END: Final = re.compile(r"(, |\], path: .*|\n.*)\Z", re.DOTALL)
_IN_BRACES: Final = re.compile(r"\{(-?[0-9][^{} ]*)\}")
"""A duration as Go shows some."""

ENFORCED: Final = "enforceNodeAllocatable (--enforce-node-allocatable)"
NEGATIVE: Final = {
    "eventBurst": "--event-burst",
    "eventRecordQPS": "--event-qps",
    "kubeAPIBurst": "--kube-api-burst",
    "kubeAPIQPS": "--kube-api-qps",
    "maxOpenFiles": "--max-open-files",
    "maxPods": "--max-pods",
    "podsPerCore": "--pods-per-core",
    "registryBurst": "--registry-burst",
    "registryPullQPS": "--registry-qps",
}
"""Fields that may not be below 0, and their flags."""
TOO_SMALL: Final[dict[str, tuple[Any, str]]] = {
    "nodeLeaseDurationSeconds": (-1, "{} must be greater than 0"),
    "cpuCFSQuotaPeriod": (
        "999us",
        "{} (--cpu-cfs-quota-period) 999µs must be between 1ms and 1sec, inclusive",
    ),
    "imageGCHighThresholdPercent": (
        -1,
        "{} (--image-gc-high-threshold) -1 must be between 0 and 100, inclusive",
    ),
    "imageGCLowThresholdPercent": (
        -1,
        "{} (--image-gc-low-threshold) -1 must be between 0 and 100, inclusive",
    ),
    "imageMinimumGCAge": ("-1s", "{} -1s must not be negative"),
    "imageMaximumGCAge": ("-2s", "{} -2s must not be negative"),
    "nodeStatusMaxImages": (-2, "{} (--node-status-max-images) -2 must be -1 or greater"),
    "oomScoreAdj": (
        -1001,
        "{} (--oom-score-adj) -1001 must be between -1000 and 1000, inclusive",
    ),
    "maxParallelImagePulls": (0, "{} 0 must be a positive number"),
    "memoryThrottlingFactor": (0, "{} 0 must be greater than 0 and less than or equal to 1.0"),
    "containerLogMaxWorkers": (0, "{} must be greater than or equal to 1"),
    "containerLogMonitorInterval": (
        "2999ms",
        "{} must be a positive time duration greater than or equal to 3s",
    ),
    "containerLogMaxFiles": (1, "{} must be greater than 1"),
    "shutdownGracePeriod": ("999ms", "{} 999ms must be either zero or otherwise >= 1 sec"),
    "shutdownGracePeriodCriticalPods": (
        "-1s",
        "{} -1s must be either zero or otherwise >= 1 sec",
    ),
    "crashLoopBackOff": (
        {"maxContainerRestartPeriod": "999ms"},
        "CrashLoopBackOff.MaxContainerRestartPeriod (got: 0.999 seconds) must be set between 1s "
        "and 300s",
    ),
    "iptablesDropBit": (-1, "{} (--iptables-drop-bit) -1 must be between 0 and 31, inclusive"),
    "iptablesMasqueradeBit": (
        -2,
        "{} (--iptables-masquerade-bit) -2 must be between 0 and 31, inclusive",
    ),
    "userNamespaces": ({"idsPerPod": 65535}, "{}.idsPerPod must not be less than 65536"),
}
"""Field -> the greatest value that is too small, and what is told of it."""
TOO_LARGE: Final[dict[str, tuple[Any, str]]] = {
    "cpuCFSQuotaPeriod": (
        "1001ms",
        "{} (--cpu-cfs-quota-period) 1.001s must be between 1ms and 1sec, inclusive",
    ),
    "imageGCHighThresholdPercent": (
        101,
        "{} (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive",
    ),
    "oomScoreAdj": (1001, "{} (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive"),
    "memoryThrottlingFactor": (1.5, "{} 1.5 must be greater than 0 and less than or equal to 1.0"),
    "maxParallelImagePulls": (
        2,
        "{} cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set "
        "to false",
    ),
    "crashLoopBackOff": (
        {"maxContainerRestartPeriod": "301s"},
        "CrashLoopBackOff.MaxContainerRestartPeriod (got: 301 seconds) must be set between 1s and "
        "300s",
    ),
    "shutdownGracePeriodCriticalPods": ("31s", "{} 31s must be <= shutdownGracePeriod 30s"),
    "imageMaximumGCAge": ("2m", "{} 2m0s must be greater than imageMinimumGCAge 2m0s"),
    "iptablesDropBit": (32, "{} (--iptables-drop-bit) 32 must be between 0 and 31, inclusive"),
    "iptablesMasqueradeBit": (
        33,
        "{} (--iptables-masquerade-bit) 33 must be between 0 and 31, inclusive",
    ),
    "userNamespaces": (
        {"idsPerPod": 65536 * 65537},
        "{}.idsPerPod must not be more than 4294967295",
    ),
}
"""Field -> a value that is too large, and what is told of it."""
WORDS: Final[dict[str, tuple[Any, str]]] = {
    "topologyManagerPolicy": (
        "some",
        '{} (--topology-manager-policy) "some" must be one of: ["none" "best-effort" "restricted" '
        '"single-numa-node"]',
    ),
    "topologyManagerScope": (
        "node",
        '{} (--topology-manager-scope) "node" must be one of: "container", or "pod"',
    ),
    "hairpinMode": (
        "veth",
        'option "veth" specified for {} (--hairpin-mode). Valid options are "none", '
        '"hairpin-veth" or "promiscuous-bridge"',
    ),
    "imagePullCredentialsVerificationPolicy": (
        "Sometimes",
        'option "Sometimes" specified for {}. Valid options are "NeverVerify", '
        '"NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"',
    ),
    "memoryReservationPolicy": (
        "Some",
        'option "Some" specified for {}. Valid options are "None" or "TieredReservation"',
    ),
    "memorySwap": (
        {"swapBehavior": "Much"},
        '{}.swapBehavior "Much" must be one of: "", "LimitedSwap" or "NoSwap"',
    ),
}
"""Field -> a word that it may not hold, and what is told of it."""


def complaints(error: str) -> list[str]:
    """What is told of each field, sorted."""
    told = error.replace('\\"', '"').split(PREFIX)[1:]
    return sorted(_IN_BRACES.sub(r"\1", _END.sub("", text)) for text in told)


async def expect_told(
    node: Node, fields: dict[str, Any], texts: Sequence[str], *flags: str
) -> None:
    """Expect that a kubelet does not start with these fields, and tells this and no more."""
    error = await node.kubelet.refused_start(*flags, **fields)
    expect_equal(node, complaints(error), sorted(texts), "all that is told of the fields")


async def expect_refused(
    node: Node, table: dict[str, tuple[Any, str]], *more: str, **others: Any
) -> None:
    """The same of a table; `others`: fields besides, `more`: what is told of the whole."""
    texts = [text.format(field) for field, (_, text) in table.items()]
    await expect_told(
        node, {**others, **{field: value for field, (value, _) in table.items()}}, [*texts, *more]
    )


@conformance(id="config-negative", rules=["CFG-005"], needs=[STATUS, RESTART])
async def numbers_below_zero(node: Node) -> None:
    """Rates, bursts and numbers of pods and files may not be negative: each field that is, is
    told with its flag and its value."""
    fields = {field: -number for number, field in enumerate(NEGATIVE, 1)}
    flags = NEGATIVE.items()
    texts = [f"{f} ({flag}) {fields[f]} must not be a negative number" for f, flag in flags]
    await expect_told(node, fields, texts)


@conformance(id="config-too-small", rules=["CFG-005"], needs=[STATUS, RESTART], since="1.36")
async def values_below_their_bounds(node: Node) -> None:
    """Each field that is just below what it may be is told with the bound, and nothing else is."""
    lower = (
        "imageGCLowThresholdPercent (--image-gc-low-threshold) -1 must be less than "
        "imageGCHighThresholdPercent (--image-gc-high-threshold) -1"
    )
    await expect_refused(node, TOO_SMALL, lower)


@conformance(id="config-too-large", rules=["CFG-005"], needs=[STATUS, RESTART], since="1.36")
async def values_above_their_bounds(node: Node) -> None:
    """Each field that is just above what it may be is told with the bound, and nothing else is;
    the low threshold of image collection is lower than the high one."""
    low = (
        "imageGCLowThresholdPercent (--image-gc-low-threshold) 102 must be between 0 and 100, "
        "inclusive",
        "imageGCLowThresholdPercent (--image-gc-low-threshold) 102 must be less than "
        "imageGCHighThresholdPercent (--image-gc-high-threshold) 101",
    )
    await expect_refused(
        node,
        TOO_LARGE,
        *low,
        imageGCLowThresholdPercent=102,
        shutdownGracePeriod="30s",
        imageMinimumGCAge="2m",
        serializeImagePulls=True,
    )


@conformance(id="config-at-bounds", rules=["CFG-005"], needs=[STATUS, RESTART], since="1.36")
async def values_at_their_bounds(node: Node) -> None:
    """With each field at the least or the most that it may be the kubelet starts."""
    least = {
        **dict.fromkeys(NEGATIVE.keys() - {"maxOpenFiles", "maxPods"}, 0),
        "cpuCFSQuotaPeriod": "1ms",
        "imageGCHighThresholdPercent": 1,
        "imageGCLowThresholdPercent": 0,
        "nodeStatusMaxImages": -1,
        "maxParallelImagePulls": 1,
        "memoryThrottlingFactor": 0.01,
        "containerLogMaxWorkers": 1,
        "containerLogMonitorInterval": "3s",
        "containerLogMaxFiles": 2,
        "shutdownGracePeriod": "1s",
        "shutdownGracePeriodCriticalPods": "1s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        "iptablesDropBit": 0,
        "iptablesMasqueradeBit": 0,
        "nodeLeaseDurationSeconds": 1,
        "userNamespaces": {"idsPerPod": 65536},
    }
    most = {
        "cpuCFSQuotaPeriod": "1s",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "imageMinimumGCAge": "2m",
        "imageMaximumGCAge": "2m1s",
        "oomScoreAdj": 1000,
        "memoryThrottlingFactor": 1.0,
        "shutdownGracePeriod": "30s",
        "shutdownGracePeriodCriticalPods": "30s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "300s"},
        "iptablesDropBit": 31,
        "iptablesMasqueradeBit": 31,
    }
    for fields in (least, most):
        await node.kubelet.restart(**fields)
        answer = await node.kubelet.get("/configz")
        expect_equal(node, answer.status, 200, f"answer of a kubelet with {fields}")


@conformance(id="config-words-refused", rules=["CFG-005"], needs=[STATUS, RESTART], since="1.36")
async def words_that_a_field_may_not_hold(node: Node) -> None:
    """Each field with a word that it does not know is told with the words that it knows."""
    await expect_refused(node, WORDS)


@conformance(id="config-enforced-refused", rules=["CFG-005"], needs=[STATUS, RESTART], since="1.33")
async def what_is_enforced_must_be_known_and_have_its_cgroup(node: Node) -> None:
    """enforceNodeAllocatable has words that are known, each once, `none` alone and not two ways
    for one cgroup; reservations that are enforced need their cgroup, and all need cgroupsPerQOS."""
    words = ["pods", "pods", "some", "none", "system-reserved", "system-reserved-compressible"]
    words += ["kube-reserved", "kube-reserved-compressible"]
    both = [
        f'both "{owner}-reserved" and "{owner}-reserved-compressible" cannot be specified together '
        f"in {ENFORCED}"
        for owner in ("system", "kube")
    ]
    no_cgroup = [
        f"{owner}ReservedCgroup (--{owner}-reserved-cgroup) must be specified when "
        f'"{owner}-reserved" or "{owner}-reserved-compressible" included in {ENFORCED}'
        for owner in ("system", "kube")
    ]
    no_classes = [
        f'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "{word}" contained in '
        f"{ENFORCED}"
        for word in ("pods", *words[4:])
    ]
    texts = [
        *both,
        *no_cgroup,
        *no_classes,
        f'duplicated enforcements "pods" in {ENFORCED}',
        f'option "some" specified for {ENFORCED}. Valid options are "pods", "system-reserved", '
        '"system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"',
        f'{ENFORCED} may not contain additional enforcements when "none" is specified',
    ]
    flags = (f"--enforce-node-allocatable={','.join(words)}", "--cgroups-per-qos=false")
    await expect_told(node, {}, texts, *flags)


@conformance(
    id="config-reservations-refused", rules=["CFG-005", "CG-081", "CG-082"],
    needs=[STATUS, RESTART], since="1.33",
)  # fmt: skip
async def reservations_that_are_wrong(node: Node) -> None:
    """Named CPUs are a list of CPUs and not combined with cgroups of reservations; reserved memory
    is memory or huge pages, above 0, once for a NUMA node."""
    memory = [
        {"numaNode": 0, "limits": {"memory": "1Gi", "cpu": "1"}},
        {"numaNode": 0, "limits": {"memory": "2Gi"}},
        {"numaNode": 1, "limits": {"hugepages-2Mi": "0"}},
    ]
    cpus = "reservedSystemCPUs (--reserved-cpus)"
    texts = [
        f"can't use {cpus} with systemReservedCgroup (--system-reserved-cgroup) or "
        "kubeReservedCgroup (--kube-reserved-cgroup)",
        f'unable to parse {cpus} 0-a, error: strconv.Atoi: parsing "a": invalid syntax',
        'the limit type "cpu" for NUMA node 0 is not supported, only [memory '
        "hugepages-<HugePageSize>] is accepted",
        'the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
        'reserved memory may not be zero for NUMA node 1 and resource "hugepages-2Mi"',
    ]
    fields = {"reservedSystemCPUs": "0-a", "reservedMemory": memory, "kubeReservedCgroup": "/kube"}
    await expect_told(node, fields, texts)


@conformance(id="config-gates-refused", rules=["CFG-005"], needs=[STATUS, RESTART], since="1.36")
async def fields_without_their_gates(node: Node) -> None:
    """A field whose feature gate is off may not be set, and fields that exclude each other, or need
    another one, are told."""
    priorities = [{"priority": 1, "shutdownGracePeriodSeconds": 5}]
    off = ("GracefulNodeShutdownBasedOnPodPriority", "KubeletCrashLoopBackOffMax")
    await expect_told(
        node,
        {
            "featureGates": dict.fromkeys(off, False),
            "shutdownGracePeriodByPodPriority": priorities,
            "crashLoopBackOff": {"maxContainerRestartPeriod": "10s"},
            "enableSystemLogQuery": True,
            "enableSystemLogHandler": False,
        },
        [
            f"Specifying shutdownGracePeriodByPodPriority requires feature gate {off[0]}",
            f"FeatureGate {off[1]} not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must "
            "not be set",
            "enableSystemLogHandler is required for enableSystemLogQuery",
        ],
    )
    await node.kubelet.start()
    await expect_told(
        node,
        {
            "shutdownGracePeriod": "30s",
            "shutdownGracePeriodByPodPriority": priorities,
            "preloadedImagesVerificationAllowlist": ["registry.example/a"],
        },
        [
            "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the "
            "same time",
            "can't set `preloadedImagesVerificationAllowlist` if "
            '`imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"',
        ],
    )
