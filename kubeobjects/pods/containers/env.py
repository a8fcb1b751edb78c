"""Checks the variables of containers. Pure.

Upstream: ValidateEnv, ValidateEnvFrom, validateFileKeyRefVolumes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from kubeobjects.causes import Cause, invalid_texts, invalid_value, not_found, required
from kubeobjects.names import explained, subdomain_problems
from kubeobjects.pods.common.checks import (
    Object,
    containers_of,
    label,
    needed,
    no_steps_back,
    subdomain,
)
from kubeobjects.pods.common.references import ENV_FIELDS, field_causes, resource_causes

_NAME: Final = re.compile(r"[ -<>-~]+")
_NAME_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='"
)
_KEY: Final = "[-._a-zA-Z0-9]+"
_KEY_RULE: Final = explained(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _KEY,
    *("key.name", "KEY_NAME", "key-name"),
)
_SOURCE_RULE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
_MANY: Final = "may not have more than one field specified at a time"


def env_causes(container: Object, path: str) -> Iterator[Cause]:
    """What is wrong with `env` and `envFrom`."""
    for i, variable in enumerate(container.get("env") or ()):
        item_path = f"{path}.env[{i}]"
        yield from _name_causes(variable.get("name"), f"{item_path}.name")
        if variable.get("valueFrom") is not None:
            yield from _source_causes(variable, f"{item_path}.valueFrom")
    for i, source in enumerate(container.get("envFrom") or ()):
        item_path = f"{path}.envFrom[{i}]"
        if source.get("prefix"):
            yield from _name_causes(source["prefix"], f"{item_path}.prefix")
        sources = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in sources:
            yield from _object_causes(source[kind], f"{item_path}.{kind}")
        if not sources:
            text = "must specify one of: `configMapRef` or `secretRef`"
            yield invalid_value(f"{path}.envFrom", "", text)
        elif len(sources) > 1:
            yield invalid_value(f"{path}.envFrom", "", _MANY)


def _name_causes(name: str | None, path: str) -> Iterator[Cause]:
    """The name of a variable, the beginning of such names, or the key of a file of variables."""
    if not name:
        yield required(path)
    elif not _NAME.fullmatch(name):
        yield invalid_value(path, name, _NAME_RULE)


def _object_causes(reference: Object, path: str) -> Iterator[Cause]:
    yield from needed(reference, "name", path)
    if reference.get("name"):
        yield from subdomain(reference["name"], f"{path}.name")


def _source_causes(variable: Object, path: str) -> Iterator[Cause]:
    """Exactly one source, and no `value` beside it."""
    source = variable["valueFrom"]
    sources = [kind for kind in _SOURCES if source.get(kind) is not None]
    for kind in sources:
        yield from _SOURCES[kind](source[kind], f"{path}.{kind}")
    if not sources:
        yield invalid_value(path, "", _SOURCE_RULE)
    elif variable.get("value"):
        yield invalid_value(path, "", "may not be specified when `value` is not empty")
    elif len(sources) > 1:
        yield invalid_value(path, "", _MANY)


def _field_ref(reference: Object, path: str) -> Iterator[Cause]:
    yield from field_causes(reference, path, ENV_FIELDS)


def _key_ref(reference: Object, path: str) -> Iterator[Cause]:
    """The key of a ConfigMap or Secret."""
    name, key = reference.get("name") or "", reference.get("key") or ""
    yield from invalid_texts(f"{path}.name", name, subdomain_problems(name))
    yield from needed(reference, "key", path)
    if key:
        yield from invalid_texts(f"{path}.key", key, config_key_problems(key))


def config_key_problems(key: str) -> list[str]:
    """What is wrong with a key of the data of a ConfigMap or Secret."""
    problems = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not re.fullmatch(_KEY, key):
        problems.append(_KEY_RULE)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def _file_key_ref(reference: Object, path: str) -> Iterator[Cause]:
    yield from _name_causes(reference.get("key"), f"{path}.key")
    yield from needed(reference, "volumeName", path)
    if reference.get("volumeName"):
        yield from label(reference["volumeName"], f"{path}.volumeName")
    yield from needed(reference, "path", path)
    yield from no_steps_back(reference.get("path") or "", f"{path}.path")


_SOURCES: Final[dict[str, Callable[[Object, str], Iterator[Cause]]]] = {
    "fieldRef": _field_ref,
    "resourceFieldRef": resource_causes,
    "configMapKeyRef": _key_ref,
    "secretKeyRef": _key_ref,
    "fileKeyRef": _file_key_ref,
}


def file_volume_causes(spec: Object) -> Iterator[Cause]:
    """Variables from files in volumes that are not there, or not an emptyDir."""
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    for path, container in containers_of(spec):
        for i, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            field = f"{path}.env[{i}].valueFrom.fileKeyRef.volumeName"
            name = reference.get("volumeName") or ""
            if name not in volumes:
                yield not_found(field, name)
            elif volumes[name].get("emptyDir") is None:
                yield invalid_value(field, name, "referenced volume must be of type emptyDir")
