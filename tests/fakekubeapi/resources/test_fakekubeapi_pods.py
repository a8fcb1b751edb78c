"""Pods: defaults, validation, the two doors of spec and status, deletion with grace."""

from typing import Any

import pytest
from fakekubeapi_helpers import MERGE_PATCH, POD_A, PODS, create, get, ok, patch, pod, refused
from pods import IMAGE

from fakekubeapi import FakeApi
from fakekubeapi.resources.pods.admission import admit_pod
from kubeobjects.pods.defaults import default_pod
from kubeobjects.pods.qos import qos_class

pytestmark = pytest.mark.virtual_time


def defaulted(**spec: Any) -> dict[str, Any]:
    made = pod(**spec)
    default_pod(made)
    admit_pod(made)
    return dict(made["spec"])


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1", "IfNotPresent"),
        ("localhost:5000/busybox", "Always"),
        ("localhost:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:00", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    spec = defaulted(containers=[{"name": "m", "image": image}])
    assert spec["containers"][0]["imagePullPolicy"] == policy


def test_defaults_of_probes_ports_volumes_and_resources_SRC_036() -> None:
    container = {
        "name": "m",
        "image": "x:1",
        "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 3},
        "readinessProbe": {"httpGet": {"port": 80}},
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    volumes = [{"name": "v"}, {"name": "c", "configMap": {"name": "c"}}]
    spec = defaulted(containers=[container], volumes=volumes, hostNetwork=True)
    made = spec["containers"][0]
    assert made["livenessProbe"] == {
        "exec": {"command": ["true"]},
        "timeoutSeconds": 1,
        "periodSeconds": 3,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert made["readinessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert made["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    assert made["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert made["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert spec["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "c", "defaultMode": 0o644}},
    ]


def test_a_pod_that_tolerates_everything_gets_no_more_tolerations_SRC_035() -> None:
    tolerant = [{"operator": "Exists", "effect": "NoExecute"}]
    assert defaulted(tolerations=tolerant)["tolerations"] == tolerant


def amounts(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {"name": "m", "resources": {"requests": requests, "limits": limits}}


FULL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([amounts({}, {})], "BestEffort"),
        ([amounts({"cpu": "0"}, {})], "BestEffort"),
        ([amounts({"example.com/gpu": "1"}, {})], "BestEffort"),
        ([amounts({"cpu": "1m"}, {})], "Burstable"),
        ([amounts({}, FULL)], "Guaranteed"),
        ([amounts({"cpu": "1000m", "memory": "1024Mi"}, FULL)], "Guaranteed"),
        ([amounts({"cpu": "1"}, {"cpu": "1"})], "Burstable"),
        ([amounts(FULL, FULL), amounts({}, {})], "Burstable"),
        ([amounts({**FULL, "cpu": "0"}, FULL)], "Burstable"),
        ([amounts({"cpu": "x"}, {"memory": "y"})], "BestEffort"),
    ],
)
def test_qos_class(containers: list[Any], expected: str) -> None:
    assert qos_class({"containers": containers}) == expected


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "no containers": ({"containers": []}, "spec.containers: Required value"),
    "no image": ({"containers": [{"name": "m"}]}, "spec.containers[0].image: Required value"),
    "no name": ({"containers": [{"image": "x"}]}, "spec.containers[0].name: Required value"),
    "bad name": ({"containers": [{"name": "M_1", "image": "x"}]}, 'Invalid value: "M_1"'),
    "same name": (
        {"initContainers": [{"name": "main", "image": "x"}]},
        'spec.initContainers[0].name: Duplicate value: "main"',
    ),
    "restart policy": (
        {"restartPolicy": "Sometimes"},
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always"',
    ),
    "mount without volume": (
        {
            "containers": [
                {"name": "m", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
            ]
        },
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ),
    "request above limit": (
        {
            "containers": [
                {
                    "name": "m",
                    "image": "x",
                    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
                }
            ]
        },
        "must be less than or equal to cpu limit of 1",
    ),
    "port": (
        {"containers": [{"name": "m", "image": "x", "ports": [{"containerPort": 70000}]}]},
        "must be between 1 and 65535",
    ),
    "deadline": ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
}


@pytest.mark.parametrize("name", INVALID)
async def test_invalid_pods_are_422_and_name_the_field(name: str) -> None:
    spec, words = INVALID[name]

    answer = await FakeApi().request("POST", PODS, body=pod(**spec))
    message = refused(answer, 422, "Invalid")
    assert message.startswith('Pod "a" is invalid: ')
    assert words in message
    assert answer.body["details"]["causes"]


async def test_several_wrong_fields_are_all_listed() -> None:
    body = pod("A!", restartPolicy="x", dnsPolicy="y")
    answer = await FakeApi().request("POST", PODS, body=body)
    refused(answer, 422, "Invalid")
    fields = [cause["field"] for cause in answer.body["details"]["causes"]]
    assert fields == ["metadata.name", "spec.restartPolicy", "spec.dnsPolicy"]


async def test_status_changes_only_through_status() -> None:
    api = FakeApi()
    made = await create(api, PODS, pod())
    running = {"status": {"phase": "Running"}, "spec": {"nodeName": "other"}}
    through_main = ok(await patch(api, POD_A, {"status": {"phase": "Running"}}))
    assert through_main == made
    through_status = ok(await patch(api, f"{POD_A}/status", running))
    assert through_status["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert through_status["spec"] == made["spec"]
    assert through_status["metadata"]["generation"] == 1
    put = ok(await api.request("PUT", f"{POD_A}/status", body=through_status | {"status": {}}))
    assert put["status"] == {"qosClass": "BestEffort"}


async def test_owner_references_do_not_change_through_status() -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}
    change = {"metadata": {"ownerReferences": [owner], "labels": {"l": "1"}}}
    made = ok(await patch(api, f"{POD_A}/status", change))
    assert "ownerReferences" not in made["metadata"]
    assert made["metadata"]["labels"] == {"l": "1"}


ALLOWED: list[dict[str, Any]] = [
    {"containers": [{"name": "main", "image": "busybox:2"}]},
    {"activeDeadlineSeconds": 100},
    {"tolerations": [{"key": "k", "operator": "Exists"}]},
]


FORBIDDEN: list[dict[str, Any]] = [
    {"nodeName": "other"},
    {"restartPolicy": "Never"},
    {"terminationGracePeriodSeconds": 1},
    {"containers": [{"name": "main", "command": ["x"]}]},
    {"containers": [{"name": "second", "image": "x"}]},
    {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]},
]


@pytest.mark.parametrize("spec", ALLOWED, ids=str)
async def test_spec_changes_that_the_api_allows_grow_the_generation(spec: dict[str, Any]) -> None:
    api = FakeApi()
    tolerant = pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}])
    made = await create(api, PODS, tolerant)
    if "tolerations" in spec:
        spec["tolerations"] = [*made["spec"]["tolerations"], *spec["tolerations"]]
    changed = ok(await patch(api, POD_A, {"spec": spec}))
    assert changed["metadata"]["generation"] == 2
    assert changed["spec"] != made["spec"]


