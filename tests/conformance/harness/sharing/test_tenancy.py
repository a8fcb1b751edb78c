"""What a tenant of a shared kubelet sees and may do: in texts, messages and objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.sharing.modest import why_not_shared
from kubelet_conformance.harness.sharing.tenancy import (
    MOST_PODS,
    MustBeAlone,
    Tenancy,
    namespace_of,
)


@pytest.mark.parametrize("number", [1, 17, 99_999])
def test_namespaces_are_as_long_as_that_of_the_case(number: int) -> None:
    assert len(namespace_of(number)) == len("default")


def test_messages_of_the_kubelet_are_as_they_would_be_alone() -> None:
    tenancy = Tenancy(namespace_of(3))

    def config(namespace: str) -> Any:
        return cri.RunPodSandboxRequest(
            config=cri.PodSandboxConfig(
                metadata=cri.PodSandboxMetadata(name="web", uid="1", namespace=namespace),
                labels={"io.kubernetes.pod.namespace": namespace},
                log_directory=f"/logs/{namespace}_web_1",
            )
        )

    shared = config(namespace_of(3))
    assert tenancy.own_message(shared) == config("default")
    assert shared == config(namespace_of(3))
    other = config(namespace_of(4))
    assert tenancy.own_message(other) is other


def test_objects_go_out_with_the_tenants_namespace_and_come_back_with_the_cases() -> None:
    tenancy = Tenancy(namespace_of(3))
    event = {"metadata": {"namespace": "default"}, "involvedObject": {"namespace": "default"}}
    shared = tenancy.shared_object([event, "default"])
    assert shared == [
        {"metadata": {"namespace": "t-00003"}, "involvedObject": {"namespace": "t-00003"}},
        "default",
    ]
    assert tenancy.own_object(shared) == [event, "default"]


def test_another_namespace_must_be_alone_and_the_reason_is_kept() -> None:
    tenancy = Tenancy(namespace_of(3))
    with pytest.raises(MustBeAlone, match="kube-system"):
        tenancy.shared_object({"metadata": {"namespace": "kube-system"}})
    assert tenancy.reasons == ["the namespace 'kube-system'"]


def test_a_static_pod_without_a_namespace_gets_the_tenants() -> None:
    tenancy = Tenancy(namespace_of(3))
    shared = json.loads(tenancy.manifest(json.dumps(pod("web", container("main")).manifest)))
    assert shared["metadata"] == {"namespace": "t-00003", "name": "web"}
    assert tenancy.file("web.yaml") == "t-00003-web.yaml"


@pytest.mark.parametrize("text", ["kind: Pod", "[]", '{"kind": "PodList"}'])
def test_a_file_that_is_no_pod_in_json_must_be_alone(text: str) -> None:
    with pytest.raises(MustBeAlone):
        Tenancy(namespace_of(3)).manifest(text)


def test_directories_and_many_pods_must_be_alone() -> None:
    tenancy = Tenancy(namespace_of(3))
    with pytest.raises(MustBeAlone):
        tenancy.file("below/web.yaml")
    for _ in range(MOST_PODS):
        tenancy.shared_pod({"spec": {}})
    with pytest.raises(MustBeAlone, match="more than"):
        tenancy.shared_pod({"spec": {}})


def test_a_uid_that_others_may_have_must_be_alone() -> None:
    with pytest.raises(MustBeAlone, match="UID"):
        Tenancy(namespace_of(3)).shared_pod({"metadata": {"uid": "1"}, "spec": {}})


TAKES: dict[str, dict[str, Any]] = {
    "network": {"hostNetwork": True},
    "place of others": {"priority": 1},
    "port": {"containers": [{"ports": [{"hostPort": 80}]}]},
    "cpu": {"containers": [{"resources": {"requests": {"cpu": "60m"}}}] * 2},
    "memory": {"initContainers": [{"resources": {"limits": {"memory": "1Gi"}}}]},
    "storage": {"containers": [{"resources": {"requests": {"ephemeral-storage": "1Gi"}}}]},
}


@pytest.mark.parametrize("what", TAKES)
def test_a_pod_that_takes_from_the_node_must_be_alone(what: str) -> None:
    assert what in why_not_shared({"spec": TAKES[what]})


def test_a_modest_pod_shares() -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}] * 2}
    assert why_not_shared({"spec": spec}) == ""
    assert why_not_shared({}) == ""


def test_a_claim_takes_nothing_from_the_node() -> None:
    claim = {
        "kind": "PersistentVolumeClaim",
        "spec": {"resources": {"requests": {"storage": "9Gi"}}},
    }
    assert why_not_shared(claim) == ""
