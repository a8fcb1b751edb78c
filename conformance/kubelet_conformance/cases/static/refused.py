"""Manifests that are refused: with fields that no API server takes, or that name API objects."""

from typing import Any

from kubelet_conformance.cases.static.sources import OFTEN, PERIOD_S, listed
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, KnownBug, conformance

STATUS = Feature.STATUS

REFUSED = (
    "hostname: A_B",
    "dnsPolicy: None",
    "activeDeadlineSeconds: 2147483648",
    "ephemeralContainers: [{name: e, image: localhost/busybox:1}]",
    "schedulingGates: [{name: later}]",
    "nodeSelector: {a b: c}",
    "tolerations: [{operator: Exists, value: x}]",
    "securityContext: {runAsUser: -1}",
    "os: {name: plan9}",
)
REFUSED_IN_CONTAINERS = (
    "ports: [{name: a, containerPort: 1}, {name: a, containerPort: 2}]",
    "env: [{name: A, valueFrom: {}}]",
    "volumeMounts: [{name: v, mountPath: /v, subPath: ../../../etc}]",
    "resources: {limits: {storage: 1Gi}}",
    "lifecycle: {preStop: {sleep: {seconds: 31}}}",
    "livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: a b, value: c}]}}",
)
LONGEST_NAME = 253
ODD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  {spec}
  volumes: [{{name: v, emptyDir: {{}}}}]
  containers:
  - name: main
    image: localhost/busybox:1
    {container}
"""


@conformance(
    id="static-invalid-fields",
    rules=["SRC-037.2", "SRC-037.3"],
    needs=[STATUS],
    node_config=OFTEN,
    alone=True,
)
async def what_an_api_server_would_refuse_never_runs(node: Node) -> None:
    """Manifests with one invalid field each, some of them dangerous, or with a name that is too
    long with the node's behind it, are refused as an API server would; only the good one beside
    them runs."""
    for i, spec in enumerate(REFUSED):
        node.write_manifest(f"a{i}.yaml", ODD.format(name=f"a{i}", spec=spec, container=""))
    for i, field in enumerate(REFUSED_IN_CONTAINERS):
        node.write_manifest(f"b{i}.yaml", ODD.format(name=f"b{i}", spec="", container=field))
    long_name = "a" * (LONGEST_NAME - len(node.name))  # one too much with the dash
    node.write_manifest("c.yaml", ODD.format(name=long_name, spec="", container=""))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(PERIOD_S)
    expect_equal(node, listed(node), {f"web-{node.name}"}, "pods")
    expect_equal(node, node.pod(long_name), None, "the pod with the long name")


NAMED = {"name": "s", "key": "k"}
REFERENCES: dict[str, dict[str, Any]] = {
    "secret": {"env": [{"name": "X", "valueFrom": {"secretKeyRef": NAMED}}]},
    "from": {"envFrom": [{"secretRef": {"name": "s"}}]},
    "map": {"envFrom": [{"configMapRef": {"name": "c"}}]},
    "key-of-map": {"env": [{"name": "X", "valueFrom": {"configMapKeyRef": NAMED}}]},
}
TOKEN = {"serviceAccountToken": {"path": "t"}}
CERTIFICATE = {
    "podCertificate": {
        "signerName": "example.com/pods", "keyType": "ED25519", "credentialBundlePath": "pem"
    }
}  # fmt: skip
BUNDLE = {"clusterTrustBundle": {"name": "b", "path": "ca"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DISK: dict[str, Any] = {
    "targetPortal": "192.0.2.1:3260",
    "iqn": "iqn.2001-04.com.example:disk",
    "lun": 0,
}
NFS: dict[str, Any] = {"server": "192.0.2.1", "path": "/"}
OF_VOLUMES: dict[str, dict[str, Any]] = {
    "secret-files": {"secret": {"secretName": "s"}},
    "projected-secret": {"projected": {"sources": [{"secret": {"name": "s"}}]}},
    "projected-map": {"projected": {"sources": [{"configMap": {"name": "c"}}]}},
    "certificate": {"projected": {"sources": [CERTIFICATE]}},
    "azure": {"azureFile": {"shareName": "f", "secretName": "s"}},
    "gluster": {"glusterfs": {"endpoints": "e", "path": "p"}},
    "iscsi": {"iscsi": {**DISK, "secretRef": {"name": "s"}}},
    "ceph": {"cephfs": {"monitors": ["192.0.2.1"], "secretRef": {"name": "s"}}},
    "csi-secret": {"csi": {"driver": "d.example.com", "nodePublishSecretRef": {"name": "s"}}},
}
OF_THE_POD: dict[str, dict[str, Any]] = {
    "account": {"serviceAccountName": "robot"},
    "old-account": {"serviceAccount": "robot"},
    "pull": {"imagePullSecrets": [{"name": "p"}]},
    "configmap": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]},
    "claim": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
    "ephemeral": {
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}]
    },
    "token": {"volumes": [{"name": "v", "projected": {"sources": [TOKEN]}}]},
    "bundle": {"volumes": [{"name": "v", "projected": {"sources": [BUNDLE]}}]},
    "csi": {"volumes": [{"name": "v", "csi": {"driver": "d.example.com"}}]},
    "claimed": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]},
    **{name: {"volumes": [{"name": "v", **source}]} for name, source in OF_VOLUMES.items()},
}


@conformance(
    id="static-no-api-references",
    rules=["SRC-038.1", "SRC-038.2", "SRC-038.3", "SRC-038.4", "SRC-038.5"],
    needs=[STATUS],
    since="1.34",
    alone=True,
)
async def a_static_pod_may_not_use_api_objects(node: Node) -> None:
    """Manifests that name a Secret, a ConfigMap, a ServiceAccount, a claim or a driver, in whatever
    field and container, are refused; a pull secret without a name is none, and what a pod says of
    itself is no API object."""
    for name, fields in REFERENCES.items():
        await node.apply_static(pod(name, container("main", **fields)))
        await node.apply_static(pod(f"init-{name}", init=[container("i", **fields)]))
    for name, spec in OF_THE_POD.items():
        await node.apply_static(pod(name, **spec))
    await node.apply_static(pod("web", imagePullSecrets=[{"name": ""}]))
    items = [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]
    own = {"projected": {"sources": [{"downwardAPI": {"items": items}}]}}
    allowed: dict[str, dict[str, Any]] = {
        "own-name": own,
        "disk": {"iscsi": DISK},
        "share": {"nfs": NFS},
    }
    for name, source in allowed.items():
        await node.apply_static(pod(name, volumes=[{"name": "v", **source}]))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    for name in allowed:
        expect(node, node.pod(name), f"the pod {name} in /pods", sorted(listed(node)))
    ran = listed(node) - {f"{name}-{node.name}" for name in allowed}
    expect_equal(node, ran, {f"web-{node.name}"}, "pods")


@conformance(
    id="static-pull-secret",
    rules=["SRC-038.1", "SRC-038.2"],
    needs=[STATUS],
    bugs=[
        KnownBug(
            "131837",
            "A pull secret in a manifest ends a kubelet without API server",
            fixed="1.34",
            ends_kubelet=True,
        )
    ],
)
async def a_pull_secret_in_a_manifest_does_not_end_the_kubelet(node: Node) -> None:
    """A manifest that names a pull secret does not bring down a kubelet that has no API server:
    other pods run."""
    await node.apply_static(pod("pull", imagePullSecrets=[{"name": "p"}]))
    await node.run_for(limits.NOTICE_S)
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    expect_equal(node, node.count("StartContainer", pod="pull"), 0, "starts of the pod pull")
