"""The config of RunPodSandbox, field by field (LIFE-133). Pure.

The same config goes into every CreateContainer and PullImage of the pod (CRI-024, CRI-052), so it
depends only on the pod, the attempt and the node's settings.
"""

from __future__ import annotations

from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from refkubelet.cri.labels import POD_NAME, POD_NAMESPACE, POD_UID
from refkubelet.cri.records import DEFAULT_RUNTIME, PodRuntime
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.dns import dns_config
from refkubelet.kuberuntime.config.linux_resources import overhead_resources, sandbox_resources
from refkubelet.kuberuntime.config.security import sandbox_security
from refkubelet.model.names import pod_log_dir
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import annotations as pod_annotations
from refkubelet.model.pod import labels, name_and_namespace, uid

MAX_HOSTNAME: Final = 63
MAX_FQDN: Final = 64
PROTOCOLS: Final[dict[str, Any]] = {"TCP": cri.TCP, "UDP": cri.UDP, "SCTP": cri.SCTP}


class SandboxConfigError(Exception):
    """No config can be made for the sandbox; the text says why."""


def pod_labels(pod: Pod) -> dict[str, str]:
    """The labels with name, namespace and UID, by which a pod's sandboxes and containers are
    listed."""
    name, namespace = name_and_namespace(pod)
    return {POD_NAME: name, POD_NAMESPACE: namespace, POD_UID: uid(pod)}


def sandbox_config(
    pod: Pod,
    attempt: int,
    options: RuntimeOptions,
    runtime: PodRuntime = DEFAULT_RUNTIME,
    *,
    own_cpus: bool = False,
) -> Any:
    """The PodSandboxConfig (upstream: generatePodSandboxConfig). `runtime`: the pod's settings of
    the runtime; `own_cpus`: a container has exclusive CPUs (CG-031). Raises
    `SandboxConfigError`."""
    name, namespace = name_and_namespace(pod)
    config = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(
            name=name, uid=uid(pod), namespace=namespace, attempt=attempt
        ),
        hostname=hostname(pod, options.dns.cluster_domain),
        log_directory=pod_log_dir(str(options.pod_logs_dir), namespace, name, uid(pod)),
        dns_config=dns_config(pod, options.dns),
        labels={**labels(pod), **pod_labels(pod)},
        annotations=pod_annotations(pod),
        linux=_linux(pod, options, runtime, own_cpus=own_cpus),
    )
    for container in pod.spec.containers:
        config.port_mappings.extend(port_mappings(container))
    return config


def hostname(pod: Pod, cluster_domain: str) -> str:
    """The sandbox's host name; "" in the host network. With setHostnameAsFQDN and a subdomain the
    full name. Raises `SandboxConfigError` if that is longer than the kernel allows."""
    spec = pod.spec
    if spec.hostNetwork:
        return ""
    name, domain = hostname_and_domain(pod, cluster_domain)
    if not domain or not spec.setHostnameAsFQDN:
        return name
    full = f"{name}.{domain}"
    if len(full) > MAX_FQDN:
        raise SandboxConfigError(
            "failed to construct FQDN from pod hostname and cluster domain, FQDN "
            f"{full} is too long ({MAX_FQDN} characters is the max, {len(full)} characters "
            "requested)"
        )
    return full


def hostname_and_domain(pod: Pod, cluster_domain: str) -> tuple[str, str]:
    """The host name, also for the host network, and the domain; "" without a subdomain.

    The name is spec.hostnameOverride (then without domain), else spec.hostname, else the pod's
    name; cut to 63 characters, and then without `-` and `.` at its end.
    """
    spec = pod.spec
    name, namespace = name_and_namespace(pod)
    if spec.hostnameOverride is not None:
        return _cut(spec.hostnameOverride), ""
    short = _cut(spec.hostname or name)
    if not spec.subdomain:
        return short, ""
    return short, f"{spec.subdomain}.{namespace}.svc.{cluster_domain}"


def _cut(name: str) -> str:
    return name if len(name) <= MAX_HOSTNAME else name[:MAX_HOSTNAME].rstrip("-.")


def port_mappings(container: Container) -> list[Any]:
    """The PortMapping of each port of a regular container; host_port is 0 without hostPort."""
    return [
        cri.PortMapping(
            protocol=PROTOCOLS.get(port.protocol or "TCP", cri.TCP),
            container_port=port.containerPort,
            host_port=port.hostPort or 0,
            host_ip=port.hostIP or "",
        )
        for port in container.ports or []
    ]


def _linux(pod: Pod, options: RuntimeOptions, runtime: PodRuntime, *, own_cpus: bool) -> Any:
    sysctls = pod.spec.securityContext.sysctls if pod.spec.securityContext else None
    return cri.LinuxPodSandboxConfig(
        cgroup_parent=options.pod_cgroup(pod) if options.pod_cgroup else "",
        security_context=sandbox_security(pod, runtime),
        sysctls={dotted(s.name): s.value for s in sysctls or []},
        overhead=overhead_resources(pod, options.resources),
        resources=sandbox_resources(pod, options.resources, own_cpus=own_cpus),
    )


def dotted(sysctl: str) -> str:
    """The sysctl's name with dots as separators. If its separators are slashes, they become dots,
    and its dots become slashes.

    >>> dotted("net.ipv4.tcp_syncookies"), dotted("net/ipv4/conf/eno2.100/rp_filter")
    ('net.ipv4.tcp_syncookies', 'net.ipv4.conf.eno2/100.rp_filter')
    """
    first = next((c for c in sysctl if c in "./"), ".")
    return sysctl if first == "." else sysctl.translate(str.maketrans("./", "/."))
