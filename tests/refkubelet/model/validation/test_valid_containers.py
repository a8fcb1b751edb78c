"""What is complained about in containers, except for environments, probes and hooks (SRC-037)."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_reading import container_problems, problems

PORTS = "must be between 1 and 65535, inclusive"
IDS = "must be between 0 and 2147483647, inclusive"
HIGHEST = 2**31 - 1


def spec_of(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "x:1", **c} for c in containers], **more}


def test_a_pod_has_containers_with_names_SRC_037() -> None:
    assert problems({"containers": []}) == ["spec.containers: Required value"]
    label = "must be a lowercase RFC 1123 label: a-z, 0-9 and '-', at most 63 characters"
    named = [{"name": name, "image": "x:1"} for name in ("", "A", "b", "b")]
    init = [{"name": "b", "image": "x:1"}]
    assert problems({"containers": named, "initContainers": init}) == [
        "spec.containers[0].name: Required value",
        f'spec.containers[1].name: Invalid value: "A": {label}',
        'spec.containers[3].name: Duplicate value: "b"',
        'spec.initContainers[0].name: Duplicate value: "b"',
    ]


def test_an_image_has_no_space_around_it_SRC_037() -> None:
    images = {"a": "", "b": " x", "c": "x "}
    named = [{"name": name, "image": image} for name, image in images.items()]
    found = problems({"containers": named})
    why = "must not have leading or trailing whitespace"
    assert found == [
        "spec.containers[0].image: Required value",
        f'spec.containers[1].image: Invalid value: " x": {why}',
        f'spec.containers[2].image: Invalid value: "x ": {why}',
    ]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("imagePullPolicy", ("Always", "IfNotPresent", "Never")),
        ("terminationMessagePolicy", ("File", "FallbackToLogsOnError")),
        ("restartPolicy", ("Always", "OnFailure", "Never")),
    ],
)
def test_policies_have_words_SRC_037(field: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert container_problems(**{field: word}) == []
    assert container_problems(**{field: "always"}) == [
        f'{field}: Unsupported value: "always": supported values: '
        + ", ".join(f'"{word}"' for word in words)
    ]


def test_ports_SRC_037() -> None:
    ports = [
        {"containerPort": 1, "hostPort": 0, "protocol": "TCP", "name": "a"},
        {"containerPort": 65535, "hostPort": 1, "protocol": "UDP", "name": "b"},
        {"containerPort": 2, "hostPort": 65535, "protocol": "SCTP"},
        {"containerPort": 0, "hostPort": -1, "protocol": "ICMP"},
        {"containerPort": 65536, "hostPort": 65536},
        {"containerPort": 3, "name": "a"},
        {"containerPort": 4, "name": "9"},
    ]
    assert container_problems(ports=ports) == [
        f"ports[3].containerPort: Invalid value: 0: {PORTS}",
        f"ports[3].hostPort: Invalid value: -1: {PORTS}",
        'ports[3].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"',
        f"ports[4].containerPort: Invalid value: 65536: {PORTS}",
        f"ports[4].hostPort: Invalid value: 65536: {PORTS}",
        'ports[5].name: Duplicate value: "a"',
        'ports[6].name: Invalid value: "9": must contain at least one letter (a-z)',
    ]


def test_a_host_port_is_taken_once_SRC_037() -> None:
    first = {"ports": [
        {"containerPort": 1},
        {"containerPort": 80, "hostPort": 80},
        {"containerPort": 80, "hostPort": 80, "protocol": "UDP"},
        {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"},
    ]}  # fmt: skip
    second = {"name": "d", "ports": [
        {"containerPort": 81, "hostPort": 80, "protocol": "TCP"},
        {"containerPort": 80, "hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"},
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP", "hostIP": "10.0.0.1"},
    ]}  # fmt: skip
    init = {"name": "i", "image": "x:1", "ports": [{"containerPort": 80, "hostPort": 80}]}
    field = "spec.containers[1].ports"
    twice = [
        f'{field}[0].hostPort: Duplicate value: "TCP//80"',
        f'{field}[2].hostPort: Duplicate value: "TCP/10.0.0.1/80"',
    ]
    assert problems(spec_of(first, second, initContainers=[init])) == twice
    why = "must match `containerPort` when `hostNetwork` is true"
    assert problems(spec_of(first, second, hostNetwork=True)) == [
        f"{field}[0].hostPort: Invalid value: 80: {why}",
        *twice,
    ]


VOLUMES = [
    {"name": "v", "emptyDir": {}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "a"}},
    {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
]


def of_mounts(*mounts: dict[str, Any], **fields: Any) -> list[str]:
    found = problems(spec_of({"volumeMounts": list(mounts), **fields}, volumes=VOLUMES))
    return [problem.removeprefix("spec.containers[0].") for problem in found]


def test_mounts_have_a_volume_and_a_path_SRC_037() -> None:
    assert of_mounts(
        {"name": "v", "mountPath": "/a"},
        {"name": "w", "mountPath": "/b"},
        {"name": "v", "mountPath": ""},
        {"name": "v", "mountPath": "/a"},
    ) == [
        'volumeMounts[1].name: Not found: "w"',
        "volumeMounts[2].mountPath: Required value",
        'volumeMounts[3].mountPath: Invalid value: "/a": must be unique',
    ]


def test_parts_of_volumes_are_below_them_SRC_037_NODE_204() -> None:
    mounts = [
        {"subPath": "a/b..c"},
        {"subPathExpr": "$(A)/b"},
        {"subPath": "a", "subPathExpr": "b"},
        {"subPath": "/a/.."},
        {"subPathExpr": "/$(A)/../b"},
    ]
    mounts = [{"name": "v", "mountPath": f"/{i}", **mount} for i, mount in enumerate(mounts)]
    assert of_mounts(*mounts) == [
        'volumeMounts[2].subPathExpr: Invalid value: "b": '
        "subPathExpr and subPath are mutually exclusive",
        'volumeMounts.subPath: Invalid value: "/a/..": must be a relative path',
        "volumeMounts.subPath: Invalid value: \"/a/..\": must not contain '..'",
        'volumeMounts.subPathExpr: Invalid value: "/$(A)/../b": must be a relative path',
        "volumeMounts.subPathExpr: Invalid value: \"/$(A)/../b\": must not contain '..'",
    ]


PRIVILEGED = (
    "volumeMounts.mountPropagation: Forbidden: "
    "Bidirectional mount propagation is available only to privileged containers"
)


@pytest.mark.parametrize(
    ("mount", "privileged", "wanted"),
    [
        ({"mountPropagation": "None"}, None, []),
        ({"mountPropagation": "HostToContainer"}, None, []),
        ({"mountPropagation": "Bidirectional"}, True, []),
        ({"mountPropagation": "Bidirectional"}, False, [PRIVILEGED]),
        ({"mountPropagation": "Bidirectional"}, None, [PRIVILEGED]),
        ({"mountPropagation": "x"}, None, [
            'volumeMounts.mountPropagation: Unsupported value: "x": '
            'supported values: "Bidirectional", "HostToContainer", "None"'
        ]),
        ({"recursiveReadOnly": "Disabled"}, None, []),
        ({"recursiveReadOnly": "Enabled", "readOnly": True}, None, []),
        ({"recursiveReadOnly": "IfPossible", "readOnly": True, "mountPropagation": "None"},
         None, []),
        ({"recursiveReadOnly": "x"}, None, [
            'volumeMounts.recursiveReadOnly: Unsupported value: "x": '
            'supported values: "Disabled", "Enabled", "IfPossible"'
        ]),
        *(
            ({"recursiveReadOnly": word, "mountPropagation": "HostToContainer"}, None, [
                "volumeMounts.recursiveReadOnly: Forbidden: "
                "may only be specified when readOnly is true",
                "volumeMounts.recursiveReadOnly: Forbidden: "
                "may only be specified when mountPropagation is None or not specified",
            ])
            for word in ("Enabled", "IfPossible")
        ),
    ],
)  # fmt: skip
def test_how_mounts_are_seen_SRC_037(
    mount: dict[str, Any], privileged: bool | None, wanted: list[str]
) -> None:
    context = {} if privileged is None else {"securityContext": {"privileged": privileged}}
    assert of_mounts({"name": "v", "mountPath": "/a", **mount}, **context) == wanted


def test_block_devices_SRC_037() -> None:
    devices = [
        {"name": "claim", "devicePath": "/dev/a"},
        {"name": "own", "devicePath": "/dev/b..c"},
        {"name": "", "devicePath": ""},
        {"name": "v", "devicePath": "/dev/c"},
        {"name": "claim", "devicePath": "/dev/a"},
        {"name": "own", "devicePath": "/dev/../d"},
    ]
    steps = "can not contain backsteps ('..')"
    assert of_mounts(volumeDevices=devices) == [
        "volumeDevices[2].name: Required value",
        "volumeDevices[2].devicePath: Required value",
        'volumeDevices[2].name: Not found: ""',
        'volumeDevices[3].name: Invalid value: "v": '
        "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
        'volumeDevices[4].name: Invalid value: "claim": must be unique',
        'volumeDevices[4].devicePath: Invalid value: "/dev/a": must be unique',
        'volumeDevices[5].name: Invalid value: "own": must be unique',
        f'volumeDevices[5].devicePath: Invalid value: "/dev/../d": {steps}',
    ]


def test_a_volume_is_a_device_or_mounted_SRC_037() -> None:
    device = {"name": "claim", "devicePath": "/a"}
    assert of_mounts({"name": "claim", "mountPath": "/a"}, volumeDevices=[device]) == [
        'volumeMounts[0].name: Invalid value: "claim": must not already exist in volumeDevices',
        'volumeMounts[0].mountPath: Invalid value: "/a": '
        "must not already exist as a path in volumeDevices",
        'volumeDevices[0].name: Invalid value: "claim": must not already exist in volumeMounts',
        'volumeDevices[0].devicePath: Invalid value: "/a": '
        "must not already exist as a path in volumeMounts",
    ]
    other = {"name": "own", "mountPath": "/b"}
    assert of_mounts(other, volumeDevices=[device]) == []


def of_security(hosts_users: bool | None = None, **context: Any) -> list[str]:
    found = problems(spec_of({"securityContext": context}, hostUsers=hosts_users))
    return [problem.removeprefix("spec.containers[0].securityContext") for problem in found]


def test_users_and_groups_of_containers_SRC_037() -> None:
    assert of_security(runAsUser=0, runAsGroup=HIGHEST) == []
    assert of_security(runAsUser=-1, runAsGroup=HIGHEST + 1) == [
        f".runAsUser: Invalid value: -1: {IDS}",
        f".runAsGroup: Invalid value: {HIGHEST + 1}: {IDS}",
    ]


def test_procfs_of_containers_SRC_037() -> None:
    assert of_security(procMount="Default") == of_security(False, procMount="Unmasked") == []
    for shared in (True, None):
        assert of_security(shared, procMount="Unmasked") == [
            '.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'
        ]
    assert of_security(procMount="x") == [
        '.procMount: Unsupported value: "x": supported values: "Default", "Unmasked"'
    ]


def test_privileges_are_kept_or_not_SRC_037() -> None:
    cannot = ": Invalid value: cannot set `allowPrivilegeEscalation` to false and"
    admin = {"privileged": True, "capabilities": {"add": ["NET_RAW", "CAP_SYS_ADMIN"]}}
    assert of_security(**admin) == of_security(allowPrivilegeEscalation=True, **admin) == []
    assert of_security(allowPrivilegeEscalation=False, **admin) == [
        f"{cannot} `privileged` to true",
        f"{cannot} `capabilities.Add` CAP_SYS_ADMIN",
    ]
    for less in ({}, {"capabilities": {}}, {"capabilities": {"add": ["SYS_ADMIN"]}}):
        assert of_security(allowPrivilegeEscalation=False, **less) == []


def test_policies_of_resizes_SRC_037() -> None:
    policies = [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
        {"resourceName": "disk", "restartPolicy": "Never"},
    ]
    assert container_problems(resizePolicy=policies) == [
        'resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
        'resizePolicy: Unsupported value: "Never": '
        'supported values: "NotRequired", "RestartContainer"',
    ]


def rule(**fields: Any) -> dict[str, Any]:
    return {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}, **fields}


def test_restart_rules_SRC_037() -> None:
    rules = [
        rule(),
        rule(action="RestartAllContainers", exitCodes={"operator": "NotIn", "values": [0] * 255}),
        rule(action="Die", exitCodes=None),
        rule(exitCodes={"operator": "Is", "values": [0] * 256}),
        rule(exitCodes={"operator": "In"}),
    ]
    found = container_problems(restartPolicy="Never", restartPolicyRules=rules)
    assert found == [
        'restartPolicyRules[2].action: Unsupported value: "Die": '
        'supported values: "Restart", "RestartAllContainers"',
        "restartPolicyRules[2].exitCodes: Required value: must be specified",
        'restartPolicyRules[3].exitCodes.operator: Unsupported value: "Is": '
        'supported values: "In", "NotIn"',
        "restartPolicyRules[3].exitCodes.values: Too many: 256: must have at most 255 items",
    ]


def test_a_container_has_twenty_restart_rules_SRC_037() -> None:
    assert container_problems(restartPolicy="Never", restartPolicyRules=[rule()] * 20) == []
    assert container_problems(restartPolicy="Never", restartPolicyRules=[rule()] * 21) == [
        "restartPolicyRules: Too many: 21: must have at most 20 items"
    ]


def test_restart_rules_need_a_policy_SRC_037() -> None:
    why = "restartPolicy: Required value: must specify restartPolicy when restart rules are used"
    action = (
        'restartPolicyRules[0].action: Unsupported value: "Die": '
        'supported values: "Restart", "RestartAllContainers"'
    )
    rules = {"restartPolicyRules": [rule(action="Die")]}
    init = {"name": "i", "image": "x:1", **rules}
    assert container_problems(**rules) == [why, action]
    assert problems(spec_of({}, initContainers=[init])) == [f"spec.initContainers[0].{why}"]
    init["restartPolicy"] = "Always"
    assert problems(spec_of({}, initContainers=[init])) == [f"spec.initContainers[0].{action}"]


def test_claims_and_amounts_of_containers_SRC_037() -> None:
    resources = {"limits": {"cpu": "-1"}, "claims": [{"name": "b"}]}
    spec = spec_of({"resources": resources}, resourceClaims=[{"name": "a"}])
    assert problems(spec) == [
        'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": '
        "must be greater than or equal to 0",
        'spec.containers[0].resources.claims[0]: Not found: "b": '
        "must be one of the names in pod.spec.resourceClaims: a",
    ]
