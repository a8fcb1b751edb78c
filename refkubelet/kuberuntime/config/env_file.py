"""Parses files of variables in a pod's volume, for `valueFrom.fileKeyRef` (LIFE-137). Pure.

Lines are `NAME='value'`. Everything between the quotes belongs to the value, line ends too; after
them only a comment may follow. Empty lines and comments are ignored. A space after `=` makes the
value empty.
Upstream: pkg/kubelet/util/env/env_util.go: ParseEnv (gate EnvFiles, Beta, on).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

BLANKS = " \t"


class EnvFileError(Exception):
    """The file cannot be read as variables; the text names the line."""


class EnvValues(Struct, frozen=True):
    """The first value of each name, up to the first bad line, which is `error`; None: all lines are
    good. A name found before that line has its value all the same."""

    values: Mapping[str, str]
    error: EnvFileError | None = None

    def get(self, name: str) -> str:
        """The value of `name`; "" if it is missing. Raises `EnvFileError` if it is missing and the
        file has a bad line."""
        value = self.values.get(name)
        if value is None and self.error is not None:
            raise self.error
        return value or ""


def env_file_values(text: str) -> EnvValues:
    """The variables in the text of a file.

    >>> env_file_values("# mode\\nMODE='fast' # for now\\n").get("MODE")
    'fast'
    """
    values: dict[str, str] = {}
    lines = text.split("\n")
    number = 0
    try:
        while number < len(lines):
            line = lines[number].removesuffix("\r").lstrip(BLANKS)
            number += 1
            if not line or line.startswith("#"):
                continue
            name, value = _assignment(line, number)
            if value.startswith(tuple(BLANKS)) or not value:
                unquoted = _unquoted(value, number)
            else:
                unquoted, number = _quoted(value, lines, number)
            values.setdefault(name, unquoted)
    except EnvFileError as error:
        return EnvValues(values, error)
    return EnvValues(values)


def _assignment(line: str, number: int) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise _error(number, "missing '='")
    if not name.strip(BLANKS):
        raise _error(number, "empty variable name")
    if name != name.rstrip(BLANKS):
        raise _error(number, "whitespace before '=' is not allowed")
    return name, value


def _unquoted(value: str, number: int) -> str:
    if value:
        return ""
    raise _error(number, "value must be enclosed in single quotes")


def _quoted(value: str, lines: list[str], number: int) -> tuple[str, int]:
    """The text between the quotes, and the number of lines read so far."""
    began = number
    if not value.startswith("'"):
        raise _error(number, "value must be enclosed in single quotes")
    rest = value[1:]
    parts = []
    while "'" not in rest:
        parts.append(rest)
        if number >= len(lines) or (number == len(lines) - 1 and not lines[number]):
            raise EnvFileError(
                f"invalid environment variable format starting at line {began}: "
                "unclosed single quote"
            )
        rest = lines[number].removesuffix("\r")
        number += 1
    last, _, behind = rest.partition("'")
    behind = behind.lstrip(BLANKS)
    if behind and not behind.startswith("#"):
        raise _error(number, "unexpected content after closing quote")
    return "\n".join([*parts, last]), number


def _error(number: int, why: str) -> EnvFileError:
    return EnvFileError(f"invalid environment variable format at line {number}: {why}")
