"""Which manifests a real kubelet runs, and which fields it complains about (SRC-037).

`tests/data/manifests/kubelet-1.36.2.json`: pods that were given to kubelet 1.36.2 as static pods,
and the fields named in its `invalid pod: [...]`, none if it ran the pod.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from places import DATA

from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError, read_manifest

DATA = DATA / "manifests/kubelet-1.36.2.json"
ROWS: list[dict[str, Any]] = json.loads(DATA.read_text())
ON_PURPOSE = {"uid-slash": {"metadata.uid"}}  # SRC-025
KINDS = (
    "Invalid value|Required value|Forbidden|Duplicate value|Unsupported value|Too long|Not found"
)
FIELD = re.compile(rf"(?:^| )([a-zA-Z][\w.\[\]/-]*): (?:{KINDS})")


def complaints(pod: dict[str, Any]) -> set[str]:
    """The fields that the manifest is refused for."""
    try:
        read_manifest(
            json.dumps(pod).encode(), source=PodSource.FILE, origin="/m/p.json", node_name="n1"
        )
    except ManifestError as error:
        text = str(error)
        assert text.startswith("invalid pod: ["), text
        return set(FIELD.findall(text.removeprefix("invalid pod: [")))
    return set()


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_the_verdict_is_that_of_a_real_kubelet_SRC_037(row: dict[str, Any]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"} | row["metadata"]}
    pod |= {key: row[key] for key in ("spec", "status") if key in row}
    assert complaints(pod) == ON_PURPOSE.get(row["name"], set(row["refused"]))


def test_annotations_have_256_kib_together_SRC_037() -> None:
    for size, refused in ((262_000, set()), (262_144, {"metadata.annotations"})):
        metadata = {"name": "p", "annotations": {"a": "x" * size}}
        spec = {"containers": [{"name": "c", "image": "i:1"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        assert complaints(pod) == refused
