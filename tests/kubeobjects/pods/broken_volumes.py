"""Pods with volumes of every kind, right and broken, to ask a Kubernetes about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from broken_fields import PLAIN
from pod_breaking import breakings

_ITEMS: Final = [{"key": "k", "path": "a/b", "mode": 0o400}, {"key": "l", "path": "c"}]
_FIELD: Final = {
    "path": "name",
    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"},
    "mode": 0o400,
}
_RESOURCE: Final = {
    "path": "cpu",
    "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"},
}
_CLAIM: Final = {
    "metadata": {"labels": {"app": "db"}, "annotations": {"a.example/b": "c"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
        "volumeAttributesClassName": "gold",
        "selector": {
            "matchLabels": {"app": "db"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["back"]}],
        },
        "dataSource": {"kind": "PersistentVolumeClaim", "name": "old"},
        "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "old"},
    },
}
SOURCES: Final[dict[str, dict[str, Any]]] = {
    "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"},
    "hostPath": {"path": "/var/lib/x", "type": "Directory"},
    "gitRepo": {"repository": "https://g/r", "revision": "main", "directory": "sub"},
    "gcePersistentDisk": {"pdName": "disk", "fsType": "ext4", "partition": 1},
    "awsElasticBlockStore": {"volumeID": "vol-1", "fsType": "ext4", "partition": 1},
    "secret": {"secretName": "s", "defaultMode": 0o644, "items": _ITEMS},
    "nfs": {"server": "nfs.example", "path": "/export"},
    "iscsi": {
        "targetPortal": "10.0.0.1:3260",
        "iqn": "iqn.2001-04.com.example:storage",
        "lun": 1,
        "iscsiInterface": "default",
        "initiatorName": "eui.0123456789abcdef",
        "chapAuthSession": True,
        "chapAuthDiscovery": True,
        "secretRef": {"name": "chap"},
    },
    "glusterfs": {"endpoints": "e", "path": "p"},
    "flocker": {"datasetName": "d"},
    "persistentVolumeClaim": {"claimName": "c"},
    "rbd": {"monitors": ["m"], "image": "i", "pool": "rbd", "user": "admin", "keyring": "/k"},
    "cinder": {"volumeID": "v", "secretRef": {"name": "s"}},
    "cephfs": {"monitors": ["m"], "path": "/"},
    "quobyte": {"registry": "r:1,s:2", "volume": "v", "tenant": "t"},
    "downwardAPI": {"defaultMode": 0o644, "items": [_FIELD, _RESOURCE]},
    "fc": {"targetWWNs": ["w"], "lun": 1},
    "flexVolume": {"driver": "d", "options": {"a/b": "c"}},
    "configMap": {"name": "c", "defaultMode": 0o644, "items": _ITEMS},
    "azureFile": {"secretName": "s", "shareName": "h"},
    "vsphereVolume": {"volumePath": "p"},
    "photonPersistentDisk": {"pdID": "p"},
    "portworxVolume": {"volumeID": "v"},
    "azureDisk": {
        "diskName": "d",
        "diskURI": "/subscriptions/x",
        "cachingMode": "None",
        "kind": "Managed",
        "fsType": "ext4",
        "readOnly": False,
    },
    "storageos": {"volumeName": "v", "volumeNamespace": "n", "secretRef": {"name": "s"}},
    "projected": {
        "defaultMode": 0o644,
        "sources": [
            {"secret": {"name": "s", "items": _ITEMS}},
            {"configMap": {"name": "c", "items": [{"key": "k", "path": "d"}]}},
            {"downwardAPI": {"items": [_FIELD]}},
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
            {"clusterTrustBundle": {"signerName": "a.example/b", "path": "bundle"}},
        ],
    },
    "scaleIO": {
        **{"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}},
        **{"storageMode": "ThinProvisioned", "fsType": "xfs"},
    },
    "csi": {"driver": "Csi.example", "nodePublishSecretRef": {"name": "s"}},
    "ephemeral": {"volumeClaimTemplate": _CLAIM},
    "image": {"reference": "i", "pullPolicy": "Always"},
}
_NEW: Final = "/spec/volumes/1"
VOLUMES: Final[dict[str, Any]] = {
    **PLAIN,
    "spec": {
        **PLAIN["spec"],
        "volumes": [{"name": kind.lower(), kind: source} for kind, source in SOURCES.items()],
    },
}
"""A pod with a volume of each kind."""


def _certificate(**other: Any) -> dict[str, Any]:
    return {"signerName": "a.example/b", "keyType": "ED25519", "keyPath": "key", **other}


def _bundle(**other: Any) -> dict[str, Any]:
    return {"path": "bundle", **other}


_SELECTOR: Final = {
    "matchExpressions": [{"values": ["<"], "operator": "In", "key": "c"}],
    "matchLabels": {"b": "a", "a": "b"},
}
_LONG_NAME: Final = ".".join(["a" * 50] * 6)
_SPECIAL: Final[dict[str, list[Any]]] = {  # values that a rule knows, beside those of all fields
    "emptyDir": [{"sizeLimit": "-1"}, {"sizeLimit": "0"}, {"medium": "Other"}],
    "hostPath": [{"path": "/a/../b", "type": ""}, {"path": "/a..b"}, {"path": "a", "type": "Dir"}],
    "gitRepo": [{"repository": "", "directory": "/a/../b"}, {"repository": "r", "directory": ".."}],
    "gcePersistentDisk": [{"pdName": "", "partition": -1}, {"pdName": "d", "partition": 255}],
    "secret": [
        {"secretName": "s", "defaultMode": 0o777},
        {"secretName": "s", "defaultMode": 0o1000, "items": [{"key": "k", "path": "..a"}]},
        {"secretName": "s", "defaultMode": 0, "items": [{"key": "k", "path": "a/../b"}]},
        {"secretName": "s", "defaultMode": 0, "items": [{"key": "k", "path": "/../b"}]},
        {"secretName": "s", "defaultMode": 0, "items": [{"key": "", "path": "..", "mode": 512}]},
    ],
    "iscsi": [
        {**SOURCES["iscsi"], **other}
        for other in (
            {"iqn": "iqn.2001-04.com.example"},
            {"iqn": "iqn.201-04.com.example:a"},
            {"iqn": "iqn.2001-04.com.example:a,b"},
            {"iqn": "iqn.2001-04.com.example:a b:c"},
            {"iqn": "iqn.x,iqn.2001-04.com.example:a"},
            {"iqn": "iqn.2001-04.a_b:iqn.2001-04.b:c"},
            {"iqn": "iqn.2001-04.a:"},
            {"iqn": "iqn.2001-04.a::"},
            {"iqn": "iqn.2001-04.:a"},
            {"iqn": "iqn.2001-04.a:\N{NO-BREAK SPACE}"},
            {"iqn": "iqn.2001-04.a:b\n"},
            {"iqn": "iqn.2001-04.a:\x0b"},
            {"iqn": "iqn.\u0662001-04.a:b"},
            {"iqn": "eui.0123"},
            {"iqn": "euix0123456789abcdef"},
            {"iqn": "naa.0123456789abcdef"},
            {"iqn": "naa.0123456789abcdef0123456789abcdef"},
            {"iqn": "other"},
            {"initiatorName": "iqn.x"},
            {"initiatorName": "naa.x"},
            {"targetPortal": "a" * 62},
            {"targetPortal": "a" * 63},
            {"chapAuthSession": False, "secretRef": None},
            {"chapAuthDiscovery": False, "secretRef": None},
            {"lun": 256},
            {"lun": 255},
        )
    ],
    "flocker": [{}, {"datasetUUID": "u"}, {"datasetName": "a/b", "datasetUUID": "u"}],
    "nfs": [{"server": "", "path": ""}],
    "quobyte": [
        {"registry": text, "volume": "v"}
        for text in ("a", "a:b:c", "[::1]:2", "[::1]", ":", "a:1,,b:2", "[a]b:1", "a]:1", "a[:1")
    ]
    + [{"registry": "a:1", "volume": "v", "tenant": "t" * length} for length in (64, 65)],
    "fc": [
        {},
        {"wwids": ["w"]},
        {"targetWWNs": ["v", "w"], "wwids": ["w"], "lun": -1},
        {"targetWWNs": ["w"], "lun": 0},
    ],
    "flexVolume": [
        {"driver": "d", "options": {key: "v"}}
        for key in ("kubernetes.io/a", "X.K8S.io/a", "k8s.io", "ak8s.io/b", "a.kubernetes.io/b/c")
    ],
    "azureDisk": [
        {**SOURCES["azureDisk"], **other}
        for other in (
            {"kind": "Shared", "diskURI": "https://a"},
            {"kind": "Dedicated", "diskURI": "http://a"},
            {"kind": "Other", "diskURI": "/subscriptions/"},
            {"diskURI": "", "diskName": ""},
        )
    ],
    "csi": [
        {"driver": "a_b"},
        {"driver": _LONG_NAME},
        {"driver": "a", "nodePublishSecretRef": {"name": "A_b"}},
    ],
    "downwardAPI": [
        {"defaultMode": 0, "items": [{"path": "p", "fieldRef": {"apiVersion": "v1", **ref}}]}
        for ref in (
            {"fieldPath": "metadata.labels['a']"},
            {"fieldPath": "metadata.labels['A_b!']"},
            {"fieldPath": "metadata.annotations['A.B/C']"},
            {"fieldPath": "metadata.annotations['']"},
            {"fieldPath": "metadata.name['a']"},
            {"fieldPath": "['a']"},
            {"fieldPath": "metadata.labels['a'"},
            {"fieldPath": "metadata.labels['a\n']"},
            {"fieldPath": "metadata.labels"},
            {"fieldPath": "spec.nodeName"},
            {"fieldPath": "spec.host"},
            {"fieldPath": "status.podIP"},
            {"fieldPath": "spec.hostname"},
            {"apiVersion": "v2", "fieldPath": "metadata.name"},
        )
    ]
    + [
        {"defaultMode": 0, "items": [{"path": "p", "resourceFieldRef": ref}]}
        for ref in (
            {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"},
            {"containerName": "main", "resource": "limits.memory", "divisor": "2"},
            {"containerName": "main", "resource": "limits.cpu", "divisor": "1k"},
            {"containerName": "main", "resource": "requests.ephemeral-storage", "divisor": "1m"},
            {"containerName": "main", "resource": "requests.hugepages-2Mi", "divisor": "1Gi"},
            {"containerName": "main", "resource": "limits.hugepages-2Mi", "divisor": "3"},
            {"containerName": "main", "resource": "limits.other", "divisor": "3"},
            {"containerName": "", "resource": "", "divisor": "0"},
            {"containerName": "main", "resource": "", "divisor": "7"},
        )
    ]
    + [
        {"defaultMode": 0o777, "items": [{"path": ""}]},
        {"defaultMode": -1, "items": [{**_FIELD, **_RESOURCE, "path": "../a", "mode": -1}]},
    ],
    "projected": [
        {"defaultMode": 0, "sources": sources}
        for sources in (
            [{}],
            [{"secret": {"name": "s"}, "configMap": {"name": "c"}}],
            [{"secret": {"name": "s", "items": _ITEMS}}] * 2,
            [{"configMap": {"name": "", "items": _ITEMS}}] * 2,
            [{"downwardAPI": {"items": [_FIELD, _FIELD]}}],
            [{"serviceAccountToken": {"path": "t", "expirationSeconds": 599}}],
            [{"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}],
            [{"serviceAccountToken": {"path": "..t", "expirationSeconds": 1 << 33}}],
            [{"serviceAccountToken": {"path": "t", "expirationSeconds": 1 << 32}}] * 2,
            [{"clusterTrustBundle": _bundle()}],
            [
                {
                    "clusterTrustBundle": _bundle(
                        name="n", signerName="a.example/b", labelSelector=_SELECTOR
                    )
                }
            ],
            [{"clusterTrustBundle": _bundle(name="n", optional=True)}] * 2,
            [{"clusterTrustBundle": _bundle(name="")}],
            [{"clusterTrustBundle": _bundle(name="A_b", labelSelector=_SELECTOR)}],
            *(
                [{"clusterTrustBundle": _bundle(name="n", labelSelector=selector)}]
                for selector in (
                    {},
                    {"matchLabels": {"a": "b"}},
                    {"matchExpressions": [{"operator": "Exists", "key": "a"}]},
                )
            ),
            [{"clusterTrustBundle": _bundle(signerName="a.example/" + "b." * 320 + "b")}],
            [{"podCertificate": _certificate(userAnnotations={"": "c"})}],
            [{"podCertificate": _certificate(userAnnotations={"a!": "c"})}],
            [{"clusterTrustBundle": _bundle(name="a.example:b:c")}],
            [{"clusterTrustBundle": _bundle(name=":c")}],
            [{"clusterTrustBundle": _bundle(name="a:C")}],
            [{"clusterTrustBundle": _bundle(signerName="")}],
            [{"clusterTrustBundle": _bundle(signerName="a/b/c")}],
            [{"clusterTrustBundle": _bundle(signerName="a/B")}],
            [{"clusterTrustBundle": _bundle(signerName=f"{_LONG_NAME}/a")}],
            [{"clusterTrustBundle": _bundle(signerName=f"{_LONG_NAME[:253]}/a")}],
            [{"clusterTrustBundle": _bundle(signerName="a.b/" + "c" * 253 + "." + "c" * 253)}],
            *(
                [{"clusterTrustBundle": _bundle(signerName=f"{_LONG_NAME[:253]}/{path}")}]
                for path in ("b." * 158 + "b", "b." * 158 + "bb")
            ),
            [{"clusterTrustBundle": {**_bundle(name="n"), "path": path}} for path in ("a", "b")],
            [{"clusterTrustBundle": _bundle(signerName="a.example/" + "b." * 200)}],
            [{"clusterTrustBundle": _bundle(signerName="a..b/c")}],
            [
                {
                    "clusterTrustBundle": {
                        "signerName": "a.example/b",
                        "path": "",
                        "labelSelector": {
                            "matchLabels": {"A!": "b!"},
                            "matchExpressions": [
                                {"key": "a", "operator": "In"},
                                {"key": "b!", "operator": "Exists", "values": ["c!"]},
                                {"key": "", "operator": "Gt"},
                            ],
                        },
                    }
                }
            ],
            [{"podCertificate": _certificate()}],
            [{"podCertificate": _certificate(keyPath="")}],
            [{"podCertificate": _certificate(signerName="")}],
            [{"podCertificate": _certificate(keyType="RSA")}],
            [{"podCertificate": _certificate(maxExpirationSeconds=3599)}],
            [{"podCertificate": _certificate(maxExpirationSeconds=3600)}],
            [{"podCertificate": _certificate(maxExpirationSeconds=7862400)}],
            [{"podCertificate": _certificate(maxExpirationSeconds=7862401)}],
            [
                {
                    "podCertificate": _certificate(
                        signerName="kubernetes.io/a", maxExpirationSeconds=86401
                    )
                }
            ],
            [
                {
                    "podCertificate": _certificate(
                        signerName="a.kubernetes.io/a", maxExpirationSeconds=86400
                    )
                }
            ],
            [{"podCertificate": _certificate(certificateChainPath="key")}],
            [{"podCertificate": _certificate(credentialBundlePath="key")}],
            [{"podCertificate": _certificate(credentialBundlePath="/a/..")}],
            [{"podCertificate": _certificate(certificateChainPath="..a", keyPath="../a")}],
            [{"podCertificate": _certificate(userAnnotations={"a.example/B": "c"})}],
            [{"podCertificate": _certificate(userAnnotations={"a": "c"})}],
            [{"podCertificate": _certificate(userAnnotations={"A.b/c!": "c"})}],
            [{"podCertificate": _certificate(userAnnotations={"a/b/c": "c"})}],
            [{"podCertificate": _certificate(userAnnotations={"/c": "c"})}],
            [{"podCertificate": _certificate(userAnnotations={"a.b/": "c"})}],
        )
    ],
    "ephemeral": [
        {"volumeClaimTemplate": {**_CLAIM, "metadata": {field: value}}}
        for field, value in (
            *(("name", "n"), ("generateName", "g"), ("namespace", "n"), ("uid", "u")),
            *(("finalizers", ["a/b"]), ("generation", 1), ("resourceVersion", "1")),
            ("creationTimestamp", "2026-01-01T00:00:00Z"),
            ("deletionGracePeriodSeconds", 1),
            ("ownerReferences", [{"apiVersion": "v1", "kind": "a", "name": "b", "uid": "c"}]),
            ("annotations", {"A!": "b"}),
        )
    ]
    + [
        {"volumeClaimTemplate": {"spec": {**_CLAIM["spec"], **spec}}}
        for spec in (
            {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany", "Other"]},
            {"accessModes": ["ReadWriteOncePod"]},
            {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
            {"resources": {"requests": {"storage": "0"}}},
            {"resources": {"requests": {"storage": "-1"}}},
            {"resources": {"requests": {"storage": "1m"}}},
            {"resources": {"requests": {"cpu": "1"}}},
            {"dataSource": {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "a.example"}},
            {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "s", "namespace": "n"}},
            {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "s", "namespace": "N"}},
            {"dataSourceRef": {"kind": "Other", "name": "s", "apiGroup": "A"}},
            {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "old", "apiGroup": ""}},
        )
    ],
    "image": [{}, {"reference": "i", "pullPolicy": "Sometimes"}],
}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Base and changes of each case."""
    for i, (kind, source) in enumerate(SOURCES.items()):
        place = f"/spec/volumes/{i}/{kind}"
        yield from (("volumes", change) for change in breakings(source, place))
    yield from (("plain", changes) for changes in _alone())


