"""Arguments that a public function does not take: told with the name by which it was called, what
it takes, and what was probably meant. Python's own message names an inner class, and has no list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import CO_VARKEYWORDS, isfunction, unwrap
from types import CodeType
from typing import Any, TypeVar

from kubeobjects.strict.errors import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def tells_arguments(*also: str) -> Callable[[F], F]:
    """The function, whose calls with an argument by a name that it does not have raise a TypeError
    as of `require_arguments`. `also`: what its `**` takes.

    >>> @tells_arguments()
    ... def paint(wall: str, *, colour: str = "white") -> None: ...
    >>> paint("north", color="red")
    Traceback (most recent call last):
    TypeError: paint has no argument 'color'; did you mean colour? (it takes wall, colour)
    """

    def told(function: F) -> F:
        parameters = _parameters(function)
        of_object = parameters[:1] == ("self",)
        takes = dict.fromkeys([*parameters[of_object:], *also]).keys()

        takes_all = function.__code__.co_flags & CO_VARKEYWORDS  # then Python refuses none

        @wraps(function)
        def checked(*args: Any, **given: Any) -> Any:
            __tracebackhide__ = True
            try:
                if not (takes_all and given.keys() - takes):
                    return function(*args, **given)
            except TypeError:
                if not given.keys() - takes:
                    raise
            wrong = next(name for name in given if name not in takes)
            raise _refusal(_name(function, args[0] if of_object else None), wrong, takes)

        return checked  # type: ignore[return-value]

    return told


def called_often(function: F) -> F:
    """The method, which `arguments_told` leaves as it is: parts of the project call it all the
    time, and the check would cost as much as what it does."""
    function.called_often = True  # type: ignore[attr-defined]
    return function


def arguments_told(kind: C) -> C:
    """The class, whose constructor and public methods tell of arguments that they do not have."""
    for name, function in list(vars(kind).items()):
        if not isfunction(function) or (name.startswith("_") and name != "__init__"):
            continue
        if hasattr(function, "called_often"):
            continue
        if len(_parameters(function)) > 1 and not _code(function).co_flags & CO_VARKEYWORDS:
            setattr(kind, name, tells_arguments()(function))
    return kind


def require_arguments(called: str, given: Iterable[str], takes: Iterable[str]) -> None:
    """Raises TypeError for the first of the arguments `given` that `called` does not take."""
    names = list(takes)
    for name in given:
        if name not in names:
            raise _refusal(called, name, names)


def _refusal(called: str, wrong: str, takes: Iterable[str]) -> TypeError:
    names = list(takes)
    hint = did_you_mean(wrong, names)
    return TypeError(
        f"{called} has no argument {wrong!r}{hint} (it takes {', '.join(names) or 'none'})"
    )


def _code(function: Callable[..., Any]) -> CodeType:
    """That of what it wraps. An import has no time for `inspect.signature` of each function."""
    code: CodeType = unwrap(function).__code__
    return code


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of all parameters but `*` and `**`."""
    code = _code(function)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _name(function: Callable[..., Any], owner: object) -> str:
    if owner is None:
        return function.__name__
    kind = type(owner).__name__
    return kind if function.__name__ == "__init__" else f"{kind}.{function.__name__}"
