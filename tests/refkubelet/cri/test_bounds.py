"""What a runtime tells is bounded, whichever field it is in (CRI-011)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from refkubelet.cri import bounds, convert, usage
from refkubelet.cri.labels import RESTART_COUNT

INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
LONG = "x" * 3_000_000
MANY = 3
EXIT_CODES = "exit_code"  # 32 bits on the wire and in the API, with a sign
NOT_CUT = ("labels", "annotations", "hash")  # the kubelet's own, given back

CONVERTED: list[tuple[type[Any], Callable[[Any], object]]] = [
    (cri.PodSandboxStatus, convert.sandbox_record),
    (cri.ContainerStatus, convert.container_record),
    (cri.PodSandbox, convert.listed_sandbox),
    (cri.Container, convert.listed_container),
    (cri.Image, convert.image_record),
    (cri.StatusResponse, convert.runtime_conditions),
    (cri.VersionResponse, convert.runtime_version),
    (cri.ContainerStats, usage.container_usage),
    (cri.PodSandboxStats, usage.sandbox_usage),
    (cri.FilesystemUsage, usage.filesystem_usage),
]


def fill(message: Any, *, largest: bool, depth: int = 0) -> Any:
    """Give every field of the message its largest value, or its smallest."""
    for field in message.DESCRIPTOR.fields:
        repeated = hasattr(getattr(message, field.name), "extend")
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            if field.message_type.GetOptions().map_entry or depth > 6:
                continue
            for _ in range(MANY if repeated else 1):
                inner = getattr(message, field.name)
                fill(inner.add() if repeated else inner, largest=largest, depth=depth + 1)
                if not repeated:
                    inner.SetInParent()
            continue
        value = _extreme(field, largest=largest)
        if value is None:
            continue
        if repeated:
            times = 5000 if isinstance(value, int) else 1
            getattr(message, field.name).extend([value] * times)
        else:
            setattr(message, field.name, value)
    return message


def _extreme(field: Any, *, largest: bool) -> Any:
    if field.type in INTEGERS:
        return INTEGERS[field.type][largest]
    if field.type == FieldDescriptor.TYPE_STRING:
        return "id" if field.name in ("id", "uid") or not largest else LONG
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return math.nan if largest else math.inf
    return None


def values(of: object, path: str = "") -> Iterator[tuple[str, object]]:
    """All values in a record, with their places."""
    if dataclasses.is_dataclass(of):
        for field in dataclasses.fields(of):
            yield from values(getattr(of, field.name), f"{path}.{field.name}")
    elif isinstance(of, Struct):
        for name in of.__struct_fields__:
            yield from values(getattr(of, name), f"{path}.{name}")
    elif isinstance(of, Mapping):
        for key, value in of.items():
            yield from values(value, f"{path}[{str(key)[:20]}]")
    elif isinstance(of, tuple | list):
        yield path, len(of)
        for value in of:
            yield from values(value, f"{path}[]")
    else:
        yield path, of


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("kind", "read"), CONVERTED)
def test_no_value_of_a_record_is_out_of_bounds_CRI_011(
    kind: type[Any], read: Callable[[Any], object], largest: bool
) -> None:
    message = fill(kind(), largest=largest)
    try:
        record = read(message)
    except ValueError:
        assert not largest  # a field that must be there is not (CRI-008)
        return
    for path, value in values(record):
        name = path.rpartition(".")[2]
        if isinstance(value, bool) or any(word in path for word in NOT_CUT):
            continue
        if isinstance(value, int) and name != EXIT_CODES:
            assert 0 <= value <= bounds.MOST, path
        if name in ("attempt", "restart_count"):
            assert isinstance(value, int)
            assert value <= bounds.MOST_TRIES, path
        if isinstance(value, float):
            assert math.isfinite(value), path
        if isinstance(value, str):
            size = len(value.encode())
            assert size <= bounds.TEXT_BYTES, path
        if path.endswith("groups"):
            assert isinstance(value, int)
            assert value <= bounds.MOST_NAMES, path


def test_a_count_of_restarts_that_is_no_number_CRI_011() -> None:
    """CRI-011.1: the annotation is a text, which may be of any length."""
    status = fill(cri.ContainerStatus(), largest=True)
    status.metadata.attempt = 2
    for text, wanted in (("9" * 5000, bounds.MOST_TRIES), ("7", 7), ("²", 2), ("-4", 2)):
        status.annotations[RESTART_COUNT] = text
        assert convert.container_record(status).restart_count == wanted
