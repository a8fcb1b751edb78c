"""How storage drivers are registered, and what Node and CSINode say of them then (NODE-216)."""

from fakecri.csi import FakeCsiDriver
from fakecri.deviceplugin.registered import RegisteredPlugin, csi_plugin
from kubelet_conformance.cases.volumes.csi.common import (
    CALL_S,
    DISKS,
    FOUND_S,
    IN,
    NEEDS,
    RESTART,
    SOCKET,
    bind,
    expect_calls,
    register,
    run_pod,
    source,
    told,
    user,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.registry import Feature, conformance

TRIED_ONCE = KnownBug(
    "", "A driver that was refused after it had been found is not tried again.", fixed="1.36"
)


def labels(node: Node) -> dict[str, str]:
    """The labels of the Node."""
    return dict(node.api.node_metadata("labels") or {})


@conformance(
    id="csi-registered",
    rules=["NODE-216.1", "NODE-216.2", "NODE-216.3", "NODE-216.4"],
    needs=NEEDS,
)
async def a_driver_is_registered(node: Node) -> None:
    """A storage driver is asked for its node; what it says is in the Node's annotation and labels
    and in its CSINode, beside what others say."""
    await register(node, FakeCsiDriver("other.example", node_id="b"), "other.sock")
    driver = FakeCsiDriver(DISKS, node_id="a", max_volumes=7)
    driver.topology = {"disks.example/zone": "z1", "disks.example/rack": "r2"}
    await register(node, driver, versions=("2.0.0", "1.2.0", "0.3.0"))
    expect_equal(node, driver.methods("NodeGetInfo"), ["NodeGetInfo"], "calls of NodeGetInfo")
    expected_entry = {
        "name": DISKS,
        "nodeID": "a",
        "topologyKeys": ["disks.example/rack", "disks.example/zone"],
        "allocatable": {"count": 7},
    }
    await node.refresh()
    expect_equal(node, node.storage.listed_driver(DISKS), expected_entry, "driver in the CSINode")
    other = node.storage.listed_driver("other.example")
    entry_fields = other.get("nodeID"), other.get("topologyKeys") or [], other.get("allocatable")
    expect_equal(node, entry_fields, ("b", [], None), "what the CSINode says of the other")
    ids = node.storage.node_ids()
    expect_equal(node, ids, {DISKS: "a", "other.example": "b"}, "annotation of the Node")
    topology_labels = {key: labels(node).get(key) for key in driver.topology}
    expect_equal(node, topology_labels, driver.topology, "labels of the Node")


@conformance(id="csi-version-refused", rules=["NODE-216.1"], needs=NEEDS)
async def a_driver_of_another_version_is_refused(node: Node) -> None:
    """A driver without a version 1.x is not registered, and is told why."""
    texts = {
        (): "Plugin returned an empty list for supported versions",
        ("2.0.0", "0.9.0"): (
            'None of the versions specified ["2.0.0" "0.9.0"] are supported. err=highest supported '
            "version reported is 0.9.0, must be v1.x"
        ),
    }
    for number, (versions, text) in enumerate(texts.items()):
        driver = FakeCsiDriver(f"d{number}.example")
        plugin = csi_plugin(driver, versions=versions)
        await node.plugins.offer(f"d{number}.sock", plugin)
        registered, error = await told(node, plugin)
        above = (
            f"validation failed for CSI Driver {driver.name} at endpoint "
            f"{node.plugins.socket(f'd{number}.sock')}: kubernetes.io/csi: ValidatePlugin for CSI "
            f'driver "{driver.name}" failed. '
        )
        expect(node, not registered and error.endswith(above + text), above + text, error)
        expect_equal(node, driver.methods(), [], "calls of the driver")


@conformance(id="csi-same-name", rules=["NODE-216.1"], needs=NEEDS)
async def the_first_of_two_drivers_of_one_name_counts(node: Node) -> None:
    """A second driver of the same name is registered only with a higher version."""
    first, second, third = (FakeCsiDriver(DISKS, max_volumes=count) for count in (1, 2, 3))
    await register(node, first, versions=("1.1.0", "1.3.0"))
    plugin = csi_plugin(second, versions=("1.3.0",))
    await node.plugins.offer("second.sock", plugin)
    registered, error = await told(node, plugin)
    refusal = (
        "Another driver with the same name is already registered with a higher supported version: "
        '"1.3.0"'
    )
    expect(node, not registered and refusal in error, refusal, error)
    await register(node, third, "third.sock", versions=("1.4.0",))
    await node.refresh()
    count = node.storage.listed_driver(DISKS)["allocatable"]
    expect_equal(node, count, {"count": 3}, "volumes of the driver")


async def refused(node: Node, driver: FakeCsiDriver) -> tuple[RegisteredPlugin, str]:
    """Offer the driver, and expect that it is not registered: its plug-in, and what it was told."""
    plugin = csi_plugin(driver)
    await node.plugins.offer(SOCKET, plugin)
    registered, error = await told(node, plugin)
    expect(node, not registered, "a refusal", error)
    await node.refresh()
    expect_equal(node, node.storage.listed_driver(DISKS), {}, "driver in the CSINode")
    expect_equal(node, node.storage.node_ids(), {}, "annotation of the Node")
    return plugin, error


@conformance(
    id="csi-node-info-fails", rules=["NODE-216.2", "CG-086.5"], needs=NEEDS, bugs=[TRIED_ONCE]
)
async def a_driver_that_does_not_know_the_node_is_refused(node: Node) -> None:
    """A driver whose NodeGetInfo fails is told so and not used; it is tried again, and registered
    when it answers."""
    driver = FakeCsiDriver(DISKS, node_id="a")
    driver.fails("NodeGetInfo", "not yet", code="UNAVAILABLE", times=2)
    plugin, error = await refused(node, driver)
    refusal = "rpc error: code = Unavailable desc = not yet"
    expect(node, error.endswith(refusal), refusal, error)
    await node.run_until(
        lambda: plugin.told[-1] == (True, ""), within_s=FOUND_S, what="the driver is registered"
    )
    await node.refresh()
    expect_equal(node, node.storage.node_ids(), {DISKS: "a"}, "annotation of the Node")


@conformance(id="csi-refused-later", rules=["NODE-216.2", "NODE-216.6"], needs=RESTART)
async def a_driver_that_is_refused_is_taken_out(node: Node) -> None:
    """A driver that has been registered, and that a new kubelet refuses, is no longer in CSINode
    and annotation."""
    driver = FakeCsiDriver(DISKS)
    plugin = await register(node, driver)
    await node.kubelet.stop()
    driver.fails("NodeGetInfo", "lost")
    await node.kubelet.start()
    await told(node, plugin, 2)
    await node.run_until(
        lambda: not node.storage.listed_driver(DISKS) and not node.storage.node_ids(),
        within_s=limits.START_S,
        what="the driver is not named any more",
    )


@conformance(
    id="csi-node-id-changes",
    rules=["NODE-216.4", "NODE-216.2"],
    needs=RESTART,
    bugs=[TRIED_ONCE],
    except_laws={"nothing-refused": "the server does not let CSINode change"},
)
async def a_driver_may_call_the_node_something_else(node: Node) -> None:
    """When a driver says another thing of the node than CSINode does, which the API does not let
    change, it is refused and taken out; at the next try it is registered anew."""
    driver = FakeCsiDriver(DISKS, node_id="old")
    plugin = await register(node, driver)
    await node.kubelet.stop()
    driver.node_id = "new"
    await node.kubelet.start()
    registered, error = await told(node, plugin, 2)
    refusal = "error updating CSINode object with CSI driver node info: error updating CSINode: "
    expect(node, not registered and refusal in error, refusal, error)
    expect_equal(node, await told(node, plugin, 3), (True, ""), "status of the next try")
    await node.refresh()
    node_ids = node.storage.listed_driver(DISKS)["nodeID"], node.storage.node_ids()
    expect_equal(node, node_ids, ("new", {DISKS: "new"}), "CSINode and annotation")


@conformance(id="csi-node-info-hangs", rules=["NODE-216.2"], needs=[*NEEDS, Feature.VIRTUAL_TIME])
async def a_driver_may_take_two_minutes_to_know_the_node(node: Node) -> None:
    """A driver whose NodeGetInfo takes longer than two minutes is refused; others are registered
    meanwhile."""
    driver = FakeCsiDriver(DISKS)
    driver.hangs("NodeGetInfo", times=1)
    plugin = csi_plugin(driver)
    began_s = node.now_s
    await node.plugins.offer(SOCKET, plugin)
    await register(node, FakeCsiDriver("other.example"), "other.sock")
    expect_equal(node, plugin.told, [], "what the slow one was told")
    await node.run_until(
        lambda: plugin.told, within_s=CALL_S + limits.REGISTER_S, what="a status after two minutes"
    )
    refusal = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    expect(node, plugin.told[0][1].endswith(refusal), refusal, plugin.told)
    expect(node, node.now_s - began_s > CALL_S - 1, "two minutes", node.now_s - began_s)


@conformance(id="csi-node-id-empty", rules=["NODE-216.2"], needs=NEEDS)
async def a_driver_without_a_name_for_the_node_is_refused(node: Node) -> None:
    """A driver that has no ID for the node is not registered."""
    _, error = await refused(node, FakeCsiDriver(DISKS, node_id=""))
    refusal = "error adding CSI driver node info: driverNodeID must not be empty"
    expect(node, error.endswith(refusal), refusal, error)


@conformance(id="csi-topology-collision", rules=["NODE-216.3"], needs=NEEDS, bugs=[TRIED_ONCE])
async def a_label_is_not_changed_by_a_driver(node: Node) -> None:
    """A driver whose topology says another thing than a label of the Node is not registered."""
    await node.run_until(node.api.node_uid, within_s=limits.START_S, what="the Node")
    await node.api.patch_node({"metadata": {"labels": {"zone": "z1"}}})
    driver = FakeCsiDriver(DISKS, topology={"zone": "z2"})
    plugin, error = await refused(node, driver)
    refusal = (
        "error updating Node object with CSI driver node info: error updating node: timed out "
        "waiting for the condition; caused by: detected topology value collision: driver reported "
        '"zone":"z2" but existing label is "zone":"z1"'
    )
    expect(node, error.endswith(refusal), refusal, error)
    expect_equal(node, labels(node)["zone"], "z1", "label of the Node")
    driver.topology = {"zone": "z1"}
    await node.run_until(
        lambda: plugin.told[-1] == (True, ""), within_s=FOUND_S, what="the driver is registered"
    )


@conformance(id="csi-driver-elsewhere", rules=["CG-086.2", "NODE-216.1"], needs=NEEDS)
async def a_driver_may_serve_at_another_socket(node: Node) -> None:
    """A plug-in that names another socket as its endpoint is called there: the one where it was
    found knows of registrations only."""
    await node.storage.describe_driver(DISKS)
    driver = FakeCsiDriver(DISKS)
    await node.plugins.offer(".service.sock", csi_plugin(driver))  # hidden: nobody registers it
    place = str(node.plugins.socket(".service.sock"))
    plugin = RegisteredPlugin("CSIPlugin", DISKS, versions=("1.0.0",), endpoint=place)
    await node.plugins.offer(SOCKET, plugin)
    expect_equal(node, await told(node, plugin), (True, ""), "status of the registration")
    await bind(node, source())
    await run_pod(node, user())
    expect_calls(node, driver, IN)
