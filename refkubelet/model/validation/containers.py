"""Checks containers, except for probes and hooks. Pure.

What must never pass here: a path that leads out of its volume (NODE-204).
Upstream: pkg/apis/core/validation: validateContainers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from refkubelet.model.gates import RESTART_ALL
from refkubelet.model.objects import Container, PodSpec
from refkubelet.model.resources import COMPUTE
from refkubelet.model.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    one_of,
    port_name,
    required,
    too_many,
    unique_label,
)
from refkubelet.model.validation.pod_fields import ids, profiles
from refkubelet.model.validation.references import env_problems
from refkubelet.model.validation.resources import amount_problems, resource_name_problems

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_POLICIES: Final = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
}
_MODES: Final = ("Disabled", "Enabled", "IfPossible")
MAX_RULES: Final = 20
MAX_EXIT_CODES: Final = 255


def container_problems(
    place: str, c: Container, spec: PodSpec, *, names: set[str], volumes: Collection[str]
) -> Iterator[str]:
    """Everything but probes, hooks and restart rules. `names`: those of the containers before this
    one, to which its own is added; `volumes`: the names of the pod's volumes."""
    yield from unique_label(f"{place}.name", c.name, names)
    yield from _image_and_policies(place, c)
    yield from env_problems(place, c)
    yield from _ports(place, c)
    yield from _mount_points(place, c, volumes)
    yield from amount_problems(f"{place}.resources", c.resources)
    yield from _port_names(f"{place}.ports", c)
    for i, mount in enumerate(c.volumeMounts or ()):
        yield from _mount(place, i, mount, c)
    yield from _security(f"{place}.securityContext", c.securityContext, spec)
    for policy in c.resizePolicy or ():
        field = f"{place}.resizePolicy"
        yield from one_of(field, policy.resourceName, COMPUTE)
        yield from one_of(field, policy.restartPolicy, ("NotRequired", "RestartContainer"))
    claims = frozenset(claim.name for claim in spec.resourceClaims or ())
    yield from resource_name_problems(f"{place}.resources", c.resources, claims=claims)
    yield from _devices(place, c, spec)


def _image_and_policies(place: str, c: Container) -> Iterator[str]:
    if not c.image:
        yield required(f"{place}.image")
    elif c.image != c.image.strip():
        yield invalid(f"{place}.image", c.image, "must not have leading or trailing whitespace")
    for name, words in _POLICIES.items():
        yield from one_of(f"{place}.{name}", getattr(c, name), words)


def _ports(place: str, c: Container) -> Iterator[str]:
    for i, port in enumerate(c.ports or ()):
        field = f"{place}.ports[{i}]"
        for name, value in (("containerPort", port.containerPort), ("hostPort", port.hostPort)):
            number = value or 0
            unset = value is None or (name == "hostPort" and number == 0)
            if not unset and not 1 <= number <= 65535:
                yield invalid(f"{field}.{name}", value, "must be between 1 and 65535, inclusive")
        yield from one_of(f"{field}.protocol", port.protocol, ("TCP", "UDP", "SCTP"))


def _mount_points(place: str, c: Container, volumes: Collection[str]) -> Iterator[str]:
    paths: set[str] = set()
    devices = {device.name: device.devicePath for device in c.volumeDevices or ()}
    for i, mount in enumerate(c.volumeMounts or ()):
        field = f"{place}.volumeMounts[{i}]"
        if mount.name not in volumes:
            yield not_found(f"{field}.name", mount.name)
        if not mount.mountPath:
            yield required(f"{field}.mountPath")
        elif mount.mountPath in paths:
            yield invalid(f"{field}.mountPath", mount.mountPath, "must be unique")
        if mount.name in devices:
            yield invalid(f"{field}.name", mount.name, "must not already exist in volumeDevices")
        if mount.mountPath in devices.values():
            why = "must not already exist as a path in volumeDevices"
            yield invalid(f"{field}.mountPath", mount.mountPath, why)
        paths.add(mount.mountPath)


def _port_names(place: str, c: Container) -> Iterator[str]:
    names: set[str] = set()
    for i, port in enumerate(c.ports or ()):
        if port.name:
            yield from port_name(f"{place}[{i}].name", port.name)
            if port.name in names:
                yield duplicate(f"{place}[{i}].name", port.name)
            names.add(port.name)


def host_port_problems(spec: PodSpec) -> Iterator[str]:
    """Host ports of regular containers; upstream does not check those of init containers."""
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
                yield duplicate(field, key)
            taken.add(key)


