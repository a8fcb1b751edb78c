"""Names of resources, what devices add to a container, and what a plugin's answer means."""

from __future__ import annotations

import pytest
from kubecri.deviceplugin import api_pb2 as api

from kubeobjects.resource_names import is_extended_resource
from refkubelet.container_manager.devices import convert
from refkubelet.container_manager.devices.inventory import Amounts, Inventory
from refkubelet.container_manager.devices.ledger import Ledger
from refkubelet.container_manager.devices.plugins import Plugin
from refkubelet.container_manager.devices.registration import refusal
from refkubelet.container_manager.devices.types import (
    Allotment,
    ContainerSettings,
    Device,
    DeviceMount,
    DeviceNode,
    PluginOptions,
    combined,
)


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("vendor.example/gpu", True),
        ("v/g", True),
        ("vendor.example/" + "x" * 63, True),
        ("vendor.example/" + "x" * 64, False),
        ("vendor.example/Gpu_1.2-x", True),
        ("vendor.example/-x", False),
        ("vendor.example/x-", False),
        ("vendor.example/", False),
        ("/gpu", False),
        ("Vendor.example/gpu", False),
        ("vendor..example/gpu", False),
        ("a/b/c", False),
        ("gpu", False),
        ("", False),
        ("kubernetes.io/gpu", False),
        ("x.kubernetes.io/gpu", False),
        ("requests.vendor.example/gpu", False),
        ("a" * 63 + "/g", True),
        ("x." * 122 + "/g", False),
        ("x." * 121 + "xx/g", True),  # 253 bytes with the prefix of quotas
        ("x." * 121 + "xxx/g", False),
        ("x." * 122 + "x/g", False),
        ("vendor.example/gpu\n", False),
    ],
)
def test_extended_resources_CG_084(name: str, extended: bool) -> None:
    assert is_extended_resource(name) is extended
    assert (refusal("v1beta1", name) is None) is extended


def test_answers_of_several_resources_are_one_CG_084() -> None:
    one = ContainerSettings(
        envs={"A": "1", "B": "1"},
        mounts=(DeviceMount("/h1", "/c", True),),
        devices=(DeviceNode("/dev/h1", "/dev/c", "rw"),),
        annotations={"a": "1"},
        cdi_devices=("v/c=1", "v/c=1"),
    )
    two = ContainerSettings(
        envs={"B": "2", "C": "2"},
        mounts=(DeviceMount("/h2", "/c", False), DeviceMount("/h2", "/d", False)),
        devices=(DeviceNode("/dev/h2", "/dev/c", "r"), DeviceNode("/dev/h2", "/dev/d", "r")),
        annotations={"a": "2", "b": "2"},
        cdi_devices=("v/c=2", "v/c=1"),
    )
    assert combined([one, two]) == ContainerSettings(
        envs={"A": "1", "B": "1", "C": "2"},
        mounts=(DeviceMount("/h1", "/c", True), DeviceMount("/h2", "/d", False)),
        devices=(DeviceNode("/dev/h1", "/dev/c", "rw"), DeviceNode("/dev/h2", "/dev/d", "r")),
        annotations={"a": "1", "b": "2"},
        cdi_devices=("v/c=1", "v/c=2"),
    )
    assert combined([]) == ContainerSettings()


def test_an_answer_in_wire_form() -> None:
    answer = api.ContainerAllocateResponse(
        envs={"A": "1"},
        mounts=[api.Mount(container_path="/c", host_path="/h", read_only=True)],
        devices=[api.DeviceSpec(container_path="/dev/c", host_path="/dev/h", permissions="rwm")],
        annotations={"a": "b"},
        cdi_devices=[api.CDIDevice(name="v/c=1")],
    )
    assert convert.settings(answer.SerializeToString()) == ContainerSettings(
        envs={"A": "1"},
        mounts=(DeviceMount("/h", "/c", True),),
        devices=(DeviceNode("/dev/h", "/dev/c", "rwm"),),
        annotations={"a": "b"},
        cdi_devices=("v/c=1",),
    )
    with pytest.raises(ValueError, match="not a ContainerAllocateResponse"):
        convert.settings(b"\xff\xff\xff")


