"""Manifests as texts, and reading them as the kubelet does."""

from __future__ import annotations

from typing import Any

import pods
import pytest
import yaml

from refkubelet.model.objects import Pod, to_dict
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError, read_manifest

FILE = "/etc/kubernetes/manifests/web.yaml"


def read(text: str, *, origin: str = FILE, node: str = "n1") -> Pod:
    return read_manifest(text.encode(), source=PodSource.FILE, origin=origin, node_name=node)


def manifest(spec: dict[str, Any] | None = None, **metadata: Any) -> str:
    return yaml.safe_dump(pods.manifest(meta=metadata, **(spec or {})))


def with_container(**fields: Any) -> str:
    return yaml.safe_dump(pods.manifest(pods.container(**fields)))


def refusal(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        read(text)
    return str(caught.value)


def accepted(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """The pod as JSON shows it."""
    return to_dict(read(manifest(spec, **metadata)))


def volumes(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": f"v{i}", **source} for i, source in enumerate(sources)]}