@pytest.mark.parametrize("spec", FORBIDDEN, ids=str)
async def test_other_spec_changes_are_forbidden(spec: dict[str, Any]) -> None:
    api = FakeApi()
    made = await create(api, PODS, pod())
    answer = await patch(api, POD_A, {"spec": spec})
    assert "pod updates may not " in refused(answer, 422, "Invalid")
    assert await get(api, POD_A) == made


async def test_an_update_may_only_remove_scheduling_gates() -> None:
    api = FakeApi()
    gated = pod(schedulingGates=[{"name": "a.example/b"}, {"name": "c.example/d"}])
    gated["spec"].pop("nodeName", None)
    await create(api, PODS, gated)
    more = {"spec": {"schedulingGates": [{"name": "a.example/b"}, {"name": "e.example/f"}]}}
    answer = await patch(api, POD_A, more, MERGE_PATCH)
    refused(answer, 422, "Invalid")
    text = "Forbidden: only deletion is allowed, but found new scheduling gate 'e.example/f'"
    assert answer.body["details"]["causes"] == [
        {
            "reason": "FieldValueForbidden",
            "message": text,
            "field": "spec.schedulingGates[1].name",
        }
    ]
    fewer = {"spec": {"schedulingGates": [{"name": "c.example/d"}]}}
    changed = ok(await patch(api, POD_A, fewer, MERGE_PATCH))
    assert changed["spec"]["schedulingGates"] == fewer["spec"]["schedulingGates"]


