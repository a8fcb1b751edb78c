"""Device plugins: registration, allocation at admission, what containers get, what the Node shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import Container, container, pod
from conformance.harness.node import Node
from conformance.registry import Feature, conformance
from criapi.deviceplugin import api_pb2 as api
from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice

WIDGET: Final = "vendor.example/widget"
NEEDS: Final = (Feature.DEVICE_PLUGINS, Feature.API, Feature.STATUS)
UNEXPECTED: Final = "UnexpectedAdmissionError"


def with_widgets(count: int, name: str = "main", *more: Any, **fields: Any) -> Container:
    """A container that asks for that many widgets."""
    return container(name, *more, resources={"limits": {WIDGET: str(count)}}, **fields)


async def widgets(node: Node, *devices: str | PluginDevice) -> FakeDevicePlugin:
    """A registered plugin of widgets whose devices the Node shows."""
    plugin = FakeDevicePlugin(WIDGET, devices)
    await node.plug_in(plugin)
    await shows(node, str(len(devices)), "capacity")
    return plugin


async def shows(node: Node, number: str, kind: str = "allocatable") -> None:
    """Run until the Node shows so many widgets."""
    await node.run_until(
        lambda: getattr(node, kind)(WIDGET) == number,
        within_s=limits.NODE_STATUS_S,
        what=f"{kind} of the Node shows {number} widgets",
    )


async def rejected(node: Node, name: str) -> Mapping[str, Any]:
    """Run until the pod has failed; its status."""
    await node.run_until(
        lambda: (node.api_pod(name) or {}).get("status", {}).get("phase") == "Failed",
        within_s=limits.START_S,
        what=f"pod {name} is rejected",
    )
    status: Mapping[str, Any] = (node.api_pod(name) or {})["status"]
    return status


@conformance(id="device-allocate", rules=["CG-084"], needs=NEEDS)
async def a_container_gets_what_the_plugin_answers(node: Node) -> None:
    """Allocate is called once, at admission; variables, mounts, device files, annotations and CDI
    names of its answer are in CreateContainer."""
    plugin = FakeDevicePlugin(WIDGET, ["w1"])
    plugin.answers = lambda ids: api.ContainerAllocateResponse(
        envs={"WIDGET": ",".join(ids)},
        mounts=[api.Mount(container_path="/opt/w", host_path="/usr", read_only=True)],
        devices=[api.DeviceSpec(container_path="/dev/w", host_path="/dev/null", permissions="rw")],
        annotations={"vendor.example/w": "yes"},
        cdi_devices=[api.CDIDevice(name="vendor.example/w=1")],
    )
    await node.plug_in(plugin)
    await shows(node, "1")
    await node.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    expect_equal(node, plugin.allocated, [("w1",)], "calls of Allocate")
    (create,) = node.calls("CreateContainer", pod="web")
    config = create.request.config
    expect_equal(node, [e.value for e in config.envs if e.key == "WIDGET"], [b"w1"], "variable")
    mounts = [(m.host_path, m.container_path, m.readonly) for m in config.mounts]
    expect(node, ("/usr", "/opt/w", True) in mounts, "the plugin's mount", mounts)
    devices = [(d.host_path, d.container_path, d.permissions) for d in config.devices]
    expect_equal(node, devices, [("/dev/null", "/dev/w", "rw")], "device files")
    expect_equal(node, config.annotations["vendor.example/w"], "yes", "annotation")
    names = [device.name for device in config.CDI_devices]
    expect_equal(node, names, ["vendor.example/w=1"], "CDI devices")
