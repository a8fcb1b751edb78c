"""Plug-ins that the kubelet finds by their sockets below plugins_registry, and registers."""

from __future__ import annotations

from fakecri.deviceplugin import FakeDevicePlugin
from fakecri.deviceplugin.registered import RegisteredPlugin
from kubelet_conformance.cases.resources.widgets import NEEDS, WIDGET, shows, with_widgets
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

DEVICE = "DevicePlugin"
FOUND_S = limits.START_S + 5.0


def widgets(*ids: str, name: str = WIDGET, versions: tuple[str, ...] = ("v1beta1",)) -> RegisteredPlugin:  # fmt: skip  # noqa: E501
    """A plug-in with these devices, whose device service is on the same socket."""
    device = FakeDevicePlugin(WIDGET, list(ids))
    return RegisteredPlugin(DEVICE, name, versions=versions, device=device)


async def told(node: Node, plugin: RegisteredPlugin, times: int = 1) -> tuple[bool, str]:
    """Run until the plug-in was told so often how its registration went: the last status."""
    await node.run_until(
        lambda: len(plugin.told) >= times, within_s=FOUND_S, what="a registration status"
    )
    return plugin.told[-1]


@conformance(id="plugin-found", rules=["CG-086.1", "CG-086.2", "CG-087.1"], needs=NEEDS)
async def a_device_plugin_is_found_and_registered(node: Node) -> None:
    """A device plugin whose socket appears below plugins_registry, in a directory of its own or
    not, is asked what it is and told that it is registered; its devices serve pods."""
    plugin = widgets("w1")
    await node.plugins.offer("vendor/widget.sock", plugin)
    expect_equal(node, await told(node, plugin), (True, ""), "status")
    await shows(node, "1")
    await node.api.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    await node.run_for(5)
    expect_equal(node, plugin.asked, 1, "calls of GetInfo")
    assert plugin.device is not None
    expect_equal(node, plugin.device.allocated, [("w1",)], "calls of Allocate")


@conformance(id="plugin-elsewhere", rules=["CG-086.2", "CG-087.1"], needs=NEEDS)
async def a_device_plugin_may_serve_at_another_socket(node: Node) -> None:
    """A device plugin that names another socket as its endpoint is called there."""
    service = widgets("w1")
    await node.plugins.offer(".service.sock", service)  # hidden: nobody registers it
    place = str(node.plugins.socket(".service.sock"))
    plugin = RegisteredPlugin(DEVICE, WIDGET, endpoint=place)
    await node.plugins.offer("widget.sock", plugin)
    expect_equal(node, await told(node, plugin), (True, ""), "status")
    await shows(node, "1")
    await node.api.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    assert service.device is not None
    expect_equal(node, service.device.allocated, [("w1",)], "calls of Allocate")


@conformance(id="plugin-hidden", rules=["CG-086.1"], needs=NEEDS)
async def hidden_sockets_are_not_asked(node: Node) -> None:
    """A socket whose name begins with a dot is not asked; nor is one in such a directory."""
    hidden, below, visible = widgets("w1"), widgets("w1"), widgets("w1")
    await node.plugins.offer(".widget.sock", hidden)
    await node.plugins.offer(".vendor/widget.sock", below)
    await node.plugins.offer("widget.sock", visible)
    expect_equal(node, await told(node, visible), (True, ""), "status")
    await node.run_for(3)
    expect_equal(node, (hidden.asked, below.asked), (0, 0), "calls of GetInfo")


@conformance(id="plugin-refused", rules=["CG-086.3", "CG-087.2"], needs=NEEDS)
async def a_plugin_that_cannot_be_registered_is_told(node: Node) -> None:
    """A plug-in of an unknown type, a device plugin of another version and one whose name is no
    resource are told why they are not registered; others are registered beside them."""
    other = RegisteredPlugin("Lamp", "light")
    version = widgets("w1", versions=("v9",))
    name = widgets("w1", name="widget")
    good = widgets("w1")
    for file, plugin in (("a", other), ("b", version), ("c", name), ("d", good)):
        await node.plugins.offer(f"{file}.sock", plugin)
    refusals = {
        "no handler registered for plugin type: Lamp": other,
        "manager version, v1beta1, is not among plugin supported versions": version,
        'the ResourceName "widget" is invalid': name,
    }
    for text, plugin in refusals.items():
        registered, error = await told(node, plugin)
        expect(node, not registered and text in error, f"a refusal with {text!r}", error)
    expect_equal(node, await told(node, good), (True, ""), "status of the good one")


