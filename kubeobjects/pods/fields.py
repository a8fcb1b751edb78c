"""What is wrong with a pod as a whole, in the order in which an API server says it. Pure.

The functions are the parts between which containers and volumes are checked; `validation` puts all
together. Each takes a pod with its defaults.
Upstream: pkg/apis/core/validation: ValidatePodCreate, ValidatePodSpec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kubeobjects.causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_texts,
    invalid_value,
    required,
)
from kubeobjects.metadata import finalizer_causes, metadata_causes, name_causes
from kubeobjects.names import qualified_name_problems, subdomain_problems
from kubeobjects.pods.annotations import MIRROR, matching_profile_causes
from kubeobjects.pods.common.checks import (
    MAX_SECONDS,
    Object,
    between,
    containers_of,
    label,
    not_negative,
    subdomain,
    word,
)
from kubeobjects.pods.dns import alias_causes, dns_causes, host_name_causes
from kubeobjects.pods.pod_resources import overhead_causes, pod_resource_causes
from kubeobjects.pods.pod_security import host_user_causes, pod_security_causes
from kubeobjects.pods.scheduling import (
    affinity_causes,
    gate_causes,
    spread_causes,
    toleration_causes,
)
from kubeobjects.pods.systems import host_process_causes, system_causes
from kubeobjects.selectors import label_causes

_RESTARTS: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTIONS: Final = ("PreemptLowerPriority", "Never")


def pod_metadata_causes(metadata: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with the metadata of a pod."""
    yield from name_causes(metadata, subdomain_problems)
    namespace = metadata.get("namespace") or ""
    if namespace:
        yield from label(namespace, "metadata.namespace")
    else:
        yield required("metadata.namespace")
    yield from not_negative(metadata.get("generation"), "metadata.generation")
    yield from metadata_causes(metadata)
    yield from finalizer_causes(metadata, core=True)


def resource_claim_causes(pod: Object) -> Iterator[Cause]:
    """What is wrong with the claims for devices. The copy of a kubelet's own pod may have none."""
    mirrors = MIRROR in ((pod.get("metadata") or {}).get("annotations") or {})
    names: set[str] = set()
    for i, claim in enumerate(pod["spec"].get("resourceClaims") or ()):
        if mirrors:
            yield forbidden_field("[]", "static pods do not support resource claims")
        else:
            yield from _claim_causes(claim, f"spec.resourceClaims[{i}]", names)


def _claim_causes(claim: Object, path: str, names: set[str]) -> Iterator[Cause]:
    name = claim.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif name in names:
        yield duplicate(f"{path}.name", name)
    else:
        yield from label(name, f"{path}.name")
        names.add(name)
    sources = {
        field: claim.get(field) for field in ("resourceClaimName", "resourceClaimTemplateName")
    }
    sources_given = {field: source for field, source in sources.items() if source is not None}
    fields_shown = {"Name": name, **{f"R{field[1:]}": source for field, source in sources.items()}}
    if len(sources_given) > 1:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid_value(path, fields_shown, text)
    if not sources_given:
        text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid_value(path, fields_shown, text)
    for field, source in sources_given.items():
        yield from subdomain(source, f"{path}.{field}")


def pod_field_causes(pod: Object, *, static: bool = False) -> Iterator[Cause]:
    """What is wrong with the fields of the spec that are neither volumes nor containers. `static`:
    the pod is a kubelet's own."""
    spec = pod["spec"]
    yield from pod_resource_causes(spec)
    yield from _host_network_causes(spec, static=static)
    yield from word(spec.get("restartPolicy"), "spec.restartPolicy", _RESTARTS)
    yield from word(spec.get("dnsPolicy"), "spec.dnsPolicy", _DNS_POLICIES)
    yield from label_causes(spec.get("nodeSelector"), "spec.nodeSelector")
    yield from pod_security_causes(spec)
    yield from affinity_causes(spec.get("affinity") or {})
    yield from dns_causes(spec)
    for i, gate in enumerate(spec.get("readinessGates") or ()):
        kind, gate_path = gate.get("conditionType") or "", f"spec.readinessGates[{i}].conditionType"
        yield from invalid_texts(gate_path, kind, qualified_name_problems(kind))
    yield from gate_causes(spec.get("schedulingGates") or ())
    yield from spread_causes(spec.get("topologySpreadConstraints") or ())
    yield from host_process_causes(spec)
    yield from host_user_causes(spec)
    yield from host_name_causes(spec)
    yield from _named_causes(spec)
    yield from overhead_causes(spec)
    yield from system_causes(spec)
    yield from _group_causes(spec.get("schedulingGroup"))


def _host_network_causes(spec: Object, *, static: bool) -> Iterator[Cause]:
    """Ports of a pod in the network of its host are those of its containers."""
    if not spec.get("hostNetwork"):
        return
    for i, container in enumerate(spec.get("containers") or ()):
        for j, port in enumerate(container.get("ports") or ()):
            of_host, of_container = port.get("hostPort") or 0, port.get("containerPort") or 0
            if of_host != of_container and (of_host or not static):
                text = "must match `containerPort` when `hostNetwork` is true"
                yield invalid_value(f"spec.containers[{i}].ports[{j}].hostPort", of_host, text)


def _named_causes(spec: Object) -> Iterator[Cause]:
    """Fields that are a name, a number or a word, and two lists between these."""
    for field in ("serviceAccountName", "nodeName"):
        yield from _name_causes(spec, field, subdomain)
    deadline_s = spec.get("activeDeadlineSeconds")
    yield from between(deadline_s, "spec.activeDeadlineSeconds", 1, MAX_SECONDS)
    for field in ("hostname", "subdomain"):
        yield from _name_causes(spec, field, label)
    yield from toleration_causes(spec.get("tolerations") or (), "spec.tolerations")
    yield from alias_causes(spec.get("hostAliases") or ())
    yield from _name_causes(spec, "priorityClassName", subdomain)
    if spec.get("runtimeClassName") is not None:
        yield from subdomain(spec["runtimeClassName"], "spec.runtimeClassName")
    if spec.get("preemptionPolicy") is not None:
        yield from word(spec["preemptionPolicy"], "spec.preemptionPolicy", _PREEMPTIONS)


def _name_causes(
    spec: Object, field: str, rule: Callable[[str, str], Iterator[Cause]]
) -> Iterator[Cause]:
    """What is wrong with a name, unless it is empty."""
    if spec.get(field):
        yield from rule(spec[field], f"spec.{field}")


def _group_causes(group: Object | None) -> Iterator[Cause]:
    """The group of pods that are scheduled together."""
    if group is None:
        return
    name, field = group.get("podGroupName"), "spec.schedulingGroup.podGroupName"
    if name is None:
        yield invalid_value(field, None, "must specify one of: `podGroupName`")
    else:
        yield from subdomain(name, field)


def creation_causes(pod: Object) -> Iterator[Cause]:
    """What may not be in a pod that is new, and profiles that annotations and fields tell
    differently."""
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        yield forbidden_field("spec.nodeName", text)
    yield from matching_profile_causes(pod, list(containers_of(spec)))
