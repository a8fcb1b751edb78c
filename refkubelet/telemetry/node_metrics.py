"""What is counted of the node, its cgroups and its exclusive resources.

Upstream: pkg/kubelet/metrics/metrics.go; pkg/kubelet/util/node_startup_latency_tracker.go.
"""

from __future__ import annotations

from typing import Final

from refkubelet.telemetry.metrics import CounterVec, GaugeVec, Group, HistogramVec, exponential

ADMISSIONS_MS: Final = exponential(0.05, 2.0, 15)
OF_BUILD: Final = (
    *("major", "minor", "git_version", "git_commit", "git_tree_state", "build_date"),
    *("go_version", "compiler", "platform"),
)
CONTAINER: Final = "container"
POD: Final = "pod"
PHYSICAL_CPU: Final = "physical_cpu"
NUMA_NODE: Final = "numa_node"
UNCORE_CACHE: Final = "uncore_cache"


class NodeMetrics(Group):
    """The node, and how long it took until it was ready for the first time."""

    def __init__(self) -> None:
        self.name = GaugeVec("kubelet_node_name", "The node's name; always 1.", "node")
        self.cgroup_version = GaugeVec("kubelet_cgroup_version", "1 or 2.")
        self.losing_support = GaugeVec(
            "kubelet_cri_losing_support",
            "The version of Kubernetes that will no longer work with this runtime.",
            "version",
        )
        self.provider = GaugeVec(
            "kubelet_metrics_provider", "Who tells what containers use.", "provider"
        )
        self.build = GaugeVec("kubernetes_build_info", "The version; always 1.", *OF_BUILD)
        step = "kubelet_node_startup_{}duration_seconds"
        self.pre_kubelet = GaugeVec(
            step.format("pre_kubelet_"), "From the boot to the start of the kubelet."
        )
        self.pre_registration = GaugeVec(
            step.format("pre_registration_"), "From there to the first try to register."
        )
        self.registration = GaugeVec(
            step.format("registration_"), "From there to the new Node object."
        )
        self.post_registration = GaugeVec(
            step.format("post_registration_"), "From there to the condition Ready."
        )
        self.startup = GaugeVec(step.format(""), "From the boot to the condition Ready.")


def build_labels(version: str, platform: str) -> tuple[str, ...]:
    """The labels of a kubelet that no Go compiler has made.

    >>> build_labels("v1.36.0", "linux/amd64")
    ('1', '36', 'v1.36.0', '', '', '', '', '', 'linux/amd64')
    """
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return (major, minor, version, "", "", "", "", "", platform)


class CgroupMetrics(Group):
    """Counted where cgroups are made, changed and removed."""

    def __init__(self) -> None:
        self.duration = HistogramVec(
            "kubelet_cgroup_manager_duration_seconds",
            "How long it took to create, update or destroy a cgroup.",
            "operation_type",
        )


class ExclusiveMetrics(Group):
    """Counted by the CPU, memory and topology managers."""

    def __init__(self) -> None:
        self.cpu_requests = CounterVec(
            "kubelet_cpu_manager_pinning_requests_total", "Containers that want exclusive CPUs."
        )
        self.cpu_errors = CounterVec(
            "kubelet_cpu_manager_pinning_errors_total", "Those that cannot have them."
        )
        self.shared_millicores = GaugeVec(
            "kubelet_cpu_manager_shared_pool_size_millicores",
            "CPUs that can still become exclusive.",
        )
        self.exclusive_cpus = GaugeVec(
            "kubelet_cpu_manager_exclusive_cpu_allocation_count", "CPUs that are exclusive."
        )
        self.cpus_of_node = GaugeVec(
            "kubelet_cpu_manager_allocation_per_numa", "Exclusive CPUs by NUMA node.", NUMA_NODE
        )
        self.memory_requests = CounterVec(
            "kubelet_memory_manager_pinning_requests_total", "Containers that want memory of nodes."
        )
        self.memory_errors = CounterVec(
            "kubelet_memory_manager_pinning_errors_total", "Those that cannot have it."
        )
        self.aligned = CounterVec(
            "kubelet_container_aligned_compute_resources_count",
            "Containers and pods whose resources are aligned.",
            *("scope", "boundary"),
        )
        self.not_aligned = CounterVec(
            "kubelet_container_aligned_compute_resources_failure_count",
            "Containers and pods whose resources could not be aligned.",
            *("scope", "boundary"),
        )
        self.admissions = CounterVec(
            "kubelet_topology_manager_admission_requests_total", "Pods that were looked at."
        )
        self.refusals = CounterVec(
            "kubelet_topology_manager_admission_errors_total", "Those that were refused."
        )
        self.admission_ms = HistogramVec(
            "kubelet_topology_manager_admission_duration_ms",
            "How many milliseconds that took.",
            bounds=ADMISSIONS_MS,
        )

    def with_alignment(self) -> None:
        """Resources can be aligned: the samples about that begin."""
        for scope in (CONTAINER, POD):
            self.aligned.inc(scope, NUMA_NODE, by=0)
            self.not_aligned.inc(scope, NUMA_NODE, by=0)

    def with_exclusive_cpus(self) -> None:
        """CPUs can be exclusive: the samples about them begin."""
        self.aligned.inc(CONTAINER, PHYSICAL_CPU, by=0)
        self.not_aligned.inc(CONTAINER, PHYSICAL_CPU, by=0)
        self.aligned.inc(CONTAINER, UNCORE_CACHE, by=0)
