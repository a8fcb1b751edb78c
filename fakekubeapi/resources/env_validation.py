"""What is wrong with the variables of a container. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from fakekubeapi.resources.checks import needed
from kubeobjects.causes import Cause, invalid_value, required, unsupported_value
from kubeobjects.names import subdomain_problems

Object = dict[str, Any]
_NAME_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='"
)
_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
_CONVERTED: Final = (
    *_FIELDS,
    *("metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName"),
    *("status.phase", "spec.host"),
)
_RESOURCES: Final = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu"),
    *("requests.ephemeral-storage", "requests.memory"),
)
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def env_causes(container: Object, path: str) -> list[Cause]:
    """What is wrong with env and envFrom."""
    causes: list[Cause] = []
    for i, variable in enumerate(container.get("env") or []):
        here, name = f"{path}.env[{i}]", variable.get("name", "")
        if not name:
            causes.append(required(f"{here}.name"))
        elif not re.fullmatch(r"[ -<>-~]+", name):
            causes.append(invalid_value(f"{here}.name", name, _NAME_RULE))
        if variable.get("valueFrom") is not None:
            causes += _source_causes(variable, f"{here}.valueFrom")
    for i, source in enumerate(container.get("envFrom") or []):
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in kinds:
            causes += needed(source[kind], "name", f"{path}.envFrom[{i}].{kind}")
        text = "must specify one of: `configMapRef` or `secretRef`"
        if len(kinds) > 1:
            text = "may not have more than one field specified at a time"
        if len(kinds) != 1:
            causes.append(invalid_value(f"{path}.envFrom", "", text))
    return causes


def _source_causes(variable: Object, path: str) -> list[Cause]:
    source = variable["valueFrom"]
    kinds = [kind for kind in _SOURCES if source.get(kind) is not None]
    causes: list[Cause] = []
    for kind in kinds:
        causes += _one_source(kind, source[kind], f"{path}.{kind}")
    if not kinds:
        listed = ", ".join(f"`{kind}`" for kind in _SOURCES[:-1])
        text = f"must specify one of: {listed} or `{_SOURCES[-1]}`"
        causes.append(invalid_value(path, "", text))
    elif variable.get("value"):
        text = "may not be specified when `value` is not empty"
        causes.append(invalid_value(path, "", text))
    elif len(kinds) > 1:
        text = "may not have more than one field specified at a time"
        causes.append(invalid_value(path, "", text))
    return causes


def _one_source(kind: str, ref: Object, path: str) -> list[Cause]:
    if kind == "fieldRef":
        return _field_causes(ref.get("fieldPath", ""), f"{path}.fieldPath")
    if kind == "resourceFieldRef":
        asked = ref.get("resource", "")
        if not asked:
            return [required(f"{path}.resource")]
        known = asked in _RESOURCES or ".hugepages-" in asked
        return [] if known else [unsupported_value(f"{path}.resource", asked, _RESOURCES)]
    if kind in ("configMapKeyRef", "secretKeyRef"):
        name = ref.get("name", "")
        causes = [invalid_value(f"{path}.name", name, text) for text in subdomain_problems(name)]
        return causes + needed(ref, "key", path)
    return []


def _field_causes(asked: str, path: str) -> list[Cause]:
    if not asked:
        return [required(path)]
    base, bracket, _ = asked.partition("[")
    if bracket and base in ("metadata.labels", "metadata.annotations"):
        return []
    if asked not in _CONVERTED:
        text = f"error converting fieldPath: field label not supported: {asked}"
        return [invalid_value(path, asked, text)]
    return [] if asked in _FIELDS else [unsupported_value(path, asked, _FIELDS)]
