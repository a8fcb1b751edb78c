"""Configurations that a kubelet does not start with, and that it names every mistake of (CFG-005).

One start has many mistakes, each with words of its own. Values at the bounds are fine.
"""

import re
from typing import Any

from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
NEEDS = [RESTART]
Fields = dict[str, Any]

BELOW: Fields = {
    "eventBurst": -1, "eventRecordQPS": -1, "kubeAPIBurst": -1, "kubeAPIQPS": -1, "maxPods": -1,
    "podsPerCore": -1, "maxOpenFiles": -1, "registryBurst": -1, "registryPullQPS": -1,
}  # fmt: skip
"""Fields that must not be negative."""
BEYOND: dict[str, tuple[Fields, str]] = {
    "a period of the quota": ({"cpuCFSQuotaPeriod": "2s"}, "must be between 1ms and 1sec"),
    "a high threshold": ({"imageGCHighThresholdPercent": 101}, "high-threshold) 101 must be betw"),
    "a low threshold": ({"imageGCLowThresholdPercent": -1}, "low-threshold) -1 must be between"),
    "images of the status": ({"nodeStatusMaxImages": -2}, "images) -2 must be -1 or greater"),
    "a score": ({"oomScoreAdj": 1001}, "(--oom-score-adj) 1001 must be between"),
    "pulls at once": ({"maxParallelImagePulls": 0}, "maxParallelImagePulls 0 must be a positive"),
    "files of a log": ({"containerLogMaxFiles": 1}, "containerLogMaxFiles"),
    "workers of logs": ({"containerLogMaxWorkers": 0}, "containerLogMaxWorkers"),
    "looks at logs": ({"containerLogMonitorInterval": "2s"}, "containerLogMonitorInterval"),
    "a lease": (
        {"nodeLeaseDurationSeconds": -1},
        "nodeLeaseDurationSeconds must be greater than 0",
    ),
    "a factor": ({"memoryThrottlingFactor": 1.5}, "memoryThrottlingFactor 1.5 must be greater"),
}
"""What is out of bounds -> its field, and the words about it."""
WORDS: dict[str, tuple[Fields, str]] = {
    "a policy": ({"topologyManagerPolicy": "fair"}, "topologyManagerPolicy"),
    "a scope": ({"topologyManagerScope": "planet"}, "topologyManagerScope"),
    "a hairpin": ({"hairpinMode": "bent"}, "hairpinMode"),
    "one run": ({"runOnce": True}, "runOnce (--run"),
    "a taint's time": (
        {"registerWithTaints": [
            {"key": "a", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z"}]},
        "taint.TimeAdded is not nil",
    ),
    "a log query": ({"enableSystemLogQuery": True, "enableSystemLogHandler": False},
                    "enableSystemLogHandler is required for enableSystemLogQuery"),
}  # fmt: skip
"""What is no word of its field, or stands alone -> its fields, and the words about it."""


async def refused_words(node: Node, *words: str, **config: Any) -> str:
    """Expect that the kubelet does not start with these fields and says all these words; give what
    it says. A kubelet runs again afterwards. Braces are left out: Go shows some durations in
    them."""
    error_text = re.sub("[{}]", "", await node.kubelet.refused_start(**config))
    missing = [text for text in words if text not in error_text]
    expect_equal(node, missing, [], "words that it does not say")
    await node.kubelet.start()
    return error_text


@conformance(id="config-negative-refused", rules=["CFG-005"], needs=NEEDS)
async def negative_numbers_are_refused(node: Node) -> None:
    """A kubelet does not start with numbers below zero where none can be, and names each field."""
    words = [f"{name} (--" for name in BELOW]
    error_text = await refused_words(node, *words, **BELOW)
    count = error_text.count("-1 must not be a negative number")
    expect(node, count >= len(BELOW), "every field is called negative", error_text)


@conformance(id="config-bounds-refused", rules=["CFG-005", "GC-101.5"], needs=NEEDS)
async def numbers_beyond_bounds_are_refused(node: Node) -> None:
    """A kubelet does not start with numbers beyond the bounds of their fields, and names each."""
    fields = {name: value for one, _ in BEYOND.values() for name, value in one.items()}
    await refused_words(node, *(words for _, words in BEYOND.values()), **fields)


@conformance(id="config-bounds-met", rules=["CFG-005"], needs=NEEDS)
async def numbers_at_bounds_are_fine(node: Node) -> None:
    """A kubelet starts with the least and the most that its fields may be."""
    at_bounds = {
        **{name: 0 for name in BELOW if name not in ("maxPods", "maxOpenFiles")},
        "cpuCFSQuotaPeriod": "1s", "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 0, "nodeStatusMaxImages": -1, "oomScoreAdj": -1000,
        "containerLogMaxFiles": 2, "containerLogMaxWorkers": 1,
        "containerLogMonitorInterval": "3s", "serializeImagePulls": True,
        "maxParallelImagePulls": 1, "memoryThrottlingFactor": 1,
        "shutdownGracePeriod": "1s", "shutdownGracePeriodCriticalPods": "1s",
        "imageMinimumGCAge": "1m", "imageMaximumGCAge": "61s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    }  # fmt: skip
    await node.kubelet.restart(**at_bounds)
    answer = await node.kubelet.get("/healthz")
    expect_equal(node, answer.status, 200, "/healthz")


@conformance(id="config-words-refused", rules=["CFG-005"], needs=NEEDS)
async def unknown_words_are_refused(node: Node) -> None:
    """A kubelet does not start with words that its fields do not have, a mode that was removed, a
    taint with a time, or a query of logs that nobody serves; it names each."""
    fields = {name: value for one, _ in WORDS.values() for name, value in one.items()}
    await refused_words(node, *(words for _, words in WORDS.values()), **fields)


@conformance(id="config-image-ages-refused", rules=["CFG-005"], needs=NEEDS)
async def ages_of_images_have_an_order(node: Node) -> None:
    """A kubelet does not start when images are too old before they may be removed, or when it pulls
    one after the other and several at once."""
    await refused_words(
        node, "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 1m0s",
        "cannot be larger than 1 unless SerializeImagePulls",
        imageMinimumGCAge="1m", imageMaximumGCAge="1m", serializeImagePulls=True,
        maxParallelImagePulls=2,
    )  # fmt: skip


@conformance(id="config-restart-period-refused", rules=["CFG-005", "BACK-013.1"], needs=NEEDS,
             since="1.35")  # fmt: skip
async def the_longest_back_off_has_bounds(node: Node) -> None:
    """A kubelet does not start with a longest back-off below 1 s or above 300 s, nor with one while
    its gate is off."""
    for period in ("999ms", "301s"):
        back_off = {"maxContainerRestartPeriod": period}
        await refused_words(node, "must be set between 1s and 300s", crashLoopBackOff=back_off)
    await refused_words(
        node, "KubeletCrashLoopBackOffMax not enabled",
        crashLoopBackOff={"maxContainerRestartPeriod": "10s"},
        featureGates={"KubeletCrashLoopBackOffMax": False},
    )  # fmt: skip


@conformance(id="config-shutdown-refused", rules=["CFG-005"], needs=NEEDS)
async def grace_periods_of_a_shutdown_fit(node: Node) -> None:
    """A kubelet does not start with a grace period of a shutdown that is shorter than a second or
    than its part for critical pods, with both kinds of periods, or with one whose gate is off."""
    too_short = "must be either zero or otherwise >= 1 sec"
    total, critical = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"
    by_priority = [{"priority": 0, "shutdownGracePeriodSeconds": 10}]
    refused: tuple[tuple[Fields, list[str]], ...] = (
        ({total: "500ms", critical: "600ms"},
         [f"{total} 500ms {too_short}", f"{critical} 600ms {too_short}",
          f"{critical} 600ms must be <= {total} 500ms"]),
        ({total: "-1s", critical: "-2s"},
         [f"{total} -1s {too_short}", f"{critical} -2s {too_short}"]),
        ({total: "10s", critical: "5s", "shutdownGracePeriodByPodPriority": by_priority},
         [f"Cannot specify both shutdownGracePeriodByPodPriority and {total}"]),
        ({"shutdownGracePeriodByPodPriority": by_priority,
          "featureGates": {"GracefulNodeShutdownBasedOnPodPriority": False}},
         ["requires feature gate GracefulNodeShutdownBasedOnPodPriority"]),
    )  # fmt: skip
    for fields, words in refused:
        await refused_words(node, *words, **fields)


@conformance(id="config-enforcement-refused", rules=["CFG-005", "CG-035"],
             needs=[RESTART, Feature.CGROUPS], since="1.32")  # fmt: skip
async def what_is_enforced_must_fit_together(node: Node) -> None:
    """A kubelet does not start when it shall enforce something twice, something unknown, a
    reservation in two ways or without its cgroup, anything without cgroups for classes, or nothing
    together with something."""
    flag = "enforceNodeAllocatable (--enforce-node-allocatable)"
    enforced = [
        "pods", "pods", "moods", "none", "system-reserved", "system-reserved-compressible",
        "kube-reserved", "kube-reserved-compressible",
    ]  # fmt: skip
    words = [
        f'both "{one}-reserved" and "{one}-reserved-compressible" cannot be' for one in
        ("system", "kube")
    ]  # fmt: skip
    words += [
        f'duplicated enforcements "pods" in {flag}',
        'option "moods" specified for',
        'may not contain additional enforcements when "none" is specified',
        "systemReservedCgroup (--system-reserved-cgroup) must be specified when",
        "kubeReservedCgroup (--kube-reserved-cgroup) must be specified when",
        'must be set to true when "pods" contained in',
        'must be set to true when "kube-reserved" contained in',
    ]
    await refused_words(node, *words, enforceNodeAllocatable=enforced, cgroupsPerQOS=False)


@conformance(id="config-reserved-cpus-refused", rules=["CFG-005", "CG-081"], needs=NEEDS)
async def wrong_reserved_cpus_are_refused(node: Node) -> None:
    """A kubelet does not start with reserved CPUs that are no list of CPUs, nor with some beside
    cgroups of reservations."""
    both = "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup"
    for cgroup in ("systemReservedCgroup", "kubeReservedCgroup"):
        fields = {"reservedSystemCPUs": "0", cgroup: "/reserved"}
        await refused_words(node, both, **fields)
    await refused_words(
        node, "unable to parse reservedSystemCPUs (--reserved-cpus) 0-x", reservedSystemCPUs="0-x"
    )


@conformance(id="config-reserved-memory-refused", rules=["CFG-005", "CG-082"], needs=NEEDS)
async def wrong_reserved_memory_is_refused(node: Node) -> None:
    """A kubelet does not start with reserved memory of another resource, of size 0, or twice of one
    NUMA node; huge pages and another node are fine."""
    reserved = [
        {"numaNode": 0, "limits": {"memory": "1Gi", "cpu": "1", "hugepages-2Mi": "2Mi"}},
        {"numaNode": 1, "limits": {"memory": "0"}},
        {"numaNode": 0, "limits": {"memory": "2Gi"}},
    ]
    error_text = await refused_words(
        node, 'the limit type "cpu" for NUMA node 0 is not supported',
        'reserved memory may not be zero for NUMA node 1 and resource "memory"',
        'the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
        reservedMemory=reserved,
    )  # fmt: skip
    expect(node, '"hugepages-2Mi"' not in error_text, "huge pages are fine", error_text)
    expect(node, "duplicate value for NUMA node 1" not in error_text, "node 1 is there once")


@conformance(id="config-negative-reservation", rules=["CFG-005"], needs=NEEDS)
async def negative_reservations_are_refused(node: Node) -> None:
    """A kubelet does not start with a reservation below zero or of a resource that none can
    reserve."""
    for wire in ("systemReserved", "kubeReserved"):
        await refused_words(node, "cannot be negative", **{wire: {"cpu": "-1"}})
        await refused_words(node, "cannot reserve", **{wire: {"widgets": "1"}})


@conformance(id="config-verification-refused", rules=["CFG-005", "BACK-210"], needs=NEEDS,
             since="1.35")  # fmt: skip
async def wrong_policies_of_pulled_images_are_refused(node: Node) -> None:
    """A kubelet does not start with an unknown policy for images that are present, with a list of
    images that its policy does not read, with a list that is none, or with one whose gate is
    off."""
    policy, allowed = (
        "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
    )  # fmt: skip
    await refused_words(node, f'option "Perhaps" specified for {policy}', **{policy: "Perhaps"})
    await refused_words(node, "can't set", **{allowed: ["reg.io/a"]})
    listed = {policy: "NeverVerifyAllowlistedImages", allowed: ["reg.io/a:1", "reg.io/*"]}
    await refused_words(node, "invalid image pattern in", "reg.io/a:1", **listed)
    gates = {"KubeletEnsureSecretPulledImages": False}
    must_not = "must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"
    await refused_words(node, must_not, featureGates=gates, **{policy: "NeverVerify"})


@conformance(id="config-logging-refused", rules=["CFG-012.2", "CFG-012.3"], needs=NEEDS)
async def wrong_logging_is_refused(node: Node) -> None:
    """A kubelet does not start with an unknown format of its log, patterns for another format or
    patterns that are none, verbosities beyond 32 bits, or options whose gate is off."""
    most = 2**31
    patterns = [
        {"filePattern": "", "verbosity": 1}, {"filePattern": "a=b", "verbosity": 1},
        {"filePattern": "a,b", "verbosity": 1}, {"filePattern": "good", "verbosity": most},
    ]  # fmt: skip
    routed = {"infoBufferSize": "1Ki"}
    logging = {
        "format": "xml", "flushFrequency": "-1s", "verbosity": most, "vmodule": patterns,
        "options": {"text": routed, "json": routed},
    }  # fmt: skip
    await refused_words(
        node, "infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled",
        'logging.format: Invalid value: "xml": Unsupported log format',
        "Must be greater than zero",
        f"logging.verbosity: Invalid value: {most}: Must be <= 2147483647",
        "logging.vmodule: Forbidden: Only supported for text log format",
        "logging.vmodule[0]: Required value: File pattern must not be empty",
        'logging.vmodule[1]: Invalid value: "a=b": File pattern must not contain equal sign',
        'logging.vmodule[2]: Invalid value: "a,b": File pattern must not contain equal sign',
        f"logging.vmodule[3]: Invalid value: {most}: Must be <= 2147483647",
        logging=logging,
    )  # fmt: skip


@conformance(id="config-tracing-refused", rules=["CFG-013.2", "CFG-013.3"], needs=NEEDS)
async def wrong_tracing_is_refused(node: Node) -> None:
    """A kubelet does not start with a rate of traces below 0 or above a million, nor with a target
    of another scheme or none that can be read."""
    refused: tuple[tuple[Fields, list[str]], ...] = (
        ({"samplingRatePerMillion": -1, "endpoint": "http://here:4317"},
         ["sampling rate must be positive", "unsupported scheme: http."]),
        ({"samplingRatePerMillion": 1_000_001, "endpoint": "://here"},
         ["sampling rate per million must be less than or equal to one million",
          "missing protocol scheme"]),
        ({"endpoint": "dns://he re"}, ['invalid character " " in host name']),
        ({"endpoint": "here:port"}, ['invalid port ":port" after host']),
        ({"endpoint": "dns://here\u0001"}, ["invalid control character in URL"]),
    )  # fmt: skip
    for tracing, words in refused:
        await refused_words(node, *words, tracing=tracing)


@conformance(id="config-user-ids-refused", rules=["CFG-005"], needs=NEEDS, since="1.33")
async def wrong_ids_per_pod_are_refused(node: Node) -> None:
    """A kubelet does not start with numbers of IDs of a pod that are too small, no multiple of
    65536, or more than there are."""
    for ids, words in (
        (1, "userNamespaces.idsPerPod must not be less than 65536"),
        (65537, "userNamespaces.idsPerPod must be a multiple of 65536"),
        (1 << 32, "userNamespaces.idsPerPod must"),
    ):
        await refused_words(node, words, userNamespaces={"idsPerPod": ids})
