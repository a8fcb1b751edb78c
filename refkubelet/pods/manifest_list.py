"""One pod, or a list of pods, of one text. Pure.

Rules: SRC-022 (single is tried first, one bad item refuses the list). Upstream:
pkg/kubelet/config/common.go: tryDecodeSinglePod, tryDecodePodList.
"""

from __future__ import annotations

import json
from typing import Any, Final

from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodSource
from refkubelet.model.yaml.document import YamlError, read_json_or_yaml
from refkubelet.pods.manifest import ManifestError, read_manifest

_LIST: Final = "PodList"


def read_manifests(
    data: bytes, *, source: PodSource, origin: str, node_name: str
) -> tuple[Pod, ...]:
    """The pods of a v1 Pod or PodList in YAML or JSON, in their order. Raises: ManifestError for a
    text that is neither, and for a list with an item that is no valid pod, whose number it
    names."""
    try:
        value = read_json_or_yaml(data).value
    except YamlError as error:
        raise ManifestError(str(error)) from None
    if not _is_list(value):
        return (read_manifest(data, source=source, origin=origin, node_name=node_name),)
    items = value.get("items") or []
    if not isinstance(items, list):
        raise ManifestError("items: wanted a list of pods")
    pods = []
    for number, item in enumerate(items):
        pod = {"apiVersion": "v1", "kind": "Pod", **item} if isinstance(item, dict) else item
        text = json.dumps(pod).encode()
        try:
            pods.append(read_manifest(text, source=source, origin=origin, node_name=node_name))
        except ManifestError as error:
            raise ManifestError(f"items[{number}]: {error}") from None
    return tuple(pods)


def _is_list(value: Any) -> bool:
    wanted = ("v1", _LIST)
    return isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) == wanted
