"""The kubelet's flags that set a field of its configuration, and those refused by name. Pure.

This is data alone, so that `--help` and mistakes in flags are answered at once. Rule:
CFG-010. Upstream: cmd/kubelet/app/options/options.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

SWITCHES: Final[Mapping[str, str]] = {
    "enable-server": "enableServer",
    "fail-swap-on": "failSwapOn",
    "fail-cgroupv1": "failCgroupV1",
    "anonymous-auth": "authentication.anonymous.enabled",
    "authentication-token-webhook": "authentication.webhook.enabled",
    "rotate-server-certificates": "serverTLSBootstrap",
    "rotate-certificates": "rotateCertificates",
    "enable-debugging-handlers": "enableDebuggingHandlers",
    "contention-profiling": "enableContentionProfiling",
    "cgroups-per-qos": "cgroupsPerQOS",
    "runonce": "runOnce",
    "cpu-cfs-quota": "cpuCFSQuota",
    "enable-controller-attach-detach": "enableControllerAttachDetach",
    "make-iptables-util-chains": "makeIPTablesUtilChains",
    "kernel-memcg-notification": "kernelMemcgNotification",
    "local-storage-capacity-isolation": "localStorageCapacityIsolation",
    "serialize-image-pulls": "serializeImagePulls",
    "protect-kernel-defaults": "protectKernelDefaults",
    "register-node": "registerNode",
}
"""Flag -> field: `--flag` and `--flag=false`."""
VALUES: Final[Mapping[str, str]] = {
    "pod-manifest-path": "staticPodPath",
    "sync-frequency": "syncFrequency",
    "file-check-frequency": "fileCheckFrequency",
    "http-check-frequency": "httpCheckFrequency",
    "manifest-url": "staticPodURL",
    "manifest-url-header": "staticPodURLHeader",
    "address": "address",
    "port": "port",
    "read-only-port": "readOnlyPort",
    "container-runtime-endpoint": "containerRuntimeEndpoint",
    "image-service-endpoint": "imageServiceEndpoint",
    "authentication-token-webhook-cache-ttl": "authentication.webhook.cacheTTL",
    "client-ca-file": "authentication.x509.clientCAFile",
    "authorization-mode": "authorization.mode",
    "authorization-webhook-cache-authorized-ttl": "authorization.webhook.cacheAuthorizedTTL",
    "authorization-webhook-cache-unauthorized-ttl": "authorization.webhook.cacheUnauthorizedTTL",
    "tls-cert-file": "tlsCertFile",
    "tls-private-key-file": "tlsPrivateKeyFile",
    "tls-cipher-suites": "tlsCipherSuites",
    "tls-min-version": "tlsMinVersion",
    "registry-qps": "registryPullQPS",
    "registry-burst": "registryBurst",
    "event-qps": "eventRecordQPS",
    "event-burst": "eventBurst",
    "healthz-port": "healthzPort",
    "healthz-bind-address": "healthzBindAddress",
    "oom-score-adj": "oomScoreAdj",
    "cluster-domain": "clusterDomain",
    "volume-plugin-dir": "volumePluginDir",
    "cluster-dns": "clusterDNS",
    "streaming-connection-idle-timeout": "streamingConnectionIdleTimeout",
    "node-status-update-frequency": "nodeStatusUpdateFrequency",
    "minimum-image-ttl-duration": "imageMinimumGCAge",
    "image-gc-high-threshold": "imageGCHighThresholdPercent",
    "image-gc-low-threshold": "imageGCLowThresholdPercent",
    "volume-stats-agg-period": "volumeStatsAggPeriod",
    "feature-gates": "featureGates",
    "kubelet-cgroups": "kubeletCgroups",
    "system-cgroups": "systemCgroups",
    "provider-id": "providerID",
    "cgroup-driver": "cgroupDriver",
    "cgroup-root": "cgroupRoot",
    "cpu-manager-policy": "cpuManagerPolicy",
    "cpu-manager-policy-options": "cpuManagerPolicyOptions",
    "cpu-manager-reconcile-period": "cpuManagerReconcilePeriod",
    "qos-reserved": "qosReserved",
    "topology-manager-policy": "topologyManagerPolicy",
    "topology-manager-policy-options": "topologyManagerPolicyOptions",
    "topology-manager-scope": "topologyManagerScope",
    "runtime-request-timeout": "runtimeRequestTimeout",
    "hairpin-mode": "hairpinMode",
    "max-pods": "maxPods",
    "pod-cidr": "podCIDR",
    "pod-max-pids": "podPidsLimit",
    "resolv-conf": "resolvConf",
    "cpu-cfs-quota-period": "cpuCFSQuotaPeriod",
    "container-log-max-size": "containerLogMaxSize",
    "container-log-max-files": "containerLogMaxFiles",
    "allowed-unsafe-sysctls": "allowedUnsafeSysctls",
    "node-status-max-images": "nodeStatusMaxImages",
    "max-open-files": "maxOpenFiles",
    "kube-api-content-type": "contentType",
    "kube-api-qps": "kubeAPIQPS",
    "kube-api-burst": "kubeAPIBurst",
    "eviction-hard": "evictionHard",
    "eviction-soft": "evictionSoft",
    "eviction-soft-grace-period": "evictionSoftGracePeriod",
    "eviction-pressure-transition-period": "evictionPressureTransitionPeriod",
    "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
    "eviction-minimum-reclaim": "evictionMinimumReclaim",
    "pods-per-core": "podsPerCore",
    "reserved-cpus": "reservedSystemCPUs",
    "system-reserved": "systemReserved",
    "kube-reserved": "kubeReserved",
    "enforce-node-allocatable": "enforceNodeAllocatable",
    "system-reserved-cgroup": "systemReservedCgroup",
    "kube-reserved-cgroup": "kubeReservedCgroup",
    "memory-manager-policy": "memoryManagerPolicy",
    "reserved-memory": "reservedMemory",
    "register-with-taints": "registerWithTaints",
}
"""Flag -> field: `--flag VALUE` and `--flag=VALUE`."""
NOT_DEPRECATED: Final = frozenset(
    {"provider-id", "fail-cgroupv1", "container-runtime-endpoint", "image-service-endpoint"}
)
"""Told nothing about. The two endpoints are deprecated in the kubelet; here they are what one says
to try refkubelet on a runtime."""
REFUSED: Final[Mapping[str, str]] = {
    "cloud-provider": "the node is not left to a cloud controller; leave it out",
    "lock-file": "nothing is locked; start one kubelet only for each runtime",
    "exit-on-lock-contention": "nothing is locked; start one kubelet only for each runtime",
}
"""Flag without a field -> why it is refused: a node that ignores it would not be what was asked
for."""
IGNORED: Final[Mapping[str, str]] = {
    "runtime-cgroups": "the runtime's own cgroup is not looked at",
    "minimum-container-ttl-duration": "0 is used (GC-001)",
    "maximum-dead-containers-per-container": "1 is used (GC-001)",
    "maximum-dead-containers": "there is no limit (GC-001)",
    "experimental-mounter-path": "volumes are mounted without a program",
    "experimental-allocatable-ignore-eviction": "hard eviction thresholds always lower what is "
    "allocatable",
    "vmodule": "-v is for all modules",
    "log-flush-frequency": "the log is written at once",
}
"""Flag without a field -> what is done instead; accepted with a warning."""
DEPRECATED: Final = (
    "Flag --%s has been deprecated, This parameter should be set via the config file specified by "
    "the kubelet's --config flag."
)
"""The kubelet's line for a flag whose field belongs into the file."""


def with_hyphens(words: Iterable[str]) -> list[str]:
    """The words of a command line with hyphens in the names of flags, which may have underscores.

    >>> with_hyphens(["run", "--max_pods=1", "--node-labels", "a_b=c", "-v"])
    ['run', '--max-pods=1', '--node-labels', 'a_b=c', '-v']
    """
    return [_hyphened(word) if word.startswith("--") else word for word in words]


def _hyphened(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value
