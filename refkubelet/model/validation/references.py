"""Checks references to fields of the pod, resources of containers, and keys of files and objects;
and relative paths. Pure.

Upstream: pkg/apis/core/validation: validateEnvVarValueFrom, validateObjectFieldSelector;
pkg/apis/core/pods/helpers.go.

What must never pass here: a path that leads out of its volume (NODE-204).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kubeobjects.quantity import QuantityError, parse
from refkubelet.model.objects import Container, PodSpec
from refkubelet.model.validation.field_errors import (
    invalid,
    label,
    not_found,
    one_of,
    qualified_name,
    required,
    subdomain,
)

ENV_NAME: Final = re.compile(r"[ -<>-~]+\Z")
ENV_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
ENV_FIELDS: Final = frozenset(
    (
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    )
)
VOLUME_FIELDS: Final = frozenset(
    (
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    )
)
_FIELDS: Final = ENV_FIELDS | VOLUME_FIELDS | {"spec.restartPolicy", "spec.schedulerName"}
_PHASE: Final = "status.phase"
_KEYED_FIELD: Final = re.compile(r"(?P<map>metadata\.(?:labels|annotations))\['(?P<key>.*)'\]\Z")
_RESOURCES: Final = tuple(
    f"{which}.{name}"
    for which in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE: Final = ("limits.hugepages-", "requests.hugepages-")
_SUFFIXES: Final = ("k", *"MGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_CPU_DIVISORS: Final = ("1m", "1")  # as they are shown: 1k is a divisor, 1e3 is none
_DIVISORS: Final = frozenset(f"1{suffix}" for suffix in ("", *_SUFFIXES))
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+\Z")
_VALUE_SOURCES: Final = (
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
)


# -- paths -----------------------------------------------------------------------------------------


def no_steps_back(field: str, path: str) -> Iterator[str]:
    """Check that the path has no part `..`."""
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")


def local_path(field: str, path: str) -> Iterator[str]:
    """Check the path of a file that the kubelet writes into a volume: relative, without `..`."""
    if path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    yield from no_steps_back(field, path)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(field, path, "must not start with '..'")


# -- fields and resources --------------------------------------------------------------------------


def field_selector(place: str, ref: Any, known: frozenset[str]) -> Iterator[str]:
    """Check a fieldRef; `known`: the fields that are allowed here."""
    field, path = f"{place}.fieldPath", ref.fieldPath
    keyed = _KEYED_FIELD.match(path)
    if not path:
        yield required(field)
    elif (ref.apiVersion or "v1") != "v1":
        why = f"error converting fieldPath: unsupported pod version: {ref.apiVersion}"
        yield invalid(field, path, why)
    elif keyed:
        key = keyed["key"]
        of_labels = keyed["map"] == "metadata.labels"
        yield from qualified_name(place, key if of_labels else key.lower())
    elif path not in _FIELDS and path != _PHASE:
        yield invalid(field, path, f"error converting fieldPath: field label not supported: {path}")
    else:
        yield from one_of(field, path, sorted(known))


def resource_selector(place: str, ref: Any, *, in_volume: bool = False) -> Iterator[str]:
    """Check a resourceFieldRef."""
    resource = ref.resource
    if in_volume and not ref.containerName:
        yield required(f"{place}.containerName")
    elif not resource:
        yield required(f"{place}.resource")
    elif not resource.startswith(_HUGE):
        yield from one_of(f"{place}.resource", resource, _RESOURCES)
    try:
        divisor = parse(str(ref.divisor or "0"))
    except QuantityError as error:
        yield f"{place}.divisor: Invalid value: {error}"
        return
    if divisor.nano == 0:
        return
    if resource.endswith(".cpu") and resource in _RESOURCES:
        if str(divisor) not in _CPU_DIVISORS:
            why = "only divisor's values 1m and 1 are supported with the cpu resource"
            yield invalid(f"{place}.divisor", resource, why)
    elif (resource in _RESOURCES or resource.startswith(_HUGE)) and (str(divisor) not in _DIVISORS):
        why = "only 1 and powers of 1000 or 1024, up to 1E and 1Ei, are supported as divisors"
        yield invalid(f"{place}.divisor", resource, why)


# -- environment -----------------------------------------------------------------------------------


def env_problems(place: str, c: Container) -> Iterator[str]:
    """Check the environment variables: `env` and `envFrom`."""
    for i, env in enumerate(c.env or ()):
        field = f"{place}.env[{i}]"
        if not env.name:
            yield required(f"{field}.name")
        elif not ENV_NAME.match(env.name):
            yield invalid(f"{field}.name", env.name, ENV_RULE)
        if env.valueFrom is not None:
            yield from _value_source(
                f"{field}.valueFrom", env.valueFrom, with_value=bool(env.value)
            )
    for i, source in enumerate(c.envFrom or ()):
        field = f"{place}.envFrom[{i}]"
        if source.prefix and not ENV_NAME.match(source.prefix):
            yield invalid(f"{field}.prefix", source.prefix, ENV_RULE)
        given = [n for n in ("configMapRef", "secretRef") if getattr(source, n) is not None]
        for name in given:
            ref = getattr(source, name)
            if not ref.name:
                yield required(f"{field}.{name}.name")
        if not given:
            why = "must specify one of: `configMapRef` or `secretRef`"
            yield invalid(f"{place}.envFrom", "", why)
        elif len(given) > 1:
            why = "may not have more than one field specified at a time"
            yield invalid(f"{place}.envFrom", "", why)


def _value_source(place: str, source: Any, *, with_value: bool) -> Iterator[str]:
    """Check a valueFrom: exactly one source, and no `value` beside it."""
    given = [name for name in _VALUE_SOURCES if getattr(source, name, None) is not None]
    if source.fieldRef is not None:
        yield from field_selector(f"{place}.fieldRef", source.fieldRef, ENV_FIELDS)
    if source.resourceFieldRef is not None:
        yield from resource_selector(f"{place}.resourceFieldRef", source.resourceFieldRef)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in given:
            yield from _key_of_object(f"{place}.{name}", getattr(source, name))
    if source.fileKeyRef is not None:
        yield from _key_of_file(f"{place}.fileKeyRef", source.fileKeyRef)
    if not given:
        why = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        yield invalid(place, "", why)
    elif with_value:
        yield invalid(place, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(place, "", "may not have more than one field specified at a time")


def _key_of_object(place: str, ref: Any) -> Iterator[str]:
    if not ref.name:
        yield invalid(f"{place}.name", "", "must not be empty")
    yield from subdomain(f"{place}.name", ref.name)
    if not ref.key:
        yield required(f"{place}.key")
    elif not _CONFIG_KEY.match(ref.key) or ref.key in (".", "..") or ref.key.startswith(".."):
        why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        yield invalid(f"{place}.key", ref.key, why)


def _key_of_file(place: str, ref: Any) -> Iterator[str]:
    if not ref.key:
        yield required(f"{place}.key")
    elif not ENV_NAME.match(ref.key):
        yield invalid(f"{place}.key", ref.key, ENV_RULE)
    if not ref.volumeName:
        yield required(f"{place}.volumeName")
    yield from label(f"{place}.volumeName", ref.volumeName)
    if not ref.path:
        yield required(f"{place}.path")
    yield from no_steps_back(f"{place}.path", ref.path)


def file_volume_problems(spec: PodSpec) -> Iterator[str]:
    """Check that the volume of each fileKeyRef exists and is an emptyDir."""
    volumes = {volume.name: volume for volume in spec.volumes or ()}
    for group in ("initContainers", "containers"):
        for index, c in enumerate(getattr(spec, group) or ()):
            for i, env in enumerate(c.env or ()):
                ref = env.valueFrom.fileKeyRef if env.valueFrom else None
                if ref is None:
                    continue
                field = f"spec.{group}[{index}].env[{i}].valueFrom.fileKeyRef.volumeName"
                volume = volumes.get(ref.volumeName)
                if volume is None:
                    yield not_found(field, ref.volumeName)
                elif volume.emptyDir is None:
                    why = "referenced volume must be of type emptyDir"
                    yield invalid(field, ref.volumeName, why)
