"""What makes a pod invalid: the checks that find common mistakes in manifests.

A kube-apiserver checks much more: it may refuse a pod that passes here, but a pod that is refused
here is refused there, too.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.errors import Cause, duplicate, invalid_value, required, unsupported_value
from fakekubeapi.resources.quantity import QuantityError, parse_quantity
from fakekubeapi.resources.strategy import LABEL_RULE, is_label

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_MAX_PORT: Final = 65535


def validate_pod(pod: dict[str, Any]) -> list[Cause]:
    """The wrong fields of a pod that has its defaults; empty if it is valid."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return [required("spec")]
    causes: list[Cause] = []
    volumes, volume_causes = _validate_volumes(spec.get("volumes"))
    causes += volume_causes
    seen: set[str] = set()
    if not spec.get("containers"):
        causes.append(required("spec.containers"))
    for group in ("containers", "initContainers"):
        listed = spec.get(group) or []
        if not isinstance(listed, list):
            causes.append(invalid_value(f"spec.{group}", listed, "must be a list"))
            continue
        for i, container in enumerate(listed):
            causes += _validate_container(container, f"spec.{group}[{i}]", seen, volumes)
    causes += _enumerated(spec, "restartPolicy", _RESTART_POLICIES, "spec")
    causes += _enumerated(spec, "dnsPolicy", _DNS_POLICIES, "spec")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and (not isinstance(deadline, int) or deadline < 1):
        rule = "must be between 1 and 2147483647, inclusive"
        causes.append(invalid_value("spec.activeDeadlineSeconds", deadline, rule))
    return causes


def _validate_volumes(listed: Any) -> tuple[set[str], list[Cause]]:
    names: set[str] = set()
    causes: list[Cause] = []
    for i, volume in enumerate(listed or []):
        path = f"spec.volumes[{i}].name"
        name = volume.get("name", "") if isinstance(volume, dict) else ""
        causes += _name_causes(name, path, names)
        names.add(name)
    return names, causes


def _name_causes(name: Any, path: str, seen: set[str]) -> list[Cause]:
    if not name:
        return [required(path)]
    if not isinstance(name, str) or not is_label(name):
        return [invalid_value(path, name, LABEL_RULE)]
    return [duplicate(path, name)] if name in seen else []


def _validate_container(
    container: Any, path: str, seen: set[str], volumes: set[str]
) -> list[Cause]:
    if not isinstance(container, dict):
        return [invalid_value(path, container, "must be an object")]
    causes = _name_causes(container.get("name"), f"{path}.name", seen)
    seen.add(str(container.get("name")))
    if not container.get("image"):
        causes.append(required(f"{path}.image"))
    causes += _enumerated(container, "imagePullPolicy", _PULL_POLICIES, path)
    causes += _enumerated(container, "terminationMessagePolicy", _MESSAGE_POLICIES, path)
    for i, mount in enumerate(container.get("volumeMounts") or []):
        where = f"{path}.volumeMounts[{i}]"
        if mount.get("name") not in volumes:
            causes.append(Cause(f"{where}.name", f'Not found: "{mount.get("name", "")}"'))
        if not mount.get("mountPath"):
            causes.append(required(f"{where}.mountPath"))
    for i, port in enumerate(container.get("ports") or []):
        causes += _validate_port(port, f"{path}.ports[{i}]")
    for i, variable in enumerate(container.get("env") or []):
        if not variable.get("name"):
            causes.append(required(f"{path}.env[{i}].name"))
    return causes + _validate_resources(container.get("resources") or {}, f"{path}.resources")


def _validate_port(port: dict[str, Any], path: str) -> list[Cause]:
    causes = _enumerated(port, "protocol", _PROTOCOLS, path)
    number = port.get("containerPort")
    if not isinstance(number, int) or not 0 < number <= _MAX_PORT:
        rule = f"must be between 1 and {_MAX_PORT}, inclusive"
        causes.append(invalid_value(f"{path}.containerPort", number, rule))
    return causes


def _validate_resources(resources: dict[str, Any], path: str) -> list[Cause]:
    causes = []
    amounts: dict[tuple[str, str], int] = {}
    for group in ("limits", "requests"):
        for name, text in (resources.get(group) or {}).items():
            try:
                amounts[group, name] = parse_quantity(str(text))
            except QuantityError as error:
                causes.append(invalid_value(f"{path}.{group}[{name}]", text, str(error)))
                continue
            if amounts[group, name] < 0:
                rule = "must be greater than or equal to 0"
                causes.append(invalid_value(f"{path}.{group}[{name}]", text, rule))
    for (group, name), amount in amounts.items():
        limit = amounts.get(("limits", name))
        if group == "requests" and limit is not None and amount > limit:
            shown = str(resources["requests"][name])
            rule = f"must be less than or equal to {name} limit of {resources['limits'][name]}"
            causes.append(invalid_value(f"{path}.requests", shown, rule))
    return causes


def _enumerated(
    obj: dict[str, Any], field: str, allowed: tuple[str, ...], path: str
) -> list[Cause]:
    if field in obj and obj[field] not in allowed:
        return [unsupported_value(f"{path}.{field}", obj[field], allowed)]
    return []
