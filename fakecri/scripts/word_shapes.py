"""What files and control requests may say: the words (`fakecri.words`) as structs.

`shape_of` makes the struct of a word, with the names, kinds, defaults and checks of its fields;
`Behaviors` and `FaultEntry` have a field for each word that there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isinf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType, defstruct

from fakecri.rules.on import VERBS
from fakecri.scripts import fields
from fakecri.scripts.fields import Amount, Bytes, Count, Method, Name, Seconds
from fakecri.words.behaviors import Behavior, Reply
from fakecri.words.curves import ramp
from fakecri.words.kinds import Kind, WordError
from fakecri.words.settings import Setting
from fakecri.words.word import Field, Word, fields_of, sentence
from kubeobjects.strict.reader import Placed, Strict

W = TypeVar("W", bound=Word)


class Shape(Strict):
    """A word as files and requests have it."""

    word: ClassVar[type[Word]]

    def __post_init__(self) -> None:
        try:
            self.made()
        except WordError as error:
            raise ValueError(str(error).removeprefix(f"{self.word.__name__}.")) from None

    def made(self) -> Word:
        """The word. Raises WordError for one that cannot be."""
        return self.word(**self.arguments())

    def arguments(self) -> dict[str, Any]:
        """The arguments of its constructor that are given."""
        return {name: _made(value) for name, value in self.given().items()}


class Ramp(Strict, rename={"start": "from", "end": "to"}):
    """An amount that grows or falls in equal steps."""

    start: Bytes
    end: Bytes
    over_s: Seconds
    from_s: Seconds = 0.0
    steps: Count = 20

    def __post_init__(self) -> None:
        self.made()

    def made(self) -> Any:
        """Its curve. Raises ValueError for one that cannot be."""
        return ramp(**self.given())


def _made(value: Any) -> Any:
    if isinstance(value, Shape | Ramp):
        return value.made()
    return tuple(_made(one) for one in value) if isinstance(value, tuple) else value


_CURVE: Final = "a number, a list of [seconds, number] or a ramp {from, to, over_s}"
_TYPES: Final[dict[str, Any]] = {
    "Command": Annotated[
        fields.Words, Meta(description="a text or a list of words; every command, if not given")
    ]
    | None,
    "Curve": Annotated[
        Amount | list[tuple[Seconds, Amount]] | Ramp, Meta(extra={"wanted": _CURVE})
    ],
    "CurveOfBytes": Annotated[
        Bytes | list[tuple[Seconds, Bytes]] | Ramp, Meta(extra={"wanted": _CURVE})
    ],
}
"""The types that files have for kinds, beside those of `fields`."""


def shape_of(word: type[Word]) -> type[Shape]:
    """The struct of a word: what a mapping in a file may hold for it."""
    tells = issubclass(word, Behavior | Reply)
    shaped = [_field(field, tells=tells) for field in fields_of(word) if field.plain]
    shape: Any = defstruct(
        "".join(part.capitalize() for part in word.__name__.split("_")),
        shaped,
        bases=(Shape,),
        namespace={"word": word, "__doc__": sentence(word)},
        module=__name__,
        kw_only=True,
        rename={field.name: field.said for field in fields_of(word)},
    )
    made: type[Shape] = shape
    return made


def _field(field: Field, *, tells: bool) -> Any:
    """The field of a struct: its name, type and default. `tells`: whether schemas tell defaults."""
    kind = _type(field.kind)
    if field.description:
        kind = Annotated[kind, Meta(description=field.description)]
    if field.optional and (tells or field.default is not None):
        kind |= None
    if field.required:
        return field.name, kind
    if tells and field.told and _is_plain(field.default):
        return field.name, kind, field.default
    return field.name, kind | UnsetType, UNSET


def _is_plain(default: Any) -> bool:
    """Whether a schema can tell that default."""
    finite = isinstance(default, int | float) and not isinf(default)
    return finite or default is None or isinstance(default, str)


def _type(kind: Kind) -> Any:
    if kind.choices:
        return Literal[kind.choices]
    if isinstance(kind.in_files, str):
        return _TYPES.get(kind.in_files) or getattr(fields, kind.in_files)
    if kind.bounds:
        return Annotated[kind.in_files, Meta(ge=kind.bounds[0], le=kind.bounds[1])]
    return kind.in_files


_TYPES["Answers"] = Annotated[tuple[shape_of(Reply), ...], Meta(min_length=1)]  # type: ignore[misc]


def shape_of_settings(
    name: str, about: str, settings: Iterable[Setting], base: type[Strict], names: str = "word"
) -> Any:
    """The struct of settings, for a type checker its `base`. `names`: `word` or `field`, by which
    they are called."""
    shaped = [
        (getattr(setting, names), _setting_type(setting) | UnsetType, UNSET) for setting in settings
    ]
    return defstruct(name, shaped, bases=(base,), namespace={"__doc__": about}, module=__name__)


def _setting_type(setting: Setting) -> Any:
    kind: Any = setting.kind
    if isinstance(kind, tuple):
        kind = Literal[kind]
    elif isinstance(kind, str):
        kind = getattr(fields, kind)
    return Annotated[kind, Meta(description=setting.about)]


# -- what containers do ------------------------------------------------------------------------


class _Behaviors(Placed):
    @property
    def behaviors(self) -> tuple[Behavior, ...]:
        """All of them, in the order of the words."""
        given = self.given()
        several = (given[word] for word in Behavior.known if word in given)
        return tuple(
            shape.made()
            for shapes in several
            for shape in (shapes if isinstance(shapes, list) else [shapes])
        )


if TYPE_CHECKING:
    Behaviors = _Behaviors
else:

    def _once_or_more(shape: Any) -> Any:
        return shape | Annotated[list[shape], Meta(min_length=1)] | UnsetType

    Behaviors = defstruct(
        "Behaviors",
        [(word, _once_or_more(shape_of(one)), UNSET) for word, one in Behavior.known.items()],
        bases=(_Behaviors,),
        namespace={
            "__doc__": "What a container does: each word once, or in a list.",
            "at_least_one": tuple(Behavior.known),
        },
        module=__name__,
    )


class BehaviorEntry(Behaviors):
    """What containers do, and which ones."""

    pod: Name | UnsetType = UNSET
    container: Name | UnsetType = UNSET
    image: Name | UnsetType = UNSET
    attempt: Annotated[int, Meta(description="its number, from 0")] | UnsetType = UNSET
    first_attempts: Count | UnsetType = UNSET
    times: Annotated[Count, Meta(description="so many starts in all")] | UnsetType = UNSET

    @property
    def selectors(self) -> dict[str, Any]:
        """The arguments of `behaves` that are no behaviours."""
        return {n: value for n, value in self.given().items() if n not in Behavior.known}


# -- what is done to calls ---------------------------------------------------------------------


class _FaultEntry(Placed):
    """One fault, and which calls it is for."""

    on: Method
    pod: Name | UnsetType = UNSET
    container: Name | UnsetType = UNSET
    image: Name | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    nth: Annotated[Count, Meta(description="only this one of the calls that fit")] | UnsetType = (
        UNSET
    )

    @property
    def action(self) -> str:
        """The verb."""
        return next(verb for verb in VERBS if getattr(self, verb) is not UNSET)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the verb."""
        shape: Shape = getattr(self, self.action)
        return shape.arguments()

    @property
    def selectors(self) -> dict[str, Any]:
        """The arguments of `on`, without the method."""
        given = self.given()
        return {name: value for name, value in given.items() if name not in (*VERBS, "on")}


if TYPE_CHECKING:
    FaultEntry = _FaultEntry
else:
    FaultEntry = defstruct(
        "FaultEntry",
        [(verb, shape_of(fault) | UnsetType, UNSET) for verb, fault in VERBS.items()],
        bases=(_FaultEntry,),
        namespace={"__doc__": _FaultEntry.__doc__, "exactly_one": tuple(VERBS)},
        module=__name__,
        kw_only=True,
    )
