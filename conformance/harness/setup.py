"""The parts a node is made of, and the configuration its kubelet gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.harness.apiserver import ApiServer
from conformance.harness.limits import Pace

if TYPE_CHECKING:
    from conformance.harness.cgroups import NodeCgroups
    from conformance.harness.disks import FollowedDisk, OwnDisk
    from conformance.harness.kubelets.base import Kubelet, NodePaths
    from conformance.harness.runtimes.base import Runtime
    from fakecri.machine.logind import FakeLogind
    from simtime import Clock

NODE_NAME: Final = "node"


@dataclass(slots=True)
class Parts:
    """What stands behind a `Node`; only the harness sees it. `config` is what the kubelet is
    started with next."""

    kubelet: Kubelet
    runtime: Runtime
    api: ApiServer | None
    clock: Clock
    pace: Pace
    paths: NodePaths
    config: dict[str, Any]
    node_name: str = NODE_NAME
    logind: FakeLogind | None = None  # who tells of shutdowns of the machine
    cgroups: NodeCgroups | None = None
    disk: OwnDisk | FollowedDisk | None = None  # under the kubelet's root directory
    plugins: Any = None  # where device plugins listen: fakecri's InProcessPlugins, ServedPlugins

    def write_manifest(self, file: str, manifest: Mapping[str, Any]) -> None:
        """Write a manifest as JSON, which is YAML too."""
        self.write_text(file, json.dumps(manifest, indent=1))

    def write_text(self, file: str, text: str) -> None:
        """Write the file in one step: written under a hidden name, then renamed."""
        target = self.paths.manifests / file
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.parent / f".{target.name}.new"
        hidden.write_text(text)
        hidden.rename(target)

    def the_api(self) -> ApiServer:
        """The API server. Raises RuntimeError in a case that does not need Feature.API."""
        if self.api is None:
            raise RuntimeError("this case uses the API server without needs=[Feature.API]")
        return self.api

    def the_logind(self) -> FakeLogind:
        """Raises RuntimeError in a case that does not need Feature.SHUTDOWN."""
        if self.logind is None:
            raise RuntimeError("this case shuts the machine down without needs=[Feature.SHUTDOWN]")
        return self.logind

    def the_cgroups(self) -> NodeCgroups:
        """The node's cgroups. Raises RuntimeError in a case that does not need Feature.CGROUPS."""
        if self.cgroups is None:
            raise RuntimeError("this case looks at cgroups without needs=[Feature.CGROUPS]")
        return self.cgroups

    def api_requests(self, method: str, path: str) -> list[Any]:
        """What was asked of the API server."""
        return list(self.the_api().fake.requests(method, path))


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
