"""The whole configuration as /configz shows it: defaults, what a file says, what flags say."""

from __future__ import annotations

from typing import Any, Final

from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
OWN: Final = frozenset(
    (
        *("address", "cgroupDriver", "cgroupRoot", "cgroupsPerQOS", "clusterDNS"),
        *("containerRuntimeEndpoint", "enableServer", "enforceNodeAllocatable", "evictionHard"),
        *("failCgroupV1", "failSwapOn", "healthzPort", "makeIPTablesUtilChains", "oomScoreAdj"),
        *("podLogsDir", "port", "readOnlyPort", "resolvConf", "staticPodPath", "tlsCertFile"),
        *("tlsPrivateKeyFile", "volumePluginDir"),
    )
)
"""Fields that the suite chooses for its kubelets, each in its own way."""
DEFAULTS: Final[dict[str, Any]] = {
    "authentication": {
        "anonymous": {"enabled": True},
        "webhook": {"cacheTTL": "2m0s", "enabled": False},
        "x509": {},
    },
    "authorization": {
        "mode": "AlwaysAllow",
        "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
    },
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "configMapAndSecretChangeDetectionStrategy": "Watch",
    "containerLogMaxFiles": 5,
    "containerLogMaxSize": "10Mi",
    "containerLogMaxWorkers": 1,
    "containerLogMonitorInterval": "10s",
    "contentType": "application/vnd.kubernetes.protobuf",
    "cpuCFSQuota": True,
    "cpuCFSQuotaPeriod": "100ms",
    "cpuManagerPolicy": "none",
    "cpuManagerReconcilePeriod": "10s",
    "crashLoopBackOff": {"maxContainerRestartPeriod": "5m0s"},
    "enableControllerAttachDetach": True,
    "enableDebugFlagsHandler": True,
    "enableDebuggingHandlers": True,
    "enableProfilingHandler": True,
    "enableSystemLogHandler": True,
    "enableSystemLogQuery": False,
    "eventBurst": 100,
    "eventRecordQPS": 50,
    "evictionPressureTransitionPeriod": "5m0s",
    "fileCheckFrequency": "20s",
    "hairpinMode": "promiscuous-bridge",
    "healthzBindAddress": "127.0.0.1",
    "httpCheckFrequency": "20s",
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "imageMaximumGCAge": "0s",
    "imageMinimumGCAge": "2m0s",
    "imagePullCredentialsVerificationPolicy": "NeverVerifyPreloadedImages",
    "iptablesDropBit": 15,
    "iptablesMasqueradeBit": 14,
    "kubeAPIBurst": 100,
    "kubeAPIQPS": 50,
    "localStorageCapacityIsolation": True,
    "logging": {
        "flushFrequency": "5s",
        "format": "text",
        "options": {"json": {"infoBufferSize": "0"}, "text": {"infoBufferSize": "0"}},
        "verbosity": 0,
    },
    "maxOpenFiles": 1000000,
    "maxPods": 110,
    "memoryManagerPolicy": "None",
    "memoryReservationPolicy": "None",
    "memorySwap": {},
    "memoryThrottlingFactor": 0.9,
    "mergeDefaultEvictionSettings": False,
    "nodeLeaseDurationSeconds": 40,
    "nodeStatusMaxImages": 50,
    "nodeStatusReportFrequency": "5m0s",
    "nodeStatusUpdateFrequency": "10s",
    "podPidsLimit": -1,
    "registerNode": True,
    "registryBurst": 10,
    "registryPullQPS": 5,
    "runtimeRequestTimeout": "2m0s",
    "seccompDefault": False,
    "serializeImagePulls": True,
    "shutdownGracePeriod": "0s",
    "shutdownGracePeriodCriticalPods": "0s",
    "streamingConnectionIdleTimeout": "4h0m0s",
    "syncFrequency": "1m0s",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
    "volumeStatsAggPeriod": "1m0s",
}
"""All fields of a configuration that says no more than the suite's: nobody is asked who he is."""
STATIC: Final = {"cpuManagerPolicy": "static", "systemReserved": {"cpu": "30m"}}
"""A policy that has options."""
CHOSEN: Final[dict[str, Any]] = {
    "authentication": {
        "anonymous": {"enabled": True},
        "webhook": {"cacheTTL": "3m0s", "enabled": False},
        "x509": {},
    },
    "authorization": {
        "mode": "AlwaysAllow",
        "webhook": {"cacheAuthorizedTTL": "4m0s", "cacheUnauthorizedTTL": "31s"},
    },
    "allowedUnsafeSysctls": ["net.*", "kernel.msgmax"],
    "clusterDomain": "cluster.example",
    "configMapAndSecretChangeDetectionStrategy": "Get",
    "containerLogMaxFiles": 6,
    "containerLogMaxSize": "11Mi",
    "containerLogMaxWorkers": 2,
    "containerLogMonitorInterval": "11s",
    "cpuCFSQuota": False,
    "cpuCFSQuotaPeriod": "101ms",
    "cpuManagerReconcilePeriod": "11s",
    "crashLoopBackOff": {"maxContainerRestartPeriod": "4m0s"},
    "enableContentionProfiling": True,
    "enableControllerAttachDetach": False,
    "enableDebugFlagsHandler": False,
    "enableProfilingHandler": False,
    "enableSystemLogHandler": False,
    "eventBurst": 101,
    "eventRecordQPS": 51,
    "evictionMaxPodGracePeriod": 7,
    "evictionMinimumReclaim": {"memory.available": "3Mi"},
    "evictionPressureTransitionPeriod": "4m0s",
    "evictionSoft": {"memory.available": "2Mi"},
    "evictionSoftGracePeriod": {"memory.available": "1m30s"},
    "featureGates": {"LoggingBetaOptions": True},
    "fileCheckFrequency": "21s",
    "hairpinMode": "none",
    "httpCheckFrequency": "22s",
    "imageGCHighThresholdPercent": 84,
    "imageGCLowThresholdPercent": 79,
    "imageMaximumGCAge": "3m0s",
    "imageMinimumGCAge": "1m0s",
    "imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages",
    "preloadedImagesVerificationAllowlist": ["registry.example/a", "registry.example/b/*"],
    "iptablesDropBit": 16,
    "iptablesMasqueradeBit": 17,
    "kubeAPIBurst": 102,
    "kubeAPIQPS": 52,
    "kubeReserved": {"cpu": "10m", "memory": "1Mi"},
    "systemReserved": {"cpu": "20m", "pid": "10"},
    "localStorageCapacityIsolation": False,
    "maxOpenFiles": 1000001,
    "maxParallelImagePulls": 3,
    "maxPods": 111,
    "memorySwap": {"swapBehavior": "NoSwap"},
    "memoryThrottlingFactor": 0.8,
    "mergeDefaultEvictionSettings": True,
    "nodeLeaseDurationSeconds": 41,
    "nodeStatusMaxImages": 51,
    "nodeStatusReportFrequency": "6m0s",
    "nodeStatusUpdateFrequency": "11s",
    "podPidsLimit": 5000,
    "podsPerCore": 8,
    "providerID": "some://node",
    "registerWithTaints": [{"effect": "NoExecute", "key": "a", "value": "b"}],
    "registryBurst": 12,
    "registryPullQPS": 6,
    "runtimeRequestTimeout": "3m0s",
    "seccompDefault": True,
    "serializeImagePulls": False,
    "shutdownGracePeriodByPodPriority": [
        {"priority": 0, "shutdownGracePeriodSeconds": 0},
        {"priority": 5, "shutdownGracePeriodSeconds": 6},
    ],
    "staticPodURLHeader": {"A": ["b", "c"]},
    "streamingConnectionIdleTimeout": "3h0m0s",
    "syncFrequency": "59s",
    "topologyManagerScope": "pod",
    "volumeStatsAggPeriod": "1m1s",
}
"""Another value than the default of fields, as it is shown."""
FLAGS: Final[dict[str, tuple[str, Any]]] = {
    "max-pods=0x10": ("maxPods", 16),
    "event-qps=51": ("eventRecordQPS", 51),
    "cpu-cfs-quota=f": ("cpuCFSQuota", False),
    "sync-frequency=90s": ("syncFrequency", "1m30s"),
    "container-log-max-size=20Mi": ("containerLogMaxSize", "20Mi"),
    "cluster-domain=cluster.example": ("clusterDomain", "cluster.example"),
    "allowed-unsafe-sysctls=net.*,kernel.msgmax": (
        "allowedUnsafeSysctls",
        ["net.*", "kernel.msgmax"],
    ),
    "system-reserved=cpu=20m,pid=10": ("systemReserved", {"cpu": "20m", "pid": "10"}),
    "eviction-hard=memory.available<2Mi,nodefs.available<1%": (
        "evictionHard",
        {"memory.available": "2Mi", "nodefs.available": "1%"},
    ),
    "eviction-minimum-reclaim=memory.available=3Mi": (
        "evictionMinimumReclaim",
        {"memory.available": "3Mi"},
    ),
    "feature-gates=LoggingBetaOptions=true": ("featureGates", {"LoggingBetaOptions": True}),
    "manifest-url-header=A:b,A:c,B:d": ("staticPodURLHeader", {"A": ["b", "c"], "B": ["d"]}),
    "register-with-taints=a=b:NoExecute,c:NoSchedule": (
        "registerWithTaints",
        [
            {"effect": "NoExecute", "key": "a", "value": "b"},
            {"effect": "NoSchedule", "key": "c"},
        ],
    ),
    "reserved-memory=0:memory=1Mi,hugepages-2Mi=4Mi;1:memory=2Mi": (
        "reservedMemory",
        [
            {"numaNode": 0, "limits": {"hugepages-2Mi": "4Mi", "memory": "1Mi"}},
            {"numaNode": 1, "limits": {"memory": "2Mi"}},
        ],
    ),
    "cpu-manager-policy-options=full-pcpus-only=true": (
        "cpuManagerPolicyOptions",
        {"full-pcpus-only": "true"},
    ),
}
"""A flag and its value -> the field that it sets, as it is shown."""


