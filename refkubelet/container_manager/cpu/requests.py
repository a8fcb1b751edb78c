"""How many CPUs of its own a container is to get. Pure.

Rules: CG-081: containers of Guaranteed pods that request whole CPUs; none in pods with pod-level
resources (gate PodLevelResourceManagers, alpha, off). Upstream:
pkg/kubelet/cm/cpumanager/policy_static.go: guaranteedCPUs, podGuaranteedCPUs.
"""

from __future__ import annotations

from refkubelet.container_manager.containers import peak
from refkubelet.model.objects import Container, Pod
from refkubelet.model.qos import qos_class
from refkubelet.model.quantity import NANO
from refkubelet.model.resources import container_requests, has_pod_level_resources


def exclusive_cpus(pod: Pod, container: Container) -> int:
    """Whole CPUs for the container alone; 0: it shares CPUs with others."""
    if qos_class(pod) != "Guaranteed" or has_pod_level_resources(pod):
        return 0
    return _whole_cpus(container)


def pod_exclusive_cpus(pod: Pod) -> int:
    """The most CPUs that the pod's containers have for themselves at any time."""
    if qos_class(pod) != "Guaranteed" or has_pod_level_resources(pod):
        return 0
    return peak(pod, _whole_cpus)


def _whole_cpus(container: Container) -> int:
    nano_cores = container_requests(container).get("cpu", 0)
    return 0 if nano_cores % NANO else nano_cores // NANO
