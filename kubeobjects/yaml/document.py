"""YAML and JSON as people write manifests and configurations, with the line of every value.

A text that begins with a brace can be read as JSON only, as kubelets do with manifests. Unlike in
Kubernetes, duplicate keys are errors, and texts are bounded in bytes, values (aliases resolved) and
depth (docs/gaps.md, SRC-004). The bounds are checked while the text is read, because all pods wait
while a manifest is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec import Struct

from kubeobjects.yaml.errors import TooLargeError, YamlError
from kubeobjects.yaml.go_words import KUBERNETES
from kubeobjects.yaml.json_text import read_json
from kubeobjects.yaml.lines import Lines, Path, dotted, lines_of
from kubeobjects.yaml.nodes import Limits, compose
from kubeobjects.yaml.values import DUPLICATE, value_of

MAX_BYTES: Final = 1024 * 1024  # SRC-004
OF_FILES: Final = Limits(values=20_000, depth=100, size_bytes=MAX_BYTES)
TOO_LARGE: Final = f"the file is larger than {MAX_BYTES // 1024} KiB"
_BYTE_ORDER: Final = (b"\xff\xfe", b"\xfe\xff")
_UPSTREAM: Final = {
    "invalid start byte": "invalid leading UTF-8 octet",
    "invalid continuation byte": "invalid trailing UTF-8 octet",
    "unexpected end of data": "incomplete UTF-8 octet sequence",
}
"""Go's words for Python's."""


class Document(Struct, frozen=True):
    """A value; `more`: another document follows in the text."""

    value: Any
    lines: Callable[[], Lines | None] = lambda: None
    more: bool = False

    def line_of(self, path: Path) -> int | None:
        """The line (from 1) of that part, `("spec", "containers", 0)`, or of the nearest part
        around it."""
        lines = self.lines()
        return lines.of(path) if lines is not None else None

    def part(self, value: Any, path: Path) -> Document:
        """`value`, which stands at that path of this document, with its lines."""

        def lines() -> Lines | None:
            part = self.lines()
            for step in path:
                part = part.parts.get(step) if part is not None else None
            return part

        return Document(value, lines)


def read_yaml(data: bytes | str, limits: Limits = OF_FILES) -> Document:
    """The first document of `data`. Raises `YamlError`; an empty text gives the value None."""
    composed = compose(decoded(data, limits), limits)
    root = composed.root
    if root is None:
        return Document(None)
    lines = cache(lambda: lines_of(root, KUBERNETES))
    return Document(value_of(root), lines, composed.another is not None)


def read_json_or_yaml(data: bytes, limits: Limits = OF_FILES) -> Document:
    """Like `read_yaml`, but a text that begins with a brace must be JSON, as in upstream for
    manifests (SRC-004); its numbers and texts remember how they were written, where that says more
    than their values (`WrittenFloat`, `EscapedText`). Raises `YamlError`."""
    if not data.lstrip().startswith(b"{"):
        return read_yaml(data, limits)
    text = decoded(data, limits)
    value, repeated = read_json(text, limits)
    if repeated is not None:
        _lines_of_json(text, limits)  # if YAML can parse the text, its error has the lines
        raise YamlError(f"{DUPLICATE} {repeated!r}")
    return Document(value, cache(lambda: _lines_of_json(text, limits)))


def decoded(data: bytes | str, limits: Limits) -> str:
    """The text in some bytes: UTF-8, or UTF-16 if it begins with its mark. Raises `YamlError`."""
    if limits.size_bytes is not None and len(data) > limits.size_bytes:
        raise TooLargeError(TOO_LARGE)
    if isinstance(data, str):
        return data
    encoding = "utf-16" if data.startswith(_BYTE_ORDER) else "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as e:
        problem = f"not {encoding.upper()} text: byte {e.start} is 0x{data[e.start]:02x}"
        upstream = f"yaml: {_UPSTREAM.get(e.reason, e.reason)}"
        raise YamlError(problem, upstream=upstream) from None


def _lines_of_json(text: str, limits: Limits) -> Lines | None:
    """The lines of a JSON text, by parsing it as YAML; None if YAML cannot parse it: it knows not
    all escapes and characters that JSON does. Tabs become blanks, because YAML forbids them between
    values (within JSON texts they are escaped). Raises `YamlError` for a duplicate key, naming its
    lines."""
    try:
        return read_yaml(text.replace("\t", " "), limits).lines()
    except YamlError as e:
        if e.problem.startswith(DUPLICATE):
            raise
        return None


__all__ = [
    "MAX_BYTES",
    "OF_FILES",
    "TOO_LARGE",
    "Document",
    "Path",
    "TooLargeError",
    "YamlError",
    "decoded",
    "dotted",
    "read_json_or_yaml",
    "read_yaml",
]
