"""The downward API: values of a pod's fields, requests and limits (LIFE-137). Pure.

Upstream: kubelet_pods.go: podFieldSelectorRuntimeValue, containerResourceRuntimeValue;
kubelet_resources.go: defaultPodLimitsForDownwardAPI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lightkube.models.core_v1 import ResourceFieldSelector
from msgspec import Struct, field

from kubeobjects.quantity import NANO, parse_nano
from kubeobjects.resource_names import COMPUTE, HUGE_PAGES
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import annotations as pod_annotations
from refkubelet.model.pod import labels, uid
from refkubelet.model.resources import container_limits, container_requests, pod_level

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]\Z")
DEFAULTED: Final = ("cpu", "memory", "ephemeral-storage")


class VariableError(Exception):
    """A variable cannot be made; the container waits with reason CreateContainerConfigError."""


class NodeAndPodFacts(Struct, frozen=True):
    """Values for variables that are not in the pod's spec. IPs: main family first. `allocatable`
    (nano units) is used for limits that are not set."""

    pod_ips: tuple[str, ...] = ()
    host_ips: tuple[str, ...] = ()
    node_name: str = ""
    allocatable: Mapping[str, int] = field(default_factory=dict)


def pod_field(path: str, pod: Pod, facts: NodeAndPodFacts) -> str:
    """A field of the pod by its path. Raises `VariableError`."""
    meta, spec = pod.metadata, pod.spec
    simple = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": uid(pod),
        "spec.nodeName": spec.nodeName or facts.node_name,
        "spec.serviceAccountName": spec.serviceAccountName,
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
    raise VariableError(f"field label not supported: {path}")


def resource_field(
    selector: ResourceFieldSelector, container: Container, pod: Pod, facts: NodeAndPodFacts
) -> str:
    """A request or limit of a container, divided and rounded up.

    An unset limit of CPU, memory or ephemeral storage is the pod-level one, else the node's
    allocatable, except for an init container that is selected by its name.
    Raises `VariableError`.
    """
    target, defaulted = _container(selector, container, pod)
    which, _, resource = selector.resource.partition(".")
    is_known = resource in DEFAULTED or resource.startswith(HUGE_PAGES)
    if which not in ("limits", "requests") or not is_known:
        raise VariableError(f"unsupported container resource : {selector.resource}")
    if which == "requests":
        amount = container_requests(target).get(resource, 0)
    else:
        amount = container_limits(target).get(resource, 0)
        if not amount and defaulted and resource in DEFAULTED:
            amount = _default_limit(resource, pod, facts)
    divisor = parse_nano(str(selector.divisor or "1")) or NANO
    return str(-(-amount // divisor))


def _container(
    selector: ResourceFieldSelector, container: Container, pod: Pod
) -> tuple[Container, bool]:
    """The selected container, and whether its unset limits have defaults. Raises
    `VariableError`."""
    name, spec = selector.containerName, pod.spec
    if not name:
        return container, True
    for regular in spec.containers:
        if regular.name == name:
            return regular, True
    for init in spec.initContainers or ():
        if init.name == name:
            return init, False
    raise VariableError(f"container {name} not found")


def _default_limit(resource: str, pod: Pod, facts: NodeAndPodFacts) -> int:
    allocatable = facts.allocatable.get(resource, 0)
    own = pod_level(pod, "limits").get(resource, 0) if resource in COMPUTE else 0
    return own if own and resource in facts.allocatable else allocatable
