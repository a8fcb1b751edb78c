"""Digests: the UID of a static pod, and the hash by which a changed container is detected. Pure.

Both must be the same in every process, or a restart of the kubelet would restart pods (SRC-031,
LIFE-116); so they are computed from JSON with sorted keys.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from kubeobjects.golang.fnv import fnv1a_32, fnv1a_128
from kubeobjects.golang.json import go_json
from refkubelet.model.objects import Container


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def container_hash(container: Container) -> str:
    """FNV-1a-32 in hex over name and image. It is stored as an annotation of the container, to
    detect a changed spec (LIFE-116, BACK-019).

    It equals the real kubelet's value, so that each kubelet recognises the other's containers: the
    digest covers the JSON bytes as Go prints a slice.

    >>> container_hash(Container(name="main", image="localhost/busybox:1"))
    'c97bf8df'
    """
    return _container_hash(container.name, container.image or "")


@lru_cache(maxsize=4096)  # asked for every container at every sync
def _container_hash(name: str, image: str) -> str:
    value = {"image": image, "name": name}
    printed = "([]uint8)[" + " ".join(str(byte) for byte in go_json(value).encode()) + "]"
    return f"{fnv1a_32(printed.encode()):x}"


def static_pod_uid(pod: dict[str, Any], *, node_name: str, source: str, origin: str) -> str:
    """32 hex digits, computed from the decoded and defaulted manifest, the node and the origin, a
    path or URL (SRC-030, SRC-031). `source` is `file` or `http`."""
    kind = "file" if source == "file" else "url"
    place = f"host:{node_name}{kind}:{origin}"  # a file name may hold bytes that are no UTF-8
    data = _canonical(pod) + place.encode(errors="surrogateescape")
    return f"{fnv1a_128(data):032x}"
