"""What the fields of words may hold: how constructors check it, and what it is called in files.

For a type checker a kind is the type that it stands for. This module imports next to nothing, since
every fake needs it; `fakecri.scripts.word_shapes` knows the types that files have for the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

Given = TypeVar("Given", contravariant=True)
Kept = TypeVar("Kept", covariant=True)
MAX_EXIT_CODE: Final = 255


Check: TypeAlias = tuple[Callable[[Any], bool], str]
"""Whether a value can be, and what was wanted if not."""


class WordError(ValueError):
    """A word is not one the fake knows; the text names the field and what was wanted."""


class Kind(NamedTuple):
    """What a field may hold."""

    in_files: str | type
    """What files may hold: a type, or the name of one that `word_shapes` knows; "": nothing."""
    checks: tuple[Check, ...] = ()
    """What a constructor looks at, one after the other."""
    turned: Callable[[Any], Any] | None = None
    """Makes the value that is kept of the one that was given, or raises ValueError."""
    bounds: tuple[int, int | None] | None = None
    """Between which numbers it is."""
    choices: tuple[str, ...] = ()
    """Which texts it may be; none: any."""

    def take(self, value: Any) -> Any:
        """The value that is kept. Raises ValueError, which says what was wanted."""
        for holds, wanted in self.checks:
            if not holds(value):
                raise ValueError(f"wanted {wanted}, got {value!r}")
        return value if self.turned is None else self.turned(value)


if TYPE_CHECKING:

    class Turned(Generic[Given, Kept]):
        """A field whose constructor takes more than the field then holds."""

        def __get__(self, word: object, owner: Any) -> Kept: ...
        def __set__(self, word: object, value: Given) -> None: ...


def is_a(kind: type, wanted: str) -> Check:
    """Whether it is of that type; `wanted`: what errors call it."""
    return lambda value: isinstance(value, kind), wanted


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def plain_kind(base: type, *, optional: bool) -> Kind:
    """The kind of a field that says no other: a text, or true or false."""
    if base is bool:
        return Kind(bool, (is_a(bool, "true or false"),))
    return Kind(str, (is_a(str, "a text or None" if optional else "a text"),))


def seconds(wanted: str = "") -> Kind:
    """A time from 0 on. `wanted`: what errors call it."""
    from_0 = (lambda value: value >= 0, wanted or "0 or more")
    return Kind("Seconds", ((_is_number, wanted or "a number"), from_0))


def whole(low: int = 0, high: int | None = None, *, wanted: str = "", name: str = "") -> Kind:
    """A whole number between two others. `wanted`: what errors call it; `name`: its type in
    files, if that is another than a number."""

    def between(value: Any) -> bool:
        return bool(low <= value and (high is None or value <= high))

    range_ = f"{low} or more" if high is None else f"{low} to {high}"
    checks = ((_is_whole, wanted or "a whole number"), (between, wanted or range_))
    return Kind(name or int, checks, bounds=(low, high))


def one_of(*choices: str) -> Kind:
    """One of these texts."""
    wanted = " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
    return Kind(str, ((lambda value: value in choices, wanted),), choices=choices)


def code(wanted: str) -> Kind:
    """Python code; there is none in files."""
    return Kind("", ((callable, wanted),))


def words_of(command: Any) -> tuple[str, ...] | None:
    """The words of a command: a list, or a text with spaces between them; None: of every one."""
    if isinstance(command, str):
        return tuple(command.split()) or None
    if not isinstance(command, Sequence | NoneType):
        raise WordError(f"command: wanted words in a text or a list, got {command!r}")
    if not all(isinstance(word, str) for word in command or ()):
        raise WordError(f"command: wanted words that are texts, got {command!r}")
    return tuple(command or ()) or None


_A_CODE: Final = (lambda code: code in range(MAX_EXIT_CODE + 1), f"0 to {MAX_EXIT_CODE}")
Seconds: TypeAlias = Annotated[float, seconds()]
ExitCode: TypeAlias = Annotated[int, Kind("ExitCode", ((_is_number, "a number"), _A_CODE))]
Text: TypeAlias = Annotated[str, Kind("Text", (is_a(str, "a text"),))]
"""In files also what looks like a number or a date."""
Name: TypeAlias = Annotated[str, Kind("Name")]
"""A name or a pattern; `Match` checks it."""
if TYPE_CHECKING:
    Command: TypeAlias = Turned[Sequence[str] | str | None, tuple[str, ...] | None]
else:
    Command = Annotated[Sequence[str] | str | None, Kind("Command", turned=words_of)]
