"""Helpers of the cases about devices: widgets, the devices of a fake plugin, and waiting for
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.manifests import Container, container
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature

WIDGET: Final = "vendor.example/widget"
NEEDS: Final = (Feature.DEVICE_PLUGINS, Feature.API, Feature.STATUS)
UNEXPECTED: Final = "UnexpectedAdmissionError"


def with_widgets(count: int, name: str = "main", *more: Any, **fields: Any) -> Container:
    """A container that requests that many widgets."""
    return container(name, *more, resources={"limits": {WIDGET: str(count)}}, **fields)


async def widgets(node: Node, *devices: str | PluginDevice) -> FakeDevicePlugin:
    """Start and register a plugin of widgets, and run until the Node shows its devices."""
    plugin = FakeDevicePlugin(WIDGET, devices)
    await node.plugins.plug_in(plugin)
    await shows(node, str(len(devices)), "capacity")
    return plugin


async def shows(node: Node, number: str, kind: str = "allocatable") -> None:
    """Run until the Node shows that many widgets as capacity and as allocatable."""
    await node.run_until(
        lambda: getattr(node.api, kind)(WIDGET) == number,
        within_s=limits.NODE_STATUS_S,
        what=f"{kind} of the Node shows {number} widgets",
    )


async def rejected(node: Node, name: str) -> Mapping[str, Any]:
    """Run until the pod has failed, and return its status."""
    await node.run_until(
        lambda: (node.api.pod(name) or {}).get("status", {}).get("phase") == "Failed",
        within_s=limits.START_S + 2 * limits.STATUS_PASS_S,  # kubelets that just began miss one
        what=f"pod {name} is rejected",
    )
    status: Mapping[str, Any] = (node.api.pod(name) or {})["status"]
    return status