def _mount(place: str, i: int, mount: Any, c: Container) -> Iterator[str]:
    """One mount. As upstream, only some of the errors name the index of the mount."""
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
        yield forbidden(f"{field}.mountPropagation", why)
    yield from one_of(f"{field}.recursiveReadOnly", mount.recursiveReadOnly, _MODES)
    if mount.recursiveReadOnly in ("Enabled", "IfPossible"):
        why = "may only be specified when"
        if not mount.readOnly:
            yield forbidden(f"{field}.recursiveReadOnly", f"{why} readOnly is true")
        if (mount.mountPropagation or "None") != "None":
            why = f"{why} mountPropagation is None or not specified"
            yield forbidden(f"{field}.recursiveReadOnly", why)


def _security(place: str, context: Any, spec: PodSpec) -> Iterator[str]:
    """A container's securityContext; `spec` says whether the pod has a user namespace."""
    if context is None:
        return
    yield from ids(place, context, ("runAsUser", "runAsGroup"))
    yield from profiles(place, context)
    yield from one_of(f"{place}.procMount", context.procMount, ("Default", "Unmasked"))
    if context.procMount == "Unmasked" and spec.hostUsers is not False:
        why = "`hostUsers` must be false to use `Unmasked`"
        yield invalid(f"{place}.procMount", "Unmasked", why)
    if context.allowPrivilegeEscalation is not False:
        return
    cannot = f"{place}: Invalid value: cannot set `allowPrivilegeEscalation` to false and"
    if context.privileged:
        yield f"{cannot} `privileged` to true"
    if "CAP_SYS_ADMIN" in ((context.capabilities.add if context.capabilities else None) or ()):
        yield f"{cannot} `capabilities.Add` CAP_SYS_ADMIN"


def restart_rules(place: str, c: Container, *, of_init: bool = False) -> Iterator[str]:
    """Restart rules. Without a restart policy they are refused; those of an init container are then
    not checked any further."""
    if c.restartPolicyRules and not c.restartPolicy:
        why = "must specify restartPolicy when restart rules are used"
        yield required(f"{place}.restartPolicy", why)
        if of_init:
            return
    rules = c.restartPolicyRules or ()
    if len(rules) > MAX_RULES:
        yield too_many(f"{place}.restartPolicyRules", rules, MAX_RULES)
    for i, rule in enumerate(rules):
        field = f"{place}.restartPolicyRules[{i}]"
        yield from one_of(f"{field}.action", rule.action, ("Restart", RESTART_ALL))
        codes = rule.exitCodes
        if codes is None:
            yield required(f"{field}.exitCodes", "must be specified")
            continue
        yield from one_of(f"{field}.exitCodes.operator", codes.operator, ("In", "NotIn"))
        if len(codes.values or ()) > MAX_EXIT_CODES:
            yield too_many(f"{field}.exitCodes.values", codes.values or (), MAX_EXIT_CODES)


def _devices(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    """Check block devices: only of claims, with unique names and paths."""
    kinds = {volume.name: volume for volume in spec.volumes or ()}
    mounts = {mount.name for mount in c.volumeMounts or ()}
    paths = {mount.mountPath for mount in c.volumeMounts or ()}
    names: set[str] = set()
    taken: set[str] = set()
    for i, device in enumerate(c.volumeDevices or ()):
        field = f"{place}.volumeDevices[{i}]"
        for name in ("name", "devicePath"):
            if not getattr(device, name):
                yield required(f"{field}.{name}")
        volume = kinds.get(device.name)
        if volume is None:
            yield not_found(f"{field}.name", device.name)
        elif volume.persistentVolumeClaim is None and volume.ephemeral is None:
            kinds_known = "PersistentVolumeClaim or Ephemeral for block mode"
            why = f"can only use volume source type of {kinds_known}"
            yield invalid(f"{field}.name", device.name, why)
        if device.name in names:
            yield invalid(f"{field}.name", device.name, "must be unique")
        if device.name in mounts:
            yield invalid(f"{field}.name", device.name, "must not already exist in volumeMounts")
        if device.devicePath in taken:
            yield invalid(f"{field}.devicePath", device.devicePath, "must be unique")
        if device.devicePath in paths:
            why = "must not already exist as a path in volumeMounts"
            yield invalid(f"{field}.devicePath", device.devicePath, why)
        if ".." in device.devicePath.split("/"):
            why = "can not contain backsteps ('..')"
            yield invalid(f"{field}.devicePath", device.devicePath, why)
        names.add(device.name)
        taken.add(device.devicePath)
