"""Persistent volumes of CSI drivers: what a real API server 1.36 answers to the same requests."""

from datetime import datetime
from typing import Any

import pytest
from fakekubeapi_causes import CSI, SUBDOMAIN, Causes, causes, change, check, named
from fakekubeapi_helpers import create, ok

from fakekubeapi import FakeApi
from fakekubeapi.resources import find_resource
from fakekubeapi.resources.printers import to_table

pytestmark = pytest.mark.virtual_time
VOLUMES = "/api/v1/persistentvolumes"


def volume(**csi: Any) -> dict[str, Any]:
    modes = ["ReadWriteOnce"]
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": modes, "csi": {**CSI, **csi}}
    return named(spec)


@pytest.mark.parametrize(
    ("csi", "wanted"),
    [
        (
            {"driver": "", "volumeHandle": ""},
            [("spec.csi.driver", "Required value"), ("spec.csi.volumeHandle", "Required value")],
        ),
        ({"driver": "a_B"}, [("spec.csi.driver", f'Invalid value: "a_B": {SUBDOMAIN}')]),
        (
            {
                "nodePublishSecretRef": {"name": "A", "namespace": "a.b"},
                "controllerPublishSecretRef": {},
                "nodeStageSecretRef": {},
            },
            [
                ("spec.csi.controllerPublishSecretRef.name", "Required value"),
                ("spec.csi.controllerPublishSecretRef.namespace", "Required value"),
                ("spec.csi.nodePublishSecretRef.name", f'Invalid value: "A": {SUBDOMAIN}'),
                (
                    "spec.csi.nodePublishSecretRef.namespace",
                    'Invalid value: "a.b": must not contain dots',
                ),
            ],
        ),
    ],
)
async def test_what_a_csi_volume_may_not_say(csi: dict[str, Any], wanted: Causes) -> None:
    check(await FakeApi().request("POST", VOLUMES, body=volume(**csi)), wanted)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"hostPath": {"path": "/x"}},
            [("spec.csi", "Forbidden: may not specify more than 1 volume type")],
        ),
        (
            {"csi": None, "hostPath": {"path": "/x"}, "volumeAttributesClassName": "gold"},
            [
                (
                    "spec.csi",
                    "Required value: has to be specified when using volumeAttributesClassName",
                )
            ],
        ),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"], "volumeMode": "Odd"},
            [
                (
                    "spec.accessModes",
                    "Forbidden: may not use ReadWriteOncePod with other access modes",
                ),
                (
                    "spec.volumeMode",
                    'Unsupported value: "Odd": supported values: "Block", "Filesystem"',
                ),
            ],
        ),
        (
            {"persistentVolumeReclaimPolicy": "Odd", "storageClassName": "A"},
            [
                (
                    "spec.persistentVolumeReclaimPolicy",
                    'Unsupported value: "Odd": supported values: "Delete", "Recycle", "Retain"',
                ),
                ("spec.storageClassName", f'Invalid value: "A": {SUBDOMAIN}'),
            ],
        ),
    ],
)
async def test_what_a_volume_may_not_say_beside(spec: dict[str, Any], wanted: Causes) -> None:
    body = named({**volume()["spec"], **spec})
    check(await FakeApi().request("POST", VOLUMES, body=body), wanted)


async def test_the_source_of_a_csi_volume_never_changes_but_for_one_secret() -> None:
    api = FakeApi()
    await create(api, VOLUMES, volume(volumeAttributes={"b": "1"}))
    path = f"{VOLUMES}/a"
    secret = {"name": "s", "namespace": "n"}
    added = {"spec": {"csi": {"controllerExpandSecretRef": secret}}}
    assert ok(await change(api, path, added))["spec"]["csi"]["controllerExpandSecretRef"] == secret
    ((field, message),) = causes(
        await change(api, path, {"spec": {"csi": {"volumeAttributes": {"a": "2"}}}})
    )
    assert field == "spec.persistentvolumesource"
    assert message == (
        "Forbidden: spec.persistentvolumesource is immutable after creation\n"
        "@@ -26,6 +26,7 @@\n"
        '   "ReadOnly": false,\n'
        '   "FSType": "",\n'
        '   "VolumeAttributes": {\n'
        '+   "a": "2",\n'
        '    "b": "1"\n'
        "   },\n"
        '   "ControllerPublishSecretRef": null,\n'
    )
    ((_, message),) = causes(
        await change(api, path, {"spec": {"csi": {"controllerExpandSecretRef": None}}})
    )
    assert '-  "ControllerExpandSecretRef": {\n' in message


async def test_a_class_of_attributes_is_not_taken_away() -> None:
    api = FakeApi()
    made = volume()
    made["spec"]["volumeAttributesClassName"] = "gold"
    await create(api, VOLUMES, made)
    check(
        await change(api, f"{VOLUMES}/a", {"spec": {"volumeAttributesClassName": None}}),
        [
            (
                "spec.volumeAttributesClassName",
                "Forbidden: update from non-nil value to nil is forbidden",
            )
        ],
    )
    other = {"spec": {"volumeAttributesClassName": "silver"}}
    ok(await change(api, f"{VOLUMES}/a", other))


async def test_a_row() -> None:
    api = FakeApi()
    made = volume()
    made["spec"] |= {"claimRef": {"namespace": "n", "name": "c"}, "storageClassName": "fast"}
    found = await create(api, VOLUMES, made)
    resource = find_resource("", "v1", "persistentvolumes")
    assert resource is not None
    now = datetime.fromisoformat(found["metadata"]["creationTimestamp"])
    (row,) = to_table(resource, found, now)["rows"]
    first = ["a", "1Gi", "RWO", "Retain"]
    rest = ["n/c", "fast", "<unset>", "", "0s", "Filesystem"]
    assert row["cells"] == [*first, "Pending", *rest]
    gone = ok(await api.request("DELETE", f"{VOLUMES}/a"))
    (row,) = to_table(resource, gone, now)["rows"]
    assert row["cells"] == [*first, "Terminating", *rest]
