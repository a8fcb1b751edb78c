"""What is complained about in environments: names, sources, references to fields and resources
(SRC-037)."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_reading import container_problems, problems

ENV_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
SUBDOMAIN = "must be a lowercase RFC 1123 subdomain: a-z, 0-9, '-' and '.'"
LABEL = "must be a lowercase RFC 1123 label: a-z, 0-9 and '-', at most 63 characters"
KEY = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character"
)
FIELD: dict[str, Any] = {"fieldRef": {"fieldPath": "metadata.name"}}
RESOURCE: dict[str, Any] = {"resourceFieldRef": {"resource": "limits.cpu"}}


def of_source(value: str = "", **source: Any) -> list[str]:
    """The problems of a valueFrom."""
    found = container_problems(env=[{"name": "A", "value": value, "valueFrom": source}])
    assert all(problem.startswith("env[0].valueFrom") for problem in found)
    return [problem.removeprefix("env[0].valueFrom").removeprefix(".") for problem in found]


def test_names_of_variables_are_printable_SRC_037() -> None:
    names = ["", "A=B", "a b~!<>", "\x1f", "ä", "A\n", " "]
    assert container_problems(env=[{"name": name, "value": "x"} for name in names]) == [
        "env[0].name: Required value",
        f'env[1].name: Invalid value: "A=B": {ENV_RULE}',
        f'env[3].name: Invalid value: "\\x1f": {ENV_RULE}',
        f'env[4].name: Invalid value: "ä": {ENV_RULE}',
        f'env[5].name: Invalid value: "A\\n": {ENV_RULE}',
    ]


def test_a_variable_has_one_source_SRC_037() -> None:
    beside = ': Invalid value: "": may not be specified when `value` is not empty'
    assert of_source(**FIELD) == of_source(**RESOURCE) == []
    assert of_source() == [
        ': Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
        "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    ]
    assert of_source("x", **FIELD) == of_source("x", **FIELD, **RESOURCE) == [beside]
    assert of_source(**FIELD, **RESOURCE) == [
        ': Invalid value: "": may not have more than one field specified at a time'
    ]


@pytest.mark.parametrize("kind", ["configMapKeyRef", "secretKeyRef"])
def test_keys_of_objects_SRC_037(kind: str) -> None:
    for key in ("a", "A-1_b.c", ".a"):
        assert of_source(**{kind: {"name": "n", "key": key}}) == []
    assert of_source(**{kind: {"key": ""}}) == [
        f'{kind}.name: Invalid value: "": must not be empty',
        f"{kind}.key: Required value",
    ]
    for key in (".", "..", "..a", "a/b", "a\n"):
        shown = key.replace("\n", "\\n")
        assert of_source(**{kind: {"name": "N", "key": key}}) == [
            f'{kind}.name: Invalid value: "N": {SUBDOMAIN}',
            f'{kind}.key: Invalid value: "{shown}": {KEY}',
        ]


def test_keys_of_files_SRC_037() -> None:
    assert of_source(fileKeyRef={"key": "", "volumeName": "", "path": ""})[:3] == [
        "fileKeyRef.key: Required value",
        "fileKeyRef.volumeName: Required value",
        "fileKeyRef.path: Required value",
    ]
    assert of_source(fileKeyRef={"key": "A=", "volumeName": "V", "path": "a/../b"})[:3] == [
        f'fileKeyRef.key: Invalid value: "A=": {ENV_RULE}',
        f'fileKeyRef.volumeName: Invalid value: "V": {LABEL}',
        "fileKeyRef.path: Invalid value: \"a/../b\": must not contain '..'",
    ]


def test_a_file_with_variables_is_in_an_empty_dir_SRC_037() -> None:
    def reads(*volumes: str) -> list[dict[str, Any]]:
        refs = [{"key": "K", "volumeName": name, "path": "f"} for name in volumes]
        env = [{"name": "A", "valueFrom": {"fileKeyRef": ref}} for ref in refs]
        return [{"name": "PLAIN", "value": "x"}, *env, {"name": "B", "valueFrom": FIELD}]

    spec = {
        "volumes": [{"name": "e", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/a"}}],
        "initContainers": [
            {"name": "i", "image": "x:1", "env": reads("e")},
            {"name": "j", "image": "x:1", "env": reads("h", "none")},
        ],
        "containers": [
            {"name": "a", "image": "x:1"},
            {"name": "b", "image": "x:1", "env": reads("e", "gone", "h")},
        ],
    }
    why = "referenced volume must be of type emptyDir"
    field = "valueFrom.fileKeyRef.volumeName"
    assert problems(spec) == [
        f'spec.initContainers[1].env[1].{field}: Invalid value: "h": {why}',
        f'spec.initContainers[1].env[2].{field}: Not found: "none"',
        f'spec.containers[1].env[2].{field}: Not found: "gone"',
        f'spec.containers[1].env[3].{field}: Invalid value: "h": {why}',
    ]


def test_whole_objects_as_environment_SRC_037() -> None:
    sources = [
        {"configMapRef": {"name": "a"}, "prefix": "P_"},
        {"secretRef": {"name": "a"}},
        {"configMapRef": {}, "prefix": "="},
        {"secretRef": {}},
        {},
        {"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}},
    ]
    assert container_problems(envFrom=sources) == [
        f'envFrom[2].prefix: Invalid value: "=": {ENV_RULE}',
        "envFrom[2].configMapRef.name: Required value",
        "envFrom[3].secretRef.name: Required value",
        'envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
        'envFrom: Invalid value: "": may not have more than one field specified at a time',
    ]


ENV_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
QUOTED_FIELDS = ", ".join(f'"{name}"' for name in ENV_FIELDS)


@pytest.mark.parametrize("path", [*ENV_FIELDS, "metadata.labels['a/B']", "metadata.labels['A']"])
def test_fields_that_variables_may_have_SRC_037(path: str) -> None:
    assert of_source(fieldRef={"fieldPath": path}) == []
    assert of_source(fieldRef={"fieldPath": path, "apiVersion": "v1"}) == []


@pytest.mark.parametrize(
    ("ref", "complaint"),
    [
        ({"fieldPath": ""}, "fieldRef.fieldPath: Required value"),
        (
            {"fieldPath": "metadata.name", "apiVersion": "v2"},
            'fieldRef.fieldPath: Invalid value: "metadata.name": '
            "error converting fieldPath: unsupported pod version: v2",
        ),
        (
            {"fieldPath": "spec.foo"},
            'fieldRef.fieldPath: Invalid value: "spec.foo": '
            "error converting fieldPath: field label not supported: spec.foo",
        ),
        *(
            (
                {"fieldPath": path},
                f'fieldRef.fieldPath: Unsupported value: "{path}": '
                f"supported values: {QUOTED_FIELDS}",
            )
            for path in (
                "metadata.annotations",
                "metadata.labels",
                "spec.restartPolicy",
                "spec.schedulerName",
                "status.phase",
            )
        ),
        (
            {"fieldPath": "metadata.labels['a b']"},
            f'fieldRef: Invalid value: "a b": {NAME_RULE}',
        ),
        (
            {"fieldPath": "metadata.labels['A/b']"},
            f'fieldRef: Invalid value: "A/b": prefix part {SUBDOMAIN}',
        ),
        (
            {"fieldPath": "metadata.annotations['A B']"},
            f'fieldRef: Invalid value: "a b": {NAME_RULE}',
        ),
    ],
)
def test_fields_that_variables_may_not_have_SRC_037(ref: dict[str, str], complaint: str) -> None:
    assert of_source(fieldRef=ref) == [complaint]


def test_keys_of_annotations_are_compared_without_capitals_SRC_037() -> None:
    assert of_source(fieldRef={"fieldPath": "metadata.annotations['A.B/c']"}) == []


DIVISORS_OF_BYTES = ("1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
CPU_DIVISORS = "only divisor's values 1m and 1 are supported with the cpu resource"
DIVISORS = "only 1 and powers of 1000 or 1024, up to 1E and 1Ei, are supported as divisors"


@pytest.mark.parametrize(
    ("resource", "divisors"),
    [
        *((f"{which}.cpu", ("", "0", "1", "1m", "1000m")) for which in ("limits", "requests")),
        *(
            (
                f"{which}.{name}",
                ("", "0", "1", *DIVISORS_OF_BYTES),
            )
            for which in ("limits", "requests")
            for name in ("memory", "ephemeral-storage", "hugepages-2Mi")
        ),
    ],
)
def test_resources_that_variables_may_have_SRC_037(
    resource: str, divisors: tuple[str, ...]
) -> None:
    for divisor in divisors:
        assert of_source(resourceFieldRef={"resource": resource, "divisor": divisor}) == []


@pytest.mark.parametrize(
    ("resource", "divisor", "why"),
    [
        ("limits.cpu", "2m", CPU_DIVISORS),
        ("requests.cpu", "1k", CPU_DIVISORS),
        ("limits.memory", "1m", DIVISORS),
        ("requests.memory", "1e3", DIVISORS),
        ("limits.memory", "1024Ei", DIVISORS),
        ("limits.ephemeral-storage", "2", DIVISORS),
        ("requests.hugepages-2Mi", "1m", DIVISORS),
        ("limits.hugepages-1Gi", "3", DIVISORS),
    ],
)
def test_divisors_that_variables_may_not_have_SRC_037(
    resource: str, divisor: str, why: str
) -> None:
    assert of_source(resourceFieldRef={"resource": resource, "divisor": divisor}) == [
        f'resourceFieldRef.divisor: Invalid value: "{resource}": {why}'
    ]


def test_resources_that_variables_may_not_have_SRC_037() -> None:
    known = [
        f'"{which}.{name}"'
        for which in ("limits", "requests")
        for name in ("cpu", "ephemeral-storage", "memory")
    ]
    assert of_source(resourceFieldRef={"resource": ""}) == [
        "resourceFieldRef.resource: Required value"
    ]
    for resource, divisor in (("limits.example.com/a", "2"), ("cpu", "2"), ("other.cpu", "5")):
        assert of_source(resourceFieldRef={"resource": resource, "divisor": divisor}) == [
            f'resourceFieldRef.resource: Unsupported value: "{resource}": '
            f"supported values: {', '.join(known)}"
        ]
    (why,) = of_source(resourceFieldRef={"resource": "limits.cpu", "divisor": "much"})
    assert why.startswith("resourceFieldRef.divisor: Invalid value: ")
