"""CSI drivers and the drivers of nodes: what a real API server 1.36 answers to the same."""

from datetime import datetime
from typing import Any

import pytest
from fakekubeapi_causes import STORAGE, SUBDOMAIN, Causes, change, check, named
from fakekubeapi_helpers import create, get, ok, patch, refused

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.resources import find_resource
from fakekubeapi.resources.printers import to_table

pytestmark = pytest.mark.virtual_time
DRIVERS, CSI_NODES = f"{STORAGE}/csidrivers", f"{STORAGE}/csinodes"
ATTACHMENTS = f"{STORAGE}/volumeattachments"
ATTACHMENT = {"attacher": "d.io", "nodeName": "n", "source": {"persistentVolumeName": "v"}}


def node_driver(**fields: Any) -> dict[str, Any]:
    return {"name": "d.io", "nodeID": "n", "topologyKeys": ["zone"], **fields}


async def test_a_driver_says_all_that_clients_look_at() -> None:
    made = await create(FakeApi(), DRIVERS, named({}))
    assert made["spec"] == {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    assert "status" not in made
    assert "generation" not in made["metadata"]


async def test_a_driver_keeps_what_it_says_but_for_what_is_off() -> None:
    spec = {
        "attachRequired": False,
        "podInfoOnMount": True,
        "storageCapacity": True,
        "fsGroupPolicy": "None",
        "volumeLifecycleModes": ["Ephemeral"],
        "requiresRepublish": True,
        "seLinuxMount": True,
        "tokenRequests": [{"audience": ""}],
        "serviceAccountTokenInSecrets": False,
        "nodeAllocatableUpdatePeriodSeconds": 10,
    }
    api = FakeApi(options=ServerOptions(field_managers=True))
    made = await create(api, DRIVERS, named({**spec, "preventPodSchedulingIfMissing": True}))
    assert made["spec"] == spec
    (entry,) = made["metadata"]["managedFields"]
    assert "f:preventPodSchedulingIfMissing" in entry["fieldsV1"]["f:spec"]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"fsGroupPolicy": "Some", "volumeLifecycleModes": ["Persistent", "Odd"]},
            [
                (
                    "spec.fsGroupPolicy",
                    'Unsupported value: "Some": supported values: "File", "None", '
                    '"ReadWriteOnceWithFSType"',
                ),
                (
                    "spec.volumeLifecycleModes",
                    'Unsupported value: "Odd": supported values: "Persistent", "Ephemeral"',
                ),
            ],
        ),
        (
            {
                "tokenRequests": [
                    {"audience": "a", "expirationSeconds": 599},
                    {"audience": "a", "expirationSeconds": 1},
                    {"audience": "", "expirationSeconds": 2**32 + 1},
                ]
            },
            [
                (
                    "spec.tokenRequests[0].expirationSeconds",
                    "Invalid value: 599: may not specify a duration less than 10 minutes",
                ),
                ("spec.tokenRequests[1].audience", 'Duplicate value: "a"'),
                (
                    "spec.tokenRequests[2].expirationSeconds",
                    "Invalid value: 4294967297: may not specify a duration larger than 2^32",
                ),
            ],
        ),
        (
            {"nodeAllocatableUpdatePeriodSeconds": 9, "serviceAccountTokenInSecrets": False},
            [
                (
                    "spec.nodeAllocatableUpdatePeriodSeconds",
                    "Invalid value: 9: must be greater than or equal to 10 seconds",
                ),
                (
                    "spec.serviceAccountTokenInSecrets",
                    "Invalid value: false: serviceAccountTokenInSecrets is set but no "
                    "tokenRequests are specified",
                ),
            ],
        ),
    ],
)
async def test_what_a_driver_may_not_say(spec: dict[str, Any], wanted: Causes) -> None:
    check(await FakeApi().request("POST", DRIVERS, body=named(spec)), wanted)


