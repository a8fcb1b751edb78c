"""What the kubelet passes to the runtime for a sandbox: DNS, host name, kernel settings."""

from typing import Any

from kubelet_conformance.cases.lifecycle.starting.config import created
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

STATUS, API = Feature.STATUS, Feature.API
DOMAIN = "cluster.test"
CLUSTER = ["default.svc.cluster.test", "svc.cluster.test", "cluster.test"]
RESOLV_CONF = "nameserver 198.51.100.1\nsearch corp.test\noptions timeout:3\n"

MORE: dict[str, Any] = {
    "nameservers": ["203.0.113.9"],
    "searches": ["example.test"],
    "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}],
}
ON_HOST: dict[str, Any] = {"hostNetwork": True}
PLANS = {
    "cluster": pod("cluster"),
    "more": pod("more", dnsConfig=MORE),
    "host": pod("host", **ON_HOST),
    "both": pod("both", dnsPolicy="ClusterFirstWithHostNet", **ON_HOST),
    "node": pod("node", dnsPolicy="Default"),
}


def sandbox(node: Node, name: str) -> Any:
    """The configuration in the first RunPodSandbox of the pod."""
    return node.calls("RunPodSandbox", pod=name)[0].request.config


@conformance(
    id="config-dns-policies",
    rules=["LIFE-135.2", "LIFE-135.3", "LIFE-135.5"],
    needs=[STATUS, Feature.RESTART],
)
async def each_dns_policy_gives_its_servers_and_searches(node: Node) -> None:
    """ClusterFirst gives the DNS of the cluster and the searches of the node behind its own, but
    the node's DNS in the host network, unless the policy is ClusterFirstWithHostNet; dnsConfig adds
    servers and searches, and replaces options of the same name."""
    file = node.machine.host_path("resolv.conf")
    file.write_text(RESOLV_CONF)
    await node.kubelet.restart(resolvConf=str(file), clusterDomain=DOMAIN)
    for plan in PLANS.values():
        await node.apply_static(plan)
    await node.run_until(
        lambda: all(node.count("RunPodSandbox", pod=name) for name in PLANS),
        within_s=limits.START_S,
        what="a sandbox for each pod",
    )
    of_cluster = (["192.0.2.53"], [*CLUSTER, "corp.test"], ["ndots:5"])
    of_node = (["198.51.100.1"], ["corp.test"], ["timeout:3"])
    with_more = (
        ["192.0.2.53", "203.0.113.9"],
        [*CLUSTER, "corp.test", "example.test"],
        ["ndots:2", "rotate"],
    )
    expected = {
        "cluster": of_cluster,
        "more": with_more,
        "host": of_node,
        "both": of_cluster,
        "node": of_node,
    }
    for name in PLANS:
        dns = sandbox(node, name).dns_config
        actual = (list(dns.servers), list(dns.searches), sorted(dns.options))
        expect_equal(node, actual, expected[name], f"servers, searches, options of {name}")


@conformance(
    id="config-host-name",
    rules=["LIFE-133.2", "LIFE-133.6"],
    needs=[API],
    node_config={"clusterDomain": DOMAIN},
)
async def a_host_name_is_cut_and_a_full_one_is_not(node: Node) -> None:
    """A name of more than 63 characters is cut, and ends with no dash; with setHostnameAsFQDN the
    host name has its domain, and a pod whose full name is longer than 64 characters gets no
    sandbox."""
    long = f"{'a' * 60}---bc"
    full: dict[str, Any] = {"subdomain": "shop", "setHostnameAsFQDN": True}
    await node.api.create_pod(pod(long))
    await node.api.create_pod(pod("full", hostname="web", **full))
    await node.api.create_pod(pod("too-long", hostname="w" * 38, **full))
    await node.run_until(
        lambda: (
            node.events("FailedCreatePodSandBox", pod="too-long")
            and node.count("RunPodSandbox", pod="full")
            and node.count("RunPodSandbox", pod=long)
        ),
        within_s=limits.START_S,
        what="two sandboxes, and an event that there is no third",
    )
    expect_equal(node, sandbox(node, long).hostname, "a" * 60, "host name that is cut")
    name = f"web.shop.default.svc.{DOMAIN}"
    expect_equal(node, sandbox(node, "full").hostname, name, "full host name")
    expect_equal(node, node.count("RunPodSandbox", pod="too-long"), 0, "sandboxes of too-long")


@conformance(id="config-kernel", rules=["LIFE-133.5", "LIFE-133.7"], needs=[STATUS])
async def a_sandbox_is_as_privileged_as_its_most_privileged_container(node: Node) -> None:
    """A sandbox is privileged if an init container is; sysctls that are written with slashes reach
    the runtime with dots."""
    setup = container("setup", exits(0), securityContext={"privileged": True})
    settings = {"sysctls": [{"name": "net/ipv4/ip_unprivileged_port_start", "value": "1000"}]}
    await node.apply_static(pod("web", init=[setup], securityContext=settings))
    await node.apply_static(pod("plain"))
    await created(node)
    await node.run_until(lambda: node.count("RunPodSandbox") == 2, within_s=limits.START_S)
    expected = {"web": True, "plain": False}
    privileged = {n: sandbox(node, n).linux.security_context.privileged for n in expected}
    expect_equal(node, privileged, expected, "privileged")
    sysctls = dict(sandbox(node, "web").linux.sysctls)
    expect_equal(node, sysctls, {"net.ipv4.ip_unprivileged_port_start": "1000"}, "sysctls")
