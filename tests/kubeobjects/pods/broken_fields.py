"""Pods whose metadata and fields of the whole pod are right or broken, to ask a Kubernetes about.

The bases have the defaults of an API server, so that what is asked is checked as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pod_breaking import LONG, breakings

_CONTAINER: Final = {
    "name": "main",
    "image": "app:1",
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
PLAIN: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {
        "containers": [_CONTAINER],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccountName": "db",
        "enableServiceLinks": True,
    },
}
_TERM: Final = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {
        "matchLabels": {"app": "db"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}],
    },
    "namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]},
    "namespaces": ["other"],
    "matchLabelKeys": ["version"],
    "mismatchLabelKeys": ["team"],
}
_PLACES: Final = {
    "matchExpressions": [
        {"key": "a.example/zone", "operator": "In", "values": ["a", "b"]},
        {"key": "cores", "operator": "Gt", "values": ["4"]},
        {"key": "gpu", "operator": "DoesNotExist"},
    ],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
}
METADATA: Final[dict[str, Any]] = {
    **PLAIN["metadata"],
    "generateName": "db-",
    "labels": {"app": "db", "a.example/tier": "Back_1"},
    "annotations": {"a.example/Note": "any text!"},
    "finalizers": ["a.example/wait"],
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "db", "uid": "1", "controller": True}
    ],
}
_SPEC: Final[dict[str, Any]] = {
    "nodeSelector": {"a.example/disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_PLACES]},
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]
                    },
                }
            ],
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [_TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"topologyKey": "zone"}}
            ],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 50, "podAffinityTerm": {"topologyKey": "zone", "namespaces": ["a"]}}
            ],
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "db"}},
            "minDomains": 2,
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore",
            "matchLabelKeys": ["version"],
        }
    ],
    "tolerations": [
        {"key": "a.example/t", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
        {"key": "b", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
    ],
    "dnsConfig": {
        "nameservers": ["10.0.0.1", "::1"],
        "searches": ["a.example", "_b.example."],
        "options": [{"name": "ndots", "value": "2"}],
    },
    "hostAliases": [{"ip": "10.0.0.2", "hostnames": ["a.example", "b"]}],
    "readinessGates": [{"conditionType": "a.example/Ready"}],
    "schedulingGates": [{"name": "a.example/wait"}],
    "imagePullSecrets": [{"name": "s"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
    "resources": {
        "limits": {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "4Mi"},
        "requests": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"},
    },
    "overhead": {"cpu": "10m"},
    "securityContext": {
        "fsGroup": 1,
        "fsGroupChangePolicy": "OnRootMismatch",
        "runAsUser": 1,
        "runAsGroup": 1,
        "supplementalGroups": [1],
        "supplementalGroupsPolicy": "Strict",
        "seLinuxOptions": {"level": "s0"},
        "seLinuxChangePolicy": "Recursive",
        "sysctls": [{"name": "net.ipv4.x_y", "value": "1"}, {"name": "kernel/shm", "value": "2"}],
        "seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "p"},
    },
    "hostname": "db",
    "subdomain": "dbs",
    "activeDeadlineSeconds": 10,
    "priorityClassName": "high",
    "preemptionPolicy": "Never",
    "runtimeClassName": "sandboxed",
    "os": {"name": "linux"},
    "restartPolicy": "OnFailure",
    "dnsPolicy": "None",
    "setHostnameAsFQDN": False,
    "shareProcessNamespace": False,
}
RICH: Final[dict[str, Any]] = {
    **PLAIN,
    "metadata": METADATA,
    "spec": {**PLAIN["spec"], **_SPEC},
}
_WINDOWS_OPTIONS: Final = {
    "gmsaCredentialSpecName": "web",
    "gmsaCredentialSpec": "spec",
    "runAsUserName": "CORP\\web",
}
WINDOWS: Final[dict[str, Any]] = {
    **PLAIN,
    "spec": {
        **PLAIN["spec"],
        "os": {"name": "windows"},
        "securityContext": {"windowsOptions": _WINDOWS_OPTIONS},
    },
}
BASES: Final = {"plain": PLAIN, "rich": RICH, "windows": WINDOWS}

_CONTEXT: Final = "/spec/securityContext"
_MAIN: Final = "/spec/containers/0"
_PROFILE: Final = {"type": "RuntimeDefault"}
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ADDRESSES: Final = (
    *(
        "",
        "a",
        "10.0.0",
        "10.0.0.256",
        "010.0.0.1",
        "1.2.3.4.5",
        "::ffff:1.2.3.4",
        "::g",
        "1::2::3",
    ),
    *(
        "fe80::1%eth0",
        " 10.0.0.1",
        "::1.2.3.004",
        "1.2.3.04",
        "0x1.2.3.4",
        "::1.2.3.256",
        "1.2.3.0000",
    ),
)
_SEARCHES: Final = (".", "..", "a..b", "a_b", "_a", "a_", "-a", "A", "a.", "_a._b.example", "__a")
_COSTS: Final = (
    *("1", "-5", "a", "", "+5", "01", "-0", "1.5", "0", "1_0", "-0000000001"),
    *("2147483648", "2147483647", "-2147483648", "-2147483649"),
)
_VALUES: Final = [  # of the plain pod: places and what to try there
    ("/metadata/labels", [{"a/b/c": "d"}, {"/a": "b"}, {"a/": "b"}, {"a": "b c"}, {"A.b/c": "d"}]),
    ("/metadata/labels", [{"a" * 64: "b"}, {f"{'a' * 254}/b": "c"}, {"a": "b" * 64}, {"": ""}]),
    ("/metadata/annotations", [{"a b": ""}, {"": "x"}, {"A.B/C": "d"}]),
    ("/metadata/name", ["a.b", "A", "a" * 254, "a/b", "a%b", "..", "-"]),
    ("/metadata/generateName", ["a-", "A-", "-", "a.", "!a-"]),
    ("/metadata/generation", [-1]),
    ("/metadata/namespace", ["A_b", "a.b", "a" * 64]),
    ("/metadata/finalizers", [["orphan"], ["orphan", "foregroundDeletion"], ["other"], ["a/b/c"]]),
    (
        "/metadata/ownerReferences",
        [
            [{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"}],
            [
                {"controller": True, "uid": uid, "name": "n", "kind": "K", "apiVersion": "v1"}
                for uid in ("1", "2", "3")
            ],
            [
                {
                    "uid": "1",
                    "name": "e",
                    "blockOwnerDeletion": False,
                    "kind": "Event",
                    "apiVersion": "v1",
                }
            ],
            [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "1"}],
            [{"apiVersion": "a/", "kind": "K", "name": "n", "uid": "1"}],
            [{"apiVersion": "", "kind": "", "name": "", "uid": ""}],
        ],
    ),
    ("/spec/terminationGracePeriodSeconds", [-1, 0]),
    ("/spec/restartPolicy", ["Never", "always"]),
    ("/spec/dnsPolicy", ["Default", "None", "ClusterFirstWithHostNet", "default"]),
    ("/spec/dnsConfig", [{"nameservers": [text]} for text in _ADDRESSES]),
    ("/spec/dnsConfig", [{"searches": [text]} for text in _SEARCHES]),
    (
        "/spec/dnsConfig",
        [
            {"nameservers": ["1.1.1.1"] * 4},
            {"searches": ["a.example"] * 32},
            {"searches": ["a.example"] * 33},
            {"searches": ["a" * 225] * 9 + ["a" * 14]},
            {"searches": ["a" * 225] * 9 + ["a" * 15]},
            {"searches": ["a" * 253]},
            {"searches": ["a" * 200] * 11},
            {"searches": ["a" * 254]},
            {"options": [{"name": ""}, {"value": "x"}]},
        ],
    ),
    ("/spec/hostAliases", [[{"ip": text}] for text in _ADDRESSES]),
    ("/spec/hostAliases", [[{"ip": "1.1.1.1", "hostnames": ["", "A", "a_b", "a" * 254]}], [{}]]),
    (
        "/spec/tolerations",
        [
            [one]
            for one in (
                {},
                {"operator": "Exists"},
                {"operator": "Equal"},
                {"operator": "Exists", "value": "v"},
                {"operator": "Lt", "value": "v"},
                {"key": "a", "operator": "Gt", "value": "1"},
                {"key": "a", "operator": "Other"},
                {"key": "a", "value": "b c"},
                {"key": "a", "value": f"{LONG}!"},
                {"key": "a", "effect": "Other"},
                {"key": "a", "tolerationSeconds": 1},
                {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
                {"key": "a/b/c", "effect": "NoExecute", "tolerationSeconds": -1},
            )
        ],
    ),
    ("/spec/readinessGates", [[{"conditionType": ""}], [{"conditionType": "a"}] * 2]),
    ("/spec/schedulingGates", [[{"name": "a"}] * 2, [{"name": ""}], [{"name": "a/b/c"}] * 2]),
    ("/spec/imagePullSecrets", [[{}], [{"name": "A_b"}]]),
    (
        "/spec/topologySpreadConstraints",
        [
            [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": when, **other}]
            for when, other in (
                ("DoNotSchedule", {}),
                ("ScheduleAnyway", {"minDomains": 1}),
                ("Never", {"minDomains": 0}),
                ("DoNotSchedule", {"matchLabelKeys": ["a"]}),
                ("DoNotSchedule", {"matchLabelKeys": ["a!", ""], "labelSelector": {}}),
                ("DoNotSchedule", {"labelSelector": {"matchLabels": {"a!": "b!"}}}),
                ("DoNotSchedule", {"nodeAffinityPolicy": "None", "nodeTaintsPolicy": ""}),
            )
        ]
        + [[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}] * 3, [{}]],
    ),
    (
        "/spec/affinity/podAffinity",
        [
            {_REQUIRED: [{"topologyKey": "z", **other}]}
            for other in (
                {},
                {"topologyKey": ""},
                {"topologyKey": "a b"},
                {"matchLabelKeys": ["a"]},
                {"mismatchLabelKeys": ["a"]},
                {"labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a", "b!"]},
                {"labelSelector": {"matchLabels": {"app": "db"}}, "matchLabelKeys": ["app"]},
                {
                    "labelSelector": {
                        "matchLabels": {"app": "db"},
                        "matchExpressions": [{"key": "app", "operator": "Exists"}] * 2,
                    },
                    "matchLabelKeys": ["x", "app"],
                },
                {"namespaces": ["", "A", "a.b"]},
                {"namespaceSelector": {"matchLabels": {"": "b!"}}},
            )
        ],
    ),
    (
        "/spec/affinity/nodeAffinity",
        [
            {_REQUIRED: {}},
            {_REQUIRED: {"nodeSelectorTerms": [{}]}},
            *(
                {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}
                for one in (
                    {"key": "a", "operator": "In"},
                    {"key": "a", "operator": "NotIn", "values": ["b!", ""]},
                    {"key": "a", "operator": "Exists", "values": ["b"]},
                    {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                    {"key": "a", "operator": "Lt", "values": ["b"]},
                    {"key": "", "operator": ""},
                )
            ),
            *(
                {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [one]}]}}
                for one in (
                    {"key": "a", "operator": "In"},
                    {"key": "metadata.name", "operator": "In", "values": ["A", "b"]},
                    {"key": "metadata.name", "operator": "NotIn", "values": ["b_"]},
                    {"key": "metadata.name", "operator": "Exists"},
                )
            ),
            {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 101,
                        "preference": {
                            "matchExpressions": [{"key": "a", "operator": "In", "values": ["!"]}]
                        },
                    }
                ]
            },
        ],
    ),
    (
        "/spec/resourceClaims",
        [
            [{"name": "a"}],
            [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}],
            [{"name": "a", "resourceClaimName": "b"}] * 2,
            [{"name": "A", "resourceClaimName": "B"}],
            [{"name": "", "resourceClaimTemplateName": ""}] * 2,
            [{"name": "A", "resourceClaimName": "b"}] * 2,
        ],
    ),
    (
        "/spec/resources",
        [
            {"limits": {"cpu": "-1"}, "requests": {"cpu": "-2"}},
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "1025Mi"}},
            {"requests": {"ephemeral-storage": "1"}},
            {"requests": {"storage": "1"}},
            {"requests": {"a.example/b": "1"}},
            {"requests": {"a b": "1"}},
            {"requests": {"other": "1"}},
            {name: {"hugepages-2Mi": "4Mi"} for name in ("limits", "requests")},
            {"requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}},
            {name: {"hugepages-2Mi": "3Mi", "cpu": "1"} for name in ("limits", "requests")},
            {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "2Mi"}},
            {name: {"hugepages-x": "4Mi", "cpu": "1"} for name in ("limits", "requests")},
            {name: {"hugepages-0": "4Mi", "cpu": "1"} for name in ("limits", "requests")},
            {name: {"hugepages-2Mi": "1m", "cpu": "1"} for name in ("limits", "requests")},
            {"claims": [{"name": "a"}]},
            {"claims": [{"name": ""}]},
            {"claims": []},
            {},
        ],
    ),
    (
        "/spec/overhead",
        [
            {"cpu": "-1m"},
            {"a.example/b": "1500m"},
            {"a.example/b": "1"},
            {"other": "1"},
            {"storage": "1"},
            {"hugepages-2Mi": "2Mi"},
            {"requests.example/b": "1"},
            {"a.kubernetes.io/b": "1m"},
            {f"a.example/{'b' * 60}": "1"},
            {f"a.{'b' * 240}/c": "1"},
            {"a/b/c": "1"},
        ],
    ),
    ("/spec/os", [{}, {"name": "Linux"}, {"name": ""}, {"name": "windows"}]),
    ("/spec/hostnameOverride", ["", "a.b", "A", "a" * 64, "a" * 65, f"{'a' * 60}.{'b' * 10}"]),
    ("/spec/hostname", ["a.b", "A", "a" * 64]),
    ("/spec/subdomain", ["a.b", "A", "a" * 64]),
    ("/spec/serviceAccountName", ["A", "a.b"]),
    ("/spec/nodeName", ["A", "a.b", "a" * 254]),
    ("/spec/priorityClassName", ["A", "a.b"]),
    ("/spec/runtimeClassName", ["A", "a.b", ""]),
    ("/spec/preemptionPolicy", ["PreemptLowerPriority", "Always", ""]),
    ("/spec/activeDeadlineSeconds", [0, 1, 1 << 31, (1 << 31) - 1]),
    (
        "/spec/schedulingGroup",
        [{}, {"podGroupName": "A"}, {"podGroupName": ""}, {"podGroupName": "a"}],
    ),
    ("/spec/ephemeralContainers", [[{**_CONTAINER, "name": "debug"}]]),
    (f"{_CONTEXT}/fsGroup", [-1, 1 << 31, 0]),
    (f"{_CONTEXT}/supplementalGroups", [[-1, 1, 1 << 31]]),
    (f"{_CONTEXT}/seLinuxChangePolicy", ["MountOption", "Other", ""]),
    (f"{_CONTEXT}/supplementalGroupsPolicy", ["Other", ""]),
    (f"{_CONTEXT}/fsGroupChangePolicy", ["Other", ""]),
    (
        f"{_CONTEXT}/sysctls",
        [
            [{"name": name, "value": "1"} for name in names]
            for names in (
                *(["a"] * 2, ["A"] * 2, [""], ["a..b"], ["a.b/c-d_e"], ["-a"], ["a" * 254], ["a."]),
                *(["a" * 253], ["a.b\n"]),
            )
        ],
    ),
    (
        f"{_CONTEXT}/seccompProfile",
        [
            {},
            {"type": "Other"},
            {"type": "Localhost"},
            {"type": "Localhost", "localhostProfile": ""},
            {"type": "Localhost", "localhostProfile": "/a/.."},
            {"type": "RuntimeDefault", "localhostProfile": "a"},
            {"type": "Other", "localhostProfile": "a"},
        ],
    ),
    (
        f"{_CONTEXT}/appArmorProfile",
        [
            {},
            {"type": "Other", "localhostProfile": "a"},
            {"type": "Localhost"},
            {"type": "Localhost", "localhostProfile": ""},
            {"type": "Localhost", "localhostProfile": " "},
            {"type": "Localhost", "localhostProfile": " a"},
            {"type": "Localhost", "localhostProfile": f"/{LONG}"},
            {"type": "Unconfined", "localhostProfile": "a<"},
        ],
    ),
    (
        f"{_CONTEXT}/windowsOptions",
        [
            {"gmsaCredentialSpecName": "A_b"},
            {"gmsaCredentialSpec": ""},
            *(
                {"runAsUserName": name}
                for name in (
                    *(
                        "",
                        "a\nb",
                        "a\\b\\c",
                        "\\a",
                        "a\\",
                        ".a\\b",
                        "a.b\\c",
                        "a" * 105,
                        ". .",
                        "a?",
                    ),
                    *("a" * 16 + "\\b", "a" * 256 + "\\b", "a_b.c-d.example\\e", "a\\ .", "a:b\\c"),
                    *("\N{EURO SIGN}" * 40, "a\x7f", "a\x80b", "d-\\u", "a" * 64 + ".b\\c"),
                )
            ),
            {"hostProcess": True},
            {"hostProcess": False},
        ],
    ),
]
_TOGETHER: Final[list[dict[str, Any]]] = [  # changes of the plain pod: fields that look at others
    {"/spec/dnsPolicy": "None", "/spec/dnsConfig": {"searches": ["A"]}},
    {"/spec/dnsPolicy": "None", "/spec/dnsConfig": {"nameservers": ["a"]}},
    {"/spec/hostPID": True, "/spec/shareProcessNamespace": True},
    {"/spec/hostUsers": False, "/spec/hostPID": True, "/spec/hostIPC": True},
    {"/spec/hostUsers": False, "/spec/hostNetwork": True},
    {"/spec/hostUsers": True, "/spec/hostPID": True},
    {"/spec/hostnameOverride": "a", "/spec/setHostnameAsFQDN": True},
    {"/spec/hostnameOverride": "A", "/spec/hostNetwork": True},
    {"/spec/hostNetwork": True, f"{_MAIN}/ports": [{"containerPort": 80, "protocol": "TCP"}]},
    {"/spec/hostNetwork": True, f"{_MAIN}/ports": [{"containerPort": 1, "hostPort": 1}]},
    {
        "/spec/hostNetwork": True,
        f"{_MAIN}/ports": [{"containerPort": 80, "hostPort": 81, "protocol": "TCP"}],
    },
    {
        "/spec/hostNetwork": True,
        f"{_CONTEXT}/sysctls": [{"name": "net.a", "value": "1"}, {"name": "net/A", "value": "1"}],
    },
    {
        "/spec/hostIPC": True,
        f"{_CONTEXT}/sysctls": [
            {"name": name, "value": "1"}
            for name in ("kernel.shmmax", "kernel/sem", "kernel.msgmnb", "fs.mqueue.a", "kernel.a")
        ],
    },
    {"/spec/schedulingGates": [{"name": "a"}], "/spec/nodeName": "n"},
    *(
        {
            "/metadata/labels": {"app": "db", "a": "b!"},
            place: [
                {
                    "maxSkew": 1,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "topologyKey": "zone",
                    "labelSelector": selector,
                    field: ["other", "app", "a"],
                }
            ],
        }
        for place, fields in (
            (f"/spec/affinity/podAffinity/{_REQUIRED}", ("matchLabelKeys", "mismatchLabelKeys")),
            ("/spec/topologySpreadConstraints", ("matchLabelKeys",)),
        )
        for field in fields
        for selector in (
            {},
            {"matchLabels": {"app": "db"}},
            {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        )
    ),
    {"/metadata/annotations": {"kubernetes.io/config.mirror": "x"}},
    {"/metadata/annotations": {"kubernetes.io/config.mirror": "x"}, "/spec/nodeName": "n"},
    {
        "/metadata/annotations": {"kubernetes.io/config.mirror": "x"},
        "/spec/nodeName": "n",
        "/spec/resourceClaims": [{"name": "A"}, {"name": "b"}],
    },
    *(
        {"/metadata/annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}
        for cost in _COSTS
    ),
    *(
        {"/metadata/annotations": {"scheduler.alpha.kubernetes.io/tolerations": text}}
        for text in ("", "[]", "null", '[{"key":"a","operator":"Other"}]', '[{"operator":"Lt"}]')
    ),
    *(
        {"/metadata/annotations": {"seccomp.security.alpha.kubernetes.io/pod": text}}
        for text in ("runtime/default", "docker/default", "unconfined", "localhost/a", "x", "")
    ),
    *(
        {"/metadata/annotations": {"container.seccomp.security.alpha.kubernetes.io/main": text}}
        for text in ("localhost//a/..", "localhost/..", "y")
    ),
    *(
        {"/metadata/annotations": {f"container.apparmor.security.beta.kubernetes.io/{name}": text}}
        for name, text in (
            *(("main", ""), ("main", "runtime/default"), ("main", "localhost/p"), ("main", "x")),
            *(("other", "unconfined"), ("other", "x")),
        )
    ),
    *(
        {
            "/metadata/annotations": {"seccomp.security.alpha.kubernetes.io/pod": text},
            f"{_CONTEXT}/seccompProfile": profile,
        }
        for text in ("runtime/default", "docker/default", "unconfined", "localhost/a")
        for profile in (
            _PROFILE,
            {"type": "Unconfined"},
            {"type": "Localhost", "localhostProfile": "a"},
            {"type": "Localhost", "localhostProfile": "b"},
            {"type": "Localhost"},
        )
    ),
    *(
        {
            "/metadata/annotations": {
                "container.seccomp.security.alpha.kubernetes.io/main": text,
                "container.apparmor.security.beta.kubernetes.io/main": text,
            },
            place: {field: profile},
        }
        for text in ("runtime/default", "unconfined", "localhost/a")
        for profile in (
            _PROFILE,
            {"type": "Unconfined"},
            {"type": "Localhost", "localhostProfile": "b"},
        )
        for place in (f"{_MAIN}/securityContext", _CONTEXT)
        for field in ("seccompProfile", "appArmorProfile")
    ),
    *(
        {
            "/spec/resources": {which: {name: "1", **more}},
            f"{_MAIN}/resources": {which: {name: "2"}},
        }
        for which in ("limits", "requests")
        for name, more in (("cpu", {}), ("memory", {}))
    ),
    {
        "/spec/resources": {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}},
        f"{_MAIN}/resources": {
            "limits": {"cpu": "1", "hugepages-2Mi": "4Mi"},
            "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"},
        },
    },
    {
        "/spec/resources": {"requests": {"cpu": "1500m"}},
        "/spec/containers/1": {
            **_CONTAINER,
            "name": "two",
            "resources": {"requests": {"cpu": "1"}},
        },
        f"{_MAIN}/resources": {"requests": {"cpu": "600m"}},
    },
    {
        "/spec/resources": {"requests": {"cpu": "1"}},
        "/spec/initContainers": [
            {
                **_CONTAINER,
                "name": "side",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "1"}},
            },
            {**_CONTAINER, "name": "first", "resources": {"requests": {"cpu": "600m"}}},
        ],
        f"{_MAIN}/resources": {"requests": {"cpu": "500m"}},
    },
    {
        "/spec/hostUsers": False,
        "/spec/volumes/0": {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        f"{_MAIN}/volumeDevices": [{"name": "data", "devicePath": "/dev/x"}],
    },
    {
        "/spec/os": {"name": "linux"},
        f"{_CONTEXT}/windowsOptions": {"runAsUserName": "a"},
        f"{_MAIN}/securityContext": {"windowsOptions": {"runAsUserName": "a"}},
    },
    *(
        {
            f"{_CONTEXT}/windowsOptions": {"hostProcess": of_pod},
            f"{_MAIN}/securityContext": {"windowsOptions": {"hostProcess": of_container}},
            "/spec/hostNetwork": network,
        }
        for of_pod in (True, False)
        for of_container in (True, False)
        for network in (True, False)
    ),
    {
        f"{_MAIN}/securityContext": {"windowsOptions": {"hostProcess": True}},
        "/spec/containers/1": {**_CONTAINER, "name": "two"},
    },
]
_ON_WINDOWS: Final[list[dict[str, Any]]] = [
    *({f"{_CONTEXT}/{name}": value} for name, value in _SPEC["securityContext"].items()),
    {_CONTEXT: _SPEC["securityContext"]},
    {"/spec/hostUsers": True},
    {"/spec/hostPID": True},
    {"/spec/hostIPC": True},
    {"/spec/hostNetwork": True},
    {"/spec/shareProcessNamespace": False},
    {"/spec/resources": {"limits": {"x": "-1"}}},
    {
        f"{_MAIN}/securityContext": {
            "appArmorProfile": _PROFILE,
            "seLinuxOptions": {},
            "seccompProfile": _PROFILE,
            "capabilities": {},
            "readOnlyRootFilesystem": False,
            "privileged": False,
            "allowPrivilegeEscalation": True,
            "procMount": "Default",
            "runAsUser": 1,
            "runAsGroup": 1,
        }
    },
    {"/spec/initContainers": [{**_CONTAINER, "name": "i", "securityContext": {"runAsUser": 1}}]},
]


_KEYS: Final = {
    "topologyKey": "zone",
    "labelSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    "matchLabelKeys": ["app", "other"],
}
_BUNDLE: Final = {"clusterTrustBundle": {"name": "n", "path": "p"}}
_CERTIFICATE: Final = {
    "podCertificate": {"signerName": "a.example/b", "keyType": "ED25519", "keyPath": "key"}
}
PREPARED: Final[
    list[dict[str, Any]]
] = [  # changes of the plain pod that an API server changes more
    {"/metadata/labels": {"app": "db"}, "/spec/affinity": affinity}
    for affinity in (
        {"podAffinity": {_REQUIRED: [{**_KEYS, "mismatchLabelKeys": ["other"]}]}},
        {"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _KEYS}]}},
        {"podAntiAffinity": {_REQUIRED: [{**_KEYS, "labelSelector": {}}]}},
        {"podAntiAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _KEYS}]}},
    )
]
PREPARED += [
    {
        "/metadata/labels": {"app": "db"},
        "/spec/topologySpreadConstraints": [
            {**_KEYS, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        ],
    },
    {"/spec/schedulingGroup": {"podGroupName": "a"}},
    {
        "/spec/volumes/0": {
            "name": "data",
            "projected": {"defaultMode": 0, "sources": [_BUNDLE, _CERTIFICATE]},
        }
    },
    *(
        {
            "/metadata/annotations": {"container.apparmor.security.beta.kubernetes.io/main": told},
            **more,
        }
        for told in ("runtime/default", "unconfined", "localhost/p", "localhost/", "localhost/ p")
        for more in (
            {},
            {f"{_CONTEXT}/appArmorProfile": _PROFILE},
            {"/spec/os": {"name": "windows"}},
            {f"{_MAIN}/securityContext": {"runAsUser": 1}},
        )
    ),
]


def cases() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Base and changes of each case."""
    for base in BASES:
        yield base, {}
    for field, value in METADATA.items():
        if field not in ("namespace",):
            yield from (("rich", change) for change in breakings(value, f"/metadata/{field}"))
    for field, value in _SPEC.items():
        yield from (("rich", change) for change in breakings(value, f"/spec/{field}"))
    for place, values in _VALUES:
        yield from (("plain", {place: value}) for value in values)
    yield from (("plain", changes) for changes in _TOGETHER)
    options = breakings(_WINDOWS_OPTIONS, f"{_CONTEXT}/windowsOptions")
    yield from (("windows", change) for change in options)
    yield from (("windows", changes) for changes in _ON_WINDOWS)
