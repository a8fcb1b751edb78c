"""What is complained about in the sources of volumes: fields, limits, words (SRC-037)."""

from __future__ import annotations

from typing import Any

import manifest_reading
import pytest

PLACE = "spec.volumes[0]."
MODE = "must be a number between 0 and 0777 (octal), both inclusive"
RESERVED = "kubernetes.io and k8s.io namespaces are reserved"
PAIRS = "must be a host:port pair or multiple pairs separated by commas"
ONE_OF_TWO = "can not be specified simultaneously"
BLOB = "https://{account-name}.blob.core.windows.net/..."
GROUPS = "/subscriptions/{sub-id}/resourcegroups/..."


def problems(**source: Any) -> list[str]:
    """Of a volume, without its place, which each must name."""
    found = manifest_reading.problems({"volumes": [{"name": "v", **source}]})
    assert all(problem.startswith(PLACE) for problem in found)
    return [problem.removeprefix(PLACE) for problem in found]


def missing(*fields: str) -> list[str]:
    return [f"{field}: Required value" for field in fields]


@pytest.mark.parametrize(
    ("kind", "full"),
    [
        ("awsElasticBlockStore", {"volumeID": "a"}),
        ("azureFile", {"secretName": "a", "shareName": "b"}),
        ("cephfs", {"monitors": ["a"]}),
        ("cinder", {"volumeID": "a"}),
        ("configMap", {"name": "a"}),
        ("csi", {"driver": "a"}),
        ("ephemeral", {"volumeClaimTemplate": {"spec": {}}}),
        ("flexVolume", {"driver": "a"}),
        ("gitRepo", {"repository": "a"}),
        ("glusterfs", {"endpoints": "a", "path": "b"}),
        ("hostPath", {"path": "/a"}),
        ("persistentVolumeClaim", {"claimName": "a"}),
        ("photonPersistentDisk", {"pdID": "a"}),
        ("portworxVolume", {"volumeID": "a"}),
        ("rbd", {"monitors": ["a"], "image": "b"}),
        ("secret", {"secretName": "a"}),
        ("storageos", {"volumeName": "a"}),
        ("vsphereVolume", {"volumePath": "a"}),
    ],
)
def test_a_source_has_its_required_fields_SRC_037(kind: str, full: dict[str, Any]) -> None:
    empty = {name: [] if name == "monitors" else "" for name in full if kind != "ephemeral"}
    assert problems(**{kind: empty}) == missing(*(f"{kind}.{name}" for name in full))
    assert problems(**{kind: full}) == []


def test_other_sources_have_required_fields_too_SRC_037() -> None:
    assert problems(iscsi={"targetPortal": "", "iqn": "", "lun": 0}) == missing(
        "iscsi.targetPortal", "iscsi.iqn"
    )
    assert problems(nfs={"server": "", "path": ""}) == [
        *missing("nfs.server", "nfs.path"),
        'nfs.path: Invalid value: "": must be an absolute path',
    ]
    assert problems(quobyte={"registry": "a:1", "volume": ""}) == missing("quobyte.volume")
    storage = {"gateway": "", "system": "", "volumeName": "", "secretRef": {"name": "s"}}
    assert problems(scaleIO=storage) == missing(
        "scaleIO.gateway", "scaleIO.system", "scaleIO.volumeName"
    )


def test_a_volume_has_one_source_SRC_037() -> None:
    why = "Forbidden: may not specify more than 1 volume type"
    assert problems(image={}, hostPath={"path": ""}, emptyDir={"sizeLimit": "-1"}) == [
        f"hostPath: {why}",
        f"image: {why}",
        "emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
    ]


@pytest.mark.parametrize("kind", ["secret", "configMap", "downwardAPI", "projected"])
def test_modes_have_nine_bits_SRC_037(kind: str) -> None:
    named = {"secret": {"secretName": "a"}, "configMap": {"name": "a"}}.get(kind, {})
    for mode in (0, 0o777, None):
        assert problems(**{kind: {**named, "defaultMode": mode}}) == []
    for mode in (-1, 0o1000):
        assert problems(**{kind: {**named, "defaultMode": mode}}) == [
            f"{kind}.defaultMode: Invalid value: {mode}: {MODE}"
        ]


