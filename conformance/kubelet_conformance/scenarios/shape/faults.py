"""How a scenario disturbs calls of the kubelet: to the API server, and to the runtime."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fakecri.rules.on import VERBS
from fakecri.scripts.fields import Count, Seconds
from fakecri.scripts.word_shapes import FaultEntry
from kubelet_conformance.scenarios.shape.answers import change_of
from kubelet_conformance.scenarios.shape.fields import Regex
from kubelet_conformance.scenarios.shape.pods import Fields
from kubeobjects.strict.reader import Placed, Strict

Label: TypeAlias = Annotated[str, Meta(description="a name for it, for the steps `release`, `end`")]
FAKE_ONLY: Final = frozenset({"fails_halfway", "holds_name"})
"""Verbs of faults that happen inside the runtime, not before it."""


class ApiFails(Strict, kw_only=True):
    """Requests are refused."""

    status: Annotated[int, Meta(ge=400, le=599)] = 500
    message: str | UnsetType = UNSET


class ApiDelays(Strict, kw_only=True):
    """Requests are handled later."""

    delay_s: Seconds


class ApiHangs(Strict, kw_only=True):
    """Requests wait until the fault is released."""


class ApiFault(Placed, kw_only=True):
    """Disturb requests of the kubelet at the API server."""

    on: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "*"]
    path: Annotated[Regex, Meta(description="found in the path")] = ""
    label: Label | UnsetType = UNSET
    times: Count | UnsetType = UNSET
    nth: Annotated[Count, Meta(description="only this one of those that fit")] | UnsetType = UNSET
    fails: ApiFails | UnsetType = UNSET
    delays: ApiDelays | UnsetType = UNSET
    hangs: ApiHangs | UnsetType = UNSET
    maybe: Annotated[bool, Meta(description="it is no mistake if it is never hit")] = False

    exactly_one: ClassVar = ("fails", "delays", "hangs")


class ChangesAnswer(Strict, kw_only=True):
    """The calls have their effect, and their answers are changed."""

    set: Annotated[
        Fields,
        Meta(
            description="merged into the answer (field names of the CRI): a mapping that is written"
            " for a list into each of its items, a list in place of it; null takes a field away"
        ),
    ]
    where: Annotated[Fields, Meta(description="only items of lists that have this in them")] = (
        msgspec.field(default_factory=dict)
    )
    times: Count | UnsetType = UNSET


class Fault(FaultEntry, kw_only=True):
    """Disturb CRI calls of the kubelet, in the words of scripts."""

    changes: ChangesAnswer | UnsetType = UNSET
    label: Label | UnsetType = UNSET
    maybe: Annotated[bool, Meta(description="it is no mistake if it is never hit")] = False

    exactly_one: ClassVar = (*VERBS, "changes")

    @property
    def action(self) -> str:
        """The verb."""
        return "changes" if self.changes is not UNSET else super().action

    def programmed(self, target: Any, **selectors: Any) -> Any:
        """The rule that the fault is of a runtime; its selectors may be others."""
        on = target.on(self.on, **{**self.selectors, **selectors})
        if self.changes is UNSET:
            return getattr(on, self.action)(**self.arguments)
        change = self.changes
        times = {} if change.times is UNSET else {"times": change.times}
        return on.changes_answer(change_of(change.set, change.where), **times)

    @property
    def selectors(self) -> dict[str, Any]:
        """The arguments of `on`, without the method."""
        names = ("pod", "container", "image", "attempt", "nth")
        return {name: value for name, value in self.given().items() if name in names}
