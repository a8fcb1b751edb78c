"""The config of RunPodSandbox, field by field: LIFE-133. Pure.

The same config goes into every CreateContainer and PullImage of the pod (CRI-024, CRI-052), so it
is a function of the pod, the attempt and the node's settings alone.
"""

from __future__ import annotations

from typing import Any, Final

from criapi.v1 import api_pb2 as cri

from refkubelet.model.names import pod_log_dir
from refkubelet.model.objects import Container, Pod, labels, uid
from refkubelet.model.objects import annotations as pod_annotations
from refkubelet.model.quantity import NANO, parse_nano
from refkubelet.runtime.cgroup_parent import cgroup_parent
from refkubelet.runtime.dns import dns_config
from refkubelet.runtime.labels import POD_NAME, POD_NAMESPACE, POD_UID
from refkubelet.runtime.linux_resources import cpu_shares, millicores, sandbox_resources
from refkubelet.runtime.options import RuntimeOptions
from refkubelet.runtime.security import sandbox_security

MAX_HOSTNAME: Final = 63
PROTOCOLS: Final[dict[str, Any]] = {"TCP": cri.TCP, "UDP": cri.UDP, "SCTP": cri.SCTP}


def pod_labels(pod: Pod) -> dict[str, str]:
    """The three labels by which a pod is found again."""
    name, namespace = _name_and_namespace(pod)
    return {POD_NAME: name, POD_NAMESPACE: namespace, POD_UID: uid(pod)}


def sandbox_config(pod: Pod, attempt: int, options: RuntimeOptions) -> Any:
    """PodSandboxConfig (upstream: generatePodSandboxConfig)."""
    name, namespace = _name_and_namespace(pod)
    config = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(
            name=name, uid=uid(pod), namespace=namespace, attempt=attempt
        ),
        hostname=hostname(pod),
        log_directory=pod_log_dir(str(options.pod_logs_dir), namespace, name, uid(pod)),
        dns_config=dns_config(pod, options.dns),
        labels={**labels(pod), **pod_labels(pod)},
        annotations=pod_annotations(pod),
        linux=_linux(pod, options),
    )
    for container in pod.spec.containers if pod.spec else []:
        config.port_mappings.extend(port_mappings(container))
    return config


def hostname(pod: Pod) -> str:
    """spec.hostname, else the name, cut to 63 characters; "" for the node's network.

    A name that ends in `-` or `.` after the cut loses that ending.
    """
    if pod.spec is not None and pod.spec.hostNetwork:
        return ""
    return pod_hostname(pod)


def pod_hostname(pod: Pod) -> str:
    """The hostname whatever the network."""
    wanted = (pod.spec.hostname if pod.spec else None) or _name_and_namespace(pod)[0]
    return wanted[:MAX_HOSTNAME].rstrip("-.")


def port_mappings(container: Container) -> list[Any]:
    """One per port of a regular container, also without hostPort (then 0)."""
    return [
        cri.PortMapping(
            protocol=PROTOCOLS.get(port.protocol or "TCP", cri.TCP),
            container_port=port.containerPort,
            host_port=port.hostPort or 0,
            host_ip=port.hostIP or "",
        )
        for port in container.ports or []
    ]


def _linux(pod: Pod, options: RuntimeOptions) -> Any:
    parent = ""
    if options.cgroups_per_qos:
        parent = cgroup_parent(pod, options.cgroup_root, options.cgroup_driver)
    sysctls = pod.spec.securityContext.sysctls if pod.spec and pod.spec.securityContext else None
    return cri.LinuxPodSandboxConfig(
        cgroup_parent=parent,
        security_context=sandbox_security(pod),
        sysctls={s.name: s.value for s in sysctls or []},
        overhead=_overhead(pod),
        resources=sandbox_resources(pod, options),
    )


def _overhead(pod: Pod) -> Any:
    wanted = (pod.spec.overhead if pod.spec else None) or {}
    overhead = cri.LinuxContainerResources()
    if "cpu" in wanted:
        overhead.cpu_shares = cpu_shares(millicores(parse_nano(wanted["cpu"])))
    if "memory" in wanted:
        overhead.memory_limit_in_bytes = parse_nano(wanted["memory"]) // NANO
    return overhead


def _name_and_namespace(pod: Pod) -> tuple[str, str]:
    meta = pod.metadata
    return (meta.name or "", meta.namespace or "") if meta else ("", "")
