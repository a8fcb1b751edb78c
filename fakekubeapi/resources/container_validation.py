"""What is wrong with the containers of a pod. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekubeapi.resources.checks import needed, one_of, path_causes, port_causes
from fakekubeapi.resources.env_validation import env_causes
from fakekubeapi.resources.handler_validation import probe_causes
from fakekubeapi.resources.resource_validation import resource_causes
from fakekubeapi.resources.security_validation import container_security_causes
from kubeobjects.causes import Cause, duplicate, forbidden_field, invalid_value, required
from kubeobjects.names import label_problems
from kubeobjects.names import port_name_problems as name_problems

Object = dict[str, Any]
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART: Final = ("Always", "Never", "OnFailure")
_PROPAGATION: Final = ("Bidirectional", "HostToContainer", "None")
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = (
    *("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy"),
    "resources",
)


def container_group_causes(
    spec: Object, group: str, seen: set[str], volumes: Mapping[str, Object]
) -> list[Cause]:
    """What is wrong with the containers of one group. `seen`: names that are taken, to which those
    of this group are added; `volumes`: the volumes that can be mounted, by name."""
    causes: list[Cause] = []
    host_ports: set[str] = set()
    for i, container in enumerate(spec.get(group) or []):
        path = f"spec.{group}[{i}]"
        causes += _common_causes(container, path, seen, volumes, spec)
        if group == "ephemeralContainers":
            causes += _ephemeral_causes(container, path, spec)
            continue
        if group == "initContainers" and container.get("restartPolicy") != "Always":
            causes += _of_no_sidecar(container, path)
        else:
            grace_s = spec.get("terminationGracePeriodSeconds") or 0
            causes += probe_causes(container, path, grace_s)
        causes += one_of(container, "restartPolicy", path, _RESTART)
        if group == "containers":
            causes += _host_port_causes(container, path, host_ports)
    return causes


def _of_no_sidecar(container: Object, path: str) -> list[Cause]:
    fields = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    return [
        forbidden_field(f"{path}.{field}", _ONLY_SIDECARS)
        for field in fields
        if container.get(field) is not None
    ]


def _ephemeral_causes(container: Object, path: str, spec: Object) -> list[Cause]:
    target = container.get("targetContainerName")
    groups = ("containers", "initContainers")
    known = {one.get("name") for group in groups for one in spec.get(group) or []}
    field = f"{path}.targetContainerName"
    causes = [_not_found(field, target)] if target and target not in known else []
    return causes + [
        forbidden_field(f"{path}.{field}", "cannot be set for an Ephemeral Container")
        for field in _NOT_EPHEMERAL
        if container.get(field)
    ]


def image_causes(container: Object, path: str) -> list[Cause]:
    """What is wrong with the image of a container."""
    image = container.get("image", "")
    if not image:
        return [required(f"{path}.image")]
    if image == image.strip():
        return []
    text = "must not have leading or trailing whitespace"
    return [invalid_value(f"{path}.image", image, text)]


def _common_causes(
    container: Object, path: str, seen: set[str], volumes: Mapping[str, Object], spec: Object
) -> list[Cause]:
    name = container.get("name", "")
    causes = [] if name else [required(f"{path}.name")]
    if name:
        causes += [invalid_value(f"{path}.name", name, text) for text in label_problems(name)]
        if name in seen:
            causes.append(duplicate(f"{path}.name", name))
        seen.add(name)
    causes += image_causes(container, path)
    causes += one_of(container, "terminationMessagePolicy", path, _MESSAGE_POLICIES)
    causes += _ports_causes(container.get("ports") or [], f"{path}.ports")
    causes += env_causes(container, path)
    causes += _mount_causes(container, path, volumes)
    causes += one_of(container, "imagePullPolicy", path, _PULL_POLICIES)
    claims = [claim.get("name", "") for claim in spec.get("resourceClaims") or []]
    causes += resource_causes(container.get("resources") or {}, f"{path}.resources", claims)
    for policy in container.get("resizePolicy") or []:
        where = {"resizePolicy": policy.get("resourceName", "")}
        causes += one_of(where, "resizePolicy", path, ("cpu", "memory"))
        where = {"resizePolicy": policy.get("restartPolicy", "")}
        causes += one_of(where, "resizePolicy", path, ("NotRequired", "RestartContainer"))
    return causes + container_security_causes(container, path)


def _ports_causes(ports: list[Object], path: str) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    for i, port in enumerate(ports):
        here, name = f"{path}[{i}]", port.get("name", "")
        problems = name_problems(name) if name else []
        causes += [invalid_value(f"{here}.name", name, text) for text in problems]
        if name and not problems:
            causes += [duplicate(f"{here}.name", name)] if name in names else []
            names.add(name)
        if not port.get("containerPort"):
            causes.append(required(f"{here}.containerPort"))
        else:
            causes += port_causes(port["containerPort"], f"{here}.containerPort")
        if port.get("hostPort"):
            causes += port_causes(port["hostPort"], f"{here}.hostPort")
        causes += one_of(port, "protocol", here, _PROTOCOLS)
    return causes


def _host_port_causes(container: Object, path: str, taken: set[str]) -> list[Cause]:
    causes = []
    for i, port in enumerate(container.get("ports") or []):
        if port.get("hostPort"):
            used = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if used in taken:
                causes.append(duplicate(f"{path}.ports[{i}].hostPort", used))
            taken.add(used)
    return causes


def _mount_causes(container: Object, path: str, volumes: Mapping[str, Object]) -> list[Cause]:
    causes: list[Cause] = []
    places: set[str] = set()
    where = f"{path}.volumeMounts"
    for i, mount in enumerate(container.get("volumeMounts") or []):
        here, name, place = f"{where}[{i}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            causes.append(required(f"{here}.name"))
        if name not in volumes:
            causes.append(_not_found(f"{here}.name", name))
        causes += needed(mount, "mountPath", here)
        if place in places:
            causes.append(invalid_value(f"{here}.mountPath", place, "must be unique"))
        places.add(place)
        if mount.get("subPath"):
            causes += path_causes(mount["subPath"], f"{where}.subPath")
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                text = "subPathExpr and subPath are mutually exclusive"
                causes.append(invalid_value(f"{here}.subPathExpr", mount["subPathExpr"], text))
            causes += path_causes(mount["subPathExpr"], f"{where}.subPathExpr")
        causes += _propagation_causes(mount, where, container)
    for i, device in enumerate(container.get("volumeDevices") or []):
        if device.get("name", "") not in volumes:
            causes.append(_not_found(f"{path}.volumeDevices[{i}].name", device.get("name", "")))
    return causes


def _propagation_causes(mount: Object, where: str, container: Object) -> list[Cause]:
    causes = one_of(mount, "mountPropagation", where, _PROPAGATION)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if mount.get("mountPropagation") == "Bidirectional" and not privileged:
        text = "Bidirectional mount propagation is available only to privileged containers"
        causes.append(forbidden_field(f"{where}.mountPropagation", text))
    return causes


def _not_found(field: str, name: str) -> Cause:
    return Cause(field, f'Not found: "{name}"', "FieldValueNotFound")