@pytest.mark.parametrize("kind", ["secret", "configMap"])
def test_files_of_keys_are_below_the_volume_SRC_037_NODE_204(kind: str) -> None:
    name = "secretName" if kind == "secret" else "name"
    items = [
        {"key": "a", "path": "b/c", "mode": 0o400},
        {"key": "", "path": ""},
        {"key": "a", "path": "/b", "mode": 512},
        {"key": "a", "path": "b/../c"},
        {"key": "a", "path": "..b"},
    ]
    assert problems(**{kind: {name: "a", "items": items}}) == [
        *missing(f"{kind}.items[1].key", f"{kind}.items[1].path"),
        f'{kind}.items[2].path: Invalid value: "/b": must be a relative path',
        f"{kind}.items[2].mode: Invalid value: 512: {MODE}",
        f"{kind}.items[3].path: Invalid value: \"b/../c\": must not contain '..'",
        f"{kind}.items[4].path: Invalid value: \"..b\": must not start with '..'",
    ]


NAME = {"fieldPath": "metadata.name"}
CPU = {"containerName": "main", "resource": "limits.cpu"}


def test_files_of_the_downward_api_have_one_source_each_SRC_037() -> None:
    items = [
        {"path": "a", "fieldRef": NAME, "mode": 0},
        {"path": "b", "resourceFieldRef": CPU},
        {"path": "", "fieldRef": {"fieldPath": ""}},
        {"path": "c/../d", "fieldRef": {"fieldPath": "spec.nodeName"}, "resourceFieldRef": CPU},
        {"path": "e", "resourceFieldRef": {"resource": "limits.cpu"}},
        {"path": "f", "mode": -1},
    ]
    named = [f'"metadata.{name}"' for name in ("annotations", "labels", "name", "namespace", "uid")]
    wanted = [
        *missing("path", "fieldRef.fieldPath"),
        "path: Invalid value: \"c/../d\": must not contain '..'",
        'fieldRef.fieldPath: Unsupported value: "spec.nodeName": '
        f"supported values: {', '.join(named)}",
        f': Invalid value: "resource": fieldRef and resourceFieldRef {ONE_OF_TWO}',
        *missing("resourceFieldRef.containerName"),
        ": Required value: one of fieldRef and resourceFieldRef is required",
        f"mode: Invalid value: -1: {MODE}",
    ]
    for kind, source in (
        ("downwardAPI", {"downwardAPI": {"items": items}}),
        ("projected.sources[0].downwardAPI",
         {"projected": {"sources": [{"downwardAPI": {"items": items}}]}}),
    ):  # fmt: skip
        assert problems(**source) == [
            kind + (problem if problem.startswith(":") else f".{problem}") for problem in wanted
        ]


def test_sources_of_a_projected_volume_SRC_037() -> None:
    key = {"key": "k", "path": "x"}
    sources = [
        {"secret": {"name": "s", "items": [key, {"key": "k", "path": "y"}]}},
        {"secret": {}, "configMap": {"items": [key, {"key": "", "path": ""}]}},
        {"downwardAPI": {"items": [{"path": "y", "fieldRef": NAME}]}},
        {"serviceAccountToken": {"path": "x"}},
        {
            "configMap": {
                "name": "c",
                "items": [{"key": "k", "path": "/z"}, {"key": "", "path": ""}],
            }
        },
    ]
    place = "projected.sources"
    assert problems(projected={"sources": sources}) == [
        *missing(
            *(f"{place}[1].{field}" for field in (
                "secret.name", "configMap.name", "configMap.items[1].key",
                "configMap.items[1].path",
            ))
        ),
        'projected: Invalid value: "x": conflicting duplicate paths',
        f"{place}[1]: Forbidden: may not specify more than 1 volume type per source",
        'projected: Invalid value: "y": conflicting duplicate paths',
        f'{place}[4].configMap.items[0].path: Invalid value: "/z": must be a relative path',
        *missing(f"{place}[4].configMap.items[1].key", f"{place}[4].configMap.items[1].path"),
    ]  # fmt: skip


@pytest.mark.parametrize(("size", "valid"), [("0", True), ("1Gi", True), ("-1", False)])
def test_an_empty_dir_has_no_negative_limit_SRC_037(size: str, valid: bool) -> None:
    why = "emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"
    assert problems(emptyDir={"sizeLimit": size}) == ([] if valid else [why])


def test_host_paths_SRC_037() -> None:
    words = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File")
    words = (*words, "FileOrCreate", "Socket")
    for word in words:
        assert problems(hostPath={"path": "/a", "type": word}) == []
    assert problems(hostPath={"path": "/a/..", "type": "Pipe"}) == [
        "hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
        'hostPath.type: Unsupported value: "Pipe": supported values: '
        + ", ".join(f'"{word}"' for word in words),
    ]


