"""The objects that the machine sends: a plain one of each kind, and twists, which are parts of
objects that are put over it, right and wrong ones. Those of pods are in `api_pod_bodies.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from api_pod_bodies import POD, POD_TWISTS

Twist = dict[str, Any]
CORE: Final = "v1"
BASES: Final[Mapping[str, Twist]] = {
    "pods": POD,
    "configmaps": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}},
    "secrets": {"apiVersion": "v1", "kind": "Secret", "data": {"k": "dg=="}},
    "services": {
        "apiVersion": "v1",
        "kind": "Service",
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    },
    "leases": {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {}},
    "events": {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "NAMESPACE"},
        "reason": "Started",
        "message": "text",
        "type": "Normal",
    },
    "persistentvolumeclaims": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
    "serviceaccounts": {"apiVersion": "v1", "kind": "ServiceAccount"},
    "nodes": {"apiVersion": "v1", "kind": "Node"},
    "namespaces": {"apiVersion": "v1", "kind": "Namespace"},
}
CLUSTER_WIDE: Final = ("nodes", "namespaces")
WITH_STATUS: Final = ("pods", "services", "persistentvolumeclaims", "nodes", "namespaces")

_METADATA: Final[Sequence[Twist]] = (
    {"metadata": {"labels": {"a": "b"}}},
    {"metadata": {"labels": {"a": "c", "example.com/x": ""}}},
    {"metadata": {"labels": {}}},
    {"metadata": {"labels": {"bad key": "x"}}},
    {"metadata": {"labels": {"a": "-bad-"}}},
    {"metadata": {"labels": {"a": "x" * 64}}},
    {"metadata": {"labels": {"a": 1}}},
    {"metadata": {"annotations": {"note": "any text, also with spaces"}}},
    {"metadata": {"annotations": {"bad key": "x"}}},
    {"metadata": {"annotations": {}}},
    {"metadata": {"finalizers": ["example.com/hold"]}},
    {"metadata": {"finalizers": ["no-domain"]}},
    {"metadata": {"finalizers": ["kubernetes", "bad name"]}},
    {"metadata": {"generation": 7}},
    {"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}},
    {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}},
    {"metadata": {"creationTimestamp": None}},
    {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}},
    {"metadata": {"resourceVersion": "1"}},
    {"metadata": {"resourceVersion": "0"}},
    {"metadata": {"selfLink": "/x"}},
    {"metadata": {"unknownField": "x"}},
    {"unknownField": {"x": 1}},
    {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "some-uid"}
            ]
        }
    },
    {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]}},
    {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": True},
                {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "2", "controller": True},
            ]
        }
    },
    {"metadata": {"generateName": "g-"}},
    {"metadata": {"namespace": "elsewhere"}},
    {"kind": "Other"},
    {"apiVersion": "v9"},
    {"kind": ""},
)
_OF_KIND: Final[Mapping[str, Sequence[Twist]]] = {
    "pods": POD_TWISTS,
    "configmaps": (
        {"data": {"k": "w", "a.b_c-d": ""}},
        {"data": {}},
        {"data": {"bad/key": "x"}},
        {"data": {"..": "x"}},
        {"data": {"k": 1}},
        {"data": []},
        {"binaryData": {"b": "AAEC"}},
        {"binaryData": {"k": "AAEC"}},
        {"binaryData": {"b": "no base64!"}},
        {"immutable": True},
        {"immutable": False},
        {"data": {"new": "line\nline"}},
    ),
    "secrets": (
        {"data": {"k": "dw=="}},
        {"data": {"k": "no base64!"}},
        {"data": {"bad/key": "dg=="}},
        {"stringData": {"k": "text", "l": ""}},
        {"type": "Opaque"},
        {"type": "example.com/mine"},
        {"type": "kubernetes.io/tls"},
        {"type": "kubernetes.io/basic-auth"},
        {"type": "kubernetes.io/ssh-auth"},
        {"type": "kubernetes.io/dockerconfigjson"},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}},
        {"type": "kubernetes.io/service-account-token"},
        {"immutable": True},
        {"data": {}},
    ),
    "services": (
        {"spec": {"ports": [{"port": 80, "targetPort": 8080, "name": "http"}]}},
        {"spec": {"ports": [{"port": 80, "targetPort": "web"}]}},
        {"spec": {"ports": [{"port": 80}, {"port": 81}]}},
        {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}},
        {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}},
        {"spec": {"ports": [{"port": 53, "protocol": "UDP"}]}},
        {"spec": {"ports": [{"port": 0}]}},
        {"spec": {"ports": [{"port": 70000}]}},
        {"spec": {"ports": [{"port": 80, "protocol": "HTTP"}]}},
        {"spec": {"ports": [{"port": 80, "appProtocol": "http"}]}},
        {"spec": {"ports": []}},
        {"spec": {"type": "NodePort"}},
        {"spec": {"type": "LoadBalancer"}},
        {"spec": {"type": "ExternalName", "externalName": "example.com"}},
        {"spec": {"type": "ExternalName"}},
        {"spec": {"type": "Wrong"}},
        {"spec": {"clusterIP": "None"}},
        {"spec": {"clusterIP": "not an address"}},
        {"spec": {"clusterIP": "8.8.8.8"}},
        {"spec": {"selector": None}},
        {"spec": {"sessionAffinity": "ClientIP"}},
        {"spec": {"sessionAffinity": "Wrong"}},
        {"spec": {"externalIPs": ["1.2.3.4"]}},
        {"spec": {"publishNotReadyAddresses": True}},
        {"spec": {"internalTrafficPolicy": "Local"}},
        {"spec": {"externalTrafficPolicy": "Local"}},
        {"spec": {"ipFamilyPolicy": "PreferDualStack"}},
        {"spec": {"ipFamilies": ["IPv6"]}},
    ),
    "leases": (
        {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 40}},
        {"spec": {"leaseDurationSeconds": 0}},
        {"spec": {"leaseDurationSeconds": -1}},
        {"spec": {"leaseTransitions": -1}},
        {"spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}},
        {"spec": {"renewTime": "2026-01-01T00:00:00Z"}},
        {"spec": {"renewTime": "yesterday"}},
        {"spec": {"holderIdentity": ""}},
        {"spec": {"strategy": "OldestEmulationVersion"}},
        {"spec": {"preferredHolder": "you"}},
    ),
    "events": (
        {"reason": "", "message": ""},
        {"type": "Wrong"},
        {"count": 3, "firstTimestamp": "2026-01-01T00:00:00Z"},
        {"lastTimestamp": "2026-01-01T00:00:00Z"},
        {"eventTime": "2026-01-01T00:00:00.000001Z"},
        {
            "eventTime": "2026-01-01T00:00:00.000001Z",
            "reportingComponent": "example.com/me",
            "reportingInstance": "me-1",
            "action": "Doing",
        },
        {"source": {"component": "kubelet", "host": "n"}},
        {"involvedObject": {"namespace": "elsewhere"}},
        {"involvedObject": {"fieldPath": "spec.containers{a}"}},
        {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}},
        {"related": {"kind": "Node", "name": "n"}},
        {"message": "x" * 1100},
    ),
    "persistentvolumeclaims": (
        {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}},
        {"spec": {"resources": {"requests": {"storage": "0.5Gi"}}}},
        {"spec": {"resources": {"requests": {"storage": "0"}}}},
        {"spec": {"resources": {"requests": {}}}},
        {"spec": {"resources": {"limits": {"storage": "1M"}}}},
        {"spec": {"accessModes": []}},
        {"spec": {"accessModes": ["Wrong"]}},
        {"spec": {"accessModes": ["ReadWriteOncePod", "ReadWriteMany"]}},
        {"spec": {"storageClassName": ""}},
        {"spec": {"storageClassName": "fast"}},
        {"spec": {"storageClassName": "Bad Name"}},
        {"spec": {"volumeMode": "Block"}},
        {"spec": {"volumeMode": "Wrong"}},
        {"spec": {"volumeName": "pv"}},
        {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
    ),
    "serviceaccounts": (
        {"automountServiceAccountToken": False},
        {"automountServiceAccountToken": True},
        {"imagePullSecrets": [{"name": "pull"}]},
        {"secrets": [{"name": "s"}]},
        {"imagePullSecrets": []},
        {"secrets": [{"name": "s", "kind": "Secret"}]},
    ),
    "nodes": (
        {"spec": {"unschedulable": True}},
        {"spec": {"unschedulable": False}},
        {"spec": {"podCIDR": "10.1.0.0/24"}},
        {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
        {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24", "fd00::/64"]}},
        {"spec": {"podCIDRs": ["10.2.0.0/24", "fd00::/64"]}},
        {"spec": {"podCIDRs": ["bad"]}},
        {"spec": {"providerID": "x://1"}},
        {"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}},
        {"spec": {"taints": [{"key": "k", "effect": "Wrong"}]}},
        {
            "spec": {
                "taints": [{"key": "k", "effect": "NoExecute"}, {"key": "k", "effect": "NoExecute"}]
            }
        },
        {"spec": {"taints": []}},
        {"status": {"capacity": {"cpu": "2000m", "memory": "1048576Ki", "pods": "110"}}},
        {"status": {"capacity": {"cpu": 4}, "allocatable": {"cpu": "3.5"}}},
        {"status": {"capacity": {"cpu": "lots"}}},
        {"status": {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R"}]}},
        {"status": {"nodeInfo": {"kubeletVersion": "v1.36.2", "machineID": "m"}}},
        {"status": {"images": [{"names": ["a:1"], "sizeBytes": 5}]}},
        {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}},
        {"status": {"phase": "Running"}},
    ),
    "namespaces": (
        {"spec": {"finalizers": ["kubernetes", "example.com/other"]}},
        {"spec": {"finalizers": []}},
        {"status": {"phase": "Terminating"}},
        {"metadata": {"labels": {"kubernetes.io/metadata.name": "wrong"}}},
    ),
}
_STATUS: Final[Mapping[str, Sequence[Twist]]] = {
    "pods": (
        {"status": {"phase": "Running"}},
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Wrong"}},
        {"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "hostIP": "1.2.3.4"}},
        {"status": {"podIP": "10.0.0.1"}},
        {"status": {"podIP": "10.0.0.2"}},
        {"status": {"podIPs": [{"ip": "10.0.0.3"}, {"ip": "fd00::3"}]}},
        {"status": {"startTime": "2026-01-01T00:00:00Z", "message": "m", "reason": "r"}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "Wrong"}]}},
        {
            "status": {
                "containerStatuses": [
                    {
                        "name": "a",
                        "image": "i",
                        "imageID": "",
                        "ready": True,
                        "started": True,
                        "restartCount": 1,
                        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                        "lastState": {
                            "terminated": {
                                "exitCode": 0,
                                "reason": "Completed",
                                "startedAt": None,
                                "finishedAt": None,
                            }
                        },
                        "resources": {"requests": {"cpu": "0.1", "memory": "1024Ki"}},
                        "allocatedResources": {"cpu": "1000m"},
                    }
                ]
            }
        },
        {
            "status": {
                "containerStatuses": [
                    {
                        "name": "a",
                        "image": "i",
                        "state": {"waiting": {"reason": "ImagePullBackOff"}},
                    }
                ]
            }
        },
        {"status": {"observedGeneration": 3, "qosClass": "Guaranteed"}},
        {"status": {"unknownField": 1}},
        {"spec": {"nodeName": "ignored"}},
        {"metadata": {"labels": {"from": "status"}}},
    ),
    "services": (
        {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
        {"status": {"loadBalancer": {"ingress": [{"hostname": "a.b"}]}}},
    ),
    "persistentvolumeclaims": (
        {"status": {"phase": "Bound", "capacity": {"storage": "1024Mi"}}},
        {"status": {"accessModes": ["ReadWriteOnce"]}},
        {"status": {"phase": "Wrong"}},
    ),
    "nodes": tuple(twist for twist in _OF_KIND["nodes"] if "status" in twist),
    "namespaces": ({"status": {"phase": "Terminating"}},),
}
TWISTS: Final[Mapping[str, Sequence[Twist]]] = {
    kind: (*_METADATA, *own, *own, *own) for kind, own in _OF_KIND.items()
}
"""By kind; its own ones are drawn more often than those of all."""
STATUS_TWISTS: Final = {kind: (*_METADATA[:8], *own) for kind, own in _STATUS.items()}


def put_over(base: Any, twist: Any) -> Any:
    """`base` with a twist: objects are merged, lists of objects by their first name, the rest is
    replaced."""
    if isinstance(base, dict) and isinstance(twist, dict):
        merged = {key: put_over(base.get(key), item) for key, item in twist.items()}
        return {**base, **merged}
    if _named(base) and _named(twist) and base[0]["name"] == twist[0]["name"]:
        return [put_over(base[0], twist[0]), *twist[1:]]
    return json.loads(json.dumps(twist))


def _named(value: Any) -> bool:
    return bool(
        isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]
    )


def body_of(kind: str, name: str, namespace: str, twists: Sequence[Twist]) -> dict[str, Any]:
    """A whole object."""
    made: dict[str, Any] = put_over({"metadata": {"name": name}}, BASES[kind])
    for twist in twists:
        made = put_over(made, twist)
    if "generateName" in made["metadata"] and name == "":
        del made["metadata"]["name"]
    return in_namespace(made, namespace)


def in_namespace(value: Any, namespace: str) -> Any:
    """The value with the namespace in the place of the word NAMESPACE."""
    return json.loads(json.dumps(value).replace("NAMESPACE", namespace))
