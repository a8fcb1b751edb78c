"""Digests that identify: static pods by their manifest, containers by what they run.

Both must give the same value in every process and on every day, or a kubelet restart restarts pods
(SRC-031, LIFE-116). So they cover sorted JSON and nothing volatile.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from refkubelet.golang.fnv import fnv1a_32, fnv1a_128
from refkubelet.golang.json import go_json
from refkubelet.model.objects import Container


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def container_hash(container: Container) -> str:
    """Hex FNV-1a-32 over name and image: the annotation that says whether a running container is
    still the wanted one (LIFE-116, BACK-019).

    The value is the kubelet's own, so that either finds the other's containers unchanged: the
    digest covers the JSON bytes as Go prints a byte slice.

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
    """32 hex digits over the decoded, defaulted manifest, the node and where it came from
    (SRC-030, SRC-031). `source` is `file` or `http`."""
    kind = "file" if source == "file" else "url"
    place = f"host:{node_name}{kind}:{origin}"  # a file's name may be no text
    data = _canonical(pod) + place.encode(errors="surrogateescape")
    return f"{fnv1a_128(data):032x}"