def test_images_git_repositories_and_nfs_SRC_037() -> None:
    for word in ("Always", "IfNotPresent", "Never"):
        assert problems(image={"reference": "x", "pullPolicy": word}) == []
    assert problems(image={"reference": "x", "pullPolicy": "No"}) == [
        'image.pullPolicy: Unsupported value: "No": '
        'supported values: "Always", "IfNotPresent", "Never"'
    ]
    assert problems(gitRepo={"repository": "x", "directory": "a"}) == []
    assert problems(gitRepo={"repository": "x", "directory": "/a/../b"}) == [
        'gitRepo.directory: Invalid value: "/a/../b": must be a relative path',
        "gitRepo.directory: Invalid value: \"/a/../b\": must not contain '..'",
    ]
    assert problems(nfs={"server": "s", "path": "a/"}) == [
        'nfs.path: Invalid value: "a/": must be an absolute path'
    ]


FORM = "must be valid format"
LONG_IQN = "iqn.2001-04.com.example:" + "a" * 1001


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("iqn.2001-04.com.example:storage.disk2", ""),
        (LONG_IQN[:1024], ""),
        (LONG_IQN, FORM),
        ("iqn.2001-04.com.example", FORM),
        ("eui.02004567A425678D", ""),
        ("eui.02004567A425678", FORM),
        ("eui.02004567A425678D0", FORM),
        ("naa.52004567BA64678D52004567BA64678D", ""),
        ("naa.52004567BA64678D", FORM),
        ("iq", f"{FORM} starting with iqn, eui, or naa"),
        ("xyz.1", f"{FORM} starting with iqn, eui, or naa"),
    ],
)
def test_names_of_iscsi_initiators_SRC_037(name: str, why: str) -> None:
    disk = {"targetPortal": "p", "iqn": name, "lun": 0, "initiatorName": name}
    assert problems(iscsi=disk) == [
        f'iscsi.{field}: Invalid value: "{name}": {why}'
        for field in ("iqn", "initiatorname")
        if why
    ]


def test_iscsi_disks_SRC_037() -> None:
    disk = {"targetPortal": "p", "iqn": "eui." + "0" * 16, "lun": 255}
    assert problems(iscsi=disk) == []
    for lun in (-1, 256):
        assert problems(iscsi={**disk, "lun": lun}) == [
            f"iscsi.lun: Invalid value: {lun}: must be between 0 and 255, inclusive"
        ]
    for asked in ("chapAuthDiscovery", "chapAuthSession"):
        assert problems(iscsi={**disk, asked: True}) == missing("iscsi.secretRef")
        assert problems(iscsi={**disk, asked: True, "secretRef": {"name": "s"}}) == []


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ({"targetWWNs": ["a"], "lun": 0}, []),
        ({"targetWWNs": ["a"], "lun": 255}, []),
        ({"wwids": ["a"], "lun": 256}, []),
        ({}, [
            "fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"
        ]),
        ({"targetWWNs": ["a"]}, [
            "fc.lun: Required value: lun is required if targetWWNs is specified"
        ]),
        ({"targetWWNs": ["a"], "lun": 256}, [
            "fc.lun: Invalid value: 256: must be between 0 and 255, inclusive"
        ]),
        ({"targetWWNs": ["a"], "lun": -1}, [
            "fc.lun: Invalid value: -1: must be between 0 and 255, inclusive"
        ]),
    ],
)  # fmt: skip
def test_fibre_channel_disks_SRC_037(source: dict[str, Any], wanted: list[str]) -> None:
    assert problems(fc=source) == wanted


def test_fibre_channel_disks_are_named_in_one_way_SRC_037() -> None:
    assert problems(fc={"targetWWNs": ["a", "b"], "wwids": ["c"], "lun": 1}) == [
        f'fc.targetWWNs: Invalid value: ["a","b"]: targetWWNs and wwids {ONE_OF_TWO}'
    ]


@pytest.mark.parametrize(
    ("kind", "shown", "name"),
    [
        ("awsElasticBlockStore", "awsElasticBlockStore", "volumeID"),
        ("gcePersistentDisk", "persistentDisk", "pdName"),
    ],
)
def test_partitions_have_eight_bits_SRC_037(kind: str, shown: str, name: str) -> None:
    assert problems(**{kind: {name: ""}}) == missing(f"{shown}.{name}")
    for partition in (0, 255, None):
        assert problems(**{kind: {name: "a", "partition": partition}}) == []
    for partition in (-1, 256):
        assert problems(**{kind: {name: "a", "partition": partition}}) == [
            f"{shown}.partition: Invalid value: {partition}: must be between 0 and 255, inclusive"
        ]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ({"datasetName": "a"}, []),
        ({"datasetUUID": "a"}, []),
        ({}, ["flocker: Required value: one of datasetName and datasetUUID is required"]),
        ({"datasetName": "a", "datasetUUID": "b"}, [
            f'flocker: Invalid value: "resource": datasetName and datasetUUID {ONE_OF_TWO}'
        ]),
        ({"datasetName": "a/b"}, [
            "flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"
        ]),
    ],
)  # fmt: skip
def test_flocker_volumes_SRC_037(source: dict[str, Any], wanted: list[str]) -> None:
    assert problems(flocker=source) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ({"registry": "a:1,[::1]:2,:3", "tenant": "t" * 64}, []),
        ({"registry": ""}, [f"quobyte.registry: Required value: {PAIRS}"]),
        ({"registry": "a", "tenant": "t" * 65}, [
            "quobyte.tenant: Required value: "
            "must be a UUID and may not exceed a length of 64 characters"
        ]),
        ({"registry": "a:1,b"}, [f'quobyte.registry: Invalid value: "a:1,b": {PAIRS}']),
        ({"registry": "::1:1"}, [f'quobyte.registry: Invalid value: "::1:1": {PAIRS}']),
    ],
)  # fmt: skip
def test_quobyte_volumes_SRC_037(source: dict[str, Any], wanted: list[str]) -> None:
    assert problems(quobyte={"volume": "v", **source}) == wanted


