"""kubelet_internal_checkpoint in upstream's format (CG-084).

The texts were printed by the Go package pkg/kubelet/cm/devicemanager/checkpoint of Kubernetes 1.36.
"""

from __future__ import annotations

import pytest

from refkubelet.checkpoints.content import (
    CheckpointError,
    checksum,
    go_bytes,
    go_map,
    go_slice,
    go_struct,
)
from refkubelet.container_manager.devices import checkpoint
from refkubelet.container_manager.devices.checkpoint import Checkpoint
from refkubelet.container_manager.devices.types import Allotment
from simclock import Rng

WIDGET = "example.com/widget"
TWO_PODS = (
    '{"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"main","ResourceName":'
    '"example.com/widget","DeviceIDs":{"-1":["a"],"0":["b","c"],"1":["c"]},"AllocResp":'
    '"CgYKAUESATE="},{"PodUID":"uid-2","ContainerName":"main","ResourceName":"example.com/widget",'
    '"DeviceIDs":{"0":["d"]},"AllocResp":""}],"RegisteredDevices":{"example.com/gadget":[],'
    '"example.com/widget":["a","b","c","d"]}},"Checksum":2008722950}'
)
ENTRIES = (
    (
        "uid-1",
        "main",
        WIDGET,
        Allotment({-1: ("a",), 0: ("b", "c"), 1: ("c",)}, b"\n\x06\n\x01A\x12\x011"),
    ),
    ("uid-2", "main", WIDGET, Allotment({0: ("d",)}, b"")),
)
REGISTERED = {"example.com/gadget": [], WIDGET: ["a", "b", "c", "d"]}
NOTHING = '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}'
NULL_LIST = (
    '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"example.com/widget":null}},'
    '"Checksum":2843787622}'
)


def test_the_text_is_upstreams_CG_084() -> None:
    assert checkpoint.write(ENTRIES, {WIDGET: "dcba", "example.com/gadget": ()}) == TWO_PODS
    assert checkpoint.write((), {}) == NOTHING


def test_upstreams_text_is_read_CG_084() -> None:
    assert checkpoint.read(TWO_PODS) == Checkpoint(ENTRIES, REGISTERED)
    assert checkpoint.read(NOTHING) == Checkpoint((), {})
    assert checkpoint.read(NULL_LIST) == Checkpoint((), {WIDGET: None})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TWO_PODS.replace('"uid-1"', '"uid-9"'), "checkpoint is corrupted"),
        (TWO_PODS.replace("2008722950", "1"), "its checksum is 1, wanted 2008722950"),
        (NOTHING.replace("{}", "null"), "checkpoint is corrupted"),
        ("", "not a checkpoint of devices"),
        ("[]", "not a checkpoint of devices"),
        ("{}", "not a checkpoint of devices"),
        ('{"Data":null,"Checksum":0}', "not a checkpoint of devices"),
        (
            '{"Data":{"PodDeviceEntries":[1],"RegisteredDevices":{}},"Checksum":0}',
            "not a checkpoint",
        ),
        (TWO_PODS.replace("CgYKAUESATE=", "%%%"), "checkpoint"),
    ],
)
def test_a_file_that_is_not_right_is_not_believed(text: str, says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        checkpoint.read(text)


def test_how_go_prints() -> None:
    assert go_slice(None) == go_map(None) == "<nil>"
    assert go_slice([]) == "[]"
    assert go_map({}) == "map[]"
    assert go_map({10: "b", -1: "a"}) == "map[-1:a 10:b]"
    assert go_map({"b": "1", "B": "2", "ä": "3"}) == "map[B:2 b:1 ä:3]"
    assert go_bytes(b"AB") == "[65 66]"
    inner = go_struct({"A": ("string", "x"), "B": ("[]int", go_slice(["1", "2"]))})
    assert inner == "{A:(string)x B:([]int)[1 2]}"
    assert checksum("string", "abc") != checksum("string", "abd")


def test_a_file_that_is_written_again_and_again_is_as_if_written_once_CG_084() -> None:
    """Whatever has changed: entries that come, go and have other devices."""
    rng, writer = Rng(1).stream("entries"), checkpoint.Writer()
    entries: dict[tuple[str, str, str], Allotment] = {}
    for _ in range(200):
        key = (f"uid-{rng.randrange(40)}", "main", WIDGET)
        if key in entries and rng.random() < 0.5:
            del entries[key]
        else:
            entries[key] = Allotment({0: (f"d{rng.randrange(9)}",)}, bytes([rng.randrange(256)]))
        now = [(*each, allotment) for each, allotment in entries.items()]
        text = writer.write(now, REGISTERED)
        assert text == checkpoint.write(now, REGISTERED)
        assert checkpoint.read(text).entries == tuple(now)