def _alone() -> Iterator[dict[str, Any]]:
    for kind, source in SOURCES.items():
        for special in _SPECIAL.get(kind, ()):
            yield {_NEW: {"name": "v", kind: special}}
        whole = {"name": "v", kind: {} if kind in ("nfs", "ephemeral", "projected") else source}
        yield {_NEW: {**whole, "projected": {"defaultMode": 0, "sources": []}}}
        yield {_NEW: {**whole, "image": {"reference": "i", "pullPolicy": "Always"}, "emptyDir": {}}}
    yield {_NEW: {"name": "v"}}
    for name in ("", "data", "Data", "a.b", "a" * 64, "-a"):
        yield {_NEW: {"name": name, "emptyDir": {}}}
    yield {_NEW: {"name": "", "hostPath": {"path": "..", "type": ""}}}
    yield {_NEW: {"name": "data", "hostPath": {"path": "..", "type": ""}}}
    broken = {"name": "v", "hostPath": {"path": ""}}
    yield {_NEW: broken, "/spec/volumes/2": {"name": "v", "emptyDir": {}}}
    ephemeral = {"name": "v", "ephemeral": SOURCES["ephemeral"]}
    claim = {"name": "w", "persistentVolumeClaim": {"claimName": f"{PLAIN['metadata']['name']}-v"}}
    yield {_NEW: ephemeral, "/spec/volumes/2": claim}
    claimed = f"{PLAIN['metadata']['name']}-data"
    yield {_NEW: {"name": "v", "persistentVolumeClaim": {"claimName": claimed}}}
    yield {_NEW: {**ephemeral, "name": "V"}}
    yield {_NEW: ephemeral, "/metadata/name": "a" * 250}
    token = {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}] * 2}
    token["defaultMode"] = 0
    yield {_NEW: {"name": "v", "projected": token}, "/spec/serviceAccountName": None}
