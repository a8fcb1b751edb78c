"""The errors of fields of configuration files, as an API server words them: texts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubeobjects import causes
from kubeobjects.names import qualified_name_problems

MAX_INT32: Final = (1 << 31) - 1


def invalid(field: str, value: object, why: str) -> str:
    """The error of an invalid value; texts are shown in quotes, lists as JSON."""
    return causes.invalid_value(field, value, why).text


def required(field: str, why: str = "") -> str:
    """The error of a field that is missing."""
    return causes.required(field, why).text


def forbidden(field: str, why: str) -> str:
    """The error of a field that may not be there."""
    return causes.forbidden_field(field, why).text


def duplicate(field: str, value: str) -> str:
    """The error of a value that is there twice."""
    return causes.duplicate(field, value).text


def one_of(field: str, value: str | None, words: Iterable[str]) -> Iterator[str]:
    """An error, unless the value is one of `words` or None."""
    allowed = tuple(words)
    if value is not None and value not in allowed:
        yield causes.unsupported_value(field, value, allowed).text


def qualified_name(field: str, value: str) -> Iterator[str]:
    """The errors of a key of annotations."""
    for problem in qualified_name_problems(value):
        yield invalid(field, value, problem)
