"""An argument that there is not is told by the name that users know, with what there is: of every
public function of the fakes that takes arguments by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import grpc
import pytest
from public_names import members, named, offered

import fakecri
import fakekubeapi

NOT_CALLED: Final = (
    *("Container", "CriTarget", "ExecContext", "Fault", "Response", "RequestRecord", "StatusError"),
)
"""Classes with a public name which users neither make nor call."""
NOT_OURS: Final = (grpc.Channel, grpc.aio.Channel, BaseException)
"""Their methods are as libraries have them."""


def by_name(function: Any) -> list[str]:
    """The arguments that a function takes by name; "" stands for `**`."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [p.name for p in parameters if p.kind in kinds and p.name != "self"]
    return [*names, *("" for p in parameters if p.kind is p.VAR_KEYWORD)]


def callables() -> Iterator[tuple[str, Any, list[str]]]:
    """Public functions with two arguments or more: name, what to call, and the arguments."""
    for package in ("fakecri", "fakekubeapi"):
        for thing in offered(package):
            name = thing.__name__
            if inspect.isfunction(thing):
                yield name, getattr(import_module(package), name), by_name(thing)
                continue
            if thing in named(package) and name not in NOT_CALLED and not is_word(thing):
                yield name, thing, by_name(thing.__init__)
            if is_word(thing) and thing.__name__ != "Behavior":
                yield name, thing, list(inspect.signature(thing).parameters)
            for member in [] if issubclass(thing, NOT_OURS) else members(thing):
                function = inspect.getattr_static(thing, member)
                often = hasattr(function, "called_often")  # by parts of the project: it is not told
                if inspect.isfunction(function) and name not in NOT_CALLED and not often:
                    yield f"{name}.{member}", bound(thing, function), by_name(function)


def is_word(thing: Any) -> bool:
    return hasattr(thing, "known") and hasattr(thing, "place")


def bound(kind: Any, function: Any) -> Any:
    """The method of an object that has the name of its class alone: it is never entered."""
    return function.__get__(type(kind.__name__, (), {})(), kind)


ALL: Final = {name: (call, names) for name, call, names in callables() if len(names) > 1}


def test_there_are_many() -> None:
    assert {"FakeCRI.on", "FakeCRI.assert_called", "serve", "exits", "FakeApi.fails"} <= ALL.keys()
    assert len(ALL) > 70


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_name_is_told_with_those_that_there_are(name: str) -> None:
    call, names = ALL[name]
    wanted = [argument for argument in names if argument]
    with pytest.raises((TypeError, ValueError)) as told:
        call(**{f"{wanted[0]}q" if wanted else "userq": 1})
    text = str(told.value).replace("ServedFake", "FakeCRI")  # what it hands over says so
    public = name.replace("ServedFake", "FakeCRI")
    said = f"{public} has no argument '{wanted[0]}q'" if wanted else "userq"
    assert text.startswith(said) or (not wanted and said in text)
    assert all(argument in text for argument in wanted)


def test_what_was_probably_meant_is_told() -> None:
    cri: Any = fakecri.FakeCRI()
    serve: Any = fakecri.serve
    options: Any = fakekubeapi.ServerOptions
    with pytest.raises(TypeError, match=r"^FakeCRI.on has no argument 'img'; did you mean image\?"):
        cri.on("PullImage", img="busybox")
    with pytest.raises(TypeError, match="'continer'; did you mean container"):
        cri.assert_called("PullImage", continer="web")
    with pytest.raises(TypeError, match=r"^serve has no argument 'clok'; did you mean clock\?"):
        serve(clok="manual")
    with pytest.raises(TypeError, match="'timeout'; did you mean timeout_s"):
        cri.call("Version", None, timeout=5)
    with pytest.raises(TypeError, match=r"^ServerOptions has no argument 'kubernets'"):
        options(kubernets="1.34")