async def test_what_never_changes_of_a_driver() -> None:
    api = FakeApi()
    await create(api, DRIVERS, named({}))
    body = {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]}}
    check(
        await change(api, f"{DRIVERS}/a", body),
        [
            ("spec.attachedRequired", "Invalid value: false: field is immutable"),
            ("spec.volumeLifecycleModes", 'Invalid value: ["Ephemeral"]: field is immutable'),
        ],
    )


async def test_the_generation_of_a_driver_counts_its_changes() -> None:
    api = FakeApi()
    await create(api, DRIVERS, named({}))
    counts = []
    for body in (
        {"spec": {"podInfoOnMount": True}},
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"preventPodSchedulingIfMissing": True}},
        {"spec": {"podInfoOnMount": None}},
    ):
        changed = ok(await change(api, f"{DRIVERS}/a", body))
        counts.append(changed["metadata"]["generation"])
    assert counts == [1, 1, 1, 2]
    assert changed["spec"]["podInfoOnMount"] is False


@pytest.mark.parametrize("path", [DRIVERS, CSI_NODES, ATTACHMENTS])
async def test_an_update_says_what_it_changes_and_a_deletion_what_is_gone(path: str) -> None:
    api = FakeApi()
    body = named(ATTACHMENT) if path == ATTACHMENTS else named({"drivers": []})
    made = await create(api, path, body)
    bare = {**made, "metadata": {"name": "a"}}
    message = refused(await api.request("PUT", f"{path}/a", body=bare), 422, "Invalid")
    assert message.endswith("resourceVersion: Invalid value: 0: must be specified for an update")
    finalizers = {"metadata": {"finalizers": ["no-domain"]}}
    message = refused(await change(api, f"{path}/a", finalizers), 422, "Invalid")
    assert "name is neither a standard finalizer name nor is it fully qualified" in message
    assert ok(await api.request("DELETE", f"{path}/a"))["metadata"]["name"] == "a"


async def test_lists_of_a_csinode_are_full_or_null() -> None:
    api = FakeApi()
    empty = await create(api, CSI_NODES, named({"drivers": []}, "empty"))
    assert empty["spec"] == {"drivers": None}
    drivers = [node_driver(topologyKeys=[]), {"name": "e", "nodeID": "n", "allocatable": {}}]
    made = await create(api, CSI_NODES, named({"drivers": drivers}))
    assert made["spec"]["drivers"] == [
        {"name": "d.io", "nodeID": "n", "topologyKeys": None},
        {"name": "e", "nodeID": "n", "topologyKeys": None, "allocatable": {}},
    ]


@pytest.mark.parametrize(
    ("drivers", "wanted"),
    [
        (
            [{"name": "", "nodeID": ""}],
            [
                ("spec.drivers[0].name", "Required value"),
                ("spec.drivers[0].nodeID", "Required value"),
            ],
        ),
        (
            [node_driver(name="a" * 64), node_driver(name="a_b", nodeID="n" * 257)],
            [
                ("spec.drivers[0].name", "Too long: may not be more than 63 bytes"),
                ("spec.drivers[1].name", f'Invalid value: "a_b": {SUBDOMAIN}'),
                ("spec.drivers[1].nodeID", f'Invalid value: "{"n" * 257}": must be 256 characters'),
            ],
        ),
        (
            [node_driver(allocatable={"count": -1}), node_driver(topologyKeys=["k", "k"])],
            [
                (
                    "spec.drivers[0].allocatable.count",
                    "Invalid value: -1: must be greater than or equal to 0",
                ),
                ("spec.drivers[1].name", 'Duplicate value: "d.io"'),
                ("spec.drivers[1]", 'Duplicate value: "k"'),
            ],
        ),
        (
            [node_driver(topologyKeys=["", "bad key"])],
            [
                ("spec.drivers[0]", "Required value"),
                ("spec.drivers[0]", 'Invalid value: "": name part must be non-empty'),
                ("spec.drivers[0]", 'Invalid value: "": name part must consist of'),
                ("spec.drivers[0]", 'Invalid value: "bad key": name part must consist of'),
            ],
        ),
    ],
)
async def test_what_a_csinode_may_not_say(drivers: list[Any], wanted: Causes) -> None:
    answer = await FakeApi().request("POST", CSI_NODES, body=named({"drivers": drivers}))
    check(answer, wanted)


