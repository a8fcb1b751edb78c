"""Answers of two API servers in a normal form: what has to differ between any two servers (UIDs,
versions, times, chosen names and addresses) stands there as a symbol.

UIDs and versions of objects are numbered in the order in which they are first seen, so that a
change which one server makes and the other does not shows as another symbol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_JWT: Final = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_GENERATED: Final = re.compile(r"\bg-[a-z0-9]{5}\b")
_ADDRESS: Final = re.compile(r"10\.96\.\d+\.\d+")
_VERSION_IN_TEXT: Final = re.compile(
    r"(?<=current: )\d+|(?<=ResourceVersion in precondition: )\d+|"
    r"(?<=ResourceVersion in record \()\d+|"
    r"(?<=ResourceVersion in object meta: )\d+|(?<=too old resource version: )\d+ \(\d+\)"
)
_DEBUG_CHANGES: Final = "existing ephemeral containers"
_POD_UPDATES: Final = "pod updates may not change fields"
_AGE: Final = re.compile(r"\d+s|\d+m(\d+s)?")


@dataclass
class Symbols:
    """What one server calls the things that the test calls by symbols."""

    uids: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def uid(self, text: str) -> str:
        return self.uids.setdefault(text, f"uid{len(self.uids)}")

    def version(self, text: str) -> str:
        return self.versions.setdefault(text, f"version{len(self.versions)}")

    def text(self, text: str) -> str:
        """The text with symbols."""
        if match := _TIME.fullmatch(text):
            digits = len(match[1]) - 1 if match[1] else 0
            return f"a time with {digits} digits" if digits else "a time"
        text = _GENERATED.sub("a generated name", text)
        if _POD_UPDATES in text:  # what follows is a difference of two Go structs
            text = text.partition("\n")[0].rstrip("]")
        if _DEBUG_CHANGES in text:
            text = text.partition("\n")[0]
        text = _UID.sub(lambda found: self.uids.get(found[0], "a uid"), text)
        text = _ADDRESS.sub("an address", text)
        text = _VERSION_IN_TEXT.sub("a version", text)
        text = _TIME.sub("a time", text)
        return _JWT.sub("a token", text)


def normal(symbols: Symbols, body: Any) -> Any:
    """The normal form of an answer."""
    if isinstance(body, dict) and ("items" in body or "rows" in body):
        body = {**body, "metadata": _of_list(body.get("metadata") or {})}
        if isinstance(body.get("items"), list):
            body["items"] = [item for item in body["items"] if not _is_own_event(item)]
    return _plain(symbols, body, "")


def _is_own_event(item: Any) -> bool:
    """Whether it is an event of a kube-apiserver's own repair of addresses, which comes when it
    comes."""
    return isinstance(item, dict) and item.get("action") == "ClusterIPAllocation"


def _of_list(metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(metadata)
    if kept.get("resourceVersion"):
        kept["resourceVersion"] = "of a list"
    if kept.get("continue"):
        kept["continue"] = "goes on"
    return kept


def _plain(symbols: Symbols, value: Any, key: str) -> Any:
    if isinstance(value, dict):
        if key == "row":
            cells = [_cell(symbols, cell) for cell in value.get("cells", ())]
            value = {**value, "cells": cells}
        return {name: _plain(symbols, value[name], name) for name in sorted(value)}
    if isinstance(value, list):
        inner = {"rows": "row"}.get(key, "")
        items = [_plain(symbols, item, inner) for item in value]
        return sorted(items, key=_of_manager) if key == "managedFields" else items
    if isinstance(value, str):
        if key == "uid" and _UID.fullmatch(value):
            return symbols.uid(value)
        if key == "resourceVersion" and value.isdecimal():
            return symbols.version(value)
        return symbols.text(value)
    if key in ("nodePort", "healthCheckNodePort") and value:
        return "a port"
    return value


def _cell(symbols: Symbols, cell: Any) -> Any:
    if isinstance(cell, str):
        return "an age" if _AGE.fullmatch(cell) else re.sub(r":3[0-2]\d{3}/", ":port/", cell)
    return cell


def _of_manager(entry: Any) -> tuple[str, ...]:
    """Entries are in the order of their times, which are those of two servers."""
    fields = ("manager", "operation", "subresource", "apiVersion")
    return tuple(str(entry.get(name, "")) for name in fields)


def differences(real: Any, fake: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two normal forms differ: paths (indices left out) and what stands there."""
    if isinstance(real, dict) and isinstance(fake, dict):
        found = []
        for key in sorted(real.keys() | fake.keys()):
            here = f"{path}.{key}" if path else key
            found += differences(real.get(key, MISSING), fake.get(key, MISSING), here)
        return found
    if isinstance(real, list) and isinstance(fake, list) and len(real) == len(fake):
        return [
            one for a, b in zip(real, fake, strict=True) for one in differences(a, b, f"{path}[]")
        ]
    same = real == fake and isinstance(real, bool) == isinstance(fake, bool)
    return [] if same else [(path, real, fake)]


MISSING: Final = "(nothing)"
