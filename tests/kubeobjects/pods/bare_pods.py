"""Valid pods with as little in them as their defaults allow, to ask a Kubernetes how it completes
them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_VOLUMES: Final[dict[str, Any]] = {
    "awsElasticBlockStore": {"volumeID": "v"},
    "azureDisk": {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/d"},
    "azureFile": {"secretName": "s", "shareName": "s"},
    "cephfs": {"monitors": ["m"]},
    "cinder": {"volumeID": "v"},
    "configMap": {"name": "c"},
    "csi": {"driver": "d.example"},
    "downwardAPI": {
        "items": [
            {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}},
            {"path": "b", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}},
        ]
    },
    "emptyDir": {},
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1000.0001"}},
            }
        }
    },
    "fc": {"wwids": ["w"]},
    "flexVolume": {"driver": "d/e"},
    "flocker": {"datasetName": "d"},
    "gcePersistentDisk": {"pdName": "p"},
    "gitRepo": {"repository": "r"},
    "glusterfs": {"endpoints": "e", "path": "p"},
    "hostPath": {"path": "/p"},
    "image": {"reference": "registry.example:5000/data"},
    "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:s", "lun": 0},
    "nfs": {"server": "s", "path": "/p"},
    "persistentVolumeClaim": {"claimName": "c"},
    "photonPersistentDisk": {"pdID": "p"},
    "portworxVolume": {"volumeID": "v"},
    "projected": {
        "sources": [
            {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.uid"}}]}},
            {"serviceAccountToken": {"path": "t"}},
            {"secret": {"name": "s"}},
            {"configMap": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
            {"clusterTrustBundle": {"name": "b", "path": "ca"}},
        ]
    },
    "quobyte": {"registry": "a:1", "volume": "v"},
    "rbd": {"monitors": ["m"], "image": "i"},
    "scaleIO": {
        **{"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}},
    },
    "secret": {"secretName": "s"},
    "storageos": {"volumeName": "v"},
    "vsphereVolume": {"volumePath": "p"},
}
_WRITTEN: Final[dict[str, Any]] = {  # empty or 0: some stay, and some are as if they were absent
    "azureDisk": {**_VOLUMES["azureDisk"], "fsType": "", "readOnly": True},
    "configMap": {"name": "c", "defaultMode": 0},
    "hostPath": {"path": "/p", "type": ""},
    "image": {"reference": "i@sha256:" + "a" * 64, "pullPolicy": ""},
    "iscsi": {**_VOLUMES["iscsi"], "iscsiInterface": ""},
    "rbd": {**_VOLUMES["rbd"], "pool": "", "user": "", "keyring": ""},
    "scaleIO": {**_VOLUMES["scaleIO"], "storageMode": "", "fsType": ""},
}
_IMAGES: Final = (
    *("a", "a:latest", "a:1", "a@sha256:" + "b" * 64, "a:latest@sha256:" + "b" * 64, "h:5000/a"),
    *("h:5000/a:latest", "A", "a:", "a b", "0" * 64, "a/0" + "0" * 63, "[::1]:5000/a", "a:lätest"),
    *("h/A:latest", "a__b", "a_b.c", "-a", "a:.x"),
)
_ACTIONS: Final = (
    *({"httpGet": {"port": 80}}, {"httpGet": {"port": "web", "path": "", "scheme": ""}}),
    *({"grpc": {"port": 1}}, {"grpc": {"port": 1, "service": ""}}, {"tcpSocket": {"port": 1}}),
)
_AMOUNTS: Final = ("1", "+1", "06", "0.0001", "1500m", "1e3", "0.5Ki", "1.5Gi")
_HUGE: Final = {"hugepages-2Mi": "2Mi", "cpu": "1"}


def pods() -> Iterator[dict[str, Any]]:
    """The pods, each with one thing to complete."""
    yield _pod({})
    for image in _IMAGES:
        yield _pod({"image": image})
    for kind, source in (*_VOLUMES.items(), *_WRITTEN.items()):
        yield _pod({}, volumes=[{"name": "v", kind: source}], serviceAccountName="s")
    yield _pod({}, volumes=[{"name": "v"}])
    yield from _actions()
    yield from _resources()
    yield from _specs()
    sources: tuple[dict[str, Any], ...] = (
        {"fieldRef": {"fieldPath": "metadata.name"}},
        {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": ""}},
        {"resourceFieldRef": {"resource": "limits.cpu"}},
        {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}},
        {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}},
        {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": True}},
        {"secretKeyRef": {"name": "s", "key": "k"}},
    )
    for source in sources:
        variable = {"name": "A", "valueFrom": source}
        yield _pod({"env": [variable]}, volumes=[{"name": "v", "emptyDir": {}}])


def _pod(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", **container}]
    return {
        **{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}},
        "spec": {"containers": containers, **spec},
    }


def _actions() -> Iterator[dict[str, Any]]:
    for action in _ACTIONS:
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            yield _pod({probe: action})
        side = {"name": "s", "image": "s", "restartPolicy": "Always", "livenessProbe": action}
        yield _pod({}, initContainers=[side])
    numbers = ("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    yield _pod({"livenessProbe": {"exec": {"command": ["a"]}, **dict.fromkeys(numbers, 0)}})
    for hook in (_ACTIONS[0], _ACTIONS[1], {"sleep": {"seconds": 0}}, {"exec": {"command": ["a"]}}):
        yield _pod({"lifecycle": {"preStop": hook, "postStart": hook}})
    for port in ({"containerPort": 80}, {"containerPort": 80, "protocol": "", "hostPort": 0}):
        other = {"name": "o", "image": "o", "ports": [port]}
        yield _pod({"ports": [port]}, hostNetwork=True)
        yield _pod({}, hostNetwork=True, initContainers=[other])
    yield _pod({"ports": [{"containerPort": 80}]})


def _resources() -> Iterator[dict[str, Any]]:
    for amount in _AMOUNTS:
        yield _pod({"resources": {"limits": {"memory": amount}}})
        yield _pod({"resources": {"requests": {"memory": amount}}})
        yield _pod({}, overhead={"memory": amount})
        yield _pod({}, resources={"limits": {"memory": amount}})
    yield _pod({"resources": {"limits": {"cpu": "2", "memory": "1"}, "requests": {"cpu": "1"}}})
    yield _pod({"resources": {}})
    for own in (
        *({"limits": {"cpu": "2"}}, {"requests": {"cpu": "2"}}, {}, {"limits": {"memory": "1Gi"}}),
        *({"limits": {"cpu": "4", "memory": "2Gi"}}, {"requests": {"memory": "1Gi"}}),
        {"limits": {"cpu": "3"}, "requests": {"cpu": "2"}},
    ):
        for asked in ({"requests": {"cpu": "1"}}, {"limits": {"cpu": "500m"}}, {"limits": _HUGE}):
            init = {"name": "i", "image": "i", "resources": asked}
            yield _pod({"resources": asked}, resources=own)
            yield _pod({"resources": asked}, resources=own, initContainers=[init])
            side = {**init, "restartPolicy": "Always"}
            last = {**init, "name": "l"}
            yield _pod({}, resources=own, initContainers=[side, last])


def _specs() -> Iterator[dict[str, Any]]:
    for spec in (
        {"restartPolicy": "", "dnsPolicy": "", "schedulerName": ""},
        {"restartPolicy": "Never", "dnsPolicy": "Default", "schedulerName": "s"},
        {"terminationGracePeriodSeconds": 0},
        {"terminationGracePeriodSeconds": -5},
        {"enableServiceLinks": False},
        {"securityContext": {"runAsUser": 1}},
        {"serviceAccountName": "a"},
        {"serviceAccount": "a"},
        {"serviceAccount": "a", "serviceAccountName": "b"},
        {"hostNetwork": True},
        {"hostPID": True, "shareProcessNamespace": False},
        {"initContainers": [{"name": "i", "image": "i"}]},
    ):
        yield _pod({}, **spec)