async def test_ephemeral_containers_are_added_through_their_own_door_only() -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    path, debug = f"{POD_A}/ephemeralcontainers", {"name": "debug", "image": "x:1"}
    wanted = {"spec": {"ephemeralContainers": [debug], "nodeName": "elsewhere"}}
    made = ok(await patch(api, path, wanted))
    assert [c["name"] for c in made["spec"]["ephemeralContainers"]] == ["debug"]
    assert made["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert made["spec"]["nodeName"] == "n"
    assert made["metadata"]["generation"] == 2
    changed = {"spec": {"ephemeralContainers": [{**debug, "image": "x:2"}]}}
    another = {"spec": {"ephemeralContainers": [{**debug, "name": "more"}]}}
    for wrong_path, body in ((path, changed), (POD_A, another)):
        refused(await patch(api, wrong_path, body), 422, "Invalid")


async def test_resize_changes_resources_and_nothing_else() -> None:
    api = FakeApi()
    small = {"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": "500m"}}}
    await create(api, PODS, pod(containers=[small]))
    wanted = {"name": "main", "image": "other", "resources": {"requests": {"cpu": "1"}}}
    made = ok(await patch(api, f"{POD_A}/resize", {"spec": {"containers": [wanted]}}))
    container = made["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "1"}}
    assert container["image"] == IMAGE
    assert made["metadata"]["generation"] == 2
    wanted["resources"]["limits"] = {"ephemeral-storage": "1Gi"}
    other = await patch(api, f"{POD_A}/resize", {"spec": {"containers": [wanted]}})
    assert "only cpu and memory resources are mutable" in refused(other, 422, "Invalid")


@pytest.mark.parametrize(
    ("before", "after", "verb"), [(None, "h", "add"), ("h", None, "remove"), ("h", "i", "update")]
)
async def test_the_mirror_annotation_is_immutable_MIRR_027(
    before: str | None, after: str | None, verb: str
) -> None:
    api = FakeApi()
    body = pod()
    if before:
        body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": before}
    await create(api, PODS, body)
    change = {"metadata": {"annotations": {"kubernetes.io/config.mirror": after}}}
    for path in (POD_A, f"{POD_A}/status"):
        answer = await patch(api, path, change)
        assert f"may not {verb} mirror pod annotation" in refused(answer, 422, "Invalid")
    harmless = {"metadata": {"annotations": {"note": "x"}}}
    assert (await patch(api, POD_A, harmless)).ok


async def test_binding_gives_a_node_once() -> None:
    api = FakeApi()
    await create(api, PODS, pod(node=None))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    bound = await api.request("POST", f"{POD_A}/binding", body=binding)
    assert (bound.status, bound.body["status"]) == (201, "Success")
    made = await get(api, POD_A)
    assert made["spec"]["nodeName"] == "n"
    assert made["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]
    again = await api.request("POST", f"{POD_A}/binding", body=binding)
    assert 'already assigned to node "n"' in refused(again, 409, "Conflict")
    aimless = await api.request("POST", f"{POD_A}/binding", body={"metadata": {"name": "a"}})
    assert aimless.body["message"] == "target.name: Required value"
    unnamed = await api.request("POST", f"{POD_A}/binding", body={"target": {"name": "n"}})
    assert "name in URL does not match" in refused(unnamed, 400, "BadRequest")


async def test_a_mirror_annotation_without_a_node_is_told_twice() -> None:
    """Of the changed pod, and of what has become of its annotations."""
    api = FakeApi()
    body = pod()
    del body["spec"]["nodeName"]
    await create(api, PODS, body)
    change = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "h"}}}
    answer = await patch(api, POD_A, change)
    refused(answer, 422, "Invalid")
    told = [cause["message"] for cause in answer.body["details"]["causes"]]
    assert [text.partition(":")[0] for text in told] == [
        "Invalid value",
        "Forbidden",
        "Invalid value",
    ]
    assert told[0] == told[2]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        *(("busybox", "Always"), ("busybox:1", "IfNotPresent"), ("x.io:5/a/b:latest", "Always")),
        (f"busybox@sha256:{'a' * 64}", "IfNotPresent"),
        (f"busybox:latest@sha256:{'a' * 64}", "Always"),
        *(("Busybox", "IfNotPresent"), ("a b", "IfNotPresent"), ("UP/x", "Always")),
        ("a" * 64, "IfNotPresent"),
    ],
)
async def test_the_pull_policy_of_an_image_follows_from_its_tag(image: str, policy: str) -> None:
    """What is no name of an image has no tag."""
    body = pod(containers=[{"name": "c", "image": image}])
    made = await create(FakeApi(), PODS, body)
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy
