"""What the command line says of the node: its name, its addresses, its labels."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, RESTART = Feature.API, Feature.STATUS, Feature.RESTART
REGISTER_S = 7.0 + limits.START_S  # NODE-002: between two tries, and a start
UPDATE_S = 10.4  # NODE-010


async def restarted_without_its_node(node: Node, *flags: str) -> None:
    """Restart the kubelet with these flags when its Node was deleted, and run until there is
    another."""
    await node.run_until(node.api.node_uid, within_s=REGISTER_S, what="the Node")
    await node.kubelet.stop()
    await node.api.delete_node()
    await node.kubelet.start(*flags)
    await node.run_until(node.api.node_uid, within_s=REGISTER_S, what="another Node")


def internal(node: Node) -> list[str]:
    """The addresses of type InternalIP."""
    rows = node.api.node_status("addresses") or []
    return [row["address"] for row in rows if row["type"] == "InternalIP"]


@conformance(id="node-name-trimmed", rules=["NODE-001.1", "NODE-001.2"], needs=[API, RESTART])
async def the_name_of_a_node_is_in_lower_case(node: Node) -> None:
    """The name that --hostname-override gives is taken without blanks around it and in lower case;
    with blanks alone the kubelet does not start."""
    await restarted_without_its_node(node, f"--hostname-override= {node.name.upper()} ")
    names = [r.body["metadata"]["name"] for r in node.api.requests("POST", r"/api/v1/nodes$")]
    expect_equal(node, set(names), {node.name}, "names of the Nodes that were made")
    error = await node.kubelet.refused_start("--hostname-override=  ")
    text = "empty hostname is invalid"
    expect(node, text in error, f"a kubelet that ends with {text!r}", error)


@conformance(
    id="node-two-addresses",
    rules=["NODE-032.1", "NODE-032.2", "LIFE-176"],
    needs=[API, STATUS, RESTART, Feature.TWO_FAMILIES],
)
async def a_node_of_two_families_has_two_addresses(node: Node) -> None:
    """With an address of each family in --node-ip the Node shows both, in that order, and so do
    pods of the host network; the first is hostIP and podIP. Two of one family are refused."""
    ipv4, ipv6 = node.machine.addresses()
    for number, pair in enumerate(([ipv4, ipv6], [ipv6, ipv4])):
        await node.kubelet.restart(f"--node-ip={','.join(pair)}")
        await node.run_until(
            lambda pair=pair: internal(node) == pair,  # type: ignore[misc]
            within_s=REGISTER_S + UPDATE_S,
            what=f"the addresses {pair}",
        )
        kinds = [row["type"] for row in node.api.node_status("addresses")]
        expect_equal(node, kinds, ["InternalIP", "InternalIP", "Hostname"], "types of addresses")
        name = f"host-{number}"
        await node.api.run_pods(pod(name, hostNetwork=True))
        status = (node.api.pod(name) or {})["status"]
        shown = [[row["ip"] for row in status[field]] for field in ("hostIPs", "podIPs")]
        expect_equal(node, shown, [pair, pair], "hostIPs and podIPs")
        expect_equal(node, (status["hostIP"], status["podIP"]), (pair[0],) * 2, "hostIP and podIP")
    error = await node.kubelet.refused_start(f"--node-ip={ipv4},{ipv4}")
    text = "must contain either a single IP or a dual-stack pair of IPs"
    expect(node, text in error, f"a kubelet that ends with {text!r}", error)


@conformance(
    id="node-labels", rules=["NODE-003.2", "CFG-011", "CFG-010.1"], needs=[API, RESTART],
)  # fmt: skip
async def labels_of_the_command_line_win(node: Node) -> None:
    """The labels of --node-labels are those of a new Node, also in the place of its own; of those
    of Kubernetes only some may be given: with others the kubelet does not start, and names them."""
    given = {
        "team": "a",
        "kubernetes.io/arch": "other",
        "node.kubernetes.io/instance-type": "small",
        "kubelet.kubernetes.io/anything": "yes",
        "below.node.kubernetes.io/x": "y",
        "topology.kubernetes.io/zone": "z",
    }
    words = ",".join(f"{key}={value}" for key, value in given.items())
    await restarted_without_its_node(node, f"--node-labels={words}")
    body = node.api.requests("POST", r"/api/v1/nodes$")[-1].body
    labels = body["metadata"]["labels"]
    expect_equal(node, {key: labels.get(key) for key in given}, given, "labels of the command line")
    expect_equal(node, labels.get("kubernetes.io/hostname"), node.name, "another label")
    wrong = ("kubernetes.io/other", "sub.k8s.io/x", "other.kubernetes.io/y")
    error = await node.kubelet.refused_start(f"--node-labels={','.join(f'{w}=1' for w in wrong)}")
    text = (
        "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: "
        f"[{' '.join(sorted(wrong))}]"
    )
    expect(node, text in error, f"a kubelet that ends with {text!r}", error)


@conformance(id="node-provider-id", rules=["NODE-003.3"], needs=[API, RESTART])
async def a_new_node_has_the_name_that_its_provider_has_for_it(node: Node) -> None:
    """The providerID of the configuration is that of a new Node; one that is there already keeps
    what it has, and without one the field is not there."""
    await node.run_until(node.api.node_uid, within_s=REGISTER_S, what="the Node")
    spec = (node.api.node_object() or {}).get("spec", {})
    expect(node, "providerID" not in spec, "no providerID by default", spec)
    await node.kubelet.restart(providerID="cloud:///one")
    await node.run_for(UPDATE_S)
    spec = (node.api.node_object() or {}).get("spec", {})
    expect(node, "providerID" not in spec, "no providerID of a Node that is there", spec)
    await restarted_without_its_node(node)
    body = node.api.requests("POST", r"/api/v1/nodes$")[-1].body
    expect_equal(node, body["spec"].get("providerID"), "cloud:///one", "providerID")


@conformance(id="node-labels-malformed", rules=["CFG-011"], needs=[API, RESTART])
async def what_is_no_label_ends_the_start(node: Node) -> None:
    """What has no `=` in --node-labels is a label without a value, and blanks around names do not
    count. With keys or values that no object may have the kubelet does not start, and names
    them."""
    await restarted_without_its_node(node, "--node-labels=team,, zone = z ,last=")
    body = node.api.requests("POST", r"/api/v1/nodes$")[-1].body
    labels = {key: body["metadata"]["labels"].get(key) for key in ("team", "zone", "last")}
    expect_equal(node, labels, {"team": "", "zone": "z", "last": ""}, "labels")
    for given in ("-team=a", "team=a b", f"team={'a' * 64}", "a/b/c=d", "team=a=b"):
        error = await node.kubelet.refused_start(f"--node-labels={given}")
        words = "invalid node labels"
        expect(node, words in error, f"a kubelet that ends with {words!r} for {given}", error)
        await node.kubelet.start("--node-labels=team=a")
