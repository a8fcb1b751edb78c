"""Template files: which nodes there are, and how containers on them behave.

    nodes:
      - name: worker           # worker-0, worker-1, ...
        count: 90
        zones: [a, b, c]       # one after the other
        cpus: 16
        memory: 64Gi
        labels: {pool: general}
      - name: gpu
        count: 10
        taints: [{key: gpu, value: "yes", effect: NoSchedule}]
        kubelet: {maxPods: 30}
    behaviors:                 # the words of fakecri's scripts, for all nodes
      - {image: "*/job:*", exits: {code: 0, after_s: 30}}

The rest of a file is what fakecri's scripts have: `behaviors`, `faults`, `registry`, `programs`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from fakecri.machine.values import GIB
from fakecri.scripts.fields import Bytes, Count, ImagePattern, Text
from fakecri.scripts.script import Script
from fakecri.scripts.script_shapes import RegistryEntry
from fakecri.scripts.word_shapes import BehaviorEntry, FaultEntry
from kubenodes.settings import NodeSettings
from kubeobjects.strict.reader import Placed, Strict, read
from kubeobjects.strict.values import read_yaml

CALLS: Final = 200
"""So many calls are remembered of each runtime: nobody asks for them from outside."""
Anything: TypeAlias = Any
Labels: TypeAlias = dict[str, Text]


class Taint(Strict):
    """A taint that nodes register with."""

    key: Text
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: Text = ""


class NodeGroup(Placed):
    """Nodes that are alike."""

    name: Annotated[Text, Meta(description="what their names begin with")]
    count: Count = 1
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    zones: Annotated[
        tuple[Text, ...], Meta(description="topology.kubernetes.io/zone, one after the other")
    ] = ()
    cpus: Count = 4
    memory: Bytes = 8 * GIB
    pods: Count = 110
    kubelet: Annotated[dict[str, Anything], Meta(description="KubeletConfiguration")] = field(
        default_factory=dict
    )

    def settings(self) -> list[NodeSettings]:
        """Those of each node. Raises ScriptError for what no node can be."""
        try:
            return [self._one(number) for number in range(self.count)]
        except ValueError as error:
            raise self.error(str(error)) from None

    def _one(self, number: int) -> NodeSettings:
        return NodeSettings(
            name=f"{self.name}-{number}",
            labels=self.labels,
            taints=tuple(taint.given() for taint in self.taints),
            zone=self.zones[number % len(self.zones)] if self.zones else "",
            cpus=self.cpus,
            memory_bytes=self.memory,
            pods=self.pods,
            kubelet=self.kubelet,
            runtime={"call_limit": CALLS},
        )


class Template(Placed):
    """What a template file may hold."""

    nodes: tuple[NodeGroup, ...] = (NodeGroup(name="kube-node"),)
    behaviors: tuple[BehaviorEntry, ...] = ()
    faults: tuple[FaultEntry, ...] = ()
    programs: tuple[str, ...] = ()
    registry: dict[ImagePattern, RegistryEntry] | UnsetType = UNSET

    def settings(self) -> list[NodeSettings]:
        """Those of all nodes. Raises ScriptError."""
        return [one for group in self.nodes for one in group.settings()]

    def script(self) -> Script:
        """What every runtime is programmed with."""
        return Script(
            behaviors=self.behaviors,
            faults=self.faults,
            programs=self.programs,
            registry=self.registry,
        )


def load_template(path: str | Path) -> Template:
    """Read a template file. Raises ScriptError with every mistake, its place, what was wanted and
    what was there."""
    return read(read_yaml(Path(path)), Template)


ONE: Final = Template()
"""What there is without a file: one node."""