def test_options_of_flex_volumes_are_not_those_of_kubernetes_SRC_037() -> None:
    keys = ("k8s.io/a", "a.KUBERNETES.io", "b.k8s.io/c/d", "x/k8s.io", "nok8s.io", "k8s.iox")
    assert problems(flexVolume={"driver": "d", "options": dict.fromkeys(keys, "")}) == [
        f'flexVolume.options[{key}]: Invalid value: "{key}": {RESERVED}' for key in keys[:3]
    ]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ({"diskURI": "https://a", "cachingMode": "None", "kind": "Shared"}, []),
        ({"diskURI": "https://a", "cachingMode": "ReadOnly", "kind": "Dedicated"}, []),
        ({"diskURI": "/subscriptions/a", "cachingMode": "ReadWrite", "kind": "Managed"}, []),
        ({"diskURI": "/subscriptions/a"}, [
            'azureDisk.diskURI: Unsupported value: "/subscriptions/a": '
            f'supported values: "{BLOB}"'
        ]),
        ({"diskURI": "https://a", "kind": "Managed"}, [
            f'azureDisk.diskURI: Unsupported value: "https://a": supported values: "{GROUPS}"'
        ]),
        ({"diskURI": "https://a", "cachingMode": "x", "kind": "y"}, [
            'azureDisk.cachingMode: Unsupported value: "x": '
            'supported values: "None", "ReadOnly", "ReadWrite"',
            'azureDisk.kind: Unsupported value: "y": '
            'supported values: "Dedicated", "Managed", "Shared"',
        ]),
    ],
)  # fmt: skip
def test_azure_disks_SRC_037(source: dict[str, Any], wanted: list[str]) -> None:
    assert problems(azureDisk={"diskName": "d", **source}) == wanted


def test_azure_disks_have_a_name_and_an_address_SRC_037() -> None:
    assert problems(azureDisk={"diskName": "", "diskURI": ""}) == [
        *missing("azureDisk.diskName", "azureDisk.diskURI"),
        f'azureDisk.diskURI: Unsupported value: "": supported values: "{BLOB}"',
    ]


LABEL = "must be a lowercase RFC 1123 label: a-z, 0-9 and '-', at most 63 characters"


def test_secrets_that_volumes_name_SRC_037() -> None:
    storage = {"volumeName": "A", "volumeNamespace": "B", "secretRef": {}}
    assert problems(storageos=storage) == [
        f'storageos.volumeName: Invalid value: "A": {LABEL}',
        f'storageos.volumeNamespace: Invalid value: "B": {LABEL}',
        *missing("storageos.secretRef.name"),
    ]
    named = {"secretRef": {"name": "s"}}
    assert problems(storageos={"volumeName": "a", "volumeNamespace": "b", **named}) == []
    assert problems(cinder={"volumeID": "a", "secretRef": {}}) == missing("cinder.secretRef.name")
    assert problems(cinder={"volumeID": "a", **named}) == []
    assert problems(csi={"driver": "d", "nodePublishSecretRef": {}}) == missing(
        "csi.nodePublishSecretRef.name"
    )
    assert problems(csi={"driver": "d", "nodePublishSecretRef": {"name": "s"}}) == []


def test_names_of_csi_drivers_SRC_037() -> None:
    assert problems(csi={"driver": "Disk.Example.COM"}) == []
    assert problems(csi={"driver": "d" * 63}) == []
    assert problems(csi={"driver": "d" * 64}) == [
        "csi.driver: Too long: may not be more than 63 bytes"
    ]
    assert problems(csi={"driver": "a_b"}) == [
        'csi.driver: Invalid value: "a_b": must be a lowercase RFC 1123 subdomain: '
        "a-z, 0-9, '-' and '.'"
    ]