@conformance(id="plugin-made-anew", rules=["CG-086.4", "CG-087.3"], needs=NEEDS)
async def a_socket_that_is_made_anew_is_registered_again(node: Node) -> None:
    """When the socket of a plug-in goes its devices are no longer allocatable; when it is made
    anew, the plug-in is registered again."""
    first, second = widgets("w1"), widgets("w1", "w2")
    await node.plugins.offer("widget.sock", first)
    await shows(node, "1")
    await node.plugins.withdraw("widget.sock")
    await shows(node, "0")
    await node.plugins.offer("widget.sock", second)
    expect_equal(node, await told(node, second), (True, ""), "status of the new one")
    await shows(node, "2")
    await node.plugins.offer("widget.sock", second)
    expect_equal(node, await told(node, second, 2), (True, ""), "status after the next")
    await shows(node, "2")


@conformance(id="plugin-socket-removed", rules=["CG-087.3", "CG-086.4"], needs=NEEDS)
async def a_plugin_without_its_socket_is_let_go(node: Node) -> None:
    """When the socket of a device plugin is removed its devices are no longer allocatable, although
    the plugin lives on."""
    plugin = widgets("w1")
    await node.plugins.offer("widget.sock", plugin)
    await shows(node, "1")
    node.plugins.remove_socket("widget.sock")
    await shows(node, "0")


@conformance(id="plugin-tried-again", rules=["CG-086.5"], needs=[*NEEDS, Feature.VIRTUAL_TIME])
async def a_plugin_that_fails_is_tried_again(node: Node) -> None:
    """A plug-in that does not tell what it is is asked again, after half a second, then after twice
    as long each time, at most about two minutes; others do not wait for it. Once it was registered
    the pauses begin anew."""
    broken, good = widgets("w1"), widgets("w1")
    broken.broken = "not yet"
    await node.plugins.offer("a.sock", broken)
    await node.run_for(60)
    expect(node, 5 <= broken.asked <= 9, "5 to 9 calls of GetInfo in a minute", broken.asked)
    good.name = "vendor.example/other"
    await node.plugins.offer("b.sock", good)
    expect_equal(node, await told(node, good), (True, ""), "status of the good one")
    before = broken.asked
    await node.run_for(1200)
    more = broken.asked - before
    expect(node, 8 <= more <= 14, "8 to 14 calls of GetInfo in 20 min", more)
    broken.broken = ""
    await node.run_until(lambda: broken.told, within_s=130, what="a registration status")
    expect_equal(node, broken.told, [(True, "")], "status")
    before, broken.broken = broken.asked, "not any more"
    await node.plugins.offer("a.sock", broken)
    await node.run_for(12)
    more = broken.asked - before
    expect(node, more >= 3, "three calls of GetInfo in 12 s of the one that was made anew", more)


@conformance(id="plugin-hangs", rules=["CG-086.6"], needs=[*NEEDS, Feature.VIRTUAL_TIME])
async def a_plugin_that_hangs_holds_up_no_other(node: Node) -> None:
    """GetInfo may take a second; a plug-in that hangs is not registered, and holds up no other."""
    slow, good = widgets("w1"), widgets("w1")
    slow.slow_s = 3600
    await node.plugins.offer("a.sock", slow)
    await node.plugins.offer("b.sock", good)
    expect_equal(node, await told(node, good), (True, ""), "status of the good one")
    await node.run_for(5)
    expect(node, slow.asked > 1, "the slow one is asked again", slow.asked)
    expect_equal(node, slow.told, [], "what the slow one was told")
