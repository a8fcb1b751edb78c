"""Files of variables in a pod's volume, for `valueFrom.fileKeyRef`: LIFE-137. Pure.

Lines are `NAME='value'`. Between the quotes everything counts as it is, line ends too; behind them
only a comment may follow. Empty lines and comments are passed over. A space behind `=` makes the
value empty.
Upstream: pkg/kubelet/util/env/env_util.go: ParseEnv (gate EnvFiles, Beta, on).
"""

from __future__ import annotations

BLANKS = " \t"


class EnvFileError(Exception):
    """The file cannot be read as variables; the text names the line."""


def env_file_value(text: str, key: str) -> str:
    """The value of the first `key`; "" when there is none. Lines behind it are not looked at.

    Raises `EnvFileError`.

    >>> env_file_value("# mode\\nMODE='fast' # for now\\n", "MODE")
    'fast'
    """
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number].removesuffix("\r").lstrip(BLANKS)
        number += 1
        if not line or line.startswith("#"):
            continue
        name, value = _assignment(line, number)
        if value.startswith(tuple(BLANKS)) or not value:
            found = _unquoted(value, number)
        else:
            found, number = _quoted(value, lines, number)
        if name == key:
            return found
    return ""


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
    """The text between the quotes, and how many lines are read by then."""
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
