"""The device manager with plugins that behave, lie and die (CG-084)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from device_world import WIDGET, DeviceWorld, Towards, asking
from kubecri.deviceplugin import api_pb2 as api
from pods import make_pod, named

from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice
from refkubelet.container_manager.devices import checkpoint
from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.container_manager.devices.plugins import PluginError
from refkubelet.container_manager.devices.types import Allotment
from refkubelet.container_manager.providers.hints import AllocationError, TopologyHint
from refkubelet.model.objects import ContainerStatus, PodStatus

pytestmark = pytest.mark.virtual_time


async def test_devices_are_given_once_and_come_back_CG_084(world: DeviceWorld) -> None:
    await world.plugin("a", "b")
    one, two, three = (make_pod(asking(1), name=name) for name in ("one", "two", "three"))
    assert await world.admit(one) is None
    assert await world.admit(two) is None
    assert (world.given(one), world.given(two)) == (["a"], ["b"])
    assert await world.admit(three) == (
        "Allocate failed due to requested number of devices unavailable for "
        f"{WIDGET}. Requested: 1, Available: 0, which is unexpected"
    )
    world.pods.remove(one)
    assert await world.admit(three) is None
    assert world.given(three) == ["a"]


async def test_nothing_is_taken_back_before_all_sources_were_seen_CG_084(
    world: DeviceWorld,
) -> None:
    await world.plugin("a")
    await world.admit(make_pod(asking(1), name="one"))
    world.pods.clear()
    world.sources_ready = False
    assert "Requested: 1, Available: 0" in str(await world.admit(make_pod(asking(1), name="two")))
    world.sources_ready = True
    assert await world.admit(make_pod(asking(1), name="two")) is None


async def test_a_resource_that_no_plugin_registered_is_not_looked_at_CG_084(
    world: DeviceWorld,
) -> None:
    await world.plugin("a")
    plain = make_pod(asking(5, resource="vendor.example/other"), asking(0, "zero"), name="plain")
    assert await world.admit(plain) is None
    assert world.given(plain) == []


async def test_allocating_again_changes_nothing_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin("a", "b")
    one = make_pod(asking(1), name="one")
    await world.admit(one)
    await world.manager.allocate(one, named(one))
    assert plugin.allocated == [("a",)]
    changed = make_pod(asking(2), name="one")
    with pytest.raises(AllocationError, match="changed request for resource"):
        await world.manager.allocate(changed, named(changed))


async def test_init_containers_hand_their_devices_on_CG_084(world: DeviceWorld) -> None:
    await world.plugin("a", "b", "c")
    init = [asking(2, "first"), asking(1, "side", restartPolicy="Always"), asking(1, "second")]
    one = make_pod(asking(2), name="one", init=init)
    assert await world.admit(one) is None
    given = {n: world.given(one, n) for n in ("first", "side", "second", "main")}
    assert given == {"first": ["a", "b"], "side": ["a"], "second": ["b"], "main": ["b", "c"]}


async def test_the_devices_of_one_pod_are_not_left_to_another_CG_084(world: DeviceWorld) -> None:
    await world.plugin("a", "b")
    await world.admit(make_pod("main", name="one", init=[asking(1, "first")]))
    two = make_pod(asking(1), name="two")
    await world.admit(two)
    assert world.given(two) == ["b"]


@pytest.mark.parametrize(
    ("mask", "prefers", "given"),
    [
        (0b10, [], ["c", "d"]),
        (0b01, [], ["a", "b"]),
        (0b10, ["e", "b"], ["c", "e"]),  # b is not near: the plugin cannot have it
    ],
)
async def test_near_devices_first_then_preferred_ones_CG_084(
    world: DeviceWorld, mask: int, prefers: list[str], given: list[str]
) -> None:
    nodes = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 1}
    plugin = FakeDevicePlugin(WIDGET, [PluginDevice(n, nodes=(w,)) for n, w in nodes.items()])
    plugin.preferred_allocation = bool(prefers)
    plugin.prefers = lambda available, must, size: prefers
    await world.plugins.start(plugin)
    await world.clock.sleep(0.1)
    world.affinities = Towards(mask)
    one = make_pod(asking(2), name="one")
    assert await world.admit(one) is None
    assert world.given(one) == given


async def test_with_too_few_near_devices_the_plugin_chooses_the_rest_CG_084(
    world: DeviceWorld,
) -> None:
    nodes = {"a": 0, "b": 0, "c": 1}
    plugin = FakeDevicePlugin(WIDGET, [PluginDevice(n, nodes=(w,)) for n, w in nodes.items()])
    plugin.preferred_allocation = True
    plugin.prefers = lambda available, must, size: ["b", *must]
    await world.plugins.start(plugin)
    await world.clock.sleep(0.1)
    world.affinities = Towards(0b10)
    one = make_pod(asking(2), name="one")
    await world.admit(one)
    assert world.given(one) == ["b", "c"]
    (asked,) = [c for c in plugin.calls if c.method == "GetPreferredAllocation"]
    (wish,) = asked.request.container_requests
    assert (list(wish.must_include_deviceIDs), wish.allocation_size) == (["c"], 2)


async def test_registrations_and_allocations_are_counted_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin("a")
    await world.plugins.start(plugin)
    plugin.delays("Allocate", 0.3)
    await world.admit(make_pod(asking(1), name="one"))
    counted = world.manager.metrics
    assert counted.registrations == {WIDGET: 2}
    assert counted.allocations[WIDGET].sum_s == pytest.approx(0.3)
    assert dict(counted.allocations[WIDGET].cumulative())["0.5"] == 1


async def test_a_failing_preference_rejects_the_pod_and_takes_nothing_CG_084(
    world: DeviceWorld,
) -> None:
    plugin = FakeDevicePlugin(WIDGET, "ab")
    plugin.preferred_allocation = True
    plugin.fails("GetPreferredAllocation", "cannot choose", times=1)
    await world.plugins.start(plugin)
    await world.clock.sleep(0.1)
    assert await world.admit(make_pod(asking(1), name="one")) == (
        "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: "
        "rpc error: code = Unknown desc = cannot choose, which is unexpected"
    )
    assert await world.admit(make_pod(asking(2), name="two")) is None


async def test_hints_for_containers_and_pods_CG_083(world: DeviceWorld) -> None:
    await world.plugin(PluginDevice("a", nodes=(0,)), PluginDevice("b", nodes=(1,)))
    await world.plugin("x", resource="vendor.example/flat")
    flat = asking(1, "flat", "vendor.example/flat")
    one = make_pod(asking(1), flat, name="one")
    both = (TopologyHint(0b01, True), TopologyHint(0b10, True), TopologyHint(0b11, False))
    assert world.manager.topology_hints(one, named(one)) == {WIDGET: both}
    no_preference = {"vendor.example/flat": None}
    assert world.manager.topology_hints(one, named(one, "flat")) == no_preference
    assert world.manager.pod_topology_hints(one) == {WIDGET: both} | no_preference
    await world.admit(one)
    kept = {WIDGET: (TopologyHint(0b01, True), TopologyHint(0b11, False))}
    assert world.manager.topology_hints(one, named(one)) == kept
    greedy = make_pod(asking(2), name="two")
    assert world.manager.topology_hints(greedy, named(greedy)) == {WIDGET: ()}


async def test_what_a_container_gets_and_when_its_plugin_is_told_CG_084(world: DeviceWorld) -> None:
    plugin = FakeDevicePlugin(WIDGET, "ab")
    plugin.pre_start_required = True
    await world.plugins.start(plugin)
    other = await world.plugin("z", resource="vendor.example/other")
    other.answers = lambda ids: api.ContainerAllocateResponse(
        envs={"OTHER": "z", "DEVICES_VENDOR_EXAMPLE_WIDGET": "no"}
    )
    limits = {WIDGET: "2", "vendor.example/other": "1"}
    one = make_pod({"name": "main", "resources": {"limits": limits}}, "plain", name="one")
    await world.admit(one)
    settings = await world.manager.settings(one, named(one))
    assert settings.envs == {"DEVICES_VENDOR_EXAMPLE_WIDGET": "a,b", "OTHER": "z"}
    told = [c.request.devices_ids for c in plugin.calls if c.method == "PreStartContainer"]
    assert [list(ids) for ids in told] == [["a", "b"]]
    assert (await world.manager.settings(one, named(one, "plain"))).envs == {}


async def test_a_pre_start_that_hangs_is_given_up_after_30_s_CG_084(world: DeviceWorld) -> None:
    plugin = FakeDevicePlugin(WIDGET, "a")
    plugin.pre_start_required = True
    plugin.hangs("PreStartContainer")
    await world.plugins.start(plugin)
    await world.clock.sleep(0.1)
    one = make_pod(asking(1), name="one")
    await world.admit(one)
    began_s = world.clock.monotonic_s()
    with pytest.raises(AllocationError, match="DeadlineExceeded"):
        await world.manager.settings(one, named(one))
    assert world.clock.monotonic_s() - began_s == pytest.approx(30)


async def test_an_allocate_that_hangs_is_given_up_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin("a")
    plugin.hangs("Allocate", times=1)
    assert "code = DeadlineExceeded" in str(await world.admit(make_pod(asking(1), name="one")))
    assert await world.admit(make_pod(asking(1), name="two")) is None


async def test_a_container_without_devices_in_the_books_gets_them_at_its_start_CG_084(
    world: DeviceWorld,
) -> None:
    one = make_pod(asking(1), name="one")
    assert await world.admit(one) is None  # nothing was registered yet
    await world.plugin("a")
    assert (await world.manager.settings(one, named(one))).envs != {}
    assert world.given(one) == ["a"]
    over = make_pod(asking(1), name="over")
    assert (await world.manager.settings(over, named(over))).envs == {}


async def test_health_in_the_status_of_pods_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin("a", "b")
    one = make_pod(asking(2), "plain", name="one")
    await world.admit(one)
    plugin.set_health("b", "Melted")
    await world.clock.sleep(0.1)
    assert world.health_changed == ["uid-one"]
    names = ("main", "plain")
    statuses = [
        ContainerStatus(name=n, image="", imageID="", ready=True, restartCount=0) for n in names
    ]
    shown = world.manager.with_health(one, PodStatus(containerStatuses=statuses))
    main, plain = shown.containerStatuses or ()
    (row,) = main.allocatedResourcesStatus or ()
    health = [(r.resourceID, r.health) for r in row.resources or ()]
    assert (row.name, health) == (WIDGET, [("a", "Healthy"), ("b", "Unhealthy")])
    assert plain.allocatedResourcesStatus is None
    other = PodStatus(containerStatuses=statuses)
    assert world.manager.with_health(make_pod(asking(1), name="two"), other) is other


# Restarts


async def test_a_restart_keeps_what_running_containers_have_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin("a", "b")
    one = make_pod(asking(1), name="one")
    await world.admit(one)
    await world.plugins.stop(plugin)
    world.sources_ready = False
    world.running = [("uid-one", "main")]
    await world.restart()
    assert world.manager.amounts() == Amounts({WIDGET: 0}, {WIDGET: 0})
    await world.manager.allocate(one, named(one))  # it runs: nothing is asked
    world.sources_ready = True
    await world.plugins.start(plugin)
    await world.clock.sleep(0.1)
    two = make_pod(asking(1), name="two")
    assert await world.admit(two) is None
    assert (world.given(one), world.given(two)) == (["a"], ["b"])
    assert plugin.allocated == [("a",), ("b",)]


async def test_after_a_reboot_pods_wait_for_nothing_and_are_refused_CG_084(
    world: DeviceWorld,
) -> None:
    plugin = await world.plugin("a")
    one = make_pod(asking(1), name="one")
    await world.admit(one)
    await world.plugins.stop(plugin)
    world.sources_ready = False  # and nothing runs
    await world.restart()
    with pytest.raises(AllocationError, match="no healthy devices present"):
        await world.manager.allocate(one, named(one))


async def test_faithful_plugins_come_back_after_a_restart_CG_084(world: DeviceWorld) -> None:
    await world.plugin("a")
    await world.restart()
    assert world.manager.amounts().allocatable == {WIDGET: 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "not a checkpoint of devices"), ('{"Data":{},"Checksum":1}', "not a checkpoint")],
)
async def test_a_broken_checkpoint_is_told_and_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, says: str
) -> None:
    file = tmp_path / "device-plugins" / "kubelet_internal_checkpoint"
    file.parent.mkdir()
    file.write_text(text)

    world = DeviceWorld(tmp_path)
    assert not world.manager.node_is_new
    await world.start()
    await world.plugin("a")
    assert await world.admit(make_pod(asking(1), name="one")) is None
    await world.stop()
    assert f"{file}: " in caplog.text
    assert says in caplog.text


async def test_a_row_whose_answer_is_none_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "device-plugins" / "kubelet_internal_checkpoint"
    file.parent.mkdir()
    rows = [
        ("uid-one", "main", WIDGET, Allotment({-1: ("a",)}, b"\xff\xff")),
        ("uid-two", "main", WIDGET, Allotment({-1: ("b",)}, b"")),
    ]
    file.write_text(checkpoint.write(rows, {WIDGET: "ab"}))

    world = DeviceWorld(tmp_path)
    world.pods = [make_pod(asking(1), name="one"), make_pod(asking(1), name="two")]
    assert [world.given(each) for each in world.pods] == [[], ["b"]]
    assert "row of ('uid-one', 'main', 'vendor.example/widget')" in caplog.text


async def test_a_checkpoint_that_cannot_be_written_rejects_the_pod(
    world: DeviceWorld, caplog: pytest.LogCaptureFixture
) -> None:
    (world.root_dir / "device-plugins").write_text("a file, where a directory should be")
    await world.plugin("a")
    message = await world.admit(make_pod(asking(1), name="one"))
    assert "Allocate failed due to failed to write checkpoint file" in str(message)
    assert "cannot write" in caplog.text


async def test_a_node_without_a_checkpoint_is_new(tmp_path: Path) -> None:
    assert DeviceWorld(tmp_path).manager.node_is_new


async def test_what_is_being_given_is_not_free_for_others_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin("a", "b")
    names = ("over", "one", "two", "three")
    over, one, two, three = (make_pod(asking(1), name=name) for name in names)
    await world.admit(over)
    plugin.delays("Allocate", 5.0, times=1)
    first = asyncio.create_task(world.admit(one))
    await world.clock.sleep(1)
    world.pods.remove(over)
    world.given(one)  # a monitor asks, and what was over's becomes free
    await first
    assert await world.admit(two) is None
    assert "Requested: 1, Available: 0" in str(await world.admit(three))
    assert sorted((*world.given(one), *world.given(two))) == ["a", "b"]


async def test_many_pods_at_once_share_no_device_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin(*(f"d{n:02}" for n in range(20)))
    plugin.delays("Allocate", 1.0)
    pods = [make_pod(asking(2), name=f"p{n}") for n in range(12)]
    answers = await asyncio.gather(*(world.admit(one) for one in pods))
    assert [answer is None for answer in answers].count(True) == 10
    given = [device for one in pods for device in world.given(one)]
    assert len(given) == len(set(given)) == 20


async def test_a_plugin_found_elsewhere_is_taken_and_lost_CG_087(world: DeviceWorld) -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a"])
    world.plugins.listen_at("/registry/a.sock", plugin)
    await world.manager.found(WIDGET, "/registry/a.sock")
    await world.clock.sleep(0.1)
    one = make_pod(asking(1), name="one")
    assert await world.admit(one) is None
    assert plugin.allocated == [("a",)]
    await world.manager.lost(WIDGET)
    refused = await world.admit(make_pod(asking(1), name="two"))
    assert f"no healthy devices present; cannot allocate unhealthy devices {WIDGET}" in str(refused)
    await world.plugin("b")
    await world.manager.lost(WIDGET)  # it is another one's now
    assert await world.admit(make_pod(asking(1), name="three")) is None


async def test_a_plugin_that_is_not_there_is_refused_CG_087(world: DeviceWorld) -> None:
    with pytest.raises(PluginError, match="failed to dial device plugin"):
        await world.manager.found(WIDGET, "/registry/gone.sock")
    await world.manager.lost(WIDGET)
