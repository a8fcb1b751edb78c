"""Reads a file of configuration into its schema; all mistakes of the file are told at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeVar

from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.reader import read
from kubeobjects.strict.values import typed_value
from kubeobjects.structs import replace
from kubeobjects.yaml.document import Document, YamlError, read_yaml
from refkubelet.config.schema.errors import ConfigErrors
from refkubelet.config.schema.fields import Schema

S = TypeVar("S", bound=Schema)
_TYPE_META: Final = ("apiVersion", "kind")


def read_file(data: bytes, file: str, kind: str) -> Document:
    """The document of a file that shall hold a `kind`: a mapping. Raises ConfigErrors."""
    try:
        document = read_yaml(data)
    except YamlError as e:
        place = f"{file}:{e.line}" if e.line else file
        raise ConfigErrors([f"{place}: not readable as YAML or JSON: {e.problem}"]) from None
    if document.value is None:
        raise ConfigErrors([f"{file}: the file is empty; wanted a {kind} (apiVersion, kind, ...)"])
    if not isinstance(document.value, dict):
        raise ConfigErrors([str(typed_value(Document(document.value), file).wanted(f"a {kind}"))])
    return document


def decoded(
    document: Document,
    file: str,
    schema: type[S],
    versions: Collection[str],
    overlooked: list[str] | None = None,
) -> S:
    """What the document of a file says, which shall be of the kind `schema` and of one of
    `versions`. `overlooked`: as for `struct_of`. Raises ConfigErrors."""
    problems: list[str] = []
    kind = schema.__name__
    if document.more:
        problems.append(f"{file}: holds more than one document; wanted one {kind}")
    for key, known in (("apiVersion", versions), ("kind", (kind,))):
        given = document.value.get(key)
        if given not in known:
            wanted = f"{'one of ' if len(known) > 1 else ''}{', '.join(known)}"
            value = typed_value(document.part(given, (key,)), file, key)
            problems.append(str(value.wanted(wanted)))
    try:
        found = struct_of(document, file, schema, overlooked)
    except ConfigErrors as error:
        raise ConfigErrors(problems + error.problems) from None
    if problems:
        raise ConfigErrors(problems)
    return found


def struct_of(
    document: Document, file: str, schema: type[S], overlooked: list[str] | None = None
) -> S:
    """The fields of a document as their schema. `overlooked` takes what there is to tell of unknown
    ones; where it is None, they are mistakes. Raises ConfigErrors."""
    given = {key: value for key, value in document.value.items() if key not in _TYPE_META}
    try:
        return read(typed_value(replace(document, value=given), file), schema, overlooked)
    except ScriptError as error:
        raise ConfigErrors(list(error.errors)) from None
