"""A device plugin made for tests, for any kubelet: settable devices, health, answers and faults.

    plugin = FakeDevicePlugin("vendor.example/widget", ["w1", "w2"])
    async with serving.serve(plugin, "/var/lib/kubelet/device-plugins"):   # a real kubelet
        plugin.set_health("w1", "Unhealthy")
        plugin.fails("Allocate", "no power", times=1)
        ...
        assert plugin.allocated == [("w2",)]

`serving` puts it on a socket and registers it; `in_process.InProcessPlugins` is the directory of
sockets as an object, for kubelets that run in virtual time. It never imports a kubelet.
"""

from fakecri.deviceplugin.in_process import InProcessPlugins
from fakecri.deviceplugin.plugin import FakeDevicePlugin, PluginCall, PluginDevice

__all__ = ["FakeDevicePlugin", "InProcessPlugins", "PluginCall", "PluginDevice"]
