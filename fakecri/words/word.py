"""What a word is: one struct, which says its name, its fields, its documentation and its checks.

    class naps(Behavior):
        \"\"\"It does nothing for a while.\"\"\"

        for_s: Seconds = 60.0
        mood: Annotated[str, "how it feels"] = ""

A word is a frozen dataclass; its class is its constructor, so classes have the names of words. The
types of the fields (`kinds`) say what may be written. A field says more by `spoken(...)`, and by a
text in its `Annotated`: its description. The first paragraph of the docstring is what schemas,
helps and pages say of the word.

What must never happen here: a word that is impossible is accepted.
"""

from __future__ import annotations

import re
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)
from typing import get_type_hints as hints_of

from fakecri.words.kinds import Kind, WordError, plain_kind
from kubeobjects.arguments import require_arguments

if TYPE_CHECKING:
    from inspect import Signature

NEEDED: Final = object()
"""The default of a field that has to be given."""
_BESIDE: Final = re.compile(r"\b(ClassVar|InitVar|KW_ONLY)\b")
"""In annotations that are those of no field."""


class Spoken(NamedTuple):
    """What a field says beside its type (`spoken`)."""

    default: Any = NEEDED
    said: str = ""
    told: bool = True
    code: str = ""


def spoken(*, default: Any, said: str = "", told: bool = True, code: str = "") -> Any:
    """A field of a word with more than a type. `said`: its name in files, if it is another; `told`:
    whether schemas tell its default; `code`: what Python code in it is called: it may hold some,
    which has no plain form."""
    return Spoken(default, said, told, code)


class _OfConstructor:
    """What `help` and `inspect` say of the constructor of a word."""

    def __get__(self, word: Word | None, kind: type[Word]) -> Signature:
        from inspect import Signature, signature

        _make(kind)
        hints = hints_of(kind)
        parameters = [
            parameter.replace(annotation=getattr(hints[name], "type", hints[name]))
            for name, parameter in signature(kind.__init__).parameters.items()
            if name in hints
        ]
        return Signature(parameters, return_annotation=kind)


@dataclass_transform(frozen_default=True, field_specifiers=(spoken,))
class Word:
    """A word. Its subclasses are dataclasses without further ado, from their first use on: a fake
    starts sooner, since it needs few of the words."""

    __signature__: ClassVar = _OfConstructor()

    def __new__(cls, *_: Any, **given: Any) -> Self:
        _make(cls)
        if given:
            code = cls.__init__.__code__
            takes = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
            require_arguments(cls.__name__, given, takes)
        return super().__new__(cls)

    def __repr__(self) -> str:
        return shown(self)

    def __post_init__(self, *_: Any) -> None:
        for field in fields_of(type(self)):
            value = getattr(self, field.name)
            if value is None and field.optional:
                continue
            try:
                object.__setattr__(self, field.name, field.kind.take(value))
            except WordError:
                raise
            except ValueError as error:
                raise WordError(f"{self.place(field)}{error}") from None

    @classmethod
    def place(cls, field: Field) -> str:
        """What the text of an error begins with that is about a field."""
        return f"{cls.__name__.lower()}.{field.said}: "


class Field(NamedTuple):
    """A field of a word."""

    name: str
    """In the constructor."""
    said: str
    """In files."""
    kind: Kind
    optional: bool
    """Whether it may be None."""
    description: str
    default: Any
    """As the constructor has it, or `NEEDED`."""
    told: bool
    """Whether schemas tell the default."""
    code: str
    """What Python code in it is called; "": it holds none."""

    @property
    def plain(self) -> bool:
        """Whether files may have it."""
        return bool(self.kind.in_files)

    @property
    def required(self) -> bool:
        return self.default is NEEDED

    def is_default(self, value: Any) -> bool:
        """Whether a word has it by default."""
        if self.required or self.default is None:
            return not self.required and value is None
        return bool(value == self.kind.take(self.default))


def fields_of(word: type[Word]) -> tuple[Field, ...]:
    """The fields of a word, in the order of the constructor, but that those of its base come
    first."""
    kind: Any = word  # a class of dataclasses is taken for no key of a cache
    fields: tuple[Field, ...] = _fields_of(kind)
    return fields


@cache
def _fields_of(word: Any) -> tuple[Field, ...]:
    bases = [base for base in word.__bases__ if base is not Word and issubclass(base, Word)]
    hints = hints_of(word, include_extras=True)
    own = vars(word).get("__annotations__", {}).items()
    return (
        *(field for base in bases for field in fields_of(base)),
        *(
            _field(name, hints[name], vars(word).get(name, NEEDED))
            for name, annotation in own
            if not _BESIDE.search(str(annotation))
        ),
    )


def _field(name: str, hint: Any, default: Any) -> Field:
    about = default if isinstance(default, Spoken) else Spoken(default)
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    optional = NoneType in parts
    part = next(part for part in parts if part is not NoneType)
    base, *more = get_args(part) if get_origin(part) is Annotated else (part,)
    kind = next((one for one in more if isinstance(one, Kind)), None)
    return Field(
        name=name,
        said=about.said or name,
        kind=kind or plain_kind(base, optional=optional),
        optional=optional,
        description=next((one for one in reversed(more) if isinstance(one, str)), ""),
        default=about.default,
        told=about.told,
        code=about.code,
    )


def _make(word: type[Word]) -> None:
    """Make a dataclass of a word, and of its bases before it."""
    if "__dataclass_fields__" in vars(word):
        return
    from dataclasses import dataclass

    for base in word.__bases__:
        if base is not Word and issubclass(base, Word):
            _make(base)
    for field in fields_of(word):
        if isinstance(vars(word).get(field.name), Spoken):
            setattr(word, field.name, field.default)
    dataclass(frozen=True, repr=False)(word)


def sentence(word: type[Word]) -> str:
    """What a word says of itself in one paragraph."""
    return " ".join((word.__doc__ or "").partition("\n\n")[0].split())


def form(word: type[Word], *without: str) -> str:
    """How files write a word: `exits: {code, after_s, reason, message}`, without some fields."""
    names = (field.said for field in fields_of(word) if field.plain)
    return f"{word.__name__}: {{{', '.join(name for name in names if name not in without)}}}"


def to_dict(word: Word) -> dict[str, Any]:
    """Plain data, as files hold it: `{"exits": {"code": 1, "after_s": 2.0}}`; fields at their
    default are left out.

    Raises WordError for a word that holds Python code.
    """
    name = type(word).__name__
    for field, value in _given(word):
        if field.code and callable(value):
            raise WordError(f"{name}({field.code}=...) is Python code and has no plain-data form")
    return {name: _plain_fields(word)}


def shown(word: Word) -> str:
    """A word as a sentence has it: `exits(code=1, after_s=2.0)`; code is shown as `...`."""
    given = (
        f"{field.code}=..." if field.code and callable(value) else f"{field.said}={_repr(value)}"
        for field, value in _given(word)
    )
    return f"{type(word).__name__}({', '.join(given)})"


def _given(word: Word) -> list[tuple[Field, Any]]:
    """The fields that are not at their default, with their values."""
    values = ((field, getattr(word, field.name)) for field in fields_of(type(word)))
    return [(field, value) for field, value in values if not field.is_default(value)]


def _plain_fields(word: Word) -> dict[str, Any]:
    return {field.said: _plain(value) for field, value in _given(word)}


def _plain(value: Any) -> Any:
    if isinstance(value, Word):
        return _plain_fields(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _repr(value: Any) -> str:
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)
