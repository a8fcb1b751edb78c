"""Pods as the kubelet has them: what is never missing, and which containers they have."""

from typing import Any

import pytest

from refkubelet.model.objects import decode_pod
from refkubelet.model.pod import (
    PortError,
    all_containers,
    bare_container_id,
    containers,
    resolve_port,
    tolerates,
    unsafe_name,
)

SPEC = {
    "initContainers": [{"name": "i"}],
    "containers": [{"name": "c"}],
    "ephemeralContainers": [{"name": "e"}],
}


@pytest.mark.parametrize("value", [{}, {"metadata": None, "spec": None}])
def test_metadata_and_spec_are_never_missing(value: dict[str, None]) -> None:
    pod = decode_pod(value)
    assert (pod.metadata.name, pod.spec.containers) == (None, [])


def test_containers_come_in_the_order_of_upstreams_visitor() -> None:
    pod = decode_pod({"spec": SPEC})
    assert [c.name for c in containers(pod)] == ["i", "c"]
    assert [c.name for c in all_containers(pod)] == ["i", "c", "e"]


def test_the_name_of_an_ephemeral_container_can_be_unsafe_SRC_025() -> None:
    metadata = {"uid": "u", "name": "p", "namespace": "n"}
    pod = decode_pod(
        {"metadata": metadata, "spec": SPEC | {"ephemeralContainers": [{"name": ".."}]}}
    )
    assert (unsafe_name(pod) or "").startswith("container name '..'")


@pytest.mark.parametrize("told", ["containerd://abc", "abc"])
def test_a_container_id_loses_its_scheme(told: str) -> None:
    assert (bare_container_id(told), bare_container_id(None)) == ("abc", "")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, None),
        ({"uid": "a/b"}, "UID 'a/b': it must not contain '/' or a zero byte"),
        ({"name": ".."}, "name '..': it must not be '', '.' or '..'"),
        ({"namespace": ""}, "namespace '': it must not be '', '.' or '..'"),
        ({"containers": [{"name": ""}]}, "container name '': it must not be '', '.' or '..'"),
        ({"volumes": [{"name": "v"}, {"name": "."}]},
         "volume name '.': it must not be '', '.' or '..'"),
        ({"volumes": [{"name": "a" * 256}]},
         f"volume name {'a' * 80!r}: it must not have more than 255 bytes"),
    ],
)  # fmt: skip
def test_the_first_unsafe_name_is_told_SRC_025(fields: dict[str, Any], told: str | None) -> None:
    metadata = {"uid": "u", "name": "p", "namespace": "n"}
    named = {key: text for key, text in fields.items() if key in metadata}
    spec = {"containers": [{"name": "c"}], **fields}
    metadata |= named
    assert unsafe_name(decode_pod({"metadata": metadata, "spec": spec})) == told


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "k", "value": "v", "effect": "e"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": ""}, True),
        ({"key": "k", "value": "v", "effect": "f"}, False),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k"}, False),
        ({"key": "l", "value": "v"}, False),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "l", "operator": "Exists"}, False),
        ({"key": "", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "", "value": "v"}, False),
        ({"value": "v"}, False),
    ],
)
def test_which_tolerations_are_for_a_taint(toleration: dict[str, str], tolerated: bool) -> None:
    pod = decode_pod({"spec": {"containers": [], "tolerations": [{"key": "x"}, toleration]}})
    assert tolerates(pod, "k", "v", "e") is tolerated


def test_a_toleration_without_a_value_is_for_an_empty_one() -> None:
    pod = decode_pod({"spec": {"containers": [], "tolerations": [{"key": "k"}]}})
    assert tolerates(pod, "k", "", "e")


PORTS = {
    "name": "c",
    "ports": [{"name": "web", "containerPort": 80}, {"name": "big", "containerPort": 70000}],
}


@pytest.mark.parametrize(
    ("port", "number"), [(1, 1), (65535, 65535), ("web", 80), ("443", 443), ("+5", 5), ("007", 7)]
)
def test_ports_are_numbers_names_or_digits_PROBE_061(port: int | str, number: int) -> None:
    (one,) = decode_pod({"spec": {"containers": [PORTS]}}).spec.containers
    assert resolve_port(port, one) == number


@pytest.mark.parametrize(
    ("port", "why"),
    [
        (0, "invalid port number: 0"),
        (65536, "invalid port number: 65536"),
        ("-1", "invalid port number: -1"),
        ("big", "invalid port number: 70000"),
        ("é\n", r'strconv.Atoi: parsing "é\n": invalid syntax'),
        ("", 'strconv.Atoi: parsing "": invalid syntax'),
        ("9" * 20, f'strconv.Atoi: parsing "{"9" * 20}": value out of range'),
    ],
)
def test_what_is_no_port_PROBE_061(port: int | str, why: str) -> None:
    (one,) = decode_pod({"spec": {"containers": [PORTS]}}).spec.containers
    with pytest.raises(PortError) as caught:
        resolve_port(port, one)
    assert str(caught.value) == why
