"""The parts a node is made of, and the configuration its kubelet gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec import field as struct_field

from fakecri.deviceplugin import FakeDevicePlugin
from fakecri.deviceplugin.registered import RegisteredPlugin
from fakecri.machine.logind import FakeLogind
from kubelet_conformance.harness.api_server import ApiServer
from kubelet_conformance.harness.kubelets.base import Kubelet, NodePaths
from kubelet_conformance.harness.limits import Pace
from kubelet_conformance.harness.machines import fake_machine
from kubelet_conformance.harness.machines.cgroup_trees import CgroupTrees
from kubelet_conformance.harness.machines.disks import FollowedDisk, OwnDisk
from kubelet_conformance.harness.manifest_url import ManifestUrl
from kubelet_conformance.harness.runtimes.base import Runtime
from kubelet_conformance.harness.sharing.tenancy import Tenancy
from simclock import Clock

NODE_NAME: Final = "node"


class PluginRegistry(Protocol):
    """The sockets below plugins_registry: fakecri's InProcessRegistry or ServedRegistry."""

    async def plug_in(self, path: Path, plugin: RegisteredPlugin) -> None:
        """Make the socket of the plug-in, anew if it is there."""

    async def unplug(self, path: Path) -> None:
        """End the plug-in and remove its socket."""


class PluginDirectory(Protocol):
    """The directory of device plugins: fakecri's InProcessPlugins or ServedPlugins."""

    async def start(self, plugin: FakeDevicePlugin, *, faithful: bool = True) -> None:
        """Listen and register at the kubelet. Raises fakecri's CriError when that fails."""

    async def stop(self, plugin: FakeDevicePlugin) -> None:
        """End the plugin; no error when it does not run."""


class MachineParts(Struct, frozen=True, kw_only=True):
    """What a case does to the machine of its node with; each only in cases that need it."""

    logind: FakeLogind | None = None
    """Announces shutdowns of the machine, in cases that need Feature.SHUTDOWN."""
    cgroups: CgroupTrees | None = None
    """The cgroups that the kubelet works in, in cases that need Feature.CGROUPS."""
    disk: OwnDisk | FollowedDisk | None = None
    """The disk under the kubelet's root directory, in cases that need Feature.OWN_DISK."""
    numbers_set: bool = False
    """Whether the machine is a fake one, whose memory, disks and process IDs can be set."""
    places: Mapping[str, str] = struct_field(default_factory=lambda: fake_machine.PLACES)
    """Where the disks of a fake machine are mounted, by their names."""

    def the_logind(self) -> FakeLogind:
        """The fake logind. Raises RuntimeError in a case that does not need Feature.SHUTDOWN."""
        if self.logind is None:
            raise RuntimeError("this case shuts the machine down without needs=[Feature.SHUTDOWN]")
        return self.logind

    def the_cgroups(self) -> CgroupTrees:
        """The node's cgroups. Raises RuntimeError in a case that does not need Feature.CGROUPS."""
        if self.cgroups is None:
            raise RuntimeError("this case looks at cgroups without needs=[Feature.CGROUPS]")
        return self.cgroups


@dataclass(slots=True, kw_only=True)
class Parts:
    """What a `Node` works on; for the harness, not for cases."""

    kubelet: Kubelet
    """The kubelet under test."""
    runtime: Runtime
    """The case's view of the runtime."""
    clock: Clock
    """Virtual or real."""
    pace: Pace
    """How often waits look, and how much slack they have, with that clock."""
    paths: NodePaths
    """The directories of the case."""
    config: dict[str, Any]
    """The KubeletConfiguration that the kubelet is started with next."""
    node_name: str = NODE_NAME
    """The name of the node at the API."""
    api: ApiServer | None = None
    """In cases that need Feature.API."""
    machine: MachineParts = field(default_factory=MachineParts)
    """Shutdowns, cgroups and disks."""
    plugins: PluginDirectory | None = None
    """The directory of device plugins, in cases that need Feature.DEVICE_PLUGINS."""
    registry: PluginRegistry | None = None
    """The sockets below plugins_registry, in cases that need Feature.DEVICE_PLUGINS."""
    manifests: ManifestUrl | None = None
    """The web server of `staticPodURL`, in cases that need Feature.MANIFEST_URL."""

    flags: tuple[str, ...] = ()
    """The flags that the case has given its kubelet, beside the harness's own."""
    addresses: tuple[str, str] = ("192.0.2.1", "fd00::1")
    """An IPv4 and an IPv6 address that the node can have (Feature.TWO_FAMILIES)."""
    tenant: Tenancy | None = None
    """The tenant that the case is, if it shares its kubelet."""

    def not_shared(self, what: str) -> None:
        """Raise MustBeAlone in a case that shares its kubelet: it uses what others use, too."""
        if self.tenant is not None:
            raise self.tenant.refuse(what)

    def manifest_place(self, file: str) -> Path:
        """Where a file of the directory of static pods is."""
        return self.paths.manifests / (self.tenant.file(file) if self.tenant else file)

    def the_registry(self) -> PluginRegistry:
        """The sockets below plugins_registry. Raises RuntimeError in a case that does not need
        Feature.DEVICE_PLUGINS."""
        if self.registry is None:
            raise RuntimeError("this case has plug-ins without needs=[Feature.DEVICE_PLUGINS]")
        return self.registry

    def the_manifests(self) -> ManifestUrl:
        """The web server. Raises RuntimeError in a case that does not need
        Feature.MANIFEST_URL."""
        if self.manifests is None:
            raise RuntimeError("this case has a web server without needs=[Feature.MANIFEST_URL]")
        return self.manifests

    def the_api(self) -> ApiServer:
        """The API server. Raises RuntimeError in a case that does not need Feature.API."""
        if self.api is None:
            raise RuntimeError("this case uses the API server without needs=[Feature.API]")
        return self.api

    def the_plugins(self) -> PluginDirectory:
        """The directory of device plugins. Raises RuntimeError in a case that does not need
        Feature.DEVICE_PLUGINS."""
        if self.plugins is None:
            raise RuntimeError(
                "this case has device plugins without needs=[Feature.DEVICE_PLUGINS]"
            )
        return self.plugins


def kubelet_config(paths: NodePaths, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The KubeletConfiguration of a case: everything that depends on the host is set, the rest is
    default; `changes` are the case's own fields."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": str(paths.manifests),
        "podLogsDir": str(paths.logs),
        "failSwapOn": False,
        "failCgroupV1": False,
        "oomScoreAdj": 0,
        "resolvConf": "",
        "clusterDNS": ["192.0.2.53"],
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "evictionHard": {"memory.available": "1Mi"},
        **changes,
    }
