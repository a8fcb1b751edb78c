"""One pod, or a list of pods, of one text. Pure.

Rules: SRC-022 (single is tried first, one bad item refuses the list). Upstream:
pkg/kubelet/config/common.go: tryDecodeSinglePod, tryDecodePodList.
"""

from __future__ import annotations

from typing import Any, Final

from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError, pod_of, read_document

_LIST: Final = "PodList"


def read_manifests(
    data: bytes, *, source: PodSource, origin: str, node_name: str
) -> tuple[Pod, ...]:
    """The pods of a v1 Pod or PodList in YAML or JSON, in their order. Raises: ManifestError for a
    text that is neither, and for a list with an item that is no valid pod, whose number it
    names."""
    document = read_document(data)
    value = document.value
    if not _is_list(value):
        return (pod_of(document, source=source, origin=origin, node_name=node_name),)
    items = value.get("items") or []
    if not isinstance(items, list):
        raise ManifestError("items: wanted a list of pods")
    pods = []
    for number, item in enumerate(items):
        pod = {"apiVersion": "v1", "kind": "Pod", **item} if isinstance(item, dict) else item
        part = document.part(pod, ("items", number))
        try:
            pods.append(pod_of(part, source=source, origin=origin, node_name=node_name))
        except ManifestError as error:
            raise ManifestError(f"items[{number}]: {error}") from None
    return tuple(pods)


def _is_list(value: Any) -> bool:
    type_meta = ("v1", _LIST)
    return isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) == type_meta
