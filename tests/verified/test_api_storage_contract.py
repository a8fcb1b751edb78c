"""CSI drivers, the drivers of nodes, attachments and volumes: what the fake API server says of them
as kube-apiserver does; on a real one, too, where REFKUBELET_APISERVER names its URL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_sides import MERGE, URL, ApiSide, api_side

STORAGE = "/apis/storage.k8s.io/v1"
DRIVERS, CSI_NODES = f"{STORAGE}/csidrivers", f"{STORAGE}/csinodes"
ATTACHMENTS, VOLUMES = f"{STORAGE}/volumeattachments", "/api/v1/persistentvolumes"
STRATEGIC = "application/strategic-merge-patch+json"
DRIVER = {"name": "d.io", "nodeID": "n", "topologyKeys": ["zone"], "allocatable": {"count": 3}}
ATTACHMENT = {"attacher": "d.io", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "csi": {"driver": "d.io", "volumeHandle": "h"},
}
IMMUTABLE = "field is immutable"


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[ApiSide]:
    if request.param == "real" and not URL:
        pytest.skip("REFKUBELET_APISERVER names no server")
    async with api_side(request.param) as side:
        yield side
        for collection in (DRIVERS, CSI_NODES, ATTACHMENTS, VOLUMES):
            path = f"{collection}/{side.namespace}"
            await side.ask("PATCH", path, {"metadata": {"finalizers": None}}, kind=MERGE)
            await side.ask("DELETE", path)


async def made(api: ApiSide, collection: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A new object, which has the name of the test's namespace."""
    body = {"metadata": {"name": api.namespace}, "spec": spec}
    return await api.done("POST", collection, body)


async def refusal(
    api: ApiSide, collection: str, change: dict[str, Any] | None = None, kind: str = MERGE
) -> list[tuple[str, str]]:
    """Field and message of all that is wrong with a new object of that spec (`kind` ""), or with
    a change of the stored one."""
    if kind:
        path = f"{collection}/{api.namespace}"
        status, found = await api.ask("PATCH", path, {"spec": change}, kind=kind)
    else:
        body = {"metadata": {"name": api.namespace}, "spec": change}
        status, found = await api.ask("POST", collection, body)
    assert (status, found["reason"]) == (422, "Invalid")
    return [(cause["field"], cause["message"]) for cause in found["details"]["causes"]]


