"""What a file that outlives the kubelet must hold, and how the user is told when it does not. Pure.

The files of the device, CPU and memory managers carry upstream's checksum: FNV-1a, 32 bits, over
Go's way to print a struct. A kubelet refuses a file whose checksum is not its own, so the print
must be equal to the byte: `(type){Field:(type)value Field:...}`. Types are shown for the outermost
value and for fields of structs, not for what is in slices and maps.
What must never happen here: a value that prints differently from one day to the next.
Upstream: pkg/kubelet/checkpointmanager/checksum/checksum.go, pkg/util/hash/hash.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubeobjects.golang.fnv import fnv1a_32
from kubeobjects.golang.strconv import quoted

CORRUPT: Final = "checkpoint is corrupted"  # upstream's word for a checksum that does not fit
NIL: Final = "<nil>"


class CheckpointError(ValueError):
    """The text of a file is not what a kubelet wrote; says what was wanted and what was found."""


class StateFileError(Exception):
    """A file is there and cannot be used; the text says why, in upstream's words where it has
    them. The kubelet must not start with such a file: the wiring makes a `ConfigError` of it."""


def json_value(text: bytes | str) -> Any:
    """The JSON value of what a file holds, which a crash, a full disk or an editor may have
    spoiled. Raises `CheckpointError` for what is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise CheckpointError("it is nested too deeply") from None
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def drain_and_delete(problem: str, checkpoint: str, path: str) -> str:
    """The text of a start failure: the problem, and what the user can do. `checkpoint` names the
    file: `the CPU manager`."""
    return (
        f"{problem}, please drain this node and delete {checkpoint} checkpoint file "
        f"{quoted(path)} before restarting Kubelet"
    )


def checksum(go_type: str, value: str, hash_of: Callable[[bytes], int] = fnv1a_32) -> int:
    """The checksum of a value of that Go type, as printed by the functions below. `hash_of`: of a
    file that is written often, the `Fnv32.of` that has hashed the last one.

    >>> checksum("string", "abc")
    2241406447
    """
    return hash_of(f"({go_type}){value}".encode())


def go_struct(fields: Mapping[str, tuple[str, str]]) -> str:
    """A struct: field name -> (Go type, printed value), in the order of declaration.

    >>> go_struct({"Name": ("string", "a"), "IDs": ("[]int", go_slice(["1", "2"]))})
    '{Name:(string)a IDs:([]int)[1 2]}'
    """
    printed = (f"{name}:({go_type}){value}" for name, (go_type, value) in fields.items())
    return "{" + " ".join(printed) + "}"


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
    return f"map[{' '.join(f'{key}:{value}' for key, value in sorted(values.items()))}]"


def go_bytes(data: bytes) -> str:
    """A byte slice.

    >>> go_bytes(b"AB")
    '[65 66]'
    """
    return go_slice(str(byte) for byte in data)
