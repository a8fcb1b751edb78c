"""What resolvers do not take of a pod's DNS settings is left out, and told."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART
FORMING = "DNSConfigForming"
CHECKED = "CheckLimitsForResolvConf"
SERVERS = [f"192.0.2.{number}" for number in range(1, 5)]


def told(node: Node, name: str) -> tuple[list[str], list[str]]:
    """Servers and searches that the runtime got for the pod."""
    dns = node.calls("RunPodSandbox", pod=name)[0].request.config.dns_config
    return list(dns.servers), list(dns.searches)


def warnings(node: Node, reason: str) -> list[str]:
    """The messages of the warnings of that reason."""
    return [event["message"] for event in node.events(reason) if event["type"] == "Warning"]


def expect_searches_told(node: Node, kept: list[str]) -> None:
    """Expect a warning that shows the searches that are left."""
    message = (
        "Search Line limits were exceeded, some search paths have been omitted, the applied "
        f"search line is: {' '.join(kept)}"
    )
    expect(node, message in warnings(node, FORMING), message, warnings(node, FORMING))


@conformance(id="dns-too-many-servers", rules=["NODE-221.1", "NODE-221.2"], needs=[API, RESTART])
async def three_name_servers_are_kept(node: Node) -> None:
    """Of the four servers of the node's file and the pod's own the first three are kept, and a
    warning of the pod shows them."""
    file = node.machine.host_path("resolv.conf")
    file.write_text("".join(f"nameserver {server}\n" for server in SERVERS[:2]))
    await node.kubelet.restart(resolvConf=str(file))
    own = {"nameservers": SERVERS[2:]}
    await node.api.run_pods(pod("web", dnsPolicy="Default", dnsConfig=own))
    await node.run_for(limits.EVENTS_S)
    expect_equal(node, told(node, "web")[0], SERVERS[:3], "name servers")
    message = (
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied "
        f"nameserver line is: {' '.join(SERVERS[:3])}"
    )
    expect(node, message in warnings(node, FORMING), message, warnings(node, FORMING))


@conformance(id="dns-within-the-limits", rules=["NODE-221.1", "NODE-221.2"], needs=[API])
async def what_fits_is_kept_and_not_told(node: Node) -> None:
    """Three servers and 32 searches are all kept, and nothing is told."""
    searches = [f"s{number}.test" for number in range(32)]
    config = {"nameservers": SERVERS[:3], "searches": searches}
    await node.api.run_pods(pod("web", dnsPolicy="None", dnsConfig=config))
    await node.run_for(limits.EVENTS_S)
    expect_equal(node, told(node, "web"), (SERVERS[:3], searches), "servers and searches")
    expect_equal(node, warnings(node, FORMING), [], f"warnings {FORMING}")


@conformance(
    id="dns-too-many-searches", rules=["NODE-221.1", "NODE-221.2"], needs=[API, RESTART],
    node_config={"clusterDNS": ["192.0.2.10"], "clusterDomain": "cluster.test"},
)  # fmt: skip
async def thirty_two_searches_are_kept(node: Node) -> None:
    """Of 35 searches, three of the cluster and 32 of the node's file, the first 32 are kept. The
    start of the kubelet tells that the file has more than the 29 that leave room for the
    cluster's."""
    searches = [f"s{number}.test" for number in range(32)]
    file = node.machine.host_path("resolv.conf")
    file.write_text(f"nameserver 192.0.2.1\nsearch {' '.join(searches)}\n")
    await node.kubelet.restart(resolvConf=str(file))
    await node.api.run_pods(pod("web", dnsPolicy="ClusterFirst"))
    await node.run_for(limits.EVENTS_S)
    cluster = ["default.svc.cluster.test", "svc.cluster.test", "cluster.test"]
    first_searches = [*cluster, *searches[:29]]
    expect_equal(node, told(node, "web")[1], first_searches, "searches")
    expect_searches_told(node, first_searches)


@conformance(id="dns-long-search", rules=["NODE-221.1", "NODE-221.2"], needs=[API, RESTART])
async def a_search_that_is_too_long_is_left_out(node: Node) -> None:
    """A search of the node's file with more than 253 characters is left out, the shorter one behind
    it is kept; the start of the kubelet tells of it, and so does the pod."""
    long = ".".join(["a" * 60] * 5)
    file = node.machine.host_path("resolv.conf")
    file.write_text(f"nameserver 192.0.2.1\nsearch one.test {long} two.test\n")
    await node.kubelet.restart(resolvConf=str(file))
    await node.api.run_pods(pod("web", dnsPolicy="Default"))
    await node.run_for(limits.EVENTS_S)
    expect_equal(node, told(node, "web")[1], ["one.test", "two.test"], "searches")
    expect_searches_told(node, ["one.test", "two.test"])


@conformance(id="dns-long-searches", rules=["NODE-221.1", "NODE-221.2"], needs=[API, RESTART])
async def searches_that_are_too_long_together_are_cut_from_the_end(node: Node) -> None:
    """Ten searches of 250 characters in the node's file have more than 2048 together: the first
    eight are kept."""
    searches = [f"{number}{'.'.join(['a' * 60] * 4)}.abcd" for number in range(10)]
    file = node.machine.host_path("resolv.conf")
    file.write_text(f"nameserver 192.0.2.1\nsearch {' '.join(searches)}\n")
    await node.kubelet.restart(resolvConf=str(file))
    await node.api.run_pods(pod("web", dnsPolicy="Default"))
    await node.run_for(limits.EVENTS_S)
    expect_equal(node, told(node, "web")[1], searches[:8], "searches")
    expect_searches_told(node, searches[:8])


async def start_with_file(node: Node, text: str | None) -> list[str]:
    """Start the kubelet with that resolv.conf (None: there is no such file); the warnings."""
    file = node.machine.host_path("resolv.conf")
    if text is not None:
        file.write_text(text)
    await node.kubelet.restart(resolvConf=str(file))
    await node.run_for(limits.START_S + limits.EVENTS_S)
    return warnings(node, CHECKED)


@conformance(id="dns-file-checked", rules=["NODE-221.4"], needs=[API, RESTART])
async def the_nodes_file_is_checked_at_the_start(node: Node) -> None:
    """A kubelet tells at its start that its resolv.conf has more searches than pods can have."""
    searches = " ".join(f"s{number}.test" for number in range(33))
    messages = await start_with_file(node, f"nameserver 192.0.2.1\nsearch {searches}\n")
    expect_equal(node, len(messages), 1, f"warnings {CHECKED}")
    complaint = "contains search line consisting of more than 32 domains!"
    expect(node, complaint in messages[0], complaint, messages)


@conformance(id="dns-file-fits", rules=["NODE-221.4"], needs=[API, RESTART])
async def a_file_that_fits_is_not_told(node: Node) -> None:
    """A kubelet without a cluster domain is content with 32 searches."""
    searches = " ".join(f"s{number}.test" for number in range(32))
    messages = await start_with_file(node, f"nameserver 192.0.2.1\nsearch {searches}\n")
    expect_equal(node, messages, [], f"warnings {CHECKED}")


@conformance(id="dns-file-missing", rules=["NODE-221.4"], needs=[API, RESTART])
async def a_file_that_is_missing_is_told_at_the_start(node: Node) -> None:
    """A kubelet tells at its start that it cannot open its resolv.conf, and runs all the same."""
    messages = await start_with_file(node, None)
    expect_equal(node, len(messages), 1, f"warnings {CHECKED}")
    expect(node, messages[0].endswith("resolv.conf: no such file or directory"), "why", messages)
