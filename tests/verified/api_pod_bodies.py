"""A plain pod, and parts of pods that the machine puts over it, right and wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

Twist = dict[str, Any]
POD: Final[Twist] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"schedulerName": "nobody", "containers": [{"name": "a", "image": "busybox:1"}]},
}


def spec(**fields: Any) -> Twist:
    return {"spec": fields}


def container(**fields: Any) -> Twist:
    """Fields of the pod's container."""
    return spec(containers=[{"name": "a", "image": "busybox:1", **fields}])


def volume(**fields: Any) -> Twist:
    """A volume that the container mounts."""
    mount = {"name": "v", "mountPath": "/v"}
    one = {"name": "a", "image": "busybox:1", "volumeMounts": [mount]}
    return spec(volumes=[{"name": "v", **fields}], containers=[one])


def probe(**fields: Any) -> Twist:
    return container(livenessProbe=fields)


def resources(**fields: Any) -> Twist:
    return container(resources=fields)


def env(**fields: Any) -> Twist:
    return container(env=[{"name": "E", **fields}])


def init(**fields: Any) -> Twist:
    return spec(initContainers=[{"name": "i", "image": "busybox", **fields}])


def items(key: str, path: str, **more: Any) -> list[Twist]:
    return [{"key": key, "path": path, **more}]


