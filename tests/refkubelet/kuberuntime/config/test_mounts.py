"""The mounts of a container, as the runtime is told."""

from __future__ import annotations

from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from pods import container, make_pod

from refkubelet.container_manager.devices.types import ContainerSettings, DeviceMount
from refkubelet.cri.records import PodRuntime, UserNamespace
from refkubelet.kuberuntime.config.mounts import (
    MountError,
    MountFacts,
    MountSource,
    device_mounts,
    mount_source,
    volume_mounts,
    volume_path,
    with_users,
)
from refkubelet.volumes.plan import SubPathError

VOLUMES: list[dict[str, Any]] = [
    {"name": "empty", "emptyDir": {}},
    {"name": "bare"},
    {"name": "host", "hostPath": {"path": "/h"}},
    {"name": "image", "image": {"reference": "i"}},
    {"name": "nfs", "nfs": {"server": "s", "path": "/"}},
]
IMAGE = cri.ImageSpec(image="i")
FACTS = MountFacts("/root", variables={"A": "a", "EMPTY": ""}, images={"image": IMAGE})
EMPTY_PATH = "/root/pods/u-1/volumes/kubernetes.io~empty-dir/empty"
PRIVATE = cri.PROPAGATION_PRIVATE


def pod_with(*mounts: dict[str, Any], volumes: Any = VOLUMES) -> Any:
    return make_pod(container("main", volumeMounts=list(mounts)), uid="u-1", volumes=volumes)


def made(mount: dict[str, Any], facts: MountFacts = FACTS) -> list[Any]:
    pod = pod_with({"mountPath": "/m", **mount})
    return volume_mounts(pod.spec.containers[0], pod, facts)


@pytest.mark.parametrize(
    ("fields", "facts", "wanted"),
    [
        ({"name": "empty"}, FACTS, {"host_path": EMPTY_PATH}),
        ({"name": "host"}, FACTS, {"host_path": "/h"}),
        ({"name": "host", "readOnly": True}, FACTS, {"host_path": "/h", "readonly": True}),
        (
            {"name": "host", "mountPath": "m/n"},
            FACTS,
            {"host_path": "/h", "container_path": "/m/n"},
        ),
        ({"name": "host", "mountPropagation": "None"}, FACTS, {"host_path": "/h"}),
        (
            {"name": "host", "mountPropagation": "HostToContainer"},
            FACTS,
            {"host_path": "/h", "propagation": cri.PROPAGATION_HOST_TO_CONTAINER},
        ),
        (
            {"name": "host", "mountPropagation": "Bidirectional"},
            FACTS,
            {"host_path": "/h", "propagation": cri.PROPAGATION_BIDIRECTIONAL},
        ),
        (
            {"name": "host", "readOnly": True, "recursiveReadOnly": "IfPossible"},
            MountFacts("/root", runtime=PodRuntime(recursive_read_only=True)),
            {"host_path": "/h", "readonly": True, "recursive_read_only": True},
        ),
        (
            {"name": "host", "subPath": "s"},
            MountFacts("/root", parts={0: "/made/s"}),
            {"host_path": "/made/s"},
        ),
        ({"name": "image"}, FACTS, {"image": IMAGE, "readonly": True}),
        (
            {"name": "image", "subPath": "s", "mountPropagation": "HostToContainer"},
            FACTS,
            {
                "image": IMAGE,
                "readonly": True,
                "image_sub_path": "s",
                "propagation": cri.PROPAGATION_HOST_TO_CONTAINER,
            },
        ),
    ],
)
def test_a_mount_of_each_kind_LIFE_138(
    fields: dict[str, Any], facts: MountFacts, wanted: dict[str, Any]
) -> None:
    assert made(fields, facts) == [cri.Mount(**({"container_path": "/m"} | wanted))]


@pytest.mark.parametrize("name", ["host", "image"])
def test_mounts_are_private_unless_said_otherwise_LIFE_138(name: str) -> None:
    assert [mount.propagation for mount in made({"name": name})] == [PRIVATE]


@pytest.mark.parametrize(
    ("fields", "facts", "why"),
    [
        (
            {"name": "gone"},
            FACTS,
            "container main mounts volume 'gone', which the pod does not have (it has: empty, "
            "bare, host, image, nfs)",
        ),
        (
            {"name": "nfs"},
            FACTS,
            "volume 'nfs' is none of the known kinds: emptyDir, configMap, secret, projected, "
            "downwardAPI, hostPath, image, csi",
        ),
        (
            {"name": "host", "subPath": "/s"},
            FACTS,
            "error SubPath `/s` must not be an absolute path",
        ),
        (
            {"name": "host", "subPathExpr": "$(A)/../$(A)"},
            FACTS,
            "unable to provision SubPath `a/../a`: must not contain '..'",
        ),
        (
            {"name": "host", "subPathExpr": "$(Z)$(A)$(EMPTY)"},
            FACTS,
            "missing value for EMPTY, Z",
        ),
        (
            {"name": "host", "subPath": "s"},
            MountFacts("/root", parts={0: SubPathError("not there")}),
            "not there",
        ),
        (
            {"name": "host", "recursiveReadOnly": "Enabled"},
            FACTS,
            'failed to resolve recursive read-only mode: volume "host" requested recursive '
            "read-only mode, but it is not read-only",
        ),
    ],
)
def test_mounts_that_cannot_be_made_LIFE_138(
    fields: dict[str, Any], facts: MountFacts, why: str
) -> None:
    with pytest.raises(MountError) as refused:
        made(fields, facts)
    assert str(refused.value) == why


def test_a_pod_without_volumes_says_so_LIFE_138() -> None:
    pod = pod_with({"name": "v", "mountPath": "/v"}, volumes=None)
    with pytest.raises(MountError) as refused:
        volume_mounts(pod.spec.containers[0], pod, FACTS)
    assert str(refused.value) == (
        "container main mounts volume 'v', which the pod does not have (it has: none)"
    )


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"name": "host", "subPath": "s"}, MountSource("/h", "s")),
        ({"name": "host", "subPathExpr": "$(A)-b"}, MountSource("/h", "a-b")),
        ({"name": "image", "subPathExpr": "$(A)"}, MountSource("", "a")),
        ({"name": "empty"}, MountSource(EMPTY_PATH, "")),
    ],
)
def test_the_source_of_a_mount_NODE_211(fields: dict[str, Any], wanted: MountSource) -> None:
    pod = pod_with({"mountPath": "/m", **fields})
    main = pod.spec.containers[0]
    assert mount_source(main.volumeMounts[0], main, pod, FACTS) == wanted


def test_a_volume_without_a_source_is_an_empty_dir_NODE_203() -> None:
    pod = pod_with()
    assert volume_path(pod.spec.volumes[1], pod, "/root") == (
        "/root/pods/u-1/volumes/kubernetes.io~empty-dir/bare"
    )


def test_files_keep_their_owners_in_a_user_namespace_LIFE_138() -> None:
    ids = cri.IDMapping(host_id=65536, length=65536)
    mapped = with_users([cri.Mount(host_path="/h")], PodRuntime(users=UserNamespace(65536, 65536)))
    assert mapped == [cri.Mount(host_path="/h", uidMappings=[ids], gidMappings=[ids])]
    assert with_users([cri.Mount(host_path="/h")], PodRuntime()) == [cri.Mount(host_path="/h")]


def test_mounts_of_devices_CG_084() -> None:
    settings = ContainerSettings(mounts=(DeviceMount("/h", "/c", read_only=True),))
    assert device_mounts(settings) == [
        cri.Mount(container_path="/c", host_path="/h", readonly=True)
    ]
