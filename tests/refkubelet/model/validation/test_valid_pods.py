"""What is complained about in a pod's metadata and in its spec as a whole (SRC-037)."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_reading import problems

LABEL = "must be a lowercase RFC 1123 label: a-z, 0-9 and '-', at most 63 characters"
SUBDOMAIN = "must be a lowercase RFC 1123 subdomain: a-z, 0-9, '-' and '.'"
NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
IDS = "must be between 0 and 2147483647, inclusive"
HIGHEST = 2**31 - 1


def of_spec(**spec: Any) -> list[str]:
    """The problems of a spec, without its place, which each must name."""
    found = problems(spec)
    assert all(problem.startswith("spec.") for problem in found)
    return [problem.removeprefix("spec.") for problem in found]


def of_meta(**metadata: Any) -> list[str]:
    found = problems(None, **metadata)
    assert all(problem.startswith("metadata.") for problem in found)
    return [problem.removeprefix("metadata.") for problem in found]


def test_names_and_namespaces_of_pods_SRC_037() -> None:
    assert of_meta(name="a.b", namespace="a-b") == []
    assert of_meta(name="") == ["name: Required value"]
    assert of_meta(name="A", namespace="a.b", generateName="-a-") == [
        f'name: Invalid value: "A": {SUBDOMAIN}',
        f'namespace: Invalid value: "a.b": {LABEL}',
        f'generateName: Invalid value: "-a": {SUBDOMAIN}',
    ]
    assert of_meta(generateName="a-") == of_meta(generateName="a.b-") == []


def test_labels_and_annotations_of_pods_SRC_037() -> None:
    assert of_meta(labels={"a": "B"}, annotations={"A.b/c": "any text\n", "A": None}) == []
    assert of_meta(labels={"A/b": "c d"}, annotations={"A B": "", "-C/d": ""}) == [
        f'labels: Invalid value: "A/b": prefix part {SUBDOMAIN}',
        f'labels: Invalid value: "c d": {VALUE}',
        f'annotations: Invalid value: "a b": {NAME}',
        f'annotations: Invalid value: "-c/d": prefix part {SUBDOMAIN}',
    ]


def test_annotations_are_measured_in_bytes_SRC_037() -> None:
    most = 256 * 1024
    assert of_meta(annotations={"a": "é" * (most // 2 - 1), "b": ""}) == []
    for more in ({"a": "é" * (most // 2)}, {"a": "x" * (most - 3), "b": "", "c": "y"}):
        assert of_meta(annotations=more) == [
            "annotations: Too long: may not be more than 262144 bytes"
        ]


def test_finalizers_and_owners_of_pods_SRC_037() -> None:
    known = ["orphan", "foregroundDeletion", "kubernetes", "a.b/c"]
    owner = {"apiVersion": "v1", "kind": "Job", "name": "a", "uid": "b"}
    assert of_meta(generation=0, finalizers=known, ownerReferences=[owner]) == []
    nobody = dict.fromkeys(owner, "")
    assert of_meta(generation=-1, finalizers=["orphan", "b", "/"], ownerReferences=[nobody]) == [
        "generation: Invalid value: -1: must be greater than or equal to 0",
        'finalizers[1]: Invalid value: "b": '
        "name is neither a standard finalizer name nor is it fully qualified",
        f'finalizers: Invalid value: "/": prefix part {SUBDOMAIN}',
        *(f'ownerReferences.{name}: Invalid value: "": must not be empty' for name in owner),
    ]


def listed(*words: str) -> str:
    return ", ".join(f'"{word}"' for word in words)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("restartPolicy", ("Always", "OnFailure", "Never")),
        ("dnsPolicy", ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")),
        ("preemptionPolicy", ("PreemptLowerPriority", "Never")),
        ("os", ("linux", "windows")),
    ],
)
def test_words_of_pods_SRC_037(field: str, words: tuple[str, ...]) -> None:
    def found(word: str) -> list[str]:
        config = {"dnsConfig": {"nameservers": ["1.1.1.1"]}}
        return of_spec(**config, **{field: {"name": word} if field == "os" else word})

    assert [found(word) for word in words] == [[]] * len(words)
    assert found("x") == [f'{field}: Unsupported value: "x": supported values: {listed(*words)}']


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("terminationGracePeriodSeconds", 0, ""),
        ("terminationGracePeriodSeconds", -1, "must be greater than or equal to 0"),
        ("activeDeadlineSeconds", 1, ""),
        ("activeDeadlineSeconds", HIGHEST, ""),
        ("activeDeadlineSeconds", 0, f"must be between 1 and {HIGHEST}, inclusive"),
        ("activeDeadlineSeconds", HIGHEST + 1, f"must be between 1 and {HIGHEST}, inclusive"),
    ],
)
def test_times_of_pods_SRC_037(field: str, value: int, why: str) -> None:
    assert of_spec(**{field: value}) == ([f"{field}: Invalid value: {value}: {why}"] if why else [])


@pytest.mark.parametrize(
    ("field", "shown", "valid", "wrong", "why"),
    [
        ("hostname", "hostname", "a", "a.b", LABEL),
        ("subdomain", "subdomain", "a", "a.b", LABEL),
        ("nodeName", "nodeName", "a.b", "A", SUBDOMAIN),
        ("serviceAccountName", "serviceAccountName", "a.b", "A", SUBDOMAIN),
        ("serviceAccount", "serviceAccountName", "a.b", "A", SUBDOMAIN),
        ("priorityClassName", "priorityClassName", "a.b", "A", SUBDOMAIN),
        ("runtimeClassName", "runtimeClassName", "a.b", "A", SUBDOMAIN),
        ("hostnameOverride", "hostnameOverride", "a.b", "A", SUBDOMAIN),
        ("hostnameOverride", "hostnameOverride", "a" * 64, "", "must not be empty"),
    ],
)
def test_names_in_specs_SRC_037(field: str, shown: str, valid: str, wrong: str, why: str) -> None:
    assert of_spec(**{field: valid}) == []
    assert of_spec(**{field: wrong}) == [f'{shown}: Invalid value: "{wrong}": {why}']


def test_volumes_have_names_SRC_037() -> None:
    named = [{"name": name, "emptyDir": {}} for name in ("a", "", "A", "a")]
    assert of_spec(volumes=named) == [
        "volumes[1].name: Required value",
        f'volumes[2].name: Invalid value: "A": {LABEL}',
        'volumes[3].name: Duplicate value: "a"',
    ]


def test_an_overridden_host_name_is_the_only_one_SRC_037() -> None:
    also = {"setHostnameAsFQDN": True, "hostNetwork": True}
    assert of_spec(**also) == []
    assert of_spec(hostnameOverride="a" * 65, **also) == [
        "hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
        "hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
        "hostnameOverride: Too long: may not be more than 64 bytes",
    ]


def test_what_a_new_pod_may_not_have_SRC_037() -> None:
    assert of_spec(ephemeralContainers=[], schedulingGates=[]) == []
    assert of_spec(ephemeralContainers=[{"name": "e"}], schedulingGates=[{"name": "g"}]) == [
        "ephemeralContainers: Forbidden: cannot be set on create",
        "nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ]


def test_selectors_and_gates_SRC_037() -> None:
    assert of_spec(nodeSelector={"a": "b"}, readinessGates=[{"conditionType": "a.b/c"}]) == []
    gates = [{"conditionType": "a"}, {"conditionType": "a b"}]
    assert of_spec(nodeSelector={"a b": "c d"}, readinessGates=gates) == [
        f'nodeSelector: Invalid value: "a b": {NAME}',
        f'nodeSelector: Invalid value: "c d": {VALUE}',
        f'readinessGates[1].conditionType: Invalid value: "a b": {NAME}',
    ]


@pytest.mark.parametrize(
    ("toleration", "wanted"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "a"}, []),
        ({"key": "a", "value": "b", "effect": "NoSchedule"}, []),
        ({"key": "a", "operator": "Equal", "value": "b", "effect": "PreferNoSchedule"}, []),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}, []),
        ({"key": "a b"}, [f'key: Invalid value: "a b": {NAME}']),
        ({}, ['operator: Invalid value: "": operator must be Exists when `key` is empty']),
        ({"operator": "Equal"}, [
            'operator: Invalid value: "Equal": operator must be Exists when `key` is empty'
        ]),
        ({"key": "a", "tolerationSeconds": 5}, [
            "effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` "
            "is set"
        ]),
        ({"key": "a", "tolerationSeconds": 5, "effect": "NoSchedule"}, [
            "effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set"
        ]),
        ({"key": "a", "value": "b c"}, [f'operator: Invalid value: "b c": {VALUE}']),
        ({"key": "a", "operator": "Equal", "value": "b c"}, [
            f'operator: Invalid value: "b c": {VALUE}'
        ]),
        ({"key": "a", "operator": "Exists", "value": "b c"}, [
            "operator: Invalid value: \"b c\": value must be empty when `operator` is 'Exists'"
        ]),
        ({"key": "a", "operator": "In", "value": "b c", "effect": "x"}, [
            'operator: Unsupported value: "In": supported values: "Equal", "Exists"',
            'effect: Unsupported value: "x": '
            'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ]),
    ],
)  # fmt: skip
def test_tolerations_SRC_037(toleration: dict[str, Any], wanted: list[str]) -> None:
    found = of_spec(tolerations=[{"operator": "Exists"}, toleration])
    assert found == [f"tolerations[1].{problem}" for problem in wanted]


SERVERS = ["1.1.1.1", "8.8.8.8", "::1"]
DOMAIN = "must be a domain, of a-z, 0-9, '_', '-' and '.'"


def of_dns(policy: str = "Default", **config: Any) -> list[str]:
    found = of_spec(dnsPolicy=policy, dnsConfig=config)
    return [problem.removeprefix("dnsConfig.") for problem in found]


def test_dns_without_a_policy_needs_a_server_SRC_037() -> None:
    assert of_spec(dnsPolicy="None") == [
        "dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"
    ]
    assert (
        of_dns("None")
        == of_dns("None", nameservers=[])
        == [
            "nameservers: Required value: "
            "must provide at least one DNS nameserver when `dnsPolicy` is None"
        ]
    )
    assert of_dns("None", nameservers=SERVERS[:1]) == []
    assert of_spec(dnsPolicy="Default") == of_dns("Default") == []


def test_servers_and_options_of_dns_SRC_037() -> None:
    assert of_dns(nameservers=SERVERS, options=[{"name": "a"}, {"name": "b", "value": "c"}]) == []
    assert of_dns(nameservers=[*SERVERS, "x"], options=[{"name": "a"}, {"value": "c"}]) == [
        'nameservers: Invalid value: ["1.1.1.1","8.8.8.8","::1","x"]: '
        "must not have more than 3 nameservers",
        'nameservers[3]: Invalid value: "x": '
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        "options[1]: Required value: must not be empty",
    ]


def test_searches_of_dns_SRC_037() -> None:
    assert of_dns(searches=["a.b.", ".", "_a._b", "0", "a" * 253 + "."]) == []
    for wrong in ("", "..", "a..b", "A", "-a", "a" * 254, "a b"):
        assert of_dns(searches=["a", wrong]) == [f'searches[1]: Invalid value: "{wrong}": {DOMAIN}']


def test_searches_of_dns_are_limited_SRC_037() -> None:
    def shown(searches: list[str]) -> str:
        return "[" + ",".join(f'"{search}"' for search in searches) + "]"

    assert of_dns(searches=["a"] * 32) == []
    many = ["a"] * 33
    assert of_dns(searches=many) == [
        f"searches: Invalid value: {shown(many)}: must not have more than 32 search paths"
    ]
    long = ["a" * 227] * 8 + ["b" * 224]
    assert of_dns(searches=long) == []
    long[-1] += "b"
    assert of_dns(searches=long) == [
        f"searches: Invalid value: {shown(long)}: "
        "must not have more than 2048 characters (including spaces) in the search list"
    ]


def test_aliases_of_hosts_SRC_037() -> None:
    aliases = [{"ip": "1.2.3.4", "hostnames": ["a.b"]}, {"ip": "x", "hostnames": ["a", "", "B"]}]
    assert of_spec(hostAliases=aliases) == [
        'hostAliases[1].ip: Invalid value: "x": '
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        'hostAliases[1].hostnames[1]: Invalid value: "": must not be empty',
        f'hostAliases[1].hostnames[2]: Invalid value: "B": {SUBDOMAIN}',
    ]
    assert of_spec(hostAliases=[{"ip": "::1"}]) == []


def test_namespaces_of_pods_SRC_037() -> None:
    hosts = {"hostNetwork": True, "hostPID": True, "hostIPC": True}
    assert of_spec(hostUsers=True, **hosts) == of_spec(**hosts) == of_spec(hostUsers=False) == []
    assert of_spec(hostUsers=False, **hosts) == [
        f"{name}: Forbidden: when `hostUsers` is false"
        for name in ("hostNetwork", "HostPID", "HostIPC")
    ]
    assert of_spec(shareProcessNamespace=True) == []
    assert of_spec(shareProcessNamespace=True, hostPID=True) == [
        "securityContext.shareProcessNamespace: Invalid value: true: "
        "ShareProcessNamespace and HostPID cannot both be enabled"
    ]


def of_security(**context: Any) -> list[str]:
    found = of_spec(securityContext=context)
    return [problem.removeprefix("securityContext.") for problem in found]


def test_users_and_groups_of_pods_SRC_037() -> None:
    ids = {"runAsUser": 0, "runAsGroup": HIGHEST, "fsGroup": 1}
    assert of_security(**ids, supplementalGroups=[0, HIGHEST]) == []
    wrong = dict.fromkeys(ids, -1)
    assert of_security(**wrong, supplementalGroups=[0, -1, HIGHEST + 1]) == [
        *(f"{name}: Invalid value: -1: {IDS}" for name in ids),
        f"supplementalGroups[1]: Invalid value: -1: {IDS}",
        f"supplementalGroups[2]: Invalid value: {HIGHEST + 1}: {IDS}",
    ]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("seLinuxChangePolicy", ("Recursive",)),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ],
)
def test_policies_of_pods_SRC_037(field: str, words: tuple[str, ...]) -> None:
    assert [of_security(**{field: word}) for word in words] == [[]] * len(words)
    assert of_security(**{field: "x"}) == [
        f'{field}: Unsupported value: "x": supported values: {listed(*words)}'
    ]


def test_names_of_sysctls_SRC_037() -> None:
    def found(*names: str) -> list[str]:
        return of_security(sysctls=[{"name": name, "value": "1"} for name in names])

    assert found("a", "net.ipv4/b_c-d", "0", "a" * 253) == []
    wrong = ("a" * 254, "A", ".a", "a.", "-a")
    assert found("a", *wrong, "", "a") == [
        *(
            f'sysctls[{i}].name: Invalid value: "{name}": must be the name of a sysctl'
            for i, name in enumerate(wrong, 1)
        ),
        "sysctls[6].name: Required value",
        'sysctls[7].name: Duplicate value: "a"',
    ]


@pytest.mark.parametrize(
    ("field", "what"), [("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")]
)
def test_profiles_SRC_037(field: str, what: str) -> None:
    def found(**profile: Any) -> list[str]:
        return of_security(**{field: profile})

    only = f'{field}.localhostProfile: Invalid value: "a": '
    only += f"can only be set when {what} type is Localhost"
    assert found(type="RuntimeDefault") == found(type="Unconfined") == []
    assert found(type="Localhost", localhostProfile="a") == []
    for empty in (None, ""):
        assert found(type="Localhost", localhostProfile=empty) == [
            f"{field}.localhostProfile: Required value: must be set when {what} type is Localhost"
        ]
    assert found(type="Unconfined", localhostProfile="a") == [only]
    assert found(type="x", localhostProfile="a") == [
        f'{field}.type: Unsupported value: "x": '
        'supported values: "Localhost", "RuntimeDefault", "Unconfined"',
        only,
    ]


def test_affinities_SRC_037() -> None:
    def found(affinity: Any) -> list[str]:
        return of_spec(affinity=affinity)

    field = "requiredDuringSchedulingIgnoredDuringExecution"
    assert found({}) == found({"nodeAffinity": {}}) == []
    assert found({"nodeAffinity": {field: {"nodeSelectorTerms": [{}]}}}) == []
    assert found({"nodeAffinity": {field: {"nodeSelectorTerms": []}}}) == [
        f"affinity.nodeAffinity.{field}.nodeSelectorTerms: Required value: "
        "must have at least one node selector term"
    ]


def test_spreads_SRC_037() -> None:
    def spread(skew: int, key: str, when: str) -> dict[str, Any]:
        return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when}

    spreads = [
        spread(1, "a", "DoNotSchedule"),
        spread(1, "a", "ScheduleAnyway"),
        spread(0, "", "x"),
        spread(-1, "a", "DoNotSchedule"),
    ]
    assert of_spec(topologySpreadConstraints=spreads) == [
        "topologySpreadConstraints[2].maxSkew: Invalid value: 0: must be greater than zero",
        "topologySpreadConstraints[2].topologyKey: Required value: can not be empty",
        'topologySpreadConstraints[2].whenUnsatisfiable: Unsupported value: "x": '
        'supported values: "DoNotSchedule", "ScheduleAnyway"',
        "topologySpreadConstraints[3].maxSkew: Invalid value: -1: must be greater than zero",
    ]


def test_scheduling_groups_SRC_037() -> None:
    def found(**group: Any) -> list[str]:
        return of_spec(schedulingGroup=group)

    field = "schedulingGroup.podGroupName"
    assert found(podGroupName="a.b") == []
    assert found() == [f"{field}: Invalid value: null: must specify one of: `podGroupName`"]
    assert found(podGroupName="") == [f'{field}: Invalid value: "": must not be empty']
    assert found(podGroupName="A") == [f'{field}: Invalid value: "A": {SUBDOMAIN}']
