"""Words about CSI drivers: the drivers and the volumes of a node, what befalls calls to them, what
they were asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_type_hints

from msgspec import UNSET, Meta, UnsetType, defstruct, field

from fakecri.csi.driver import METHODS
from fakecri.csi.faults import CsiFault as Rule
from fakecri.scripts.fields import Count
from fakecri.scripts.word_shapes import FaultEntry, Shape
from kubelet_conformance.scenarios.shape.fields import Number
from kubelet_conformance.scenarios.shape.pods import Fields
from kubelet_conformance.scenarios.shape.selectors import CsiCallSelector, CsiMethod, DriverName
from kubeobjects.strict.reader import Placed

Capability: TypeAlias = Literal[
    "STAGE_UNSTAGE_VOLUME",
    "GET_VOLUME_STATS",
    "EXPAND_VOLUME",
    "VOLUME_CONDITION",
    "SINGLE_NODE_MULTI_WRITER",
    "VOLUME_MOUNT_GROUP",
]
VolumeName: TypeAlias = Annotated[str, Meta(description="a key of `csi_volumes`")]
VERBS: Final = ("fails", "delays", "hangs", "loses_answer", "answers_late")
"""What may befall calls to a driver, in the words of faults of the runtime."""
VOLUME_METHODS: Final = tuple(
    method
    for method in METHODS
    if method not in ("GetPluginInfo", "NodeGetInfo", "NodeGetCapabilities")
)
"""The calls that are about one volume."""


class CsiAbilities(Placed, kw_only=True):
    """What a driver says of itself, and what its CSIDriver object says of it."""

    capabilities: (
        Annotated[
            tuple[Capability, ...],
            Meta(description="of its node service; STAGE_UNSTAGE_VOLUME, if not given"),
        ]
        | UnsetType
    ) = UNSET
    max_volumes_per_node: Annotated[Count, Meta(description="its limit")] | UnsetType = UNSET
    topology: Annotated[dict[str, str], Meta(description="where the node is")] | UnsetType = UNSET
    spec: (
        Annotated[
            Fields,
            Meta(
                description="of its CSIDriver object: attachRequired (false, if not given),"
                " fsGroupPolicy, volumeLifecycleModes (both), podInfoOnMount, ..."
            ),
        ]
        | UnsetType
    ) = UNSET


class CsiDriver(CsiAbilities, kw_only=True):
    """A CSI driver of the node. It listens, and the kubelet registers it, from the beginning."""

    starts: Annotated[bool, Meta(description="false: not before a step `csi_driver`")] = True


class CsiVolume(Placed, kw_only=True):
    """A PersistentVolume of a CSI driver, `pv-<key>`, and the claim `<key>` that is bound to it."""

    driver: DriverName
    handle: Annotated[str, Meta(description="volumeHandle; its key, if not given")] | UnsetType = (
        UNSET
    )
    source: Annotated[
        Fields, Meta(description="more of its source: fsType, volumeAttributes, ...")
    ] = field(default_factory=dict)
    spec: Annotated[
        Fields, Meta(description="more of its spec: accessModes, mountOptions, ...")
    ] = field(default_factory=dict)

    def handle_of(self, key: str) -> str:
        """What the driver calls it."""
        return key if self.handle is UNSET else self.handle


def volume_name(key: str) -> str:
    """The name of the PersistentVolume of that key."""
    return f"pv-{key}"


# --- steps --------------------------------------------------------------------------------------


class CsiDriverStep(Placed, kw_only=True):
    """Stop, kill or start a CSI driver, or let it be another one from now on."""

    name: DriverName
    do: (
        Annotated[
            Literal["stop", "kill", "start"],
            Meta(
                description="stop: it ends, and its socket goes; kill: its calls break off, its"
                " socket stays; start: it listens anew"
            ),
        ]
        | UnsetType
    ) = UNSET
    set: CsiAbilities | UnsetType = UNSET

    at_least_one = ("do", "set")


class Attach(Placed, kw_only=True):
    """Tell the kubelet that a volume is attached, as the controller that attaches it does: by its
    VolumeAttachment, and by the status of the Node."""

    volume: VolumeName
    attach_error: Annotated[str, Meta(description="it is not: this is why")] | UnsetType = UNSET
    attachment_metadata: (
        Annotated[dict[str, str], Meta(description="what the driver gets as publish_context")]
        | UnsetType
    ) = UNSET


class _CsiFault(Placed, kw_only=True):
    """Disturb calls of the kubelet to a CSI driver, in the words of faults of the runtime."""

    driver: DriverName
    on: CsiMethod
    volume: Annotated[VolumeName, Meta(description="only calls about it")] | UnsetType = UNSET
    nth: Annotated[Count, Meta(description="only this one of the calls that fit")] | UnsetType = (
        UNSET
    )
    label: (
        Annotated[str, Meta(description="a name for it, for the steps `release`, `end`")]
        | UnsetType
    ) = UNSET
    maybe: Annotated[bool, Meta(description="it is no mistake if it is never hit")] = False

    @property
    def action(self) -> str:
        """The verb."""
        return next(verb for verb in VERBS if getattr(self, verb) is not UNSET)

    def rule(self, volume_id: str) -> Rule:
        """The rule for a driver. `volume_id`: what it calls the volume; "": any."""
        shape: Shape = getattr(self, self.action)
        said: dict[str, Any] = shape.arguments()
        rule = Rule(
            self.on,
            volume=volume_id,
            nth=None if self.nth is UNSET else self.nth,
            times=said.get("times"),
            done=self.action in ("loses_answer", "answers_late"),
        )
        late_s = said.get("after_s", said.get("delay_s"))
        rule.hangs = self.action == "hangs" or (self.action == "answers_late" and late_s is None)
        rule.delay_s = late_s or 0.0
        if self.action in ("fails", "loses_answer"):
            lost = self.action == "loses_answer"
            rule.code = said.get("code", "UNAVAILABLE" if lost else "UNKNOWN")
            told = "answer lost" if lost else f"{self.on} was told to fail"
            rule.text = said.get("message") or told
        return rule


if TYPE_CHECKING:
    CsiFault = _CsiFault
else:
    _SHAPES = get_type_hints(FaultEntry, include_extras=True)
    CsiFault = defstruct(
        "CsiFault",
        [(verb, _SHAPES[verb], UNSET) for verb in VERBS],
        bases=(_CsiFault,),
        namespace={"__doc__": _CsiFault.__doc__, "exactly_one": VERBS},
        module=__name__,
        kw_only=True,
    )


# --- conditions ---------------------------------------------------------------------------------


class CsiCalls(CsiCallSelector, kw_only=True):
    """So many calls of the kubelet to a CSI driver."""

    count: Annotated[Number, Meta(description="how many; >=1, if not given")] | UnsetType = UNSET


class CsiDriverShown(Placed, kw_only=True):
    """A CSI driver: what the kubelet's CSINode says of it, and what it has done."""

    name: DriverName
    registered: Annotated[bool, Meta(description="whether CSINode names it")] | UnsetType = UNSET
    staged: Annotated[Number, Meta(description="volumes that are staged")] | UnsetType = UNSET
    published: (
        Annotated[Number, Meta(description="places where volumes are published")] | UnsetType
    ) = UNSET

    at_least_one = ("registered", "staged", "published")
