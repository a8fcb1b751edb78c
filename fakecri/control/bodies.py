"""What control requests may bring along: their bodies and queries, as structs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.fields import Amount, Method, Name, Seconds
from fakecri.scripts.word_shapes import Shape, shape_of, shape_of_settings
from fakecri.words.actions import Action
from fakecri.words.settings import DISK, NODE
from kubeobjects.strict.reader import Placed, Strict

ACTIONS: Final[dict[str, type[Shape]]] = {
    word: shape_of(action) for word, action in Action.known.items()
}
"""What can be made to happen, by the name of the method, with its arguments."""


# -- calls -------------------------------------------------------------------------------------


class _Calls(Strict):
    pod: Name | UnsetType = UNSET
    container: Name | UnsetType = UNSET
    image: Name | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    since_s: Annotated[Seconds, Meta(description="seconds since the start")] | UnsetType = UNSET


class CallsQuery(_Calls):
    """Which calls."""

    method: Method | UnsetType = UNSET
    limit: Annotated[Amount, Meta(description="only the last so many")] | UnsetType = UNSET


class Step(_Calls):
    """A call of an order."""

    method: Method | UnsetType = UNSET


class NotCalled(_Calls, kw_only=True):
    """There was no such call."""

    method: Method


class Called(NotCalled):
    """There were such calls: at least one, or exactly so many."""

    times: Amount | UnsetType = UNSET


class Series(NotCalled, kw_only=True):
    """Such calls came so many seconds after the first of them."""

    expected_s: list[Seconds]
    slack_s: Seconds | UnsetType = UNSET


class Assertion(Strict):
    """What has to be so: exactly one of these."""

    called: Called | UnsetType = UNSET
    not_called: NotCalled | UnsetType = UNSET
    order: (
        Annotated[list[Method | Step], Meta(description="names of methods, or mappings")]
        | UnsetType
    ) = UNSET
    series: Series | UnsetType = UNSET

    exactly_one: ClassVar = ("called", "not_called", "order", "series")

    def kind_and_arguments(self) -> tuple[str, dict[str, Any]]:
        """Which assertion it is, and the arguments of the method."""
        kind, found = next(iter(self.given().items()))
        if kind != "order":
            return kind, found.given()
        return kind, {"steps": [one if isinstance(one, str) else one.given() for one in found]}


# -- the rest ----------------------------------------------------------------------------------


class Advance(Strict):
    """How much time passes."""

    advance_s: Seconds


if TYPE_CHECKING:
    FilesystemChange: TypeAlias = Placed
    NodeChange: TypeAlias = Placed
else:
    FilesystemChange = shape_of_settings(
        "FilesystemChange", "What changes of a filesystem.", DISK, Placed, names="field"
    )

    class _NodeChange(Placed):
        filesystems: (
            Annotated[dict[str, FilesystemChange], Meta(description="by the path of the mount")]
            | UnsetType
        ) = UNSET

    NodeChange = shape_of_settings(
        *("NodeChange", "What changes of the node."),
        [setting for setting in NODE if setting.changes],
        _NodeChange,
        names="field",
    )


class RulesQuery(Strict):
    """Which rules."""

    unused: (
        Annotated[
            Literal["1", "true", "0", "false"], Meta(description="only those that were never hit")
        ]
        | UnsetType
    ) = UNSET


class SandboxesQuery(Strict):
    """Which sandboxes."""

    pod: Name | UnsetType = UNSET


class ContainersQuery(SandboxesQuery, rename={"name": "container"}):
    """Which containers."""

    name: Name | UnsetType = UNSET
