"""What a scenario may do, step by step: each step is one word of `Step` with its arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from fakecri.cri.services import METHODS
from fakecri.csi.driver import METHODS as CSI_METHODS
from fakecri.scripts.fields import (
    Amount,
    Bytes,
    Count,
    ExitCode,
    ImagePattern,
    Seconds,
    Text,
)
from fakecri.scripts.script_shapes import RegistryEntry
from fakecri.scripts.word_shapes import BehaviorEntry
from kubelet_conformance.scenarios.shape.conditions import Expectation
from kubelet_conformance.scenarios.shape.csi import Attach, CsiDriverStep, CsiFault, VolumeName
from kubelet_conformance.scenarios.shape.faults import ApiFault, Fault
from kubelet_conformance.scenarios.shape.fields import AnyMethod, Words, Yes
from kubelet_conformance.scenarios.shape.plugged import (
    Ask,
    DeviceFault,
    Login,
    LoginPlugIn,
    PlugIn,
    SetDevices,
)
from kubelet_conformance.scenarios.shape.pods import Fields
from kubelet_conformance.scenarios.shape.selectors import DriverName
from kubeobjects.strict.reader import Placed

PodKey: TypeAlias = Annotated[str, Meta(description="a key of `pods`")]
Change: TypeAlias = Annotated[
    Fields,
    Meta(
        description="merged into the manifest: null removes a key, lists of named things are merged"
        " by name"
    ),
]


class Apply(Placed, kw_only=True):
    """Write the manifest of a static pod."""

    pod: PodKey
    file: Annotated[str, Meta(description="its name; <pod>.yaml, if not given")] | UnsetType = UNSET
    set: Change | UnsetType = UNSET


class Edit(Placed, kw_only=True):
    """Change a pod: a static one in its file, another one by a PATCH."""

    pod: PodKey
    set: Change


class WriteFile(Placed, kw_only=True):
    """Write a file of the manifest directory, with a text or with the manifest of a pod."""

    file: str
    text: Text | UnsetType = UNSET
    pod: PodKey | UnsetType = UNSET
    set: Annotated[Change, Meta(description="changes for this file alone")] | UnsetType = UNSET

    exactly_one: ClassVar = ("text", "pod")


class RenameFile(Placed, kw_only=True):
    """Rename a file of the manifest directory."""

    file: str
    to: str


class Create(Placed, kw_only=True):
    """Create a pod at the API, bound to the node."""

    pod: PodKey
    set: Change | UnsetType = UNSET


class Delete(Placed, kw_only=True):
    """Delete a pod at the API, of a static pod its mirror."""

    pod: PodKey
    grace: Annotated[Seconds, Meta(description="of the pod, if not given")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grace is not UNSET and self.grace != int(self.grace):
            raise ValueError("grace: wanted whole seconds")


class Patch(Placed, kw_only=True):
    """Send a PATCH for a pod, as a user of the cluster."""

    pod: PodKey
    set: Fields
    subresource: Literal["status", "resize", "ephemeralcontainers"] | UnsetType = UNSET
    strategic: Annotated[bool, Meta(description="a strategic merge; resizes always are")] = False


class CreateObject(Placed, kw_only=True):
    """Create another object, in the namespace of the pods."""

    plural: Annotated[str, Meta(description="configmaps, secrets, services")]
    manifest: Fields


class DeleteObject(Placed, kw_only=True):
    """Delete such an object."""

    plural: str
    name: str


class PatchNode(Placed, kw_only=True):
    """Send a PATCH for the Node, as another client."""

    set: Fields
    status: bool = False


class EndContainer(Placed, kw_only=True):
    """A container of the runtime."""

    pod: PodKey
    container: str = "main"


class ExitContainer(EndContainer, kw_only=True):
    """End a running container with a code, as if by itself."""

    code: ExitCode = 0


class DropContainers(Placed, kw_only=True):
    """Let the containers of that name vanish from the runtime; without one, all of the pod and its
    sandboxes."""

    pod: PodKey
    container: str | UnsetType = UNSET


class Kubelet(Placed, kw_only=True):
    """Stop, kill, start or restart the kubelet."""

    do: Literal["stop", "kill", "start", "restart"]
    set: (
        Annotated[Fields, Meta(description="fields of its configuration from now on")] | UnsetType
    ) = UNSET
    refused: (
        Annotated[
            Words,
            Meta(description="with `restart`: it must not start, and says so; none runs then"),
        ]
        | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.refused is not UNSET and self.do != "restart":
            raise ValueError("refused: wanted `do: restart` beside it")
        if self.set is not UNSET and self.do in ("stop", "kill"):
            raise ValueError("set: wanted `do: start` or `do: restart` beside it")


class DiesAt(Placed, kw_only=True):
    """Kill the kubelet when it makes a call of the CRI, or one to a CSI driver, and start it
    again."""

    on: AnyMethod
    driver: (
        Annotated[DriverName, Meta(description="whose call it is, if it is one to a CSI driver")]
        | UnsetType
    ) = UNSET
    nth: Annotated[Count, Meta(description="which of its calls of that method from now on")] = 1
    answered: Annotated[
        bool, Meta(description="the call has its effect, and its answer is not read any more")
    ] = False
    down: Annotated[Seconds, Meta(description="so long none runs")] = 0.7
    maybe: Annotated[bool, Meta(description="it is no mistake if there is no such call")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.on in CSI_METHODS) is (self.driver is UNSET):
            told = "is one to a CSI driver: say which" if self.driver is UNSET else "is none to one"
            raise ValueError(f"driver: {self.on} {told}")
        if self.driver is UNSET and METHODS[self.on].streams:
            raise ValueError(f"on: {self.on} is a stream, wanted a call with one answer")


class Machine(Placed, kw_only=True):
    """How much the machine has left from now on, beside what containers use."""

    memory: Bytes | UnsetType = UNSET
    disk: Bytes | UnsetType = UNSET
    inodes: Amount | UnsetType = UNSET
    pids: Amount | UnsetType = UNSET
    of: (
        Annotated[
            Literal["node", "images", "containers"],
            Meta(description="which disk, when there are several (step `disks`)"),
        ]
        | UnsetType
    ) = UNSET

    at_least_one: ClassVar = ("memory", "disk", "inodes", "pids")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of is not UNSET and self.disk is UNSET and self.inodes is UNSET:
            raise ValueError("of: wanted disk or inodes beside it")


class NodeFile(Placed, kw_only=True):
    """Write a file of the node, or remove it or a directory."""

    path: Annotated[str, Meta(description="{uid} and {name} are those of the pod")]
    at: Literal["root", "logs", "links"] = "root"
    pod: PodKey | UnsetType = UNSET
    text: Text | UnsetType = UNSET
    remove: Yes = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.remove is (self.text is not UNSET):
            raise ValueError("wanted exactly one of text, remove: true")


class Step(Placed, kw_only=True):
    """One step."""

    # pods
    apply: Apply | PodKey | UnsetType = UNSET
    edit: Edit | UnsetType = UNSET
    remove: Annotated[str, Meta(description="a static pod, whose file is removed")] | UnsetType = (
        UNSET
    )
    write_file: WriteFile | UnsetType = UNSET
    rename_file: RenameFile | UnsetType = UNSET
    remove_file: Annotated[str, Meta(description="of the manifest directory")] | UnsetType = UNSET
    create: Create | PodKey | UnsetType = UNSET
    delete: Delete | PodKey | UnsetType = UNSET
    patch: Patch | UnsetType = UNSET
    vanish: (
        Annotated[str, Meta(description="a pod that is gone from the API without an event")]
        | UnsetType
    ) = UNSET
    # other objects
    create_object: CreateObject | UnsetType = UNSET
    delete_object: DeleteObject | UnsetType = UNSET
    patch_node: PatchNode | UnsetType = UNSET
    delete_node: Annotated[Yes, Meta(description="true")] | UnsetType = UNSET
    # faults and behaviours
    api: Annotated[Literal["down", "up"], Meta(description="no request reaches it")] | UnsetType = (
        UNSET
    )
    api_fault: ApiFault | UnsetType = UNSET
    fault: Fault | UnsetType = UNSET
    release: (
        Annotated[str, Meta(description="the label of a fault: it ends, what it holds goes on")]
        | UnsetType
    ) = UNSET
    end: Annotated[str, Meta(description="the label of a fault, which ends")] | UnsetType = UNSET
    behave: Annotated[BehaviorEntry, Meta(description="from the next starts on")] | UnsetType = (
        UNSET
    )
    pulls: (
        Annotated[dict[ImagePattern, RegistryEntry], Meta(description="what pulls meet from now")]
        | UnsetType
    ) = UNSET
    # the runtime and its containers
    exit: ExitContainer | UnsetType = UNSET
    kill: EndContainer | UnsetType = UNSET
    drop: DropContainers | UnsetType = UNSET
    stop_sandbox: (
        Annotated[str, Meta(description="of this pod, as another client of the runtime")]
        | UnsetType
    ) = UNSET
    kill_sandbox: (
        Annotated[str, Meta(description="of this pod: its process has died")] | UnsetType
    ) = UNSET
    runtime: (
        Annotated[
            Literal["away", "back", "crash", "restart", "lose_state", "lose_network", "network"],
            Meta(
                description="away: calls fail, until back; crash: it is down, until restart;"
                " lose_state: a crash that forgets all containers; lose_network: until network"
            ),
        ]
        | UnsetType
    ) = UNSET
    # the node
    reboot: (
        Annotated[Yes, Meta(description="kill the kubelet, reboot, start the kubelet")] | UnsetType
    ) = UNSET
    kubelet: Kubelet | Literal["stop", "kill", "start", "restart"] | UnsetType = UNSET
    dies_at: DiesAt | UnsetType = UNSET
    machine: Machine | UnsetType = UNSET
    disks: (
        Annotated[
            Literal["separate", "split"],
            Meta(description="a disk for images and layers, or for images; restarts the kubelet"),
        ]
        | UnsetType
    ) = UNSET
    oom: Annotated[Yes, Meta(description="the machine is out of memory")] | UnsetType = UNSET
    kernel_says: Annotated[str, Meta(description="a line of the kernel's log")] | UnsetType = UNSET
    shutdown: (
        Annotated[Literal["announce", "call_off"], Meta(description="of the machine")] | UnsetType
    ) = UNSET
    file: NodeFile | UnsetType = UNSET
    # what is plugged into the kubelet, and requests to it
    plug_in: PlugIn | UnsetType = UNSET
    devices: SetDevices | UnsetType = UNSET
    device_fault: DeviceFault | UnsetType = UNSET
    unplug: (
        Annotated[str, Meta(description="the resource of a device plug-in, which ends")] | UnsetType
    ) = UNSET
    logins: (
        Annotated[
            tuple[LoginPlugIn, ...],
            Meta(min_length=1, description="credential plug-ins; restarts the kubelet"),
        ]
        | UnsetType
    ) = UNSET
    login: Login | UnsetType = UNSET
    csi_driver: CsiDriverStep | UnsetType = UNSET
    csi_fault: CsiFault | UnsetType = UNSET
    attach: Attach | VolumeName | UnsetType = UNSET
    detach: VolumeName | UnsetType = UNSET
    ask: Ask | UnsetType = UNSET
    # time and looking
    advance: Annotated[Seconds, Meta(description="so much time passes")] | UnsetType = UNSET
    wait: Annotated[Expectation, Meta(description="within 10s, if not given")] | UnsetType = UNSET
    expect: Annotated[Expectation, Meta(description="within 2s, if not given")] | UnsetType = UNSET
    mark: Annotated[str, Meta(description="a name for this moment")] | UnsetType = UNSET

    @property
    def word(self) -> str:
        """Its word, one of `WORDS`."""
        return next(name for name in WORDS if getattr(self, name) is not UNSET)

    @property
    def argument(self) -> Any:
        """What is written behind its word."""
        return getattr(self, self.word)


WORDS: Final = Step.__struct_fields__
Step.exactly_one = WORDS


def made_by(step: Step) -> tuple[str, str]:
    """The pod that a step makes, and where: `static` or `api`; ("", "") when it makes none."""
    for word in ("apply", "create"):
        argument = getattr(step, word)
        if argument is not UNSET:
            key = argument if isinstance(argument, str) else argument.pod
            return key, "static" if word == "apply" else "api"
    if step.write_file is not UNSET and step.write_file.pod is not UNSET:
        return step.write_file.pod, "static"
    return "", ""


def sources_of(steps: Iterable[Step]) -> dict[str, str]:
    """Where the pods of these steps come from, by their keys: `static` or `api`."""
    sources = dict(made_by(step) for step in steps)
    return {key: source for key, source in sources.items() if key}
