"""The DNS settings of a pod (LIFE-135, NODE-220, NODE-221). Pure.

Upstream: pkg/kubelet/network/dns/dns.go: GetPodDNS, parseResolvConf, formDNSConfigFitsLimits,
CheckLimitsForResolvConf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from refkubelet.kuberuntime.common.runtime_options import DnsOptions
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uses_host_network

CLUSTER_FIRST: Final = "ClusterFirst"
CLUSTER_FIRST_WITH_HOST_NET: Final = "ClusterFirstWithHostNet"
NONE: Final = "None"
NDOTS: Final = "ndots:5"
MOST_SERVERS: Final = 3
MOST_SEARCHES: Final = 32
LONGEST_SEARCH: Final = 253
LONGEST_SEARCHES: Final = 2048  # all of them, with the blanks between
_OF_THE_CLUSTER: Final = 3  # searches that a cluster domain adds


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
    """The DNSConfig of RunPodSandbox, cut to what resolvers take (NODE-221)."""
    whole = _whole(pod, options)
    return cri.DNSConfig(
        servers=whole.servers[:MOST_SERVERS],
        searches=_fitting(whole.searches),
        options=whole.options,
    )


def dns_problems(pod: Pod, options: DnsOptions) -> tuple[str, ...]:
    """What the pod's DNS settings lose by the limits, as messages of events DNSConfigForming."""
    whole, cut = _whole(pod, options), dns_config(pod, options)
    problems = []
    if len(whole.servers) != len(cut.servers):
        problems.append(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied "
            f"nameserver line is: {' '.join(cut.servers)}"
        )
    if len(whole.searches) != len(cut.searches):
        problems.append(
            "Search Line limits were exceeded, some search paths have been omitted, the applied "
            f"search line is: {' '.join(cut.searches)}"
        )
    return tuple(problems)


def resolv_conf_problem(path: str, options: DnsOptions) -> str | None:
    """Why pods cannot have all searches of the node's file `path`, as the message of an event
    CheckLimitsForResolvConf; None: they can (NODE-221)."""
    searches = options.node_searches
    most = MOST_SEARCHES - (_OF_THE_CLUSTER if options.cluster_domain else 0)
    if len(searches) > most:
        excess = f"search line consisting of more than {most} domains"
        return f"Resolv.conf file '{path}' contains {excess}!"
    if any(len(search) > LONGEST_SEARCH for search in searches):
        excess = f"a search path which length is more than allowed {LONGEST_SEARCH} chars"
        return f'Resolv.conf file "{path}" contains {excess}!'
    if len(" ".join(searches)) > LONGEST_SEARCHES:
        excess = f"search line which length is more than allowed {LONGEST_SEARCHES} chars"
        return f"Resolv.conf file '{path}' contains {excess}!"
    return None


def _fitting(searches: Sequence[str]) -> list[str]:
    """The first searches, without those that are too long, and as many as fit into one line."""
    fitting = [search for search in searches[:MOST_SEARCHES] if len(search) <= LONGEST_SEARCH]
    while len(" ".join(fitting)) > LONGEST_SEARCHES:
        fitting.pop()
    return fitting


def _whole(pod: Pod, options: DnsOptions) -> Any:
    """The DNSConfig before the limits."""
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
