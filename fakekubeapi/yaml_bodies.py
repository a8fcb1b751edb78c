"""YAML bodies, as the API server takes them: from bytes to a JSON value.

Plain values mean what they mean in YAML 1.1 (`0644` is octal, `yes` is true), except that times and
`1:30` are texts. Of a key given twice the last counts. The events of the parser are counted before
anything is built, so that no text, however nested or full of aliases, costs more than its length.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from fakekubeapi.errors import StatusError, bad_request

MAX_VALUES: Final = 1_000_000
"""How many values a body may have once its aliases are replaced."""
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)")
_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAX_DIGITS: Final = 400


def decode_yaml(body: bytes, max_depth: int) -> Any:
    """The value of the only document of a YAML text; JSON is YAML, too.

    Raises: StatusError 400 that says where the text is broken, or that it is nested more than
    `max_depth` levels deep or has more than `MAX_VALUES` values.
    """
    text = body.decode(errors="replace")
    try:
        _check_depth(text, max_depth)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {' '.join(str(error).split())}") from None
    return None if node is None else _Values().of(node, max_depth)


def _check_depth(text: str, max_depth: int) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > max_depth:
                raise _too_deep(max_depth)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _too_deep(max_depth: int) -> StatusError:
    return bad_request(f"the body is nested too deeply: more than {max_depth} levels")


class _Values:
    """Builds values and counts them; an alias costs what it stands for."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, node: yaml.Node, levels: int) -> Any:
        """The value of a node with at most so many levels below it."""
        self._count += 1
        if self._count > MAX_VALUES:
            raise bad_request(f"error decoding YAML: more than {MAX_VALUES} values")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if levels == 0:  # an alias to what is around it never ends
            raise bad_request("the body is nested too deeply, or an alias stands for itself")
        if isinstance(node, yaml.SequenceNode):
            return [self.of(item, levels - 1) for item in node.value]
        found: dict[str, Any] = {}
        for key, item in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                found = {**self._defaults(item, levels - 1), **found}
            else:
                found[_key(key)] = self.of(item, levels - 1)
        return found

    def _defaults(self, node: yaml.Node, levels: int) -> dict[str, Any]:
        """What `<<` takes over from one object or several, the first of which wins."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[str, Any] = {}
        for one in nodes:
            value = self.of(one, levels)
            if not isinstance(value, dict):
                raise _broken(one, "map merge requires map or sequence of maps as the value")
            found = {**value, **found}
        return found


def _key(node: yaml.Node) -> str:
    value = _scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if value is None:
        raise _broken(node, "a key is a text")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _broken(node: yaml.Node, why: str) -> StatusError:
    return bad_request(f"error decoding YAML: line {node.start_mark.line + 1}: {why}")


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    whole, number = _INTEGER.fullmatch(text), _NUMBER.fullmatch(text)
    if node.style or len(text) > _MAX_DIGITS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if whole:
        return _integer(text)
    return float(text) if number else text


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if digits.startswith("0") and digits[1:2] not in ("b", "x", "o", ""):
        digits = f"0o{digits[1:]}"
    return sign * int(digits, 0)
