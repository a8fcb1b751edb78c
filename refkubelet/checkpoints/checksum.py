"""The checksum of upstream's state files: FNV-1a, 32 bits, over Go's way to print a struct.

Files of the device, CPU and memory managers carry it, and a kubelet refuses a file whose checksum
is not its own, so the print must be equal to the byte: `(type){Field:(type)value Field:...}`. Types
are shown for the outermost value and for fields of structs, not for what is in slices and maps.
Pure. What must never happen here: a value that prints differently from one day to the next.
Upstream: pkg/kubelet/checkpointmanager/checksum/checksum.go, pkg/util/hash/hash.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from refkubelet.golang.fnv import fnv1a_32

NIL: Final = "<nil>"


def checksum(go_type: str, value: str) -> int:
    """The checksum of a value of that Go type, as printed by the functions below.

    >>> checksum("string", "abc")
    2241406447
    """
    return fnv1a_32(f"({go_type}){value}".encode())


def go_struct(fields: Mapping[str, tuple[str, str]]) -> str:
    """A struct: field name -> (Go type, printed value), in the order of declaration.

    >>> go_struct({"Name": ("string", "a"), "IDs": ("[]int", go_slice(["1", "2"]))})
    '{Name:(string)a IDs:([]int)[1 2]}'
    """
    shown = (f"{name}:({go_type}){value}" for name, (go_type, value) in fields.items())
    return "{" + " ".join(shown) + "}"


def go_slice(values: Iterable[str] | None) -> str:
    """A slice; None is Go's nil, which prints otherwise than an empty slice."""
    return NIL if values is None else f"[{' '.join(values)}]"


def go_map(values: Mapping[int, str] | Mapping[str, str] | None) -> str:
    """A map, sorted by its keys (numbers as numbers, strings by their bytes); None is nil.

    >>> go_map({10: "b", -1: "a"})
    'map[-1:a 10:b]'
    """
    if values is None:
        return NIL
    pairs = sorted(values.items(), key=lambda pair: _sort_key(pair[0]))
    return f"map[{' '.join(f'{key}:{value}' for key, value in pairs)}]"


def _sort_key(key: int | str) -> tuple[int, bytes]:
    return (key, b"") if isinstance(key, int) else (0, key.encode())


def go_bytes(data: bytes) -> str:
    """A byte slice.

    >>> go_bytes(b"AB")
    '[65 66]'
    """
    return go_slice(str(byte) for byte in data)
