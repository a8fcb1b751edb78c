"""What `tells_arguments` says of wrong arguments, and what is left to the function itself."""

from __future__ import annotations

from typing import Any

import pytest

from kubeobjects.arguments import tells_arguments

CALLED: list[dict[str, Any]] = []


@tells_arguments()
def paint(wall: str, *, colour: str = "white") -> str:
    return wall.upper() + colour


@tells_arguments("colour")
def paint_any(**given: Any) -> None:
    CALLED.append(given)


def test_an_error_of_the_function_itself_arrives_as_it_is() -> None:
    call: Any = paint
    with pytest.raises(TypeError, match=r"unsupported|concatenate"):
        call("north", colour=7)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        call(colour="red")
    assert call("north", colour="red") == "NORTHred"


def test_a_wrong_name_is_told_without_the_error_of_python() -> None:
    call: Any = paint
    with pytest.raises(TypeError, match=r"^paint has no argument 'color'; did you mean") as told:
        call(color="red")
    assert told.value.__context__ is None


def test_a_function_that_takes_any_name_is_not_begun_with_a_wrong_one() -> None:
    CALLED.clear()
    with pytest.raises(TypeError, match=r"^paint_any has no argument 'color'"):
        paint_any(color="red")
    paint_any(colour="red")
    assert CALLED == [{"colour": "red"}]
