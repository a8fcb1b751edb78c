"""Checks the containers of a pod: regular ones, init containers, ephemeral ones. Pure.

`container_causes` is what others call. It uses `ports`, `env`, `mounts`, `probes_and_hooks` and
`restarts`, and what a pod has, too: resources and security contexts.
Upstream: validateContainers, validateInitContainers, validateEphemeralContainers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from kubeobjects.causes import Cause, duplicate, forbidden_field, invalid_value, not_found, required
from kubeobjects.pods.common.checks import Object, label, needed, word
from kubeobjects.pods.common.resources import claim_names, requirement_causes
from kubeobjects.pods.common.security import container_security_causes
from kubeobjects.pods.containers.env import env_causes
from kubeobjects.pods.containers.mounts import mount_causes
from kubeobjects.pods.containers.ports import host_port_causes, port_causes
from kubeobjects.pods.containers.probes_and_hooks import PROBES, probe_and_hook_causes
from kubeobjects.pods.containers.restarts import init_resize_causes, resize_causes, restart_causes

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_OF_PROPER_CONTAINERS: Final = (  # fields, in the order of the API's type
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", *PROBES),
    "lifecycle",
)


class Surroundings(Struct, frozen=True):
    """What the checks of a container have to know of its pod."""

    spec: Object
    volumes: Mapping[str, Object]
    """The valid volumes, by name."""
    claims: Collection[str]
    """The names of the resource claims."""
    static: bool
    """Whether it is a kubelet's own."""


def container_causes(
    spec: Object, volumes: Mapping[str, Object], *, static: bool
) -> Iterator[Cause]:
    """What is wrong with all containers of a pod. `volumes`: its valid volumes, by name; `static`:
    the pod is a kubelet's own."""
    pod = Surroundings(spec, volumes, claim_names(spec), static)
    containers = spec.get("containers") or ()
    names: set[str] = set()
    if not containers:
        yield required("spec.containers")
    for i, container in enumerate(containers):
        path = f"spec.containers[{i}]"
        yield from _common_causes(container, path, pod)
        yield from _unique(container, path, names)
        yield from probe_and_hook_causes(container, path, spec, static=static)
        yield from restart_causes(container, path)
    yield from host_port_causes(containers, "spec.containers")
    yield from _init_causes(pod, names)
    yield from _ephemeral_causes(pod, names)


def _unique(container: Object, path: str, names: set[str]) -> Iterator[Cause]:
    """The name may not be taken; it is now."""
    name = container.get("name") or ""
    if name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)


def _init_causes(pod: Surroundings, names: set[str]) -> Iterator[Cause]:
    """Init containers. `names`: those of the regular ones, to which theirs are added."""
    for i, container in enumerate(pod.spec.get("initContainers") or ()):
        path = f"spec.initContainers[{i}]"
        yield from _common_causes(container, path, pod)
        yield from restart_causes(container, path, of_init=True)
        if container.get("name"):
            yield from _unique(container, path, names)
        # One init container runs after the other: only its own ports can be in its way. As
        # upstream, causes name the first one.
        yield from host_port_causes((container,), "spec.initContainers")
        if container.get("restartPolicy") == "Always":
            yield from probe_and_hook_causes(container, path, pod.spec, static=pod.static)
        else:
            for field in ("lifecycle", *PROBES):
                if container.get(field) is not None:
                    yield forbidden_field(f"{path}.{field}", _ONLY_SIDECARS)
        yield from init_resize_causes(container, path)


def _ephemeral_causes(pod: Surroundings, names: set[str]) -> Iterator[Cause]:
    """Ephemeral containers. `names`: those of all others, to which theirs are added."""
    other_names = frozenset(names)
    for i, container in enumerate(pod.spec.get("ephemeralContainers") or ()):
        path = f"spec.ephemeralContainers[{i}]"
        yield from _common_causes(container, path, pod)
        yield from image_space_causes(container, path)
        yield from _unique(container, path, names)
        target = container.get("targetContainerName")
        if target and target not in other_names:
            yield not_found(f"{path}.targetContainerName", target)
        for field in _OF_PROPER_CONTAINERS:
            if container.get(field) or (field == "lifecycle" and field in container):
                yield forbidden_field(f"{path}.{field}", _NOT_EPHEMERAL)
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    yield forbidden_field(f"{path}.volumeMounts[{index}].{field}", _NOT_EPHEMERAL)


def _common_causes(container: Object, path: str, pod: Surroundings) -> Iterator[Cause]:
    """What is checked of all kinds of containers."""
    yield from needed(container, "name", path)
    if container.get("name"):
        yield from label(container["name"], f"{path}.name")
    yield from needed(container, "image", path)
    field = "terminationMessagePolicy"
    yield from word(container.get(field), f"{path}.{field}", _MESSAGE_POLICIES)
    yield from port_causes(container, path)
    yield from env_causes(container, path)
    yield from mount_causes(container, path, pod.volumes)
    yield from word(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", _PULL_POLICIES)
    resources = container.get("resources") or {}
    yield from requirement_causes(resources, f"{path}.resources", claims=pod.claims)
    yield from resize_causes(container, path, pod.spec.get("restartPolicy") or "")
    yield from container_security_causes(container, path, pod.spec)


def image_space_causes(container: Object, path: str) -> Iterator[Cause]:
    """An image with blanks around its name, which a pod may not have (a template may)."""
    image = container.get("image") or ""
    if image != image.strip():
        text = "must not have leading or trailing whitespace"
        yield invalid_value(f"{path}.image", image, text)


def image_spaces_causes(spec: Object) -> Iterator[Cause]:
    """The same, of all containers that are no ephemeral ones."""
    for group in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(group) or ()):
            yield from image_space_causes(container, f"spec.{group}[{i}]")
