"""Objects become protobuf and come back: every message, with Google's library as a witness."""

import hashlib
import json
import subprocess
import sys
from typing import Any

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from places import DATA
from protobuf_objects import RandomObjects, all_messages, full, google_class, messages_in, same

from fakekubeapi.protobuf.codec import decode_message, encode_message
from fakekubeapi.protobuf.envelope import DecodeError, decode_object, encode_object
from fakekubeapi.protobuf.values import KINDS
from fakekubeapi.protobuf.wire import (
    BYTES,
    VARINT,
    WireError,
    key,
    read_varint,
    text,
    varint,
    with_length,
)
from kubeobjects.schema.messages import message, schema_of
from simclock import Rng

SEEDS = (1, 2, 3)
GO = DATA / "kubernetes-v1.36.tsv"
NOT_SENT = {
    *("core.v1.AvoidPods", "core.v1.PreferAvoidPodsEntry", "core.v1.PodSignature"),
    "core.v1.Preconditions",
    *("meta.v1.ApplyOptions", "meta.v1.List", "meta.v1.RootPaths", "meta.v1.TypeMeta"),
}


@pytest.mark.parametrize("package", sorted(schema_of().packages))
def test_every_message_comes_back_as_it_was(package: str) -> None:
    for described in messages_in(package):
        for seed in SEEDS:
            sent = RandomObjects(seed).of(described.name)
            read = decode_message(described, encode_message(described, sent))
            assert same(read, sent), (described.name, seed)
            again = decode_message(described, encode_message(described, read))
            assert again == read, (described.name, seed)


@pytest.mark.parametrize("package", sorted(schema_of().packages))
def test_google_s_library_reads_every_message_and_writes_the_same_bytes(package: str) -> None:
    """It knows each field that is written, with its type, and neither order nor length differ."""
    for described in messages_in(package):
        for seed in SEEDS:
            written = encode_message(described, RandomObjects(seed).of(described.name))
            read = google_class(described.name).FromString(written)
            assert not _unknown(read), (described.name, seed)
            assert read.SerializeToString(deterministic=True) == written, (described.name, seed)


def _unknown(read: Any) -> bool:
    """Whether there are fields in a message, or below it, that it does not know."""
    below = [
        each
        for field, value in read.ListFields()
        if field.message_type is not None
        for each in _messages(field, value)
    ]
    return len(UnknownFieldSet(read)) > 0 or any(map(_unknown, below))


def _messages(field: Any, value: Any) -> list[Any]:
    if field.message_type.GetOptions().map_entry:
        of_messages = field.message_type.fields_by_name["value"].message_type is not None
        return list(value.values()) if of_messages else []
    return [value] if hasattr(value, "ListFields") else list(value)


def test_numbers_types_and_empty_fields_are_those_of_go() -> None:
    """The file has what Go's own code wrote of the same objects. Not yet of trust bundles: what a
    kubelet program reads of them is looked at by the cases `trust-bundle-*` alone; nor of types
    that nobody sends."""
    rows = [line.split("\t") for line in GO.read_text().splitlines() if not line.startswith("#")]
    lists = {each.name for each in all_messages() if each.itself}
    written_here = {each.name for each in all_messages()} - lists
    unread = {name for name in written_here if name.startswith("certificates.v1beta1.")}
    assert {name for name, _, _ in rows} == written_here - unread - NOT_SENT
    for name, digest, empty in rows:
        written = encode_message(message(name), full(name))
        assert hashlib.sha256(written).hexdigest().startswith(digest), name
        assert decode_message(message(name), b"") == json.loads(empty), name


def test_an_empty_message_has_what_go_writes_of_it() -> None:
    assert decode_message(message("core.v1.PodSpec"), b"") == {"containers": None}
    assert decode_message(message("core.v1.ResourceFieldSelector"), b"") == {
        "resource": "",
        "divisor": "0",
    }
    event = decode_message(message("core.v1.Event"), b"")
    assert event["firstTimestamp"] is event["eventTime"] is None
    assert (event["involvedObject"], event["reportingComponent"]) == ({}, "")
    node = decode_message(message("core.v1.Node"), b"")
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert "creationTimestamp" not in node["metadata"]


