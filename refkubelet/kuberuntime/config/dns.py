"""The DNS settings of a pod (LIFE-135, NODE-221). Pure.

Upstream: pkg/kubelet/network/dns/dns.go: GetPodDNS, parseResolvConf.
"""

from __future__ import annotations

from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from refkubelet.kuberuntime.common.runtime_options import DnsOptions
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uses_host_network

CLUSTER_FIRST: Final = "ClusterFirst"
CLUSTER_FIRST_WITH_HOST_NET: Final = "ClusterFirstWithHostNet"
NONE: Final = "None"
NDOTS: Final = "ndots:5"


def node_resolver(resolv_conf: str) -> DnsOptions:
    """The servers, searches and options in the text of a resolv.conf (NODE-221): the last line of
    searches counts, and of an option the last value."""
    lines = [words for line in resolv_conf.splitlines() if (words := line.split())]
    searches = [words[1:] for words in lines if words[0] == "search"]
    options = [word for words in lines if words[0] == "options" for word in words[1:]]
    return DnsOptions(
        node_servers=tuple(w[1] for w in lines if w[0] == "nameserver" and len(w) > 1),
        node_searches=tuple(
            name.removesuffix(".") for name in (searches or [[]])[-1] if name != "."
        ),
        node_options=tuple({option.partition(":")[0]: option for option in options}.values()),
    )


def needs_missing_cluster_dns_event(pod: Pod, options: DnsOptions) -> bool:
    """Whether the pod wants the cluster's DNS and the kubelet has none (event
    MissingClusterDNS)."""
    return _wants_cluster_dns(pod) and not options.cluster_dns


def dns_config(pod: Pod, options: DnsOptions) -> Any:
    """The DNSConfig of RunPodSandbox."""
    policy = pod.spec.dnsPolicy or CLUSTER_FIRST
    if policy == NONE:
        config = cri.DNSConfig()
    elif _wants_cluster_dns(pod) and options.cluster_dns:
        config = _cluster_dns(pod, options)
    elif options.no_resolv_conf:
        config = cri.DNSConfig(servers=["127.0.0.1"], searches=["."])
    else:
        config = cri.DNSConfig(
            servers=options.node_servers,
            searches=options.node_searches,
            options=options.node_options,
        )
    _merge_own(config, pod)
    return config


def _wants_cluster_dns(pod: Pod) -> bool:
    policy = pod.spec.dnsPolicy or CLUSTER_FIRST
    host_network = uses_host_network(pod)
    return policy == CLUSTER_FIRST_WITH_HOST_NET or (policy == CLUSTER_FIRST and not host_network)


def _cluster_dns(pod: Pod, options: DnsOptions) -> Any:
    domain = options.cluster_domain
    namespace = pod.metadata.namespace
    own = [f"{namespace}.svc.{domain}", f"svc.{domain}", domain] if domain else []
    return cri.DNSConfig(
        servers=options.cluster_dns,
        searches=_unique([*own, *options.node_searches]),
        options=[NDOTS],
    )


def _merge_own(config: Any, pod: Pod) -> None:
    """Add spec.dnsConfig to `config`: append servers and searches, replace options by name."""
    own = pod.spec.dnsConfig
    if own is None:
        return
    servers = _unique([*config.servers, *(own.nameservers or [])])
    searches = _unique([*config.searches, *(own.searches or [])])
    by_name = {text.partition(":")[0]: text for text in config.options}
    for option in own.options or []:
        if option.name:
            by_name[option.name] = f"{option.name}:{option.value}" if option.value else option.name
    config.CopyFrom(
        cri.DNSConfig(servers=servers, searches=searches, options=list(by_name.values()))
    )


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))
