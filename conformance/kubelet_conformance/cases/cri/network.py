"""Names and addresses that a kubelet gives to a pod: DNS settings, hosts file, addresses."""

from pathlib import Path
from typing import Any

from kubelet_conformance.cases.cri.common import (
    container_config,
    mounts_at,
    sandbox_config,
    started,
)
from kubelet_conformance.cases.cri.variables import seen_by
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
DOMAIN = "c.test"
IN_CLUSTER = ["default.svc.c.test", "svc.c.test", "c.test"]
SECOND = "2001:db8::7"


def dns_of(node: Node, name: str) -> tuple[list[str], list[str], list[str]]:
    """Servers, searches and options that the runtime is given for the pod; the options sorted."""
    dns = sandbox_config(node, name).dns_config
    return list(dns.servers), list(dns.searches), sorted(dns.options)


@conformance(
    id="cri-dns-of-each-policy",
    rules=["LIFE-135.1", "LIFE-135.2", "LIFE-135.3", "NODE-220.2"],
    needs=[STATUS, Feature.RESTART],
)
async def each_policy_has_its_name_servers(node: Node) -> None:
    """ClusterFirst has the cluster's server, its searches before those of the node, and ndots:5; on
    the node's network it is the same as Default, and ClusterFirstWithHostNet stands for it there.
    Default has the node's settings, None has nothing."""
    path = node.machine.host_path("resolv.conf")
    path.write_text(
        "nameserver 198.51.100.1\nsearch old.test\nsearch lab.test home.test\noptions rotate\n"
    )
    await node.kubelet.restart(
        resolvConf=str(path), clusterDNS=["192.0.2.53", "192.0.2.54"], clusterDomain=DOMAIN
    )
    own: dict[str, Any] = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.99"]}}
    plans: dict[str, dict[str, Any]] = {
        "first": {},
        "on-node": {"hostNetwork": True},
        "with-net": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
        "default": {"dnsPolicy": "Default"},
        "none": own,
    }
    for name, fields in plans.items():
        await node.apply_static(pod(name, **fields))
    await started(node, *plans, within_s=2 * limits.START_S)
    searches = [*IN_CLUSTER, "lab.test", "home.test"]
    cluster = (["192.0.2.53", "192.0.2.54"], searches, ["ndots:5"])
    of_node = (["198.51.100.1"], ["lab.test", "home.test"], ["rotate"])
    expected = {
        "first": cluster,
        "on-node": of_node,
        "with-net": cluster,
        "default": of_node,
        "none": (["192.0.2.99"], [], []),
    }
    settings = {name: dns_of(node, name) for name in plans}
    expect_equal(node, settings, expected, "servers, searches, options")


