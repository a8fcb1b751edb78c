"""Fills in the defaults of static pods: those of the API, and UID, name and node. Pure.

Rules: SRC-030..036. The order matters: the API's defaults first (kubeobjects.pods.defaults), then
the UID over the defaulted object, then name, namespace, node (SRC-030). All functions return
changed copies.
Upstream: pkg/kubelet/config/common.go: applyDefaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubeobjects.pods.defaults import default_pod
from refkubelet.model.hashes import static_pod_uid
from refkubelet.model.objects import Pod, PodStatus, Toleration, decode_pod, to_dict
from refkubelet.model.pod import CONFIG_HASH, CONFIG_SOURCE
from refkubelet.model.pod_updates import PodSource

replace: Final = msgspec.structs.replace


def apply_api_defaults(pod: Pod) -> Pod:
    """The defaults that every API server sets on a v1 pod (SRC-036, PROBE-003).

    Raises QuantityError if an amount of resources is none.
    """
    value = to_dict(pod)
    default_pod(value)
    return decode_pod(value)


def apply_static_defaults(pod: Pod, *, source: PodSource, origin: str, node_name: str) -> Pod:
    """The pod of a manifest with all defaults, as the kubelet runs it.

    `origin` is the file path or URL; it is part of the UID (SRC-031). An explicit metadata.uid is
    kept (SRC-032). Sets: API defaults, UID, name with the node's suffix, namespace, nodeName,
    annotations config.hash and config.source, the NoExecute toleration for file pods (SRC-035),
    phase Pending (SRC-033).
    """
    pod = apply_api_defaults(pod)
    metadata, spec = pod.metadata, pod.spec
    uid = metadata.uid or static_pod_uid(
        to_dict(pod), node_name=node_name, source=source.value, origin=origin
    )
    marks = {**(metadata.annotations or {}), CONFIG_HASH: uid, CONFIG_SOURCE: source.value}
    metadata = replace(
        metadata,
        uid=uid,
        name=static_pod_name(metadata.name or "", node_name),
        namespace=metadata.namespace or "default",
        annotations=marks,
    )
    tolerations = list(spec.tolerations or [])
    if source is PodSource.FILE:
        tolerations = _with_no_execute(tolerations)
    spec = replace(spec, nodeName=node_name, tolerations=tolerations or None)
    status = replace(pod.status or PodStatus(), phase="Pending")
    return replace(pod, metadata=metadata, spec=spec, status=status)


def _with_no_execute(tolerations: list[Toleration]) -> list[Toleration]:
    """`tolerations` with the one for file pods: appended, or in the place of equal ones
    (SRC-035)."""
    no_execute = Toleration(operator="Exists", effect="NoExecute")

    def same(t: Toleration) -> bool:
        plain = not t.key and not t.value
        return plain and t.effect == no_execute.effect and t.operator == no_execute.operator

    if not any(map(same, tolerations)):
        return [*tolerations, no_execute]
    return [no_execute if same(t) else t for t in tolerations]


def static_pod_name(name: str, node_name: str) -> str:
    """`<name>-<lowercase node name>` (SRC-033)."""
    return f"{name}-{node_name.lower()}"
