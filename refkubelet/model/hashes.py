"""Digests that identify: static pods by their manifest, containers by what they run.

Both must give the same value in every process and on every day, or a kubelet restart restarts pods
(SRC-031, LIFE-116). So they cover sorted JSON and nothing volatile.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from refkubelet.model.objects import Container

_FNV_32: Final = (0x811C9DC5, 0x01000193, 32)
_GO_JSON_ESCAPES: Final = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_FNV_128: Final = (0x6C62272E07BB014262B821756295C58D, 0x0000000001000000000000000000013B, 128)


def _fnv1a(data: bytes, parameters: tuple[int, int, int]) -> int:
    value, prime, bits = parameters
    mask = (1 << bits) - 1
    for byte in data:
        value = ((value ^ byte) * prime) & mask
    return value


def fnv1a_32(data: bytes) -> int:
    """FNV-1a, 32 bits.

    >>> hex(fnv1a_32(b"foobar"))
    '0xbf9cf968'
    """
    return _fnv1a(data, _FNV_32)


def fnv1a_128(data: bytes) -> int:
    """FNV-1a, 128 bits.

    >>> hex(fnv1a_128(b"foobar"))
    '0x343e1662793c64bf6f0d3597ba446f18'
    """
    return _fnv1a(data, _FNV_128)


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
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text = text.translate(_GO_JSON_ESCAPES)
    printed = "([]uint8)[" + " ".join(str(byte) for byte in text.encode()) + "]"
    return f"{fnv1a_32(printed.encode()):x}"


def static_pod_uid(pod: dict[str, Any], *, node_name: str, source: str, origin: str) -> str:
    """32 hex digits over the decoded, defaulted manifest, the node and where it came from
    (SRC-030, SRC-031). `source` is `file` or `http`."""
    kind = "file" if source == "file" else "url"
    place = f"host:{node_name}{kind}:{origin}"  # a file's name may be no text
    data = _canonical(pod) + place.encode(errors="surrogateescape")
    return f"{fnv1a_128(data):032x}"
