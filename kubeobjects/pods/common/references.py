"""Checks what a variable or a file of a volume takes its value from: a field of the pod, or a
resource of a container. Pure.

Upstream: validateObjectFieldSelector, validateContainerResourceFieldSelector;
pkg/apis/core/pods/helpers.go; pkg/fieldpath.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubeobjects.causes import Cause, invalid_texts, invalid_value, required, unsupported_value
from kubeobjects.names import qualified_name_problems
from kubeobjects.pods.common.checks import Object, needed
from kubeobjects.quantity import parse
from kubeobjects.resource_names import HUGE_PAGES

ENV_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
"""The fields that a variable may name."""
FILE_FIELDS: Final = (
    *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace"),
    "metadata.uid",
)
"""The fields that a file may name."""
_MAPS: Final = ("metadata.annotations", "metadata.labels")
_FIELDS: Final = frozenset(
    (*ENV_FIELDS, *FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
_OLD_NAMES: Final = {"spec.host": "spec.nodeName"}
_RESOURCES: Final = tuple(
    f"{which}.{name}"
    for which in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES: Final = (f"limits.{HUGE_PAGES}", f"requests.{HUGE_PAGES}")
_DIVISORS: Final = ("1", *(f"1{unit}" for unit in "kMGTPE"), *(f"1{unit}i" for unit in "KMGTPE"))
_CPU_DIVISORS: Final = ("1m", "1")
_DIVISOR_OF: Final = {
    "cpu": "cpu",
    "memory": "memory",
    "ephemeral-storage": "local ephemeral storage",
}


def field_causes(reference: Object, path: str, allowed: Sequence[str]) -> Iterator[Cause]:
    """What is wrong with a `fieldRef` with its defaults. `allowed`: the fields it may name."""
    field_name, version = reference.get("fieldPath") or "", reference.get("apiVersion") or ""
    if not version or not field_name:
        yield required(f"{path}.{'fieldPath' if version else 'apiVersion'}")
        return
    of_map, key = _keyed(field_name)
    why = ""
    if version != "v1":
        why = f"unsupported pod version: {version}"
    elif of_map:
        why = "" if of_map in _MAPS else f"field label does not support subscript: {field_name}"
    elif field_name not in _FIELDS and field_name not in _OLD_NAMES:
        why = f"field label not supported: {field_name}"
    field = f"{path}.fieldPath"
    if why:
        yield invalid_value(field, field_name, f"error converting fieldPath: {why}")
    elif of_map:
        name = key.lower() if of_map == "metadata.annotations" else key
        yield from invalid_texts(path, name, qualified_name_problems(name))
    elif (named := _OLD_NAMES.get(field_name, field_name)) not in allowed:
        yield unsupported_value(field, named, allowed, free=True)


def _keyed(field: str) -> tuple[str, str]:
    """Map and key of `map['key']`; two empty texts for other fields."""
    name, bracket, key = field.removesuffix("']").partition("['")
    return (name, key) if field.endswith("']") and bracket and name else ("", "")


def resource_causes(reference: Object, path: str, *, of_file: bool = False) -> Iterator[Cause]:
    """What is wrong with a `resourceFieldRef`, of a variable or of a file (`of_file`), which has to
    name a container."""
    resource = reference.get("resource") or ""
    if of_file and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield from needed(reference, "resource", path)
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield unsupported_value(f"{path}.resource", resource, _RESOURCES, free=True)
    yield from _divisor_causes(resource, str(reference.get("divisor") or "0"), f"{path}.divisor")


def _divisor_causes(asked: str, text: str, path: str) -> Iterator[Cause]:
    divisor = parse(text)
    huge = asked.startswith(_HUGE_PAGES)
    if not divisor.nano or not (huge or asked in _RESOURCES):
        return
    name = asked.partition(".")[2]
    if name == "cpu" and str(divisor) not in _CPU_DIVISORS:
        text = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield invalid_value(path, asked, text)
    elif name != "cpu" and str(divisor) not in _DIVISORS:
        which = _DIVISOR_OF.get(name, "hugepages")
        listed = ", ".join(_DIVISORS)
        text = f"only divisor's values {listed} are supported with the {which} resource"
        yield invalid_value(path, asked, text)
