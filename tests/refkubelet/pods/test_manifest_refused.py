"""Static pods that a kubelet refuses, and the field it names (SRC-037, SRC-038)."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_reading import accepted, manifest, read, refusal, volumes, with_container

from refkubelet.model.objects import to_dict
from refkubelet.pods.manifest import ManifestError


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (manifest({"containers": []}), "spec.containers: Required value"),
        (
            manifest({"restartPolicy": "Sometimes"}),
            'spec.restartPolicy: Unsupported value: "Sometimes": '
            'supported values: "Always", "OnFailure", "Never"',
        ),
        (with_container(image=""), "spec.containers[0].image: Required value"),
        (
            manifest(
                {"containers": [{"name": "a", "image": "x:1"}, {"name": "a", "image": "x:1"}]}
            ),
            'spec.containers[1].name: Duplicate value: "a"',
        ),
        (
            with_container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            with_container(livenessProbe={"exec": {"command": ["a"]}, "successThreshold": 2}),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            with_container(
                readinessProbe={"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 1}
            ),
            "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: "
            "Invalid value: 1: must not be set for readinessProbes",
        ),
        (
            with_container(startupProbe={"periodSeconds": 1}),
            "spec.containers[0].startupProbe: Required value: must specify a handler type",
        ),
        (
            with_container(livenessProbe={"tcpSocket": {"port": "8080"}}),
            'spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: "8080": '
            "must contain at least one letter (a-z)",
        ),
        (
            with_container(livenessProbe={"httpGet": {"port": "-web"}}),
            'spec.containers[0].livenessProbe.httpGet.port: Invalid value: "-web": '
            "must not begin or end with a hyphen",
        ),
        (
            with_container(livenessProbe={"grpc": {"port": 0}}),
            "spec.containers[0].livenessProbe.grpc.port: Invalid value: 0: "
            "must be between 1 and 65535, inclusive",
        ),
        (
            with_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            'spec.containers[0].resources.requests: Invalid value: "2": '
            "must be less than or equal to cpu limit of 1",
        ),
        (
            with_container(ports=[{"containerPort": 70000}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: "
            "must be between 1 and 65535, inclusive",
        ),
        (
            manifest(
                {
                    "initContainers": [
                        {
                            "name": "i",
                            "image": "x:1",
                            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
                        }
                    ]
                }
            ),
            "spec.initContainers[0].lifecycle: Forbidden: "
            "may not be set for init containers without restartPolicy=Always",
        ),
        (
            manifest({"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]}),
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
    ],
)
def test_an_invalid_pod_is_refused_with_the_field_SRC_037(text: str, complaint: str) -> None:
    assert refusal(text) == f"invalid pod: [{complaint}]"


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}


def volume(**source: Any) -> str:
    return manifest({"volumes": [{"name": "v", **source}]})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (manifest({"serviceAccountName": "s"}), "serviceaccounts"),
        (manifest({"imagePullSecrets": [{"name": "s"}]}), "secrets"),
        (
            with_container(
                env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
            ),
            "secrets",
        ),
        (with_container(envFrom=[{"configMapRef": {"name": "c"}}]), "configmaps"),
        (volume(configMap={"name": "c"}), "configmaps"),
        (volume(projected={"sources": [{"secret": {"name": "s"}}]}), "secrets"),
        (
            manifest({"resourceClaims": [{"name": "r", "resourceClaimName": "x"}]}),
            "resourceclaims",
        ),
        (volume(csi={"driver": "d"}), "csidrivers (via CSI volumes)"),
        (
            volume(glusterfs={"endpoints": "e", "path": "/"}),
            "endpoints (via glusterFS volumes)",
        ),
        (volume(persistentVolumeClaim={"claimName": "c"}), "persistentvolumeclaims"),
        (
            volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            volume(projected={"sources": [{"clusterTrustBundle": {"name": "b", "path": "t"}}]}),
            "clustertrustbundles",
        ),
        (
            manifest(
                {
                    "serviceAccountName": "s",
                    "volumes": [{"name": "v", "csi": {"driver": "d"}}],
                }
            ),
            "serviceaccounts",
        ),
    ],
)
def test_static_pods_may_not_reference_api_objects_SRC_038(text: str, what: str) -> None:
    assert refusal(text) == f"static pods may not reference {what}"


def test_a_token_needs_an_account_which_static_pods_may_not_have_SRC_037_SRC_038() -> None:
    refused = refusal(volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}))
    place = "spec.volumes[0].projected.sources[0].serviceAccountToken"
    why = "must not be specified when serviceAccountName is not set"
    assert refused == f"invalid pod: [{place}: Forbidden: {why}]"


@pytest.mark.parametrize(
    "source",
    [
        {"emptyDir": {}},
        {"hostPath": {"path": "/x"}},
        {"downwardAPI": {"items": []}},
        {"projected": {"sources": [{"downwardAPI": {}}]}},
        {"nfs": {"server": "s", "path": "/"}},
        {"image": {"reference": "x"}},
    ],
)
def test_local_volumes_are_allowed_SRC_038(source: dict[str, Any]) -> None:
    (kept,) = to_dict(read(volume(**source)))["spec"]["volumes"]
    assert set(kept) == {"name", *source}


def test_an_active_deadline_has_at_most_31_bits_SRC_037() -> None:
    assert refusal(manifest({"activeDeadlineSeconds": 2**31})) == (
        "invalid pod: [spec.activeDeadlineSeconds: Invalid value: 2147483648: "
        "must be between 1 and 2147483647, inclusive]"
    )
    read(manifest({"activeDeadlineSeconds": 2**31 - 1}))


def test_the_node_s_name_is_validated_as_the_pod_s_SRC_033_SRC_037() -> None:
    assert "nodeName" not in str(accepted({"nodeName": "Other"})["metadata"])
    with pytest.raises(ManifestError, match=r'spec\.nodeName: Invalid value: "Node1"'):
        read(manifest(), node="Node1")


def test_the_old_name_of_a_service_account_is_a_reference_SRC_038() -> None:
    assert refusal(manifest({"serviceAccount": "a"})) == (
        "static pods may not reference serviceaccounts"
    )


def test_a_reference_without_a_name_is_none_SRC_038() -> None:
    assert accepted({"imagePullSecrets": [{}]})["spec"]["imagePullSecrets"] == [{}]


RULE = {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Die"}]}


FILE_REF = {"volumeName": "w", "path": "../x", "key": ""}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (RULE, {"restartPolicyRules[0].action", "restartPolicyRules[0].exitCodes"}),
        (
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": FILE_REF}}]},
            {f"env[0].valueFrom.fileKeyRef.{name}" for name in ("key", "path", "volumeName")},
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.foo"}}}]},
            {"env[0].valueFrom.fieldRef.fieldPath"},
        ),
        (
            {
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {
                            "fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}
                        },
                    }
                ]
            },
            {"env[0].valueFrom.fieldRef.fieldPath"},
        ),
        ({"volumeDevices": [{"name": "v", "devicePath": ""}]}, {"volumeDevices[0].devicePath"}),
        ({"securityContext": {"procMount": "Unmasked"}}, {"securityContext.procMount"}),
        ({"resources": {"limits": {"cpu": 1, "hugepages-2Mi": "3Mi"}}}, {"limits[hugepages-2Mi]"}),
        ({"resources": {"claims": [{"name": "c"}]}}, {"resources.claims[0]"}),
    ],
)
def test_what_an_api_server_refuses_of_containers_SRC_037(
    fields: dict[str, Any], wanted: set[str]
) -> None:
    why = refusal(with_container(**fields))
    assert why.startswith("invalid pod: [")
    assert {name for name in wanted if name in why} == wanted


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({"nfs": {"server": "a", "path": "b"}}, "nfs.path"),
        ({"gitRepo": {"repository": ""}}, "gitRepo.repository"),
        ({"flocker": {}}, "flocker"),
        ({"fc": {"targetWWNs": ["a"]}}, "fc.lun"),
        ({"iscsi": {"targetPortal": "a", "iqn": "x", "lun": 256}}, "iscsi.iqn"),
        ({"quobyte": {"registry": "a", "volume": "v"}}, "quobyte.registry"),
        ({"projected": {"defaultMode": 512}}, "projected.defaultMode"),
        ({"downwardAPI": {"items": [{"path": "..a"}]}}, "downwardAPI.path"),
        ({"csi": {"driver": "a_b"}}, "csi.driver"),
        ({"emptyDir": {}, "hostPath": {"path": "/"}}, "hostPath: Forbidden"),
    ],
)
def test_what_an_api_server_refuses_of_volumes_SRC_037(source: dict[str, Any], field: str) -> None:
    assert f"spec.volumes[0].{field}" in refusal(manifest(volumes(source)))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"hostnameOverride": "A"}, "spec.hostnameOverride"),
        ({"serviceAccountName": "A b"}, "spec.serviceAccountName"),
        ({"hostAliases": [{"ip": "01.2.3.4"}]}, "spec.hostAliases[0].ip"),
        ({"hostAliases": [{"ip": "1.2.3.4", "hostnames": [""]}]}, "hostAliases[0].hostnames[0]"),
        ({"dnsConfig": {"options": [{}]}}, "spec.dnsConfig.options[0]"),
        ({"dnsConfig": {"searches": ["a b"]}}, "spec.dnsConfig.searches[0]"),
        ({"securityContext": {"supplementalGroupsPolicy": "x"}}, "supplementalGroupsPolicy"),
        (
            {
                "securityContext": {
                    "seccompProfile": {"type": "Unconfined", "localhostProfile": "a"}
                }
            },
            "seccompProfile.localhostProfile",
        ),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "spec.tolerations[0].effect"),
        ({"overhead": {"pods": "1"}}, "spec.overhead.limits[pods]"),
        ({"resources": {"claims": []}}, "spec.resources.claims"),
    ],
)
def test_what_an_api_server_refuses_of_pods_SRC_037(spec: dict[str, Any], field: str) -> None:
    why = refusal(manifest(spec))
    assert why.startswith("invalid pod: [")
    assert field in why
