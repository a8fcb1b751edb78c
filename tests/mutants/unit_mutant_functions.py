"""Functions that have mutants: each runs as it is until its code is exchanged for that of a mutant.

mutmut writes all mutants of a function beside it, and a decorator that asks at every call which of
them shall run. Here the decorator only remembers the function, so that nothing is slower than it
was; a process becomes one mutant, for good, by `become`. It can also note which of the functions
are called (`Calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType
from typing import Any, Final

MutantDict = dict[str, Any]
"""Name of a mutant within its module -> the function; those of classes may be bound methods."""
ORIGINAL: Final = "_mutmut_orig"
FAILING: Final = "fail"
"""The mutant in which every changed function fails."""
TABLE: Final = "_mutmut_called"
_seen: list[tuple[FunctionType, MutantDict]] = []


def exchangeable(
    mutants: MutantDict, is_classmethod: bool = False
) -> Callable[[FunctionType], FunctionType]:
    """The decorator in changed modules, with the parameters of mutmut's own."""

    def decorate(function: FunctionType) -> FunctionType:
        _seen.append((function, mutants))
        return function

    return decorate


def function_of(mutant: str) -> str:
    """The function that it changes.

    >>> function_of("refkubelet.pleg.compute.x_f__mutmut_12")
    'refkubelet.pleg.compute.x_f'
    """
    return mutant.partition("__mutmut_")[0]


def functions() -> Mapping[str, tuple[FunctionType, MutantDict]]:
    """All of modules that are imported now, by the names that `function_of` gives."""
    return _by_name(len(_seen))


@cache
def _by_name(count: int) -> Mapping[str, tuple[FunctionType, MutantDict]]:
    found = {}
    for function, mutants in _seen[:count]:
        name = function_of(_plain(mutants[ORIGINAL]).__name__)
        found[f"{function.__module__}.{name}"] = (function, mutants)
    return found


def become(mutant: str) -> None:
    """Be that one from now on; "" is none. Raises KeyError when there is no such mutant, ValueError
    when its code cannot stand in the place of the function's."""
    if mutant == FAILING:
        for function, _ in functions().values():
            free = function.__code__.co_freevars
            function.__code__ = _fails.__code__.replace(co_freevars=free)
    elif mutant:
        function, mutants = functions()[function_of(mutant)]
        other = _plain(mutants[mutant.rpartition(".")[2]])
        function.__code__ = other.__code__
        function.__defaults__ = other.__defaults__
        function.__kwdefaults__ = other.__kwdefaults__


def _plain(function: Any) -> FunctionType:
    """Without the class that it is bound to."""
    return getattr(function, "__func__", function)


def _fails(*args: object, **kwargs: object) -> None:
    raise RuntimeError("every function that has mutants fails")


class Calls(dict[str, Callable[..., Any]]):
    """Notes which functions were called; `heard` takes what was noted since the last time."""

    def __init__(self) -> None:
        super().__init__()
        self._called: set[str] = set()
        for name, (function, mutants) in functions().items():
            self[name] = _plain(mutants[ORIGINAL])
            function.__globals__[TABLE] = self
            code = _goes_through_table.__code__
            constants = tuple(name if each == "NAME" else each for each in code.co_consts)
            function.__code__ = code.replace(
                co_consts=constants, co_freevars=function.__code__.co_freevars
            )

    def __getitem__(self, name: str) -> Callable[..., Any]:
        self._called.add(name)
        return super().__getitem__(name)

    def heard(self) -> list[str]:
        called, self._called = self._called, set()
        return sorted(called)


def _goes_through_table(*args: object, **kwargs: object) -> Any:
    return _mutmut_called["NAME"](*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
