"""Checks of containers beyond names, images and probes, and of the kinds of volumes.

Part of `validation.py`, which says what these checks are. What must never pass here: a path that
leads out of its volume (NODE-204). Upstream: pkg/apis/core/validation: validateContainers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from refkubelet.model.complaints import invalid, one_of, port_name
from refkubelet.model.objects import Container, LifecycleHandler, PodSpec
from refkubelet.model.quantity import NANO, QuantityError, parse_nano
from refkubelet.model.validation_pod import ids, profiles
from refkubelet.model.validation_resources import amount_of
from refkubelet.resources.golang import quoted

_HEADER: Final = re.compile(r"[-A-Za-z0-9]+\Z")
_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_FIELDS: Final = frozenset(
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
_KEYED_FIELD: Final = re.compile(r"metadata\.(labels|annotations)\['[^']*'\]\Z")
_RESOURCE_FIELD: Final = re.compile(
    r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)\Z"
)
_RESOURCE_FIELDS: Final = tuple(
    f"{which}.{name}"
    for which in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_VALUE_SOURCES: Final = (
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
)


def container_problems(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    yield from _port_names(f"{place}.ports", c)
    for i, env in enumerate(c.env or ()):
        if env.valueFrom is not None:
            yield from _value_source(f"{place}.env[{i}].valueFrom", env.valueFrom)
    for source in c.envFrom or ():
        if source.configMapRef is None and source.secretRef is None:
            why = "must specify one of: `configMapRef` or `secretRef`"
            yield invalid(f"{place}.envFrom", "", why)
    for i, mount in enumerate(c.volumeMounts or ()):
        yield from _mount(place, i, mount, c)
    yield from _security(f"{place}.securityContext", c.securityContext)
    for policy in c.resizePolicy or ():
        field = f"{place}.resizePolicy"
        yield from one_of(field, policy.resourceName, ("cpu", "memory"))
        yield from one_of(field, policy.restartPolicy, ("NotRequired", "RestartContainer"))
    yield from _restart_rules(place, c)
    if c.lifecycle is not None:
        if c.lifecycle.stopSignal and not (spec.os and spec.os.name):
            field = f"{place}.lifecycle.stopSignal"
            yield f"{field}: Forbidden: may not be set for containers with empty `spec.os.name`"
        for name in ("postStart", "preStop"):
            yield from _hook(f"{place}.lifecycle.{name}", getattr(c.lifecycle, name), spec)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = getattr(c, name)
        if probe is not None:
            yield from _headers(f"{place}.{name}.httpGet", probe.httpGet)


def _port_names(place: str, c: Container) -> Iterator[str]:
    names: set[str] = set()
    for i, port in enumerate(c.ports or ()):
        if port.name:
            yield from port_name(f"{place}[{i}].name", port.name)
            if port.name in names:
                yield f"{place}[{i}].name: Duplicate value: {quoted(port.name)}"
            names.add(port.name)


def host_port_problems(spec: PodSpec) -> Iterator[str]:
    """Of the regular containers alone: nobody looks at those of init containers."""
    taken: set[str] = set()
    for index, c in enumerate(spec.containers or ()):
        for i, port in enumerate(c.ports or ()):
            if not port.hostPort:
                continue
            field = f"spec.containers[{index}].ports[{i}].hostPort"
            if spec.hostNetwork and port.hostPort != port.containerPort:
                why = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(field, port.hostPort, why)
            key = f"{port.protocol or 'TCP'}/{port.hostIP or ''}/{port.hostPort}"
            if key in taken:
                yield f"{field}: Duplicate value: {quoted(key)}"
            taken.add(key)


def _value_source(place: str, source: Any) -> Iterator[str]:
    given = [name for name in _VALUE_SOURCES if getattr(source, name, None) is not None]
    if not given:
        why = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        yield invalid(place, "", why)
    if len(given) > 1:
        yield invalid(place, "", "may not have more than one field specified at a time")
    if source.fieldRef is not None:
        path = source.fieldRef.fieldPath
        if path not in _FIELDS and not _KEYED_FIELD.match(path):
            why = f"error converting fieldPath: field label not supported: {path}"
            yield invalid(f"{place}.fieldRef.fieldPath", path, why)
    if source.resourceFieldRef is not None:
        yield from _resource_field(f"{place}.resourceFieldRef", source.resourceFieldRef)


def _resource_field(place: str, ref: Any) -> Iterator[str]:
    if not _RESOURCE_FIELD.match(ref.resource):
        yield from one_of(f"{place}.resource", ref.resource, _RESOURCE_FIELDS)
        return
    try:
        divisor = parse_nano(str(ref.divisor or "0"))
    except QuantityError as error:
        yield f"{place}.divisor: Invalid value: {error}"
        return
    if ref.resource.endswith(".cpu") and divisor not in (0, NANO // 1000, NANO):
        why = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield invalid(f"{place}.divisor", ref.resource, why)


def _mount(place: str, i: int, mount: Any, c: Container) -> Iterator[str]:
    """The index is in some fields only; so it is upstream."""
    field = f"{place}.volumeMounts"
    if mount.subPath and mount.subPathExpr:
        why = "subPathExpr and subPath are mutually exclusive"
        yield invalid(f"{field}[{i}].subPathExpr", mount.subPathExpr, why)
    for name in ("subPath", "subPathExpr"):
        path = getattr(mount, name)
        if path and path.startswith("/"):
            yield invalid(f"{field}.{name}", path, "must be a relative path")
        if path and ".." in path.split("/"):
            yield invalid(f"{field}.{name}", path, "must not contain '..'")
    yield from one_of(f"{field}.mountPropagation", mount.mountPropagation, _PROPAGATIONS)
    privileged = c.securityContext is not None and c.securityContext.privileged
    if mount.mountPropagation == "Bidirectional" and not privileged:
        why = "Bidirectional mount propagation is available only to privileged containers"
        yield f"{field}.mountPropagation: Forbidden: {why}"
    if (mount.recursiveReadOnly or "Disabled") != "Disabled" and not mount.readOnly:
        yield f"{field}.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"


def _security(place: str, context: Any) -> Iterator[str]:
    if context is None:
        return
    yield from ids(place, context, ("runAsUser", "runAsGroup"))
    yield from profiles(place, context)
    yield from one_of(f"{place}.procMount", context.procMount, ("Default", "Unmasked"))
    if context.privileged and context.allowPrivilegeEscalation is False:
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield f"{place}: Invalid value: {why}"


def _restart_rules(place: str, c: Container) -> Iterator[str]:
    if c.restartPolicyRules and not c.restartPolicy:
        why = "must specify restartPolicy when restart rules are used"
        yield f"{place}.restartPolicy: Required value: {why}"
    for i, rule in enumerate(c.restartPolicyRules or ()):
        if rule.exitCodes is not None:
            field = f"{place}.restartPolicyRules[{i}].exitCodes.operator"
            yield from one_of(field, rule.exitCodes.operator, ("In", "NotIn"))


def _hook(place: str, hook: LifecycleHandler | None, spec: PodSpec) -> Iterator[str]:
    if hook is None:
        return
    yield from _headers(f"{place}.httpGet", hook.httpGet)
    grace_s = spec.terminationGracePeriodSeconds or 0
    if hook.sleep is not None and not 0 <= hook.sleep.seconds <= grace_s:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        yield invalid(f"{place}.sleep", hook.sleep.seconds, why)


def _headers(place: str, action: Any) -> Iterator[str]:
    for header in (action.httpHeaders if action is not None else None) or ():
        if not _HEADER.match(header.name):
            why = "a valid HTTP header must consist of alphanumeric characters or '-'"
            yield invalid(f"{place}.httpHeaders", header.name, why)


# -- volumes ---------------------------------------------------------------------------------------


def volume_problems(place: str, volume: Any) -> Iterator[str]:
    if volume.hostPath is not None:
        yield from one_of(f"{place}.hostPath.type", volume.hostPath.type, _HOST_PATHS)
    if volume.emptyDir is not None and volume.emptyDir.sizeLimit is not None:
        size = amount_of(str(volume.emptyDir.sizeLimit))
        if size is None or size < 0:
            why = "SizeLimit field must be a valid resource quantity"
            yield f"{place}.emptyDir.sizeLimit: Forbidden: {why}"
    if volume.image is not None:
        policies = ("Always", "IfNotPresent", "Never")
        yield from one_of(f"{place}.image.pullPolicy", volume.image.pullPolicy, policies)
    for item in (volume.downwardAPI.items if volume.downwardAPI is not None else None) or ():
        if item.path.startswith("/"):
            yield invalid(f"{place}.downwardAPI.path", item.path, "must be a relative path")
        if ".." in item.path.split("/"):
            yield invalid(f"{place}.downwardAPI.path", item.path, "must not contain '..'")


def device_problems(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    """Block devices come from claims only."""
    kinds = {volume.name: volume for volume in spec.volumes or ()}
    for i, device in enumerate(c.volumeDevices or ()):
        field, volume = f"{place}.volumeDevices[{i}].name", kinds.get(device.name)
        if volume is None:
            yield f"{field}: Not found: {quoted(device.name)}"
        elif volume.persistentVolumeClaim is None and volume.ephemeral is None:
            kinds_known = "PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(field, device.name, f"can only use volume source type of {kinds_known}")
