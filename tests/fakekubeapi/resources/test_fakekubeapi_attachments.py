"""Volumes that are attached to nodes: what a real API server 1.36 answers to the same requests."""

from typing import Any

import pytest
from fakekubeapi_causes import CSI, STORAGE, SUBDOMAIN, Causes, change, check, named
from fakekubeapi_helpers import create, get, ok, refused

from fakekubeapi import FakeApi

pytestmark = pytest.mark.virtual_time
ATTACHMENTS = f"{STORAGE}/volumeattachments"
INLINE = {"accessModes": ["ReadWriteOnce"], "csi": CSI}


def attachment(**spec: Any) -> dict[str, Any]:
    source = {"persistentVolumeName": "v"}
    return named({"attacher": "d.io", "nodeName": "n", "source": source, **spec})


async def test_an_attachment_is_not_attached_until_its_status_says_so() -> None:
    api = FakeApi()
    body = {**attachment(), "status": {"attached": True}}
    made = await create(api, ATTACHMENTS, body)
    assert made["status"] == {"attached": False}
    path = f"{ATTACHMENTS}/a"
    same = ok(await change(api, path, {"status": {"attached": True}}))
    assert same["status"] == {"attached": False}
    told = {"attached": True, "attachmentMetadata": {"device": "/dev/x"}, "attachError": {}}
    sent = {"status": told, "spec": {"nodeName": "other"}, "metadata": {"labels": {"a": "b"}}}
    changed = ok(await change(api, f"{path}/status", sent))
    assert changed["status"] == {**told, "attachError": {"time": None}}
    assert changed["spec"] == made["spec"]
    assert "labels" not in changed["metadata"]
    assert await get(api, f"{path}/status") == changed


async def test_what_shall_be_attached_never_changes() -> None:
    api = FakeApi()
    await create(api, ATTACHMENTS, attachment())
    shown = (
        '{"Attacher":"d.io","Source":{"PersistentVolumeName":"v","InlineVolumeSpec":null},'
        '"NodeName":"m"}'
    )
    answer = await change(api, f"{ATTACHMENTS}/a", {"spec": {"nodeName": "m"}})
    check(answer, [("spec", f"Invalid value: {shown}: field is immutable")])


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"attacher": "", "nodeName": "A", "source": {}},
            [
                ("spec.attacher", "Required value"),
                (
                    "spec.source",
                    "Required value: must specify exactly one of inlineVolumeSpec and "
                    "persistentVolumeName",
                ),
                ("spec.nodeName", f'Invalid value: "A": {SUBDOMAIN}'),
            ],
        ),
        (
            {"source": {"persistentVolumeName": ""}},
            [
                (
                    "spec.source.persistentVolumeName",
                    "Required value: must specify non empty persistentVolumeName",
                ),
                ("spec.source.persistentVolumeName", f'Invalid value: "": {SUBDOMAIN}'),
            ],
        ),
        (
            {"source": {"persistentVolumeName": "v", "inlineVolumeSpec": INLINE}},
            [("spec.source", "Forbidden: must specify exactly one of inlineVolumeSpec and")],
        ),
        (
            {"source": {"inlineVolumeSpec": {"hostPath": {"path": "/x"}, "accessModes": ["No"]}}},
            [
                (
                    "spec.source.inlineVolumeSpec.csi",
                    "Required value: has to be specified in the context of inline volumes",
                ),
                ("spec.source.inlineVolumeSpec.accessModes", 'Unsupported value: "No"'),
            ],
        ),
        (
            {
                "source": {
                    "inlineVolumeSpec": {
                        **INLINE,
                        "capacity": {"storage": "1"},
                        "persistentVolumeReclaimPolicy": "Delete",
                        "nodeAffinity": {},
                        "csi": {**CSI, "driver": ""},
                        "storageClassName": "fast",
                        "volumeMode": "Block",
                    }
                }
            },
            [
                (
                    "spec.source.inlineVolumeSpec.capacity",
                    "Forbidden: may not be specified in the context of inline volumes",
                ),
                (
                    "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy",
                    "Forbidden: may only be Retain in the context of inline volumes",
                ),
                ("spec.source.inlineVolumeSpec.nodeAffinity", "Forbidden: may not be specified"),
                ("spec.source.inlineVolumeSpec.csi.driver", "Required value"),
                ("spec.source.inlineVolumeSpec.storageClassName", "Forbidden: may not be"),
                (
                    "spec.source.inlineVolumeSpec.volumeMode",
                    "Forbidden: may not specify volumeMode other than Filesystem in the context",
                ),
            ],
        ),
    ],
)
async def test_what_an_attachment_may_not_say(spec: dict[str, Any], wanted: Causes) -> None:
    check(await FakeApi().request("POST", ATTACHMENTS, body=attachment(**spec)), wanted)


async def test_what_the_status_of_an_attachment_may_not_say() -> None:
    api = FakeApi()
    source = {"inlineVolumeSpec": {**INLINE, "mountOptions": ["ro"], "volumeMode": "Filesystem"}}
    await create(api, ATTACHMENTS, attachment(source=source))
    status = {
        "attachmentMetadata": {"k": "v" * 2**18},
        "attachError": {"message": "m" * 1025},
        "detachError": {"errorCode": -1, "message": "m" * 1024},
    }
    check(
        await change(api, f"{ATTACHMENTS}/a/status", {"status": status}),
        [
            ("status.attachmentMetadata", "Too long: may not be more than 262144 bytes"),
            ("status.attachError.message", "Too long: may not be more than 262144 bytes"),
            (
                "status.detachError.errorCode",
                "Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ),
        ],
    )


async def test_an_attachment_stays_until_it_is_detached() -> None:
    api = FakeApi()
    await create(api, ATTACHMENTS, attachment())
    path, held = f"{ATTACHMENTS}/a", {"metadata": {"finalizers": ["example.com/attacher"]}}
    ok(await change(api, path, held))
    assert ok(await api.request("DELETE", path))["metadata"]["deletionTimestamp"]
    told = ok(await change(api, f"{path}/status", {"status": {"detachError": {"message": "no"}}}))
    assert told["status"]["detachError"] == {"time": None, "message": "no"}
    more = {"metadata": {"finalizers": ["example.com/attacher", "example.com/new"]}}
    refused(await change(api, path, more), 422, "Invalid")
    ok(await change(api, path, {"metadata": {"finalizers": None}}))
    refused(await api.request("GET", path), 404, "NotFound")