async def shown(node: Node) -> dict[str, Any]:
    """The whole configuration that the kubelet shows."""
    document: dict[str, Any] = (await node.kubelet.get("/configz")).json()
    expect_equal(node, list(document), ["kubeletconfig"], "fields of /configz")
    config: dict[str, Any] = document["kubeletconfig"]
    return config


def others(config: dict[str, Any]) -> dict[str, Any]:
    """The fields that the suite does not choose."""
    return {name: value for name, value in config.items() if name not in OWN}


@conformance(id="configz-defaults", rules=["SRV-040", "CFG-001.1"], needs=[STATUS], since="1.36")
async def every_field_has_its_default(node: Node) -> None:
    """A configuration that says nothing of a field has its default: the whole of /configz, but for
    what the suite says itself."""
    expect_equal(node, others(await shown(node)), DEFAULTS, "fields that the file does not name")


@conformance(
    id="configz-chosen", rules=["SRV-040", "CFG-001.1"], needs=[STATUS, RESTART], since="1.36"
)
async def every_field_is_what_the_file_says(node: Node) -> None:
    """A field that the file names has this value, and no other field changes: the whole of
    /configz, with each field that may be chosen freely."""
    await node.kubelet.restart(**CHOSEN)
    expect_equal(node, others(await shown(node)), {**DEFAULTS, **CHOSEN}, "fields, all chosen")


@conformance(
    id="configz-of-flags",
    rules=["CFG-001.1", "CFG-001.2", "CFG-010.2"],
    needs=[STATUS, RESTART],
    node_config=STATIC,
    since="1.36",
)
async def flags_are_read_by_the_kinds_of_their_fields(node: Node) -> None:
    """Numbers, switches, durations, amounts, lists, mappings, thresholds, headers, taints and
    reserved memory: each flag sets its field, and no other field changes."""
    await node.kubelet.restart(*(f"--{flag}" for flag in FLAGS))
    config = await shown(node)
    expected = {**DEFAULTS, **STATIC, **dict(FLAGS.values())}
    told = {name: value for name, value in config.items() if name not in OWN - {"evictionHard"}}
    expect_equal(node, told, expected, "fields, some set by flags")


@conformance(id="configz-flag-twice", rules=["CFG-001.1"], needs=[STATUS, RESTART], since="1.36")
async def of_a_flag_that_is_given_twice_the_last_counts(node: Node) -> None:
    """A flag with one value may be there twice, as where a unit file and its drop-in both name it:
    the last one counts."""
    await node.kubelet.restart("--max-pods=5", "--max-pods=7")
    expect_equal(node, (await shown(node)).get("maxPods"), 7, "maxPods")
