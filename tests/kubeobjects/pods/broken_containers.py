"""Pods with everything that a container may have, right and broken, to ask a Kubernetes about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pod_breaking import breakings

_HTTP: Final = {
    "path": "/up",
    "port": 80,
    "scheme": "HTTP",
    "host": "h",
    "httpHeaders": [{"name": "X-A", "value": "1"}],
}
_NUMBERS: Final = {
    "initialDelaySeconds": 1,
    "timeoutSeconds": 2,
    "periodSeconds": 3,
    "failureThreshold": 4,
}
_PROBE: Final = {**_NUMBERS, "successThreshold": 1, "terminationGracePeriodSeconds": 5}
_VARIABLES: Final = [
    {"name": "PLAIN", "value": "v"},
    {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
    {
        "name": "CPU",
        "valueFrom": {
            "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}
        },
    },
    {"name": "CFG", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}},
    {"name": "SEC", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    {
        "name": "FIL",
        "valueFrom": {"fileKeyRef": {"volumeName": "data", "path": "a/b", "key": "K"}},
    },
]
_CONTEXT: Final = {
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "runAsNonRoot": True,
    "procMount": "Default",
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
    "seLinuxOptions": {"user": "u", "role": "r", "type": "t", "level": "s0"},
    "seccompProfile": {"type": "Localhost", "localhostProfile": "p/q.json"},
    "appArmorProfile": {"type": "Localhost", "localhostProfile": "k8s-p"},
}
_RULE: Final = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1, 2]}}
_MAIN: Final = {
    "name": "main",
    "image": "registry.example/app:1",
    "imagePullPolicy": "IfNotPresent",
    "command": ["run"],
    "args": ["-x"],
    "workingDir": "/w",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "ports": [
        {"name": "web", "containerPort": 80, "hostPort": 8080, "protocol": "TCP"},
        {"name": "dns", "containerPort": 53, "hostIP": "10.0.0.1", "protocol": "UDP"},
    ],
    "env": _VARIABLES,
    "envFrom": [
        {"prefix": "P_", "configMapRef": {"name": "c"}},
        {"secretRef": {"name": "s", "optional": True}},
    ],
    "resources": {
        "limits": {
            "cpu": "1",
            "memory": "1Gi",
            "hugepages-2Mi": "4Mi",
            "example.com/gpu": "2",
            "ephemeral-storage": "2Gi",
        },
        "requests": {
            "cpu": "500m",
            "memory": "1Gi",
            "hugepages-2Mi": "4Mi",
            "example.com/gpu": "2",
        },
        "claims": [{"name": "card", "request": "one"}, {"name": "other"}],
    },
    "resizePolicy": [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
    ],
    "volumeMounts": [
        {
            "name": "data",
            "mountPath": "/data",
            "subPath": "a/b",
            "readOnly": True,
            "recursiveReadOnly": "Enabled",
            "mountPropagation": "None",
        },
        {"name": "host", "mountPath": "/host", "subPathExpr": "$(PLAIN)"},
    ],
    "volumeDevices": [{"name": "block", "devicePath": "/dev/xvda"}],
    "livenessProbe": {**_PROBE, "httpGet": _HTTP},
    "readinessProbe": {**_NUMBERS, "successThreshold": 3, "exec": {"command": ["ok"]}},
    "startupProbe": {**_PROBE, "grpc": {"port": 9000, "service": "s"}},
    "lifecycle": {
        "postStart": {"httpGet": _HTTP},
        "preStop": {"sleep": {"seconds": 5}},
        "stopSignal": "SIGUSR1",
    },
    "restartPolicy": "OnFailure",
    "restartPolicyRules": [_RULE],
    "securityContext": _CONTEXT,
}
_SIDECAR: Final = {
    "name": "sidecar",
    "image": "side:2",
    "restartPolicy": "Always",
    "ports": [{"containerPort": 81, "hostPort": 8081}],
    "livenessProbe": {"tcpSocket": {"port": "web"}},
    "lifecycle": {
        "preStop": {"exec": {"command": ["bye"]}},
        "postStart": {"tcpSocket": {"port": 1}},
    },
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
    "restartPolicyRules": [_RULE],
}
_INIT: Final = {
    "name": "init",
    "image": "init:3",
    "restartPolicy": "Never",
    "restartPolicyRules": [_RULE],
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "ports": [{"containerPort": 82}, {"containerPort": 83}],
}
_SPEC: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "volumes": [
        {"name": "data", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/h"}},
        {"name": "block", "persistentVolumeClaim": {"claimName": "claim"}},
    ],
    "resourceClaims": [
        {"name": "card", "resourceClaimName": "c1"},
        {"name": "other", "resourceClaimTemplateName": "c2"},
    ],
}
_OTHER: Final = {"name": "other", "image": "other", "ports": [{"containerPort": 90}]}


def _pod(**spec: Any) -> dict[str, Any]:
    meta = {"name": "p", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**_SPEC, **spec}}


BASES: Final = {
    "full": _pod(
        os={"name": "linux"}, containers=[_MAIN, _OTHER], initContainers=[_SIDECAR, _INIT]
    ),
    "small": _pod(containers=[_OTHER], initContainers=[{"name": "init", "image": "i"}]),
}
_C: Final = "/spec/containers/0"
_S: Final = "/spec/initContainers/0"
_I: Final = "/spec/initContainers/1"


def _each(place: str, values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        yield {place: value}


def _planted() -> Iterator[dict[str, Any]]:
    """What `breakings` does not come to: other words, and values that do not fit to each other."""
    yield from _each(f"{_C}/name", ("A", "a.b", "a-", "other", "sidecar", "ä", "a" * 64))
    yield from _each(f"{_C}/image", (" ", " x", "x ", "x\n", "x:latest", "a" * 64, "0" * 64))
    yield from _each(f"{_C}/imagePullPolicy", ("always", "Never"))
    yield from _each(f"{_C}/terminationMessagePolicy", ("FallbackToLogsOnError", "Logs"))
    yield from _each(f"{_C}/ports/1/name", ("web", "a--b", "-a", "a-", "80", "A", "a" * 16, "é"))
    yield from _each(f"{_C}/ports/1/hostPort", (8080, 65535, 65536, 53))
    yield {f"{_C}/ports/1": {"containerPort": 81, "hostPort": 8080}}
    yield {f"{_C}/ports/1": {"containerPort": 81, "hostPort": 8080, "protocol": "UDP"}}
    yield {f"{_C}/ports/1": {"containerPort": 81, "hostPort": 8080, "hostIP": "10.0.0.1"}}
    yield {"/spec/containers/1/ports/0/hostPort": 8080}
    yield {f"{_I}/ports/0/hostPort": 7, f"{_I}/ports/1/hostPort": 7}
    yield from _each(f"{_C}/ports/0/protocol", ("SCTP", "tcp", "ICMP"))
    yield from _env()
    yield from _mounts()
    yield from _probes()
    yield from _resources()
    yield from _security()
    yield from _restarts()


def _env() -> Iterator[dict[str, Any]]:
    yield from _each(f"{_C}/env/0/name", ("A B", "1", "a=b", "é", "a\tb", "A.B", "a\x7f", "PLAIN"))
    source = f"{_C}/env/1/valueFrom/fieldRef"
    yield from _each(
        f"{source}/fieldPath",
        (
            *("metadata.labels", "metadata.labels['a']", "metadata.labels['a/b/c']"),
            *("metadata.labels['']", "metadata.annotations['A.B/c']", "metadata.annotations['_']"),
            *("spec.host", "status.phase", "status.podIPs", "metadata.name['x']", "['x']"),
            *("metadata.uid", "spec.restartPolicy", "spec.x", "metadata.labels['a['b']"),
        ),
    )
    yield from _each(f"{source}/apiVersion", ("v2", "v1"))
    source = f"{_C}/env/2/valueFrom/resourceFieldRef"
    for resource in (
        *("requests.cpu", "limits.memory", "requests.ephemeral-storage", "limits.hugepages-2Mi"),
        *("requests.hugepages-", "limits.gpu", "cpu"),
    ):
        for divisor in ("0", "1", "1m", "2", "1k", "1Ki", "1e3", "1024", "-1", "1E", "1Ei"):
            yield {f"{source}/resource": resource, f"{source}/divisor": divisor}
    for kind in ("configMapKeyRef", "secretKeyRef"):
        place = f"{_C}/env/{3 if kind == 'configMapKeyRef' else 4}/valueFrom/{kind}"
        yield from _each(f"{place}/key", (".", "..", "..a", "a/b", "a b", "k" * 254, "a..b"))
        yield from _each(f"{place}/name", ("A", "a.b", "a_b", "n" * 254))
    place = f"{_C}/env/5/valueFrom/fileKeyRef"
    yield from _each(f"{place}/volumeName", ("host", "gone", "A"))
    yield from _each(f"{place}/path", ("/a", "../a", "a/..", "..a"))
    yield from _each(f"{place}/key", ("a b", "a=b", "é"))
    yield {f"{_C}/env/0/valueFrom": {}}
    yield {f"{_C}/env/0/valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    yield {f"{_C}/env/1/valueFrom/secretKeyRef": {"name": "s", "key": "k"}}
    yield from _each(f"{_C}/envFrom/0/prefix", ("=", "a b", "é"))
    yield from _each(f"{_C}/envFrom/0/configMapRef/name", ("A", "a.b"))
    yield {f"{_C}/envFrom/0/secretRef": {"name": "s"}}


def _mounts() -> Iterator[dict[str, Any]]:
    here = f"{_C}/volumeMounts"
    yield from _each(f"{here}/1/name", ("data", "gone", "block"))
    yield from _each(f"{here}/1/mountPath", ("/data", "data", "/dev/xvda", "/a:b", "../x"))
    yield from _each(f"{here}/0/subPath", ("/a", "..", "a/../b", "..a", "../../a", "a/..b"))
    yield from _each(f"{here}/1/subPathExpr", ("/a", "..", "a/../b", "..a", "$(X)/.."))
    yield {f"{here}/1/subPath": "a"}
    yield {f"{here}/1/subPath": "/a", f"{here}/1/subPathExpr": "/.."}
    yield from _each(f"{here}/0/mountPropagation", ("Bidirectional", "HostToContainer", "x"))
    yield {
        f"{here}/1/mountPropagation": "Bidirectional",
        f"{_C}/securityContext": {"privileged": True},
    }
    yield from _each(f"{here}/0/recursiveReadOnly", ("IfPossible", "Disabled", "x"))
    yield from _each(f"{here}/0/readOnly", (False,))
    here = f"{_C}/volumeDevices"
    yield from _each(f"{here}/0/name", ("data", "gone", "host"))
    yield from _each(f"{here}/0/devicePath", ("/data", "/host", "/dev/../x", "dev", ".."))
    yield {f"{here}/1": {"name": "block", "devicePath": "/dev/b"}}
    yield {f"{here}/1": {"name": "", "devicePath": "/dev/xvda"}}


def _probes() -> Iterator[dict[str, Any]]:
    here = f"{_C}/livenessProbe"
    for port in (1, 65535, 65536, "web", "80", "a--b", "-1", "web_x", "x" * 16, ""):
        yield {f"{here}/httpGet/port": port}
        yield {f"{_C}/lifecycle/postStart/httpGet/port": port}
    yield from _each(f"{here}/httpGet/scheme", ("https", "HTTPS", "FTP"))
    yield from _each(f"{here}/httpGet/httpHeaders/0/name", ("X_A", "X A", "", "a:b", "Host"))
    yield {f"{here}/exec": {"command": ["a"]}}
    yield {f"{here}/tcpSocket": {"port": 0}, f"{here}/grpc": {"port": 1}}
    yield from _each(f"{here}/httpGet", (None,))
    yield from _each(f"{here}/terminationGracePeriodSeconds", (0, -1, 1))
    yield from _each(f"{_C}/readinessProbe/terminationGracePeriodSeconds", (0, -1, 1))
    yield from _each(f"{here}/successThreshold", (0, 2, -1))
    yield from _each(f"{_C}/lifecycle/preStop/sleep/seconds", (0, 30, 31, -1))
    yield {f"{_C}/lifecycle/preStop/exec": {"command": []}}
    yield {f"{_C}/lifecycle/preStop": {}}
    yield from _each(
        f"{_C}/lifecycle/stopSignal",
        (
            "SIGTERM",
            "TERM",
            "<\x7f>",
            "SIGRTMIN+15",
            "SIGRTMIN+16",
            "SIGRTMAX-14",
            "SIGRTMAX-15",
            "9",
        ),
    )
    yield from _each("/spec/os", (None,))
    yield from _each("/spec/os/name", ("windows", "plan9"))
    yield {"/spec/terminationGracePeriodSeconds": -1}
    yield {"/spec/terminationGracePeriodSeconds": 2}
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield {f"{_I}/{name}": {"exec": {"command": ["a"]}}}
        yield {f"{_S}/{name}": {"grpc": {"port": 0}}}
    yield {f"{_I}/lifecycle": {"preStop": {"exec": {"command": ["a"]}}}}


def _resources() -> Iterator[dict[str, Any]]:
    here = f"{_C}/resources"
    for name in (
        *("pods", "services", "storage", "requests.cpu", "limits.memory", "gpu", "a_b/c", "A"),
        *("example.com/x", "requests.example.com/x", "kubernetes.io/x", "a.kubernetes.io/x"),
        *("hugepages-1Mi", "hugepages-x", "hugepages-", "hugepages-0", "hugepages-1500m"),
        *("a/b/c", "requests.hugepages-2Mi", "/x", "x/", "e.c/" + "x" * 64, "requests.x/y"),
        *("ephemeral-storage", f"{'a.' * 120}a/x"),
    ):
        for amount in ("1", "-1500m", "3Mi"):
            yield {here: {"limits": {name: amount}}}
        yield {here: {"requests": {name: "1"}}}
        yield {here: {"limits": {name: "2"}, "requests": {name: "1"}}}
        yield {here: {"limits": {name: "1"}, "requests": {name: "2"}}}
    for name in ("cpu", "memory"):
        for limit, request in (
            ("1", "2"),
            ("1", "1"),
            ("1500m", "1.5"),
            ("-1", "-2"),
            ("1Ki", "1e3"),
        ):
            yield {here: {"limits": {name: limit}, "requests": {name: request}}}
    yield {here: {"limits": {"cpu": "0.0001"}, "requests": {"cpu": "0.1m"}}}
    for claims in (
        [{"name": "card"}, {"name": "card"}],
        [{"name": "card", "request": "a"}, {"name": "card", "request": "a"}],
        [{"name": "card", "request": "a"}, {"name": "card", "request": "b"}],
        [{"name": "card", "request": "a"}, {"name": "card", "request": "b"}, {"name": "card"}],
        [{"name": "card"}, {"name": "card", "request": "a"}],
        [{"name": "card", "request": "A"}],
        [{"name": "gone"}, {"name": ""}],
        [{"name": "gone", "request": "a"}],
    ):
        yield {f"{here}/claims": claims}
    yield {f"{here}/claims": [{"name": "gone"}], "/spec/resourceClaims": None}


def _security() -> Iterator[dict[str, Any]]:
    here = f"{_C}/securityContext"
    for field in ("runAsUser", "runAsGroup"):
        yield from _each(f"{here}/{field}", (1 << 31, (1 << 31) - 1, 0, -1))
    yield from _each(f"{here}/procMount", ("Unmasked", "x"))
    yield {f"{here}/procMount": "Unmasked", "/spec/hostUsers": False, f"{_C}/volumeDevices": None}
    yield {f"{here}/privileged": True}
    yield {f"{here}/privileged": True, f"{here}/capabilities/add": ["CAP_SYS_ADMIN"]}
    yield {here: {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}}
    yield {here: {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}}}
    yield {
        here: {
            "allowPrivilegeEscalation": False,
            "privileged": True,
            "runAsNonRoot": False,
            "windowsOptions": {"hostProcess": False},
            "appArmorProfile": {"type": "Unconfined"},
            "seLinuxOptions": {"level": "s0"},
        }
    }
    for kind in ("seccompProfile", "appArmorProfile"):
        for value in (
            *({"type": "Localhost"}, {"type": "Localhost", "localhostProfile": ""}, {}),
            *({"type": "RuntimeDefault", "localhostProfile": "a"}, {"type": "x"}),
            *({"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": " a "}),
            *({"type": "Localhost", "localhostProfile": "/a/../b"}, {"localhostProfile": "a"}),
            {"type": "Localhost", "localhostProfile": "a" * 4096},
            {"type": "x", "localhostProfile": "a"},
            {"type": "RuntimeDefault", "localhostProfile": "<\x7f>"},
            {"type": "Localhost", "localhostProfile": "/<\x7f>"},
        ):
            yield {f"{here}/{kind}": value}
    place = f"{here}/windowsOptions"
    yield {"/spec/os": None, f"{_C}/lifecycle/stopSignal": None, place: {"hostProcess": True}}
    for name in (
        *("", "user", "a\\b", "a\\b\\c", "d.e\\u", ".d\\u", "\\u", "d\\", "a\tb", "...", " . "),
        *(
            "a@b",
            "a<b",
            "a\x7f",
            'a"b',
            "d/e\\u",
            "x" * 105,
            "d" * 256 + "\\u",
            "d" * 16 + "\\u",
            "d:\\u",
        ),
    ):
        yield {place: {"runAsUserName": name}}
    yield from _each(place, ({"gmsaCredentialSpecName": "A"}, {"gmsaCredentialSpecName": "a.b"}))
    yield from _each(place, ({"gmsaCredentialSpec": ""}, {"gmsaCredentialSpec": "x"}))


def _restarts() -> Iterator[dict[str, Any]]:
    for place in (_C, _S, _I):
        yield from _each(f"{place}/restartPolicy", ("Never", "Always", "always", None))
        yield {f"{place}/restartPolicy": None, f"{place}/restartPolicyRules": None}
        yield {f"{place}/restartPolicyRules": [_RULE] * 21}
        rule = f"{place}/restartPolicyRules/0"
        yield from _each(f"{rule}/action", ("RestartAllContainers", "Stop"))
        yield from _each(f"{rule}/exitCodes/operator", ("NotIn", "Exists"))
        yield from _each(f"{rule}/exitCodes/values", ([*range(256)], []))
        yield from _each(f"{rule}/exitCodes", (None,))
        yield {f"{place}/resizePolicy/0/restartPolicy": "RestartContainer"}
        yield {f"{place}/resizePolicy/0/restartPolicy": "x"}
    yield {f"{_C}/resizePolicy/1/resourceName": "cpu"}
    yield {f"{_C}/resizePolicy/1/resourceName": "hugepages-2Mi"}
    yield {"/spec/restartPolicy": "Never"}
    yield {"/spec/restartPolicy": "OnFailure"}
    yield {"/spec/restartPolicy": "x"}


def _ephemeral() -> Iterator[dict[str, Any]]:
    """Which only an update may add: how the API server reads them at a creation."""
    plain = {"name": "debug", "image": "d", "targetContainerName": "other"}
    here = "/spec/ephemeralContainers"
    yield from _each(here, ([], [plain], [plain, plain], [{**plain, "name": "other"}]))
    for field, value in (
        *(("targetContainerName", "init"), ("targetContainerName", "gone"), ("image", " d")),
        *(("ports", [{"containerPort": 1}]), ("resources", {"limits": {"cpu": "1"}})),
        *(("livenessProbe", {"exec": {"command": ["a"]}}), ("lifecycle", {}), ("name", "")),
        *(("readinessProbe", {}), ("startupProbe", {}), ("resizePolicy", [{}])),
        *(("restartPolicy", "Always"), ("restartPolicyRules", [_RULE]), ("image", "")),
        ("volumeMounts", [{"name": "data", "mountPath": "/d", "subPath": "a"}]),
        ("volumeMounts", [{"name": "data", "mountPath": "/d", "subPathExpr": "/a"}]),
        ("volumeMounts", [{"name": "gone", "mountPath": "/d"}]),
        ("securityContext", {"runAsUser": -1}),
    ):
        yield {here: [{**plain, field: value}]}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Base and changes of each case."""
    yield "full", {}
    yield "small", {}
    spec: dict[str, Any] = BASES["full"]["spec"]
    for group in ("containers", "initContainers"):
        yield "full", {f"/spec/{group}": []}
        for i, container in enumerate(spec[group]):
            for change in breakings(container, f"/spec/{group}/{i}"):
                yield "full", change
    for change in _planted():
        yield "full", change
    for change in _ephemeral():
        yield "small", change