async def test_of_a_registered_driver_only_its_limit_changes() -> None:
    api = FakeApi()
    await create(api, CSI_NODES, named({"drivers": [node_driver(allocatable={"count": 3})]}))
    path = f"{CSI_NODES}/a"
    body = {"spec": {"drivers": [{"name": "d.io", "allocatable": {"count": 2147483647}}]}}
    changed = ok(await patch(api, path, body))
    assert changed["spec"]["drivers"] == [node_driver(allocatable={"count": 2147483647})]
    body = {"spec": {"drivers": [{"name": "d.io", "nodeID": "m"}]}}
    shown = '{"Name":"d.io","NodeID":"m","TopologyKeys":["zone"],"Allocatable":null}'
    check(
        await patch(api, path, body),
        [("spec.drivers", f"Invalid value: {shown}: field is immutable")],
    )
    more = ok(await patch(api, path, {"spec": {"drivers": [{"name": "e", "nodeID": "m"}]}}))
    assert [one["name"] for one in more["spec"]["drivers"]] == ["e", "d.io"]
    less = ok(await change(api, path, {"spec": {"drivers": [{"name": "e", "nodeID": "m"}]}}))
    assert [one["name"] for one in less["spec"]["drivers"]] == ["e"]


async def test_who_applies_a_driver_of_a_csinode_owns_it() -> None:
    api = FakeApi(options=ServerOptions(field_managers=True))
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    for name in ("d", "e"):
        body = {**kind, **named({"drivers": [{"name": name, "nodeID": "n"}]})}
        params = {"fieldManager": name}
        content_type = "application/apply-patch+yaml"
        ok(
            await api.request(
                "PATCH", f"{CSI_NODES}/a", body=body, params=params, content_type=content_type
            )
        )
    found = await get(api, f"{CSI_NODES}/a")
    assert [one["name"] for one in found["spec"]["drivers"]] == ["d", "e"]


async def test_discovery_has_the_status_of_attachments() -> None:
    rows = {one["name"]: one for one in (await get(FakeApi(), STORAGE))["resources"]}
    assert rows["volumeattachments"]["namespaced"] is False
    assert rows["volumeattachments/status"]["verbs"] == ["get", "patch", "update"]
    assert "csidrivers/status" not in rows


@pytest.mark.parametrize(
    ("path", "spec", "row", "types"),
    [
        (
            DRIVERS,
            {"volumeLifecycleModes": ["Ephemeral", "Persistent"], "podInfoOnMount": True},
            ["a", True, True, False, "<unset>", False, "Ephemeral,Persistent", "0s"],
            "string boolean boolean boolean string boolean string string",
        ),
        (
            DRIVERS,
            {"tokenRequests": [{"audience": "x"}, {"audience": "y"}], "attachRequired": False},
            ["a", False, False, False, "x,y", False, "Persistent", "0s"],
            "string boolean boolean boolean string boolean string string",
        ),
        (CSI_NODES, {"drivers": [node_driver()]}, ["a", 1, "0s"], "string integer string"),
        (
            ATTACHMENTS,
            ATTACHMENT,
            ["a", "d.io", "v", "n", False, "0s"],
            "string string string string boolean string",
        ),
    ],
)
async def test_rows(path: str, spec: dict[str, Any], row: list[Any], types: str) -> None:
    made = await create(FakeApi(), path, named(spec))
    resource = find_resource("storage.k8s.io", "v1", path.rpartition("/")[2])
    assert resource is not None
    table = to_table(resource, made, datetime.fromisoformat(made["metadata"]["creationTimestamp"]))
    assert [one["cells"] for one in table["rows"]] == [row]
    assert [column["type"] for column in table["columnDefinitions"]] == types.split()
