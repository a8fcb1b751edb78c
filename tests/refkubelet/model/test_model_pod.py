"""Pods as the kubelet has them: what is never missing, and which containers they have."""

import pytest

from refkubelet.model.objects import decode_pod
from refkubelet.model.pod import all_containers, bare_container_id, containers, unsafe_name

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
