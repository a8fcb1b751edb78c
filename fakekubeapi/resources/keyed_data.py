"""The rules of config maps and secrets: their keys, the data that a type of secret needs, and data
that cannot change any more."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import Cause, forbidden_field, invalid_texts, invalid_value, required
from kubeobjects.metadata import IMMUTABLE
from kubeobjects.names import explained, too_long

_KEY: Final = r"[-._a-zA-Z0-9]+"
_KEY_RULE: Final = explained(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_FROZEN: Final = "field is immutable when `immutable` is set"
_JSON_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def key_problems(key: str) -> list[str]:
    """What is wrong with a key of a config map or secret."""
    problems = [too_long(253)] if len(key) > 253 else []
    if not re.fullmatch(_KEY, key):
        problems.append(_KEY_RULE)
    if key == ".":
        problems.append("must not be '.'")
    elif key == "..":
        problems.append("must not be '..'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


class ConfigMapStrategy(Strategy):
    """Config maps: with `immutable: true` the data cannot change any more."""

    frozen: ClassVar[tuple[str, ...]] = ("data", "binaryData")

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from self.data_causes(obj)

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        yield from self.immutable_causes(new, old)
        yield from self.data_causes(new)

    def immutable_causes(self, new: Object, old: Object) -> Iterator[Cause]:
        """What is wrong with a change."""
        if not old.get("immutable"):
            return
        changed = [] if new.get("immutable") else ["immutable"]
        changed += [f for f in self.frozen if (new.get(f) or {}) != (old.get(f) or {})]
        for field in changed:
            yield forbidden_field(field, _FROZEN)

    def data_causes(self, obj: Object) -> Iterator[Cause]:
        """What is wrong with the data."""
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for field, keys in (("data", data), ("binaryData", binary)):
            for key in keys:
                yield from invalid_texts(f"{field}[{key}]", key, key_problems(key))
                if field == "data" and key in binary:
                    text = "duplicate of key present in binaryData"
                    yield invalid_value(f"data[{key}]", key, text)


class SecretStrategy(ConfigMapStrategy):
    """The stringData of a secret is encoded and moved into its data. Its type is Opaque unless it
    is given, and cannot change."""

    frozen: ClassVar[tuple[str, ...]] = ("data",)
    field_labels: ClassVar[tuple[str, ...]] = ("type",)

    def prepare_create(self, obj: Object) -> None:
        obj.setdefault("type", "Opaque")
        self._fold(obj)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        new.setdefault("type", old["type"])
        self._fold(new)

    def immutable_causes(self, new: Object, old: Object) -> Iterator[Cause]:
        if new["type"] != old["type"]:
            yield invalid_value("type", new["type"], IMMUTABLE)
        yield from super().immutable_causes(new, old)

    def data_causes(self, obj: Object) -> Iterator[Cause]:
        data: dict[str, str] = obj.get("data") or {}
        for key in data:
            yield from invalid_texts(f"data[{key}]", key, key_problems(key))
        kind = obj["type"]
        if kind == "kubernetes.io/service-account-token":
            if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
                yield required(f"metadata.annotations[{_ACCOUNT}]")
        elif kind in _JSON_KEYS:
            yield from _json_causes(data, _JSON_KEYS[kind])
        elif kind == "kubernetes.io/basic-auth":
            if not {"username", "password"} & data.keys():
                yield required("data[username]")
                yield required("data[password]")
        elif kind == "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                yield required("data[ssh-privatekey]")
        elif kind == "kubernetes.io/tls":
            for key in ("tls.crt", "tls.key"):
                if key not in data:
                    yield required(f"data[{key}]")

    @staticmethod
    def _fold(obj: Object) -> None:
        for key, value in obj.pop("stringData", {}).items():
            encoded = base64.b64encode(value.encode()).decode()
            obj.setdefault("data", {})[key] = encoded


def _json_causes(data: dict[str, Any], key: str) -> Iterator[Cause]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    try:
        fine = isinstance(json.loads(base64.b64decode(data[key])), dict)
    except ValueError:
        fine = False
    text = "no JSON object"
    if not fine:
        yield invalid_value(f"data[{key}]", "<secret contents redacted>", text)
