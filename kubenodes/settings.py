"""What a node is made with: its name and labels, the size of its machine, its kubelet's
configuration, what its runtime is like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fakecri.machine.values import GIB
from kubeobjects.arguments import arguments_told
from kubeobjects.names import label_value_problems, subdomain_problems
from refkubelet.config import KubeletConfiguration, parse_config
from refkubelet.node.labels import node_labels

ZONE: Final = "topology.kubernetes.io/zone"
FAKE: Final = "kubenodes/fake"
"""The label by which nodes of this package are known; its value is `true`."""
ADDRESS: Final = "192.0.2.1"
"""For documentation: nothing answers there."""
_CONFIG: Final[Mapping[str, Any]] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "resolvConf": "",
    "enableServer": False,
    "healthzPort": 0,
}
"""What differs from a kubelet's defaults: a node of this package has no cgroups and no ports unless
they are asked for."""


@arguments_told
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """One node. Raises ValueError for what cannot be."""

    name: str = "kube-node"
    """The name of its Node object."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the Node, beside those that every kubelet gives it."""
    taints: tuple[Mapping[str, str], ...] = ()
    """Taints that it registers with: `{"key": ..., "value": ..., "effect": "NoSchedule"}`."""
    zone: str = ""
    """Its label topology.kubernetes.io/zone; "": none."""
    cpus: int = 4
    """Processors of its machine."""
    memory_bytes: int = 8 * GIB
    """Memory of its machine."""
    pods: int = 110
    """How many pods it takes (maxPods)."""
    address: str = ADDRESS
    """Its internal IP address."""
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    """Fields of KubeletConfiguration."""
    runtime: Mapping[str, Any] = field(default_factory=dict)
    """Options of `fakecri.FakeCRI`: images, registry, script, ..."""

    def __post_init__(self) -> None:
        if subdomain_problems(self.name):
            raise ValueError(f"name: wanted small letters, digits, '-' and '.', got {self.name!r}")
        if label_value_problems(self.name):
            raise ValueError(
                "name: wanted 63 characters or less, since it is the label kubernetes.io/hostname, "
                f"too; got {self.name!r}"
            )
        for field_name in ("cpus", "memory_bytes", "pods"):
            if getattr(self, field_name) < 1:
                raise ValueError(f"{field_name}: wanted 1 or more, got {getattr(self, field_name)}")

    def node_labels(self) -> Mapping[str, str]:
        """The labels that its kubelet gives the Node. Raises NodeLabelError for those that no
        kubelet may give."""
        labels = {FAKE: "true", **({ZONE: self.zone} if self.zone else {}), **self.labels}
        return node_labels([f"{key}={value}" for key, value in labels.items()])

    def configuration(self, directory: Path) -> KubeletConfiguration:
        """Its kubelet's configuration, with files below `directory`. Raises `ConfigErrors`, which
        name the field."""
        fields = {
            **_CONFIG,
            "podLogsDir": str(directory / "logs"),
            "maxPods": self.pods,
            "registerWithTaints": [dict(taint) for taint in self.taints],
            **self.kubelet,
        }
        return parse_config(json.dumps(fields).encode(), f"kubelet of node {self.name}")