@conformance(
    id="cri-dns-config-added", rules=["LIFE-135.5", "NODE-220.5"], needs=[STATUS],
    node_config={"clusterDomain": DOMAIN},
)  # fmt: skip
async def dns_settings_of_a_pod_are_added(node: Node) -> None:
    """dnsConfig adds servers and searches behind those of the policy, each once, and replaces an
    option of the same name."""
    own = {
        "nameservers": ["192.0.2.99", "192.0.2.53"],
        "searches": ["svc.c.test", "more.test"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    }
    await node.apply_static(pod("web", dnsConfig=own))
    await started(node, "web")
    expected = (["192.0.2.53", "192.0.2.99"], [*IN_CLUSTER, "more.test"], ["edns0", "ndots:2"])
    expect_equal(node, dns_of(node, "web"), expected, "servers, searches, options")


def hosts_lines(node: Node, name: str, pod_name: str) -> list[str]:
    """The lines of the hosts file that the container gets."""
    (mount,) = mounts_at(container_config(node, name, pod_name), ["/etc/hosts"])
    return Path(mount.host_path).read_text().splitlines()


ALIASES = [
    {"ip": "192.0.2.7", "hostnames": ["one.test", "two.test"]},
    {"ip": "192.0.2.8", "hostnames": ["three.test"]},
]
ADDED = [
    "# Entries added by HostAliases.",
    "192.0.2.7\tone.test\ttwo.test",
    "192.0.2.8\tthree.test",
]


@conformance(
    id="cri-hosts-file", rules=["LIFE-138.2", "NODE-209.3", "NODE-209.4"], needs=[STATUS, FAULTS],
    node_config={"clusterDomain": DOMAIN}, alone=True,
)  # fmt: skip
async def the_hosts_file_names_the_pod_for_each_of_its_addresses(node: Node) -> None:
    """The hosts file has the pod's full and short name for each address that the runtime gives, and
    the aliases of the pod; a variable status.podIPs has all of them."""

    def two_addresses(answer: Any) -> None:
        del answer.status.network.additional_ips[:]
        answer.status.network.additional_ips.add(ip=SECOND)

    node.runtime.on("PodSandboxStatus").changes_answer(two_addresses)
    env = [{"name": "IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}}]
    fields: dict[str, Any] = {"hostname": "shop", "subdomain": "sub", "hostAliases": ALIASES}
    main = container("main", env=env)
    await node.apply_static(pod("web", main, **fields, enableServiceLinks=False))
    await node.wait_running("web")
    status = (node.pod("web") or {})["status"]
    first = status["podIP"]
    addresses = [entry["ip"] for entry in status["podIPs"]]
    expect_equal(node, addresses, [first, SECOND], "addresses in the status")
    variables = seen_by(node, "main", "web")
    expect_equal(node, variables.get("IPS"), f"{first},{SECOND}", "addresses in the variable")
    names = "shop.sub.default.svc.c.test\tshop"
    last_lines = [f"{first}\t{names}", f"{SECOND}\t{names}", "", *ADDED]
    lines = hosts_lines(node, "main", "web")
    expect_equal(node, lines[-len(last_lines) :], last_lines, "last lines of the hosts file")
    expect_equal(node, lines[0], "# Kubernetes-managed hosts file.", "first line")


@conformance(id="cri-hosts-file-of-node", rules=["LIFE-138.2", "NODE-209.2", "NODE-209.5"],
             needs=[STATUS], since="1.32", alone=True)  # fmt: skip
async def on_the_nodes_network_the_hosts_file_is_the_nodes(node: Node) -> None:
    """A pod on the node's network gets the node's hosts file with its aliases; a container that
    mounts a file of its own there keeps it."""
    own = node.machine.host_path("hosts")
    own.write_text("192.0.2.9\town.test\n")
    own_hosts = container("mine", volumeMounts=[{"name": "own", "mountPath": "/etc/hosts"}])
    volumes = [{"name": "own", "hostPath": {"path": str(own)}}]
    plan = pod(
        "web", container("main"), own_hosts, hostNetwork=True, hostAliases=ALIASES, volumes=volumes
    )
    await node.apply_static(plan)
    await node.wait_running("web", "main", "mine")
    lines = hosts_lines(node, "main", "web")
    expect_equal(node, lines[0], "# Kubernetes-managed hosts file (host network).", "first line")
    expect_equal(node, lines[-len(ADDED) :], ADDED, "last lines")
    paths = [m.host_path for m in mounts_at(container_config(node, "mine"), ["/etc/hosts"])]
    expect_equal(node, paths, [str(own)], "mounts at /etc/hosts of mine")


@conformance(
    id="cri-hosts-file-follows", rules=["NODE-209.3"], needs=[STATUS, Feature.OUTSIDE_KILL]
)
async def the_hosts_file_has_the_address_of_the_present_sandbox(node: Node) -> None:
    """After the sandbox was lost the hosts file has the address of the new one, and no other."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.STOP_S + 2 * limits.SYNC_ERROR_S,
        what="a container in a new sandbox",
    )
    await node.run_for(limits.NOTICE_S)
    address = (node.pod("web") or {})["status"]["podIP"]
    last = hosts_lines(node, "main", "web")[-1]
    expect_equal(node, last.partition("\t")[0], address, "address in the last line")


@conformance(id="cri-addresses-must-parse", rules=["CRI-035.1"], needs=[STATUS, FAULTS])
async def an_address_that_is_none_voids_all(node: Node) -> None:
    """If one of the addresses of a sandbox is no address, the pod has none at all, and its
    containers run all the same."""

    def spoil(answer: Any) -> None:
        del answer.status.network.additional_ips[:]
        answer.status.network.additional_ips.add(ip="nonsense")

    node.runtime.on("PodSandboxStatus", pod="web").changes_answer(spoil)
    await node.apply_static(pod("web"))
    await started(node, "web")
    await node.run_for(limits.NOTICE_S)
    status = (node.pod("web") or {}).get("status") or {}
    expect(node, not status.get("podIP"), "no address in the status", status.get("podIPs"))
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
