"""Which volumes a pod uses, why they cannot be set up, and when mounts are read-only throughout."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.core_v1 import VolumeMount
from pods import container, make_pod

from refkubelet.model.objects import Pod
from refkubelet.volumes.plan import (
    SubPathError,
    check_sub_path,
    kind_of,
    recursive_read_only,
    refusal_message,
    refusals,
    used_volumes,
)

VOLUMES: list[dict[str, Any]] = [
    {"name": "bare"},
    {"name": "empty", "emptyDir": {}},
    {"name": "memory", "emptyDir": {"medium": "Memory"}},
    {"name": "huge", "emptyDir": {"medium": "HugePages"}},
    {"name": "host", "hostPath": {"path": "/h"}},
    {"name": "image", "image": {"reference": "i"}},
    {"name": "nfs", "nfs": {"server": "s", "path": "/"}},
    {"name": "unused", "nfs": {"server": "s", "path": "/"}},
]
NO_VOLUME = "the pod has no volume of that name"
NO_PLUGIN = 'failed to get Plugin from volumeSpec for volume "nfs" err=no volume plugin matched'


def pod_with(*mounts: str, devices: tuple[str, ...] = (), init: tuple[str, ...] = ()) -> Pod:
    main = container(
        "main",
        volumeMounts=[{"name": name, "mountPath": f"/{name}"} for name in mounts],
        volumeDevices=[{"name": name, "devicePath": f"/{name}"} for name in devices],
    )
    first = container("i", volumeMounts=[{"name": name, "mountPath": "/v"} for name in init])
    return make_pod(main, init=[first], volumes=VOLUMES)


def test_used_volumes_are_those_of_all_containers_in_the_spec_s_order_NODE_201() -> None:
    pod = pod_with("gone", "host", "empty", devices=("memory",), init=("bare", "host"))
    found = used_volumes(pod)
    assert list(found) == ["bare", "empty", "memory", "host", "gone"]
    assert [volume and volume.name for volume in found.values()] == [
        "bare", "empty", "memory", "host", None
    ]  # fmt: skip
    assert used_volumes(make_pod()) == {}


def test_the_kind_is_the_source_s_name_NODE_202() -> None:
    kinds = {v.name: kind_of(v) for v in pod_with().spec.volumes or ()}
    assert kinds == {
        "bare": "emptyDir",
        "empty": "emptyDir",
        "memory": "emptyDir",
        "huge": "emptyDir",
        "host": "hostPath",
        "image": "image",
        "nfs": "nfs",
        "unused": "nfs",
    }


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        (make_pod(), {}),
        (pod_with("bare", "empty", "memory", "host", "image"), {}),
        (pod_with("gone"), {"gone": NO_VOLUME}),
        (pod_with("nfs", init=("gone",)), {"nfs": NO_PLUGIN, "gone": NO_VOLUME}),
        (pod_with(devices=("nfs",)), {"nfs": NO_PLUGIN}),
        (
            pod_with("empty", devices=("host",)),
            {"host": "volume host has volumeMode Filesystem, but is specified in volumeDevices"},
        ),
        (pod_with("huge", "memory"), {}),
    ],
)
def test_why_a_volume_cannot_be_set_up_NODE_202_NODE_203(pod: Pod, wanted: dict[str, str]) -> None:
    assert refusals(pod) == wanted


@pytest.mark.parametrize(
    ("refused", "end"),
    [
        ({"b": "why"}, "[b]: why"),
        ({"b": "why", "a": "why"}, "[a b]: why"),
        ({"b": "why", "c": "else", "a": "why"}, "[a b c]: why; else"),
    ],
)
def test_the_message_names_all_volumes_and_each_reason_once_NODE_202(
    refused: dict[str, str], end: str
) -> None:
    assert refusal_message(pod_with("nfs", "bare"), refused) == (
        f"unmounted volumes=[bare nfs], unattached volumes=[], failed to process volumes={end}"
    )


def mount(**fields: Any) -> VolumeMount:
    return VolumeMount(name="v", mountPath="/v", **fields)


@pytest.mark.parametrize(
    ("fields", "supported", "wanted"),
    [
        ({}, True, False),
        ({"readOnly": True}, True, False),
        ({"recursiveReadOnly": "Disabled"}, True, False),
        ({"readOnly": True, "recursiveReadOnly": "Enabled"}, True, True),
        ({"readOnly": True, "recursiveReadOnly": "IfPossible"}, True, True),
        ({"readOnly": True, "recursiveReadOnly": "IfPossible"}, False, False),
        (
            {"readOnly": True, "recursiveReadOnly": "Enabled", "mountPropagation": "None"},
            True,
            True,
        ),
    ],
)
def test_when_a_mount_is_read_only_throughout_LIFE_138(
    fields: dict[str, Any], supported: bool, wanted: bool
) -> None:
    assert recursive_read_only(mount(**fields), supported) is wanted


WISH = 'volume "v" requested recursive read-only mode, but it is not '


@pytest.mark.parametrize(
    ("fields", "supported", "why"),
    [
        ({"recursiveReadOnly": "Enabled"}, True, WISH + "read-only"),
        ({"readOnly": False, "recursiveReadOnly": "IfPossible"}, True, WISH + "read-only"),
        (
            {
                "readOnly": True,
                "recursiveReadOnly": "IfPossible",
                "mountPropagation": "HostToContainer",
            },
            True,
            WISH + 'compatible with propagation "HostToContainer"',
        ),
        (
            {"readOnly": True, "recursiveReadOnly": "Enabled"},
            False,
            WISH + "supported by the runtime",
        ),
        (
            {"readOnly": True, "recursiveReadOnly": "Odd"},
            False,
            'unknown recursive read-only mode "Odd"',
        ),
    ],
)
def test_mounts_that_cannot_be_read_only_throughout_LIFE_138(
    fields: dict[str, Any], supported: bool, why: str
) -> None:
    with pytest.raises(ValueError) as refused:
        recursive_read_only(mount(**fields), supported)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/a", "error SubPath `/a` must not be an absolute path"),
        ("..", "unable to provision SubPath `..`: must not contain '..'"),
        ("a/../b", "unable to provision SubPath `a/../b`: must not contain '..'"),
    ],
)
def test_sub_paths_that_lead_out_of_the_volume_NODE_211(path: str, why: str) -> None:
    with pytest.raises(SubPathError) as refused:
        check_sub_path(path)
    assert str(refused.value) == why


@pytest.mark.parametrize("path", ["", "a", "a/b", "..a", "a../b", "."])
def test_sub_paths_that_stay_in_the_volume_NODE_211(path: str) -> None:
    check_sub_path(path)
