"""The hosts file of a pod: LIFE-138, NODE-209. Pure.

Upstream: pkg/kubelet/kubelet_pods.go: managedHostsFileContent, nodeHostsFileContent.
"""

from __future__ import annotations

from typing import Final

from refkubelet.kuberuntime.config.sandbox import hostname_and_domain
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import uses_host_network

ETC_HOSTS: Final = "/etc/hosts"
HOSTS_HEADER: Final = (
    "# Kubernetes-managed hosts file.\n"
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)
HOST_NETWORK_HEADER: Final = "# Kubernetes-managed hosts file (host network).\n"


def wants_etc_hosts(container: Container, pod: Pod, pod_ips: tuple[str, ...]) -> bool:
    """Whether the kubelet mounts /etc/hosts: the pod has an IP or the node's network, and the
    container mounts nothing there itself."""
    has_address = bool(pod_ips) or uses_host_network(pod)
    return has_address and all(m.mountPath != ETC_HOSTS for m in container.volumeMounts or [])


def hosts_text(
    pod: Pod, pod_ips: tuple[str, ...], cluster_domain: str, node_hosts: str = ""
) -> str:
    """The text of the file: for a pod in the host network `node_hosts`, the text of the node's own
    file, else the fixed part and the pod's name; then hostAliases."""
    if uses_host_network(pod):
        text = HOST_NETWORK_HEADER + node_hosts
    else:
        name, domain = hostname_and_domain(pod, cluster_domain)
        names = f"{name}.{domain}\t{name}" if domain else name
        text = HOSTS_HEADER + "".join(f"{ip}\t{names}\n" for ip in pod_ips)
    aliases = pod.spec.hostAliases or []
    if aliases:
        lines = "".join(f"{a.ip}\t" + "\t".join(a.hostnames or []) + "\n" for a in aliases)
        text += f"\n# Entries added by HostAliases.\n{lines}"
    return text
