"""What the kubelet tells of its machine, and tells its runtime of the Node."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, FAULTS, RESTART = Feature.API, Feature.FAULTS, Feature.RESTART
REGISTER_S = 7.0 + limits.START_S  # NODE-002: between two tries, and a start
UPDATE_S = 10.4  # NODE-010
RANGES = ["10.244.3.0/24", "fd00:3::/64"]


async def until_there(node: Node) -> None:
    """Run until there is a Node with a whole status."""
    await node.run_until(
        lambda: node.api.node_condition("Ready"), within_s=REGISTER_S + UPDATE_S, what="the Node"
    )


async def restart_after(node: Node, boot: str | None) -> None:
    """Stop the kubelet, write that boot ID into the Node's status (None: nothing), start it."""
    await until_there(node)
    await node.kubelet.stop()
    if boot is not None:
        patch = {"status": {"nodeInfo": {"bootID": boot}}}
        await node.api.patch_node(patch, status=True)
    await node.kubelet.start()
    await node.run_for(2 * UPDATE_S + limits.START_S)


@conformance(id="node-rebooted", rules=["NODE-034.1", "NODE-034.2"], needs=[API, RESTART])
async def another_boot_of_the_machine_is_told_once(node: Node) -> None:
    """A kubelet whose Node knows another boot of the machine tells so, in one warning with the ID
    of this boot, and writes that into the Node."""
    await until_there(node)
    own = node.api.node_status("nodeInfo")["bootID"]
    await restart_after(node, "an-earlier-boot")
    events = node.events("Rebooted")
    event_fields = [(event["type"], event["message"]) for event in events]
    text = f"Node {node.name} has been rebooted, boot id: {own}"
    expect_equal(node, event_fields, [("Warning", text)], "events Rebooted")
    expect_equal(node, events[0].get("count", 1), 1, "count of the event")
    expect_equal(node, node.api.node_status("nodeInfo")["bootID"], own, "bootID")


@conformance(id="node-not-rebooted", rules=["NODE-034.1"], needs=[API, RESTART])
async def a_restarted_kubelet_tells_of_no_reboot(node: Node) -> None:
    """A kubelet that is started again on the same boot of the machine tells of no reboot."""
    await restart_after(node, None)
    expect_equal(node, len(node.events("Rebooted")), 0, "events Rebooted")


def told(node: Node) -> list[str]:
    """The pod CIDRs that the runtime was told, call by call. A kubelet may tell them while it
    starts, which on a real runtime is before the case begins."""
    calls = node.calls("UpdateRuntimeConfig", since_s=-limits.START_S)
    return [call.request.runtime_config.network_config.pod_cidr for call in calls]


@conformance(id="pod-cidr-forwarded", rules=["NODE-014.1"], needs=[API], alone=True)
async def the_runtime_is_told_the_nodes_pod_ranges_once(node: Node) -> None:
    """The ranges that the Node is given go to the runtime with the next update of its status, with
    commas between them; and once only, while they stay the same."""
    await until_there(node)
    expect_equal(node, told(node), [], "pod CIDRs before there are any")
    await node.api.patch_node({"spec": {"podCIDR": RANGES[0], "podCIDRs": RANGES}})
    await node.run_until(lambda: told(node), within_s=UPDATE_S + 1, what="UpdateRuntimeConfig")
    await node.run_for(2 * UPDATE_S)
    expect_equal(node, told(node), [",".join(RANGES)], "pod CIDRs that the runtime was told")


@conformance(id="pod-cidr-refused", rules=["NODE-014.1"], needs=[API, FAULTS], alone=True)
async def pod_ranges_that_the_runtime_refuses_are_told_again(node: Node) -> None:
    """While the runtime refuses the ranges, they are told with each update of the Node's status."""
    await until_there(node)
    with node.runtime.on("UpdateRuntimeConfig").fails("UNKNOWN", "not now", times=1):
        await node.api.patch_node({"spec": {"podCIDR": RANGES[0], "podCIDRs": RANGES}})
        await node.run_until(
            lambda: len(told(node)) >= 2, within_s=2 * UPDATE_S + 1, what="a second call"
        )
    await node.run_for(2 * UPDATE_S)
    expect_equal(node, told(node), [",".join(RANGES)] * 2, "pod CIDRs that the runtime was told")


@conformance(id="pod-cidr-after-restart", rules=["NODE-014.1"], needs=[API, RESTART])
async def a_restarted_kubelet_tells_the_ranges_again(node: Node) -> None:
    """A kubelet that is started again tells the runtime, which may be a new one, the ranges of its
    Node."""
    await until_there(node)
    await node.api.patch_node({"spec": {"podCIDR": RANGES[0], "podCIDRs": RANGES}})
    await node.run_until(lambda: told(node), within_s=UPDATE_S + 1, what="UpdateRuntimeConfig")
    await node.kubelet.restart()
    await node.run_until(
        lambda: len(told(node)) >= 2,
        within_s=REGISTER_S + UPDATE_S,
        what="UpdateRuntimeConfig of the new kubelet",
    )
    expect_equal(node, set(told(node)), {",".join(RANGES)}, "pod CIDRs that the runtime was told")


@conformance(
    id="pod-cidr-standalone", rules=["NODE-014.2"], needs=[RESTART],
    node_config={"podCIDR": "10.99.0.0/24"},
)  # fmt: skip
async def without_a_cluster_the_configuration_has_the_range(node: Node) -> None:
    """A kubelet without an API server tells the runtime podCIDR of its configuration; one with a
    server does not."""
    await node.run_for(limits.START_S)
    expect_equal(node, told(node), ["10.99.0.0/24"], "pod CIDRs that the runtime was told")


@conformance(id="node-volumes-not-in-use", rules=["NODE-035.6"], needs=[API, RESTART])
async def volumes_of_an_earlier_kubelet_are_not_in_use(node: Node) -> None:
    """A Node that shows volumes in use which no pod has shows none after the kubelet's start: else
    nobody would detach them."""
    await until_there(node)
    await node.kubelet.stop()
    await node.api.patch_node({"status": {"volumesInUse": ["kubernetes.io/csi/a^b"]}}, status=True)
    await node.kubelet.start()
    await node.run_for(2 * UPDATE_S + limits.START_S)
    expect_equal(node, node.api.node_status("volumesInUse") or [], [], "volumesInUse")