_CONTAINERS: Final[Sequence[Twist]] = (
    container(image="busybox"),
    container(image="busybox:latest"),
    container(image="host:5000/a/b@sha256:" + "0" * 64),
    container(image=""),
    container(image=" busybox "),
    container(imagePullPolicy="Always"),
    container(imagePullPolicy="Sometimes"),
    container(command=["sh", "-c", "true"], args=[], workingDir="/w"),
    container(stdin=True, stdinOnce=True, tty=False),
    container(terminationMessagePath="/x", terminationMessagePolicy="FallbackToLogsOnError"),
    container(terminationMessagePath="", terminationMessagePolicy="Wrong"),
    container(ports=[{"containerPort": 80}]),
    container(ports=[{"containerPort": 80, "name": "web", "hostPort": 8080, "protocol": "UDP"}]),
    container(ports=[{"containerPort": 0}]),
    container(
        ports=[{"containerPort": 80, "name": "Bad_Name"}, {"containerPort": 80, "name": "9"}]
    ),
    container(ports=[{"containerPort": 80, "name": "x"}, {"containerPort": 81, "name": "x"}]),
    container(ports=[{"containerPort": 70000, "hostPort": -1, "protocol": "HTTP"}]),
    container(ports=[{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]),
    container(unknownField=1),
    container(restartPolicy="Always"),
    container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
    container(resizePolicy=[{"resourceName": "disk", "restartPolicy": "Sometimes"}]),
    container(envFrom=[{"configMapRef": {"name": "c"}, "prefix": "P_"}]),
    container(envFrom=[{"secretRef": {"name": "s", "optional": True}}]),
    container(envFrom=[{"configMapRef": {"name": ""}}]),
    container(envFrom=[{}]),
    container(volumeMounts=[{"name": "none", "mountPath": "/x"}]),
    container(volumeMounts=[{"name": "none", "mountPath": ""}]),
    container(volumeDevices=[{"name": "none", "devicePath": "/x"}]),
    spec(containers=[]),
    spec(containers=[{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]),
    spec(containers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]),
    spec(containers=[{"name": "Bad_Name", "image": "i"}]),
    spec(containers=[{"image": "i"}]),
    spec(containers="text"),
    spec(containers=[{"name": 5, "image": "i"}]),
    init(),
    init(restartPolicy="Always"),
    init(restartPolicy="Always", startupProbe={"exec": {"command": ["x"]}}),
    init(restartPolicy="Wrong"),
    init(livenessProbe={"exec": {"command": ["x"]}}),
    init(lifecycle={"preStop": {"exec": {"command": ["x"]}}}),
    spec(initContainers=[{"name": "a", "image": "i"}]),
    spec(initContainers=[]),
    spec(ephemeralContainers=[{"name": "e", "image": "i"}]),
)
_VALUES: Final[Sequence[Twist]] = (
    resources(limits={"cpu": "0.5", "memory": "1024Mi"}),
    resources(limits={"cpu": "1000m", "memory": "1Gi"}, requests={"cpu": 1, "memory": "1Gi"}),
    resources(requests={"cpu": "1e3m"}),
    resources(requests={"cpu": "1e-1", "memory": "12e6"}),
    resources(requests={"cpu": ".5", "memory": "1.5Gi"}),
    resources(requests={"cpu": "2.0", "memory": "0.5"}),
    resources(requests={"memory": "1000k", "ephemeral-storage": "1024k"}),
    resources(requests={"memory": "100Ki", "cpu": "100u"}),
    resources(requests={"memory": 1048576, "cpu": 0.25}),
    resources(requests={"memory": "0", "cpu": "0"}),
    resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
    resources(requests={"cpu": "-1"}),
    resources(requests={"cpu": "much"}),
    resources(requests={"cpu": ""}),
    resources(limits={"example.com/gpu": "1"}),
    resources(limits={"example.com/gpu": "1.5"}),
    resources(requests={"example.com/gpu": "1"}),
    resources(requests={"gpu": "1"}),
    resources(limits={"hugepages-2Mi": "4Mi", "cpu": "1", "memory": "1Gi"}),
    resources(limits={"hugepages-2Mi": "4Mi"}),
    resources(limits={}),
    resources(claims=[{"name": "none"}]),
    spec(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
    spec(resources={"requests": {"cpu": "100m"}}),
    spec(overhead={"cpu": "100m"}),
    env(value="x"),
    env(value=""),
    env(),
    env(value="x", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
    env(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
    env(valueFrom={"fieldRef": {"fieldPath": "metadata.labels['a']"}}),
    env(valueFrom={"fieldRef": {"fieldPath": "spec.wrong"}}),
    env(valueFrom={"fieldRef": {"fieldPath": ""}}),
    env(valueFrom={"resourceFieldRef": {"resource": "limits.cpu"}}),
    env(valueFrom={"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}),
    env(valueFrom={"resourceFieldRef": {"resource": "limits.wrong"}}),
    env(valueFrom={"configMapKeyRef": {"name": "c", "key": "k"}}),
    env(valueFrom={"configMapKeyRef": {"name": "", "key": ""}}),
    env(valueFrom={"secretKeyRef": {"name": "s", "key": "k", "optional": False}}),
    env(valueFrom={}),
    container(env=[{"name": ""}]),
    container(env=[{"name": "has=equals", "value": "x"}]),
    probe(exec={"command": ["true"]}),
    probe(exec={"command": []}),
    probe(httpGet={"port": 80}),
    probe(httpGet={"port": "web", "path": "", "scheme": "HTTPS", "host": "h"}),
    probe(httpGet={"port": 0}),
    probe(httpGet={"port": 80, "scheme": "FTP", "httpHeaders": [{"name": "X y", "value": ""}]}),
    probe(tcpSocket={"port": 80}, periodSeconds=5, timeoutSeconds=0),
    probe(grpc={"port": 80}),
    probe(grpc={"port": 0, "service": "x"}),
    probe(),
    probe(exec={"command": ["x"]}, tcpSocket={"port": 1}),
    probe(exec={"command": ["x"]}, initialDelaySeconds=-1, failureThreshold=-1),
    probe(exec={"command": ["x"]}, successThreshold=2),
    probe(exec={"command": ["x"]}, terminationGracePeriodSeconds=0),
    probe(exec={"command": ["x"]}, terminationGracePeriodSeconds=7),
    container(readinessProbe={"exec": {"command": ["x"]}, "successThreshold": 2}),
    container(readinessProbe={"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 5}),
    container(startupProbe={"httpGet": {"port": 80}}),
    container(lifecycle={"postStart": {"exec": {"command": ["x"]}}}),
    container(lifecycle={"preStop": {"httpGet": {"port": 80}}}),
    container(lifecycle={"preStop": {"sleep": {"seconds": 5}}}),
    container(lifecycle={"preStop": {"sleep": {"seconds": -1}}}),
    container(lifecycle={"preStop": {}}),
    container(lifecycle={}),
)
_VOLUMES: Final[Sequence[Twist]] = (
    volume(),
    volume(emptyDir={}),
    volume(emptyDir={"medium": "Memory", "sizeLimit": "1024Mi"}),
    volume(emptyDir={"sizeLimit": "-1"}),
    volume(emptyDir={"medium": "Wrong"}),
    volume(hostPath={"path": "/x"}),
    volume(hostPath={"path": "/x", "type": "Directory"}),
    volume(hostPath={"path": "../x", "type": "Wrong"}),
    volume(hostPath={"path": ""}),
    volume(configMap={"name": "c"}),
    volume(configMap={"name": "c", "items": items("k", "p", mode=256), "optional": True}),
    volume(configMap={"name": "c", "items": items("", "../p")}),
    volume(configMap={"name": ""}),
    volume(secret={"secretName": "s"}),
    volume(secret={"secretName": "s", "defaultMode": 1000}),
    volume(secret={"secretName": ""}),
    volume(
        projected={"sources": [{"serviceAccountToken": {"path": "t"}}, {"secret": {"name": "s"}}]}
    ),
    volume(projected={"sources": [{"serviceAccountToken": {"path": "", "expirationSeconds": 5}}]}),
    volume(projected={"sources": [{}]}),
    volume(projected={"sources": None}),
    volume(downwardAPI={"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}),
    volume(downwardAPI={"items": [{"path": "p", "fieldRef": {"fieldPath": "status.podIP"}}]}),
    volume(
        downwardAPI={
            "items": [
                {
                    "path": "p",
                    "resourceFieldRef": {"containerName": "a", "resource": "limits.memory"},
                }
            ]
        }
    ),
    volume(persistentVolumeClaim={"claimName": "c"}),
    volume(persistentVolumeClaim={"claimName": ""}),
    volume(nfs={"server": "s", "path": "/p"}),
    volume(image={"reference": "i:1"}),
    volume(csi={"driver": "d.example.com", "volumeAttributes": {"a": "b"}}),
    volume(emptyDir={}, hostPath={"path": "/x"}),
    spec(volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),
    spec(volumes=[{"name": "Bad_Name", "emptyDir": {}}]),
    spec(volumes=[{"emptyDir": {}}]),
    spec(
        volumes=[{"name": "v"}],
        containers=[
            {
                "name": "a",
                "image": "i",
                "volumeMounts": [
                    {"name": "v", "mountPath": "/x", "subPath": "a/b", "readOnly": False},
                    {"name": "v", "mountPath": "/y", "mountPropagation": "HostToContainer"},
                ],
            }
        ],
    ),
    spec(
        volumes=[{"name": "v"}],
        containers=[
            {
                "name": "a",
                "image": "i",
                "volumeMounts": [
                    {"name": "v", "mountPath": "/x", "subPath": "../b"},
                    {"name": "v", "mountPath": "/x", "subPath": "a", "subPathExpr": "b"},
                    {"name": "v", "mountPath": "/y", "mountPropagation": "Wrong"},
                ],
            }
        ],
    ),
)
_POD_WIDE: Final[Sequence[Twist]] = (
    spec(hostNetwork=True),
    spec(
        hostNetwork=True, containers=[{"name": "a", "image": "i", "ports": [{"containerPort": 80}]}]
    ),
    spec(hostPID=True, hostIPC=True, shareProcessNamespace=False),
    spec(hostPID=True, shareProcessNamespace=True),
    spec(hostUsers=False),
    spec(restartPolicy="Never"),
    spec(restartPolicy="Wrong"),
    spec(restartPolicy=""),
    spec(dnsPolicy="None"),
    spec(dnsPolicy="None", dnsConfig={"nameservers": ["1.2.3.4"], "options": [{"name": "n"}]}),
    spec(dnsPolicy="Wrong", dnsConfig={"nameservers": ["no address"], "searches": ["Bad_!"]}),
    spec(terminationGracePeriodSeconds=0),
    spec(terminationGracePeriodSeconds=-1),
    spec(activeDeadlineSeconds=60),
    spec(activeDeadlineSeconds=0),
    spec(nodeName="node"),
    spec(nodeName="Bad Name"),
    spec(nodeSelector={"a": "b"}),
    spec(nodeSelector={"bad key": "b"}),
    spec(nodeSelector={}),
    spec(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]),
    spec(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]),
    spec(tolerations=[{"key": "k", "operator": "Wrong", "effect": "Wrong"}]),
    spec(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}]),
    spec(tolerations=[{"key": "k", "tolerationSeconds": 5}]),
    spec(tolerations=[{"operator": "Exists"}]),
    spec(priority=5),
    spec(priorityClassName="missing"),
    spec(preemptionPolicy="Never"),
    spec(runtimeClassName="missing"),
    spec(serviceAccountName="mine"),
    spec(serviceAccount="old"),
    spec(serviceAccountName="Bad Name"),
    spec(automountServiceAccountToken=False),
    spec(enableServiceLinks=False),
    spec(hostname="h", subdomain="s", setHostnameAsFQDN=True),
    spec(hostname="Bad_Name", subdomain="Bad.Name"),
    spec(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}]),
    spec(hostAliases=[{"ip": "no", "hostnames": ["Bad_!"]}]),
    spec(imagePullSecrets=[{"name": "s"}]),
    spec(readinessGates=[{"conditionType": "example.com/x"}]),
    spec(readinessGates=[{"conditionType": "bad type"}]),
    spec(schedulingGates=[{"name": "example.com/g"}]),
    spec(os={"name": "linux"}),
    spec(os={"name": "wrong"}),
    spec(schedulerName=""),
    spec(schedulerName="default-scheduler"),
    spec(securityContext={"runAsUser": 0, "fsGroup": 5, "supplementalGroups": [1]}),
    spec(securityContext={"runAsUser": -1}),
    spec(securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}),
    spec(securityContext={"seccompProfile": {"type": "Localhost"}}),
    spec(securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]}),
    spec(securityContext={"sysctls": [{"name": "Bad Name", "value": ""}]}),
    spec(securityContext={"fsGroupChangePolicy": "Wrong"}),
    container(securityContext={"privileged": True}),
    container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
    container(securityContext={"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}}),
    container(securityContext={"runAsGroup": 0, "readOnlyRootFilesystem": False}),
    container(securityContext={"procMount": "Wrong"}),
    container(securityContext={}),
    spec(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                    ]
                }
            }
        }
    ),
    spec(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ]
    ),
    spec(unknownField=True),
    spec(restartPolicy=5),
    {"spec": None},
    {"spec": "text"},
    {"status": {"phase": "Running"}},
    {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
)
POD_TWISTS: Final = (*_CONTAINERS, *_VALUES, *_VOLUMES, *_POD_WIDE)