async def test_a_driver_is_completed(api: ApiSide) -> None:
    driver = await made(api, DRIVERS, {})
    assert driver["spec"] == {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    path = f"{DRIVERS}/{api.namespace}"
    changed = await api.done("PATCH", path, {"spec": {"podInfoOnMount": True}}, kind=MERGE)
    assert changed["metadata"]["generation"] == 1


async def test_what_a_driver_may_not_say(api: ApiSide) -> None:
    spec = {
        "fsGroupPolicy": "Some",
        "tokenRequests": [{"audience": "a"}, {"audience": "a"}],
        "volumeLifecycleModes": ["Odd"],
        "nodeAllocatableUpdatePeriodSeconds": 9,
    }
    assert await refusal(api, DRIVERS, spec, "") == [
        (
            "spec.fsGroupPolicy",
            'Unsupported value: "Some": supported values: "File", "None", '
            '"ReadWriteOnceWithFSType"',
        ),
        ("spec.tokenRequests[1].audience", 'Duplicate value: "a"'),
        (
            "spec.volumeLifecycleModes",
            'Unsupported value: "Odd": supported values: "Persistent", "Ephemeral"',
        ),
        (
            "spec.nodeAllocatableUpdatePeriodSeconds",
            "Invalid value: 9: must be greater than or equal to 10 seconds",
        ),
    ]
    await made(api, DRIVERS, {})
    assert await refusal(api, DRIVERS, {"attachRequired": False}) == [
        ("spec.attachedRequired", f"Invalid value: false: {IMMUTABLE}")
    ]


async def test_the_drivers_of_a_node(api: ApiSide) -> None:
    found = await made(api, CSI_NODES, {"drivers": []})
    assert found["spec"] == {"drivers": None}
    path = f"{CSI_NODES}/{api.namespace}"
    await api.done("PATCH", path, {"spec": {"drivers": [DRIVER]}}, kind=MERGE)
    more = {"spec": {"drivers": [{"name": "d.io", "allocatable": {"count": 5}}]}}
    found = await api.done("PATCH", path, more, kind=STRATEGIC)
    assert found["spec"]["drivers"] == [{**DRIVER, "allocatable": {"count": 5}}]
    other = {"drivers": [{"name": "d.io", "nodeID": "m"}]}
    shown = '{"Name":"d.io","NodeID":"m","TopologyKeys":["zone"],"Allocatable":null}'
    assert await refusal(api, CSI_NODES, other, STRATEGIC) == [
        ("spec.drivers", f"Invalid value: {shown}: {IMMUTABLE}")
    ]
    twice = {"drivers": [DRIVER, {"name": "d.io", "nodeID": "", "allocatable": {"count": -1}}]}
    assert (await refusal(api, CSI_NODES, twice))[:3] == [
        ("spec.drivers[1].nodeID", "Required value"),
        (
            "spec.drivers[1].allocatable.count",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
        ("spec.drivers[1].name", 'Duplicate value: "d.io"'),
    ]


async def test_an_attachment_and_its_status(api: ApiSide) -> None:
    found = await made(api, ATTACHMENTS, ATTACHMENT)
    assert (found["spec"], found["status"]) == (ATTACHMENT, {"attached": False})
    path = f"{ATTACHMENTS}/{api.namespace}"
    status = {"attached": True, "attachmentMetadata": {"device": "x"}, "detachError": {}}
    sent = {"status": status, "spec": {"nodeName": "m"}, "metadata": {"labels": {"a": "b"}}}
    found = await api.done("PATCH", f"{path}/status", sent, kind=MERGE)
    assert found["status"] == {**status, "detachError": {"time": None}}
    assert found["spec"] == ATTACHMENT
    assert "labels" not in found["metadata"]
    shown = (
        '{"Attacher":"d.io","Source":{"PersistentVolumeName":"v","InlineVolumeSpec":null},'
        '"NodeName":"m"}'
    )
    assert await refusal(api, ATTACHMENTS, {"nodeName": "m"}) == [
        ("spec", f"Invalid value: {shown}: {IMMUTABLE}")
    ]
    gone = await api.done("DELETE", path)
    assert gone["metadata"]["name"] == api.namespace


async def test_what_an_attachment_may_not_say(api: ApiSide) -> None:
    inline = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1"},
        "hostPath": {"path": "/x"},
        "volumeMode": "Block",
    }
    spec = {**ATTACHMENT, "attacher": "", "source": {"inlineVolumeSpec": inline}}
    place, context = "spec.source.inlineVolumeSpec", "in the context of inline volumes"
    assert await refusal(api, ATTACHMENTS, spec, "") == [
        ("spec.attacher", "Required value"),
        (f"{place}.capacity", f"Forbidden: may not be specified {context}"),
        (f"{place}.csi", f"Required value: has to be specified {context}"),
        (
            f"{place}.volumeMode",
            f"Forbidden: may not specify volumeMode other than Filesystem {context}",
        ),
    ]


async def test_the_source_of_a_volume(api: ApiSide) -> None:
    spec: dict[str, Any] = {**VOLUME, "csi": {"driver": "", "nodePublishSecretRef": {}}}
    assert await refusal(api, VOLUMES, spec, "") == [
        ("spec.csi.driver", "Required value"),
        ("spec.csi.volumeHandle", "Required value"),
        ("spec.csi.nodePublishSecretRef.name", "Required value"),
        ("spec.csi.nodePublishSecretRef.namespace", "Required value"),
    ]
    await made(api, VOLUMES, VOLUME)
    assert await refusal(api, VOLUMES, {"csi": {"volumeHandle": "i"}}) == [
        (
            "spec.persistentvolumesource",
            "Forbidden: spec.persistentvolumesource is immutable after creation\n"
            "@@ -22,7 +22,7 @@\n"
            '  "StorageOS": null,\n'
            '  "CSI": {\n'
            '   "Driver": "d.io",\n'
            '-  "VolumeHandle": "h",\n'
            '+  "VolumeHandle": "i",\n'
            '   "ReadOnly": false,\n'
            '   "FSType": "",\n'
            '   "VolumeAttributes": null,\n',
        )
    ]
