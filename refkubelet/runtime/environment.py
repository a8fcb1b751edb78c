"""The environment of a container, and the references in its command and arguments: LIFE-137. Pure.

Precedence: env beats envFrom (later sources beat earlier ones) beats service variables. `$(X)` in
an env value sees services, envFrom and the env entries before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lightkube.models.core_v1 import EnvFromSource, EnvVar, ResourceFieldSelector

from refkubelet.model.objects import Container, Pod, labels, uid
from refkubelet.model.objects import annotations as pod_annotations
from refkubelet.model.quantity import NANO, parse_nano
from refkubelet.model.resources import container_limits, container_requests
from refkubelet.runtime.options import ObjectLookup

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\)|)")
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]\Z")


class VariableError(Exception):
    """A variable cannot be made; reason CreateContainerConfigError."""


@dataclass(frozen=True, slots=True)
class EnvironmentFacts:
    """What variables may refer to. IPs: main family first. Capacities stand in for limits that
    are not set."""

    pod_ips: tuple[str, ...] = ()
    host_ips: tuple[str, ...] = ()
    node_name: str = ""
    cpu_capacity_cores: int = 0
    memory_capacity_bytes: int = 0
    objects: ObjectLookup | None = None


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)`; unknown references stay as they are, `$$` is an escaped `$`.

    >>> expand("$(A)-$(B)-$$(A)-$x", {"A": "1"})
    '1-$(B)-$(A)-$x'
    """

    def replacement(match: re.Match[str]) -> str:
        if match.group() == "$$":
            return "$"
        name = match.group(1)
        return variables.get(name, match.group()) if name is not None else "$"

    return _REFERENCE.sub(replacement, text)


def environment(container: Container, pod: Pod, facts: EnvironmentFacts) -> dict[str, str]:
    """All variables of the container. Raises `VariableError` for a missing reference."""
    result: dict[str, str] = {}
    if facts.objects is not None:
        result.update(facts.objects.service_environment(pod))
    for source in container.envFrom or []:
        result.update(_from_source(source, pod, facts.objects))
    for variable in container.env or []:
        value = _value(variable, container, pod, facts, result)
        if value is not None:
            result[variable.name] = value
    return result


def _from_source(source: EnvFromSource, pod: Pod, objects: ObjectLookup | None) -> dict[str, str]:
    prefix = source.prefix or ""
    found: dict[str, str] = {}
    for kind, reference in (("configmap", source.configMapRef), ("secret", source.secretRef)):
        if reference is None:
            continue
        data = _lookup(kind, reference.name or "", pod, objects)
        if data is None and not reference.optional:
            raise VariableError(f'{kind} "{reference.name}" not found')
        found.update({prefix + key: value for key, value in (data or {}).items()})
    return found


def _value(
    variable: EnvVar,
    container: Container,
    pod: Pod,
    facts: EnvironmentFacts,
    known: Mapping[str, str],
) -> str | None:
    """The variable's value; None for an absent optional reference."""
    source = variable.valueFrom
    if source is None:
        return expand(variable.value or "", known)
    if source.fieldRef is not None:
        return pod_field(source.fieldRef.fieldPath, pod, facts)
    if source.resourceFieldRef is not None:
        return resource_field(source.resourceFieldRef, container, pod, facts)
    if source.configMapKeyRef is not None:
        ref = source.configMapKeyRef
        return _key("configmap", ref.name or "", ref.key, bool(ref.optional), pod, facts)
    if source.secretKeyRef is not None:
        secret = source.secretKeyRef
        return _key("secret", secret.name or "", secret.key, bool(secret.optional), pod, facts)
    raise VariableError(
        f"env {variable.name} of container {container.name}: valueFrom names no source that this "
        "kubelet knows (fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef)"
    )


def _key(
    kind: str, name: str, key: str, optional: bool, pod: Pod, facts: EnvironmentFacts
) -> str | None:
    data = _lookup(kind, name, pod, facts.objects)
    if data is None and not optional:
        raise VariableError(f'{kind} "{name}" not found')
    if data is not None and key in data:
        return data[key]
    if optional:
        return None
    namespace = pod.metadata.namespace if pod.metadata else ""
    label = "ConfigMap" if kind == "configmap" else "Secret"
    raise VariableError(f"couldn't find key {key} in {label} {namespace}/{name}")


def _lookup(
    kind: str, name: str, pod: Pod, objects: ObjectLookup | None
) -> Mapping[str, str] | None:
    if objects is None:
        return None
    namespace = (pod.metadata.namespace if pod.metadata else "") or ""
    get = objects.config_map if kind == "configmap" else objects.secret
    return get(namespace, name)


def pod_field(path: str, pod: Pod, facts: EnvironmentFacts) -> str:
    """A field of the pod by its path (downward API). Raises `VariableError`."""
    meta, spec = pod.metadata, pod.spec
    simple = {
        "metadata.name": meta.name if meta else "",
        "metadata.namespace": meta.namespace if meta else "",
        "metadata.uid": uid(pod),
        "spec.nodeName": (spec.nodeName if spec else None) or facts.node_name,
        "spec.serviceAccountName": spec.serviceAccountName if spec else "",
        "status.hostIP": next(iter(facts.host_ips), ""),
        "status.hostIPs": ",".join(facts.host_ips),
        "status.podIP": next(iter(facts.pod_ips), ""),
        "status.podIPs": ",".join(facts.pod_ips),
    }
    if path in simple:
        return simple[path] or ""
    if match := _SUBSCRIPT.match(path):
        values = labels(pod) if match.group(1) == "labels" else pod_annotations(pod)
        return values.get(match.group(2), "")
    raise VariableError(f"unsupported fieldPath: {path}")


def resource_field(
    selector: ResourceFieldSelector, container: Container, pod: Pod, facts: EnvironmentFacts
) -> str:
    """A request or limit of a container, divided and rounded up; a limit that is not set reads as
    the node's capacity."""
    spec = pod.spec
    everyone = [*(spec.containers or []), *(spec.initContainers or [])] if spec else []
    name = selector.containerName or container.name
    target = next((c for c in everyone if c.name == name), container)
    which, _, resource = selector.resource.partition(".")
    capacity = {
        "cpu": facts.cpu_capacity_cores * NANO,
        "memory": facts.memory_capacity_bytes * NANO,
    }
    if which == "limits":
        amount = container_limits(target).get(resource, capacity.get(resource, 0))
    elif which == "requests":
        amount = container_requests(target).get(resource, 0)
    else:
        raise VariableError(f"unsupported container resource: {selector.resource}")
    divisor = parse_nano(str(selector.divisor or "1")) or NANO
    return str(-(-amount // divisor))