def test_options_and_devices_of_messages() -> None:
    told = api.DevicePluginOptions(pre_start_required=True)
    assert convert.options(told) == PluginOptions(True, False)
    near = api.TopologyInfo(nodes=[api.NUMANode(ID=1), api.NUMANode(ID=1), api.NUMANode(ID=0)])
    listed = [api.Device(ID="a", health="Healthy", topology=near), api.Device(ID="b")]
    assert convert.devices(listed) == {
        "a": Device("a", "Healthy", (1, 0)),
        "b": Device("b", "", ()),
    }


def test_a_plugin_that_died_before_its_first_list_CG_084() -> None:
    inventory = Inventory()
    plugin = Plugin("v/gpu")
    inventory.connect(plugin)
    assert inventory.stock("v/gpu") is None
    assert inventory.disconnect(plugin, 1.0)
    assert inventory.amounts() == Amounts({"v/gpu": 0}, {"v/gpu": 0})
    assert inventory.plugins() == (plugin,)


def test_the_devices_of_a_plugin_that_died_are_still_known() -> None:
    inventory = Inventory()
    plugin = Plugin("v/gpu")
    inventory.connect(plugin)
    inventory.update("v/gpu", {"a": Device("a")})
    inventory.disconnect(plugin, 1.0)
    assert inventory.devices("v/gpu") == {"a": Device("a")}
    assert inventory.devices("v/other") == {}


def test_the_holders_of_a_device_CG_084() -> None:
    ledger = Ledger()
    for pod_uid, resource, one in [("p", "v/x", "a"), ("q", "v/y", "a"), ("r", "v/x", "b")]:
        ledger.insert(pod_uid, "main", resource, Allotment({-1: (one,)}))
    assert ledger.holders("v/x", "a") == ("p",)
    assert ledger.holders("v/z", "a") == ()
    assert ledger.pod_ids("p", "v/x") == {"a"}
    assert ledger.pod_ids("p", "v/y") == ledger.pod_ids("nobody", "v/x") == frozenset()
    ledger.remove(["p", "nobody"])
    assert list(ledger.pods) == ["q", "r"]


def test_an_inventory_through_its_life_CG_084() -> None:
    inventory = Inventory()
    assert inventory.amounts() == Amounts({}, {})
    inventory.restore(["v/old"], now_s=10.0)
    plugin = Plugin("v/new")
    assert inventory.connect(plugin) is None
    assert inventory.amounts() == Amounts({"v/old": 0}, {"v/old": 0})
    changed = inventory.update("v/new", {"a": Device("a"), "b": Device("b", "Broken")})
    assert changed == ("a", "b")
    assert inventory.update("v/new", {"a": Device("a"), "b": Device("b")}) == ("b",)
    assert inventory.amounts().allocatable == {"v/old": 0, "v/new": 2}
    assert inventory.drop_expired(310.0) == ()
    assert inventory.drop_expired(310.1) == ("v/old",)
    assert inventory.amounts().capacity == {"v/old": 0, "v/new": 2}
    successor = Plugin("v/new")
    assert inventory.connect(successor) is plugin
    assert not inventory.disconnect(plugin, 400.0)
    assert inventory.amounts().allocatable["v/new"] == 2
    assert inventory.disconnect(successor, 400.0)
    assert inventory.amounts() == Amounts({"v/old": 0, "v/new": 2}, {"v/old": 0, "v/new": 0})
    assert inventory.drop_expired(1000.0) == ("v/new",)
    assert inventory.amounts() == Amounts({"v/old": 0, "v/new": 0}, {"v/old": 0, "v/new": 0})
    assert inventory.stock("v/new") is None
