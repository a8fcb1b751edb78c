"""What a package offers: the classes and functions that its `__all__` names, the classes of which
their functions give instances (what `FakeCRI.on` returns has the verbs of all tests), and the names
that may be used of each class, inherited ones too. The pages of the API show them, and
`not_shown` says what of it a page lacks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, get_args, get_type_hints

from source_pages import API, READABLE

OURS: Final = tuple({package.partition(".")[0] for package in (*API, *READABLE)})


def named(package: str) -> list[Any]:
    """The classes and functions that `__all__` of the package names."""
    module = import_module(package)
    things = [inspect.unwrap(getattr(module, name)) for name in module.__all__]
    return list(dict.fromkeys(t for t in things if inspect.isclass(t) or inspect.isfunction(t)))


def offered(package: str) -> list[Any]:
    """Those, and after them the classes of the package that their functions and attributes give."""
    things = named(package)
    given = (kind for thing in things for kind in _given(thing))
    ours = [
        kind for kind in given if kind.__module__.partition(".")[0] == package.partition(".")[0]
    ]
    return list(dict.fromkeys([*things, *ours]))


def members(kind: type) -> list[str]:
    """The public names of a class that are ours: it inherits others from asyncio or grpc. Arguments
    of a dataclass that it does not keep are none."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith(OURS)]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    not_kept = {
        name
        for base in ours
        for name, kind_of in vars(base).get("__annotations__", {}).items()
        if str(kind_of).startswith("InitVar")
    }
    return sorted(names & {*dir(kind)} - not_kept)


def path(thing: Any) -> str:
    """Where it is, as pages find it: `fakecri.fake.FakeCRI`."""
    return f"{thing.__module__}.{thing.__qualname__}"


def expected(package: str) -> list[str]:
    """The anchors that the page of a package must have."""
    return [
        anchor
        for thing in offered(package)
        for anchor in (
            path(thing),
            *(f"{path(thing)}.{name}" for name in _members(thing)),
        )
    ]


def not_shown(package: str, html: str) -> list[str]:
    """What the package offers and the page `html` has no anchor for."""
    shown = {*re.findall(r'\bid="([^"]+)"', html)}
    return [anchor for anchor in expected(package) if anchor not in shown]


def _members(thing: Any) -> list[str]:
    return members(thing) if inspect.isclass(thing) else []


def _given(thing: Any) -> Iterator[type]:
    """The classes in what a function returns, or the functions and attributes of a class give."""
    if inspect.isfunction(thing):
        yield from _classes(_hints(thing).get("return"))
        return
    for name in members(thing):
        member = inspect.getattr_static(thing, name)
        function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "func", member))
        yield from _classes(_hints(function).get("return"))
    for name, kind in _hints(thing).items():
        if not name.startswith("_"):
            yield from _classes(kind)


def _hints(thing: Any) -> dict[str, Any]:
    try:
        return get_type_hints(thing)
    except (NameError, TypeError):  # a name that only the type checker knows; nothing with types
        return {}


def _classes(kind: Any) -> Iterator[type]:
    if inspect.isclass(kind):
        yield kind
    for part in get_args(kind):
        yield from _classes(part)