def test_what_is_empty_but_said_stays() -> None:
    """Pointers: no class is another thing than the class of that name."""
    claim = {"storageClassName": "", "accessModes": ["ReadWriteOnce"]}
    read = decode_message(
        message("core.v1.PersistentVolumeClaimSpec"),
        encode_message(message("core.v1.PersistentVolumeClaimSpec"), claim),
    )
    assert read["storageClassName"] == ""
    security = {"runAsUser": 0, "runAsNonRoot": False}
    name = "core.v1.SecurityContext"
    assert decode_message(message(name), encode_message(message(name), security)) == security
    pod = {"containers": [], "terminationGracePeriodSeconds": 0, "hostNetwork": False}
    read = decode_message(
        message("core.v1.PodSpec"), encode_message(message("core.v1.PodSpec"), pod)
    )
    assert read == {"containers": None, "terminationGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("Quantity", 2, "2"),
        ("Quantity", 0.5, "0.5"),
        ("Time", "2026-01-01T01:00:00.9+01:00", "2026-01-01T00:00:00Z"),
        ("Time", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("Time", "1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
        ("Time", "0001-01-01T00:00:00Z", None),
        ("MicroTime", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"),
        ("MicroTime", "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456Z"),
        ("IntOrString", "80", "80"),
        ("IntOrString", -1, -1),
        ("bytes", "", ""),
        ("FieldsV1", {"f:a": {".": {}}}, {"f:a": {".": {}}}),
        ("RawExtension", [1, None], [1, None]),
    ],
)
def test_values_in_their_usual_form(name: str, value: Any, wanted: Any) -> None:
    kind = KINDS[name]
    written = kind.encode(value)
    assert (
        kind.decode(read_varint(written, 0)[0] if kind.wire_type == VARINT else written) == wanted
    )


def test_maps_are_written_in_order_of_their_keys() -> None:
    one = encode_message(message("meta.v1.ObjectMeta"), {"labels": {"b": "1", "a": "2"}})
    assert one == encode_message(message("meta.v1.ObjectMeta"), {"labels": {"a": "2", "b": "1"}})
    assert one.index(b"a") < one.index(b"b")


def test_what_is_unknown_is_left_out() -> None:
    data = text(1, "a") + text(999, "x") + key(998, VARINT) + varint(5) + key(997, 1) + b"8 bytes."
    assert decode_message(message("core.v1.LocalObjectReference"), data) == {"name": "a"}
    written = encode_message(message("core.v1.LocalObjectReference"), {"name": "a", "none": 1})
    assert written == text(1, "a")


def test_parts_of_a_message_are_merged_and_of_values_the_last_counts() -> None:
    parts = text(1, text(1, "first")) + text(1, text(3, "space") + text(1, "last"))
    assert decode_message(message("core.v1.ConfigMap"), parts)["metadata"] == {
        "name": "last",
        "namespace": "space",
    }


def test_numbers_may_be_packed() -> None:
    packed = key(4, BYTES) + with_length(varint(1) + varint(300))
    read = decode_message(message("core.v1.PodSecurityContext"), packed)
    assert read == {"supplementalGroups": [1, 300]}
    loose = encode_message(message("core.v1.PodSecurityContext"), read)
    assert loose == key(4, VARINT) + varint(1) + key(4, VARINT) + varint(300)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x0a\x05abc", "unexpected EOF"),
        (b"\x0a", "unexpected EOF"),
        (b"\x8a", "unexpected EOF"),
        (b"\x0a" + b"\xff" * 11, "proto: integer overflow"),
        (b"\x08\x01", "proto: wrong wireType = 0 for field Name"),
        (b"\x0b", "proto: illegal wireType 3"),
        (b"\x02\x00", "proto: illegal tag 0"),
        (b"\xf9\x3e1234", "unexpected EOF"),
    ],
)
def test_bytes_that_are_no_message(data: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        decode_message(message("core.v1.LocalObjectReference"), data)


OBJECTS = [
    encode_object({"kind": kind, "apiVersion": version, **RandomObjects(7).of(name)})
    for kind, version, name in (
        ("Pod", "v1", "core.v1.Pod"),
        ("Node", "v1", "core.v1.Node"),
        ("ResourceClaim", "resource.k8s.io/v1", "resource.v1.ResourceClaim"),
    )
]


@pytest.mark.parametrize("whole", OBJECTS, ids=["Pod", "Node", "ResourceClaim"])
def test_broken_bytes_are_read_or_refused(whole: bytes) -> None:
    random = Rng(1).stream("bytes")
    outcomes = set()
    for _ in range(150):
        start = random.randrange(len(whole))
        broken = whole[:start] + random.randbytes(random.randrange(5))
        broken += whole[start + random.randrange(5) :]
        try:
            read = decode_object(broken)
        except DecodeError:
            outcomes.add("refused")
            continue
        outcomes.add("read")
        encode_object(json.loads(json.dumps(read)))
    assert outcomes == {"read", "refused"}


def test_nothing_is_loaded_before_it_is_needed() -> None:
    program = (
        "import sys, fakekubeapi.http, kubeobjects.schema.messages as m; "
        "print(m.schema_of.cache_info().currsize, 'google.protobuf' in sys.modules); "
        "from fakekubeapi.protobuf.envelope import encode_object; "
        "encode_object({'kind': 'Lease', 'apiVersion': 'coordination.k8s.io/v1'}); "
        "print(m.schema_of.cache_info().currsize)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=200
    )
    assert told.stdout.split() == ["0", "False", "1"]
