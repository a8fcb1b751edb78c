"""The rules of config maps and secrets: their keys, the data that a type of secret needs, and data
that cannot change any more."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, ClassVar, Final

from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
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

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *self.data_causes(obj)]

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        causes += self.immutable_causes(new, old)
        return [*causes, *self.data_causes(new)]

    def immutable_causes(self, new: Object, old: Object) -> list[Cause]:
        """What is wrong with a change."""
        if not old.get("immutable"):
            return []
        changed = [] if new.get("immutable") else ["immutable"]
        changed += [f for f in self.frozen if (new.get(f) or {}) != (old.get(f) or {})]
        return [forbidden_field(field, _FROZEN) for field in changed]

    def data_causes(self, obj: Object) -> list[Cause]:
        """What is wrong with the data."""
        causes: list[Cause] = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for field, keys in (("data", data), ("binaryData", binary)):
            for key in keys:
                causes += [invalid_value(f"{field}[{key}]", key, t) for t in key_problems(key)]
                if field == "data" and key in binary:
                    text = "duplicate of key present in binaryData"
                    causes.append(invalid_value(f"data[{key}]", key, text))
        return causes


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

    def immutable_causes(self, new: Object, old: Object) -> list[Cause]:
        causes = super().immutable_causes(new, old)
        if new["type"] != old["type"]:
            causes.insert(0, invalid_value("type", new["type"], IMMUTABLE))
        return causes

    def data_causes(self, obj: Object) -> list[Cause]:
        data: dict[str, str] = obj.get("data") or {}
        causes = [
            invalid_value(f"data[{key}]", key, text) for key in data for text in key_problems(key)
        ]
        kind = obj["type"]
        if kind == "kubernetes.io/service-account-token":
            if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
                causes.append(required(f"metadata.annotations[{_ACCOUNT}]"))
        elif kind in _JSON_KEYS:
            causes += _json_causes(data, _JSON_KEYS[kind])
        elif kind == "kubernetes.io/basic-auth":
            if not {"username", "password"} & data.keys():
                causes += [required("data[username]"), required("data[password]")]
        elif kind == "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                causes.append(required("data[ssh-privatekey]"))
        elif kind == "kubernetes.io/tls":
            causes += [required(f"data[{k}]") for k in ("tls.crt", "tls.key") if k not in data]
        return causes

    @staticmethod
    def _fold(obj: Object) -> None:
        for key, value in obj.pop("stringData", {}).items():
            encoded = base64.b64encode(value.encode()).decode()
            obj.setdefault("data", {})[key] = encoded


def _json_causes(data: dict[str, Any], key: str) -> list[Cause]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        fine = isinstance(json.loads(base64.b64decode(data[key])), dict)
    except ValueError:
        fine = False
    text = "no JSON object"
    return [] if fine else [invalid_value(f"data[{key}]", "<secret contents redacted>", text)]
