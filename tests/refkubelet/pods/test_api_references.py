"""Which API objects a pod refers to, the first one in SRC-038's order."""

from __future__ import annotations

from typing import Any

import pytest
from pods import make_pod

from refkubelet.pods.api_references import api_object_reference

CSI = {"driver": "d"}


def of_volume(**source: Any) -> str | None:
    plain = {"name": "e", "emptyDir": {}}
    return api_object_reference(make_pod(volumes=[plain, {"name": "v", **source}]))


def of_part(**source: Any) -> str | None:
    return of_volume(projected={"sources": [{"downwardAPI": {}}, source]})


def test_an_ordinary_pod_refers_to_nothing_SRC_038() -> None:
    literal = {"name": "A", "value": "b"}
    field = {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    one = {"name": "c", "env": [literal, field], "envFrom": [{"prefix": "P"}]}
    local = [{"name": "v", "hostPath": {"path": "/a"}}, {"name": "p", "projected": {}}]
    assert api_object_reference(make_pod(one, init=[one], volumes=local)) is None


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"serviceAccountName": "a"}, "serviceaccounts"),
        ({"serviceAccount": "a"}, "serviceaccounts"),
        ({"imagePullSecrets": [{}, {"name": "a"}]}, "secrets"),
        ({"imagePullSecrets": [{}, {"name": ""}]}, None),
        ({"resourceClaims": [{"name": "a"}]}, "resourceclaims"),
        ({"resourceClaims": []}, None),
    ],
)
def test_references_of_specs_SRC_038(spec: dict[str, Any], what: str | None) -> None:
    assert api_object_reference(make_pod(**spec)) == what


@pytest.mark.parametrize(("kind", "what"), [("secret", "secrets"), ("configMap", "configmaps")])
@pytest.mark.parametrize("init", [False, True])
def test_references_of_containers_SRC_038(kind: str, what: str, init: bool) -> None:
    def found(**fields: Any) -> str | None:
        one = {"name": "c", **fields}
        return api_object_reference(make_pod(init=[one]) if init else make_pod("a", one))

    def of_key(**key: str) -> dict[str, Any]:
        return {"name": "A", "valueFrom": {f"{kind}KeyRef": {"key": "k", **key}}}

    assert found(env=[{"name": "B", "value": "b"}, of_key(name="a")]) == what
    assert found(envFrom=[{}, {f"{kind}Ref": {"name": "a"}}]) == what
    assert found(env=[of_key()], envFrom=[{f"{kind}Ref": {}}]) is None


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ({"secret": {}}, "secrets"),
        ({"configMap": {}}, "configmaps"),
        ({"azureFile": {"secretName": "a", "shareName": "b"}}, "secrets"),
        ({"cephfs": {"monitors": [], "secretRef": {"name": "a"}}}, "secrets"),
        ({"cephfs": {"monitors": [], "secretRef": {}}}, None),
        ({"rbd": {"monitors": [], "image": "a", "secretRef": {"name": "a"}}}, "secrets"),
        ({"csi": {**CSI, "nodePublishSecretRef": {"name": "a"}}}, "secrets"),
        ({"csi": {**CSI, "nodePublishSecretRef": {}}}, "csidrivers (via CSI volumes)"),
        ({"csi": CSI}, "csidrivers (via CSI volumes)"),
        ({"glusterfs": {"endpoints": "a", "path": "b"}}, "endpoints (via glusterFS volumes)"),
        ({"persistentVolumeClaim": {"claimName": "a"}}, "persistentvolumeclaims"),
        ({"ephemeral": {}}, "persistentvolumeclaims (via ephemeral volumes)"),
        ({"nfs": {"server": "a", "path": "/"}}, None),
        ({"image": {}}, None),
    ],
)
def test_references_of_volumes_SRC_038(source: dict[str, Any], what: str | None) -> None:
    assert of_volume(**source) == what


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ({"secret": {"name": "a"}}, "secrets"),
        ({"configMap": {"name": "a"}}, "configmaps"),
        ({"secret": {}}, "secrets (via projected volumes)"),
        ({"configMap": {}}, "configmaps (via projected volumes)"),
        ({"serviceAccountToken": {"path": "t"}}, "serviceaccounts (via projected volumes)"),
        ({"clusterTrustBundle": {"path": "t"}}, "clustertrustbundles"),
        ({"podCertificate": {"signerName": "s", "keyType": "ED25519"}}, "podcertificates"),
        ({}, None),
    ],
)
def test_references_of_projected_volumes_SRC_038(source: dict[str, Any], what: str | None) -> None:
    assert of_part(**source) == what


def test_the_first_reference_is_told_SRC_038() -> None:
    key = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}
    claims = {"resourceClaims": [{"name": "a"}]}
    volumes = [{"name": "c", "csi": CSI}, {"name": "s", "secret": {}}]
    last = {"volumes": volumes[:1]}
    config = {"name": "c", "env": [key]}
    for spec, what in (
        ({"volumes": volumes, **claims, "serviceAccountName": "a"}, "serviceaccounts"),
        ({"volumes": volumes, **claims}, "secrets"),
        ({**last, **claims}, "configmaps"),
    ):
        assert api_object_reference(make_pod(config, **spec)) == what
    assert api_object_reference(make_pod(**last, **claims)) == "resourceclaims"
    assert api_object_reference(make_pod(**last)) == "csidrivers (via CSI volumes)"
