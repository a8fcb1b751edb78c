"""Bodies of the wrong shape: a clear refusal, never a crash, never a change."""

from typing import Any

import pytest
from fakekubeapi_helpers import (
    JSON_PATCH,
    MERGE_PATCH,
    NODES,
    PODS,
    STRATEGIC_PATCH,
    create,
    get,
    patch,
    pod,
    refused,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekubeapi import FakeApi
from fakekubeapi.errors import StatusError
from fakekubeapi.requests.go_decoding import decoding_error
from fakekubeapi.requests.shapes import check_shape
from fakekubeapi.resources import RESOURCES
from kubeobjects.schema.messages import message, schema_of

pytestmark = pytest.mark.virtual_time

SECRETS = "/api/v1/namespaces/default/secrets"

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "containers is an object": (
        {"spec": {"containers": {"name": "m"}}},
        "object into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    "a container is a string": (
        {"spec": {"containers": ["m"]}},
        "string into Go struct field PodSpec.spec.containers of type v1.Container",
    ),
    "command is a string": (
        {"spec": {"containers": [{"name": "m", "command": "sleep 1"}]}},
        "string into Go struct field Container.spec.containers.command of type []string",
    ),
    "grace is a string": (
        {"spec": {"terminationGracePeriodSeconds": "30"}},
        "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
    ),
    "grace is too large": (
        {"spec": {"terminationGracePeriodSeconds": 1 << 63}},
        "number 9223372036854775808 into Go struct field "
        "PodSpec.spec.terminationGracePeriodSeconds of type int64",
    ),
    "a priority that is too large": (
        {"spec": {"priority": 1 << 31}},
        "number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
    ),
    "a part of a second": (
        {"spec": {"activeDeadlineSeconds": 1.5}},
        "number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
    ),
    "a number for a switch": (
        {"spec": {"hostNetwork": 1}},
        "number into Go struct field PodSpec.spec.hostNetwork of type bool",
    ),
    "a switch for a number": (
        {"spec": {"priority": True}},
        "bool into Go struct field PodSpec.spec.priority of type int32",
    ),
    "a port that is a list": (
        {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": []}}}]}},
        "array into Go struct field "
        "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
    ),
    "limits is a list": (
        {"spec": {"containers": [{"resources": {"limits": []}}]}},
        "array into Go struct field "
        "ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
    ),
    "a volume's name is in a part that stands inline": (
        {"spec": {"volumes": [{"name": "v", "configMap": {"name": 1}}]}},
        "number into Go struct field ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap."
        "LocalObjectReference.name of type string",
    ),
    "labels is a list": (
        {"metadata": {"name": "a", "labels": ["x"]}},
        "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
    ),
    "a time is a number": (
        {"metadata": {"name": "a", "creationTimestamp": 1}},
        "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
    ),
    "a text with a type of its own": (
        {"spec": {"restartPolicy": 1}},
        "number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
    ),
    "a list of texts with a type of their own": (
        {"spec": {"containers": [{"securityContext": {"capabilities": {"add": "ALL"}}}]}},
        "string into Go struct field Capabilities.spec.containers.securityContext.capabilities.add "
        "of type []v1.Capability",
    ),
    "one of a list of texts with a type of their own": (
        {"spec": {"containers": [{"securityContext": {"capabilities": {"drop": [1]}}}]}},
        "number into Go struct field "
        "Capabilities.spec.containers.securityContext.capabilities.drop of type v1.Capability",
    ),
    "a type of another package": (
        {"metadata": {"name": "a", "ownerReferences": [{"uid": 1}]}},
        "number into Go struct field OwnerReference.metadata.ownerReferences.uid of type types.UID",
    ),
    "metadata is a list": (
        {"metadata": []},
        "array into Go struct field Pod.metadata of type v1.ObjectMeta",
    ),
}
"""Bodies, and what kube-apiserver 1.36 says of them behind `json: cannot unmarshal`."""


@pytest.mark.parametrize("name", WRONG)
async def test_a_field_of_a_wrong_type_is_named_as_go_does(name: str) -> None:
    body, words = WRONG[name]

    answer = await FakeApi().request("POST", PODS, body=body)
    assert refused(answer, 400, "BadRequest") == (
        f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {words}'
    )


async def test_the_first_of_two_wrong_fields_is_named() -> None:
    body = {"spec": {"hostPID": 1, "hostNetwork": 1}}
    answer = await FakeApi().request("POST", PODS, body=body)
    assert "PodSpec.spec.hostPID" in refused(answer, 400, "BadRequest")


OURS: dict[str, tuple[dict[str, Any], str]] = {
    "a null container": (
        {"spec": {"containers": [None]}},
        "spec.containers[0]: wanted an element, got null",
    ),
    "a wrong time": (
        {"metadata": {"name": "a", "creationTimestamp": "yesterday"}},
        'metadata.creationTimestamp: wanted an RFC 3339 time, got "yesterday"',
    ),
}


@pytest.mark.parametrize("name", OURS)
async def test_what_go_says_in_other_words_is_named(name: str) -> None:
    body, words = OURS[name]

    answer = await FakeApi().request("POST", PODS, body=body)
    assert refused(answer, 400, "BadRequest") == (f"the body cannot be handled as a Pod: {words}")


async def test_every_kind_of_the_server_can_be_named() -> None:
    """For each kind that is stored, a wrong field is told by its struct."""
    for resource in RESOURCES:
        with pytest.raises(StatusError, match=f"Go struct field {resource.kind}.metadata of type"):
            check_shape({"metadata": 1}, resource.message(schema_of()))


async def test_a_patched_object_of_a_wrong_type_is_refused() -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    answer = await patch(api, f"{PODS}/a", {"spec": {"priority": 1 << 40}})
    assert refused(answer, 422, "Invalid").endswith(
        ": json: cannot unmarshal number 1099511627776 into Go struct field PodSpec.spec.priority "
        "of type int32"
    )


@pytest.mark.parametrize("changed", [{"apiVersion": "v9"}, {"kind": "ConfigMap"}])
async def test_only_a_strategic_patch_cannot_change_the_type(changed: dict[str, str]) -> None:
    api = FakeApi()
    made = await create(api, PODS, pod())
    kept = await patch(api, f"{PODS}/a", changed, STRATEGIC_PATCH)
    assert (kept.status, kept.body["kind"], kept.body["apiVersion"]) == (200, "Pod", "v1")
    refused(await patch(api, f"{PODS}/a", changed, MERGE_PATCH), 422, "Invalid")
    assert await get(api, f"{PODS}/a") == made


@pytest.mark.parametrize(
    ("text", "byte"),
    [
        *(("*", 0), ("ab*d", 2), ("abc", 0), ("abcdab", 4), ("ab\ncd=", 5), ("YQ=", 3)),
        *(("a===", 1), ("YQ=x", 2), ("YWI=x", 4), ("YQ==\nx", 5), ("a\nb\nc", 2)),
    ],
)
async def test_the_wrong_byte_of_base64_is_told(text: str, byte: int) -> None:
    body = {"metadata": {"name": "s"}, "data": {"k": text}}
    answer = await FakeApi().request("POST", SECRETS, body=body)
    assert refused(answer, 400, "BadRequest") == (
        'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte '
        f"{byte}"
    )


async def test_options_of_a_deletion_are_of_no_other_kind() -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    answer = await api.request("DELETE", f"{PODS}/a", body={"kind": "Pod", "apiVersion": "v1"})
    assert refused(answer, 400, "BadRequest").startswith('no kind "Pod" is registered')
    await get(api, f"{PODS}/a")


async def test_an_update_with_another_uid_is_told_as_the_storage_does() -> None:
    api = FakeApi()
    made = await create(api, NODES, {"metadata": {"name": "n"}})
    other = {"metadata": {"name": "n", "uid": "other"}}
    answer = await api.request("PUT", f"{NODES}/n", body=other)
    assert refused(answer, 409, "Conflict") == (
        'Operation cannot be fulfilled on nodes "n": StorageError: invalid object, Code: 4, Key: '
        "/registry/minions/n, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
        f"precondition: other, UID in object meta: {made['metadata']['uid']}"
    )


async def test_kinds_without_fields_of_their_own_can_be_asked_by_namespace() -> None:
    """Those without a namespace have the empty one."""
    api = FakeApi()
    path = "/apis/storage.k8s.io/v1/csidrivers"
    await create(api, path, {"metadata": {"name": "d"}, "spec": {}})
    none = await get(api, path, fieldSelector="metadata.namespace=default")
    one = await get(api, path, fieldSelector="metadata.namespace!=default")
    assert (len(none["items"]), len(one["items"])) == (0, 1)
    answer = await api.request("GET", NODES, params={"fieldSelector": "metadata.namespace=default"})
    assert refused(answer, 400, "BadRequest") == "field label not supported: metadata.namespace"


async def test_plain_numbers_are_quantities() -> None:
    container = {
        "name": "m",
        "image": "x:1",
        "resources": {"limits": {"cpu": 1, "memory": 5.5}},
    }
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": 1000}}]
    made = await create(FakeApi(), PODS, pod(containers=[container], volumes=volumes))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"] == {"cpu": "1", "memory": "5500m"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "the body: wanted an object, got a list"),
        ({"gracePeriodSeconds": "5"}, "field DeleteOptions.gracePeriodSeconds of type int64"),
        (
            {"preconditions": "uid"},
            "json: cannot unmarshal string into Go struct field DeleteOptions.",
        ),
    ],
)
async def test_wrong_delete_options(options: Any, words: str) -> None:
    api = FakeApi()
    made = await create(api, PODS, pod())
    answer = await api.request("DELETE", f"{PODS}/a", body=options or [0])
    assert words in refused(answer, 400, "BadRequest")
    assert await get(api, f"{PODS}/a") == made


WORDS = [
    "metadata", "name", "labels", "annotations", "finalizers", "ownerReferences", "uid", "spec",
    "containers", "initContainers", "image", "resources", "limits", "cpu", "env", "ports",
    "volumes", "tolerations", "nodeName", "status", "conditions", "type", "podIPs", "ip", "phase",
    "stringData", "$patch", "$retainKeys", "$setElementOrder/conditions",
    "$deleteFromPrimitiveList/finalizers", "op", "path", "value", "from",
]  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["a", "", "replace", "delete", "merge", "Always", "1Gi", "/metadata/name"])
)
KEYS = st.sampled_from(WORDS)
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.dictionaries(KEYS, ANYTHING, max_size=3),
        "spec": st.dictionaries(KEYS, ANYTHING, max_size=3),
        "status": st.dictionaries(KEYS, ANYTHING, max_size=3),
    },
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["POST", "PUT", "DELETE", JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH]),
    st.sampled_from([PODS, NODES, "/api/v1/namespaces/default/secrets"]),
    st.sampled_from(["", "/status", "/binding", "/eviction", "/resize"]),
    ANYTHING | SHAPED,
)
async def test_no_body_breaks_the_server(
    method: str, path: str, subresource: str, body: Any
) -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    await create(api, NODES, {"metadata": {"name": "a"}})
    target = f"{path}/a{subresource}"
    if method == "POST" and not subresource:
        answer = await api.request("POST", path, body=body)
    elif "+json" in method:
        answer = await patch(api, target, body, method)
    else:
        answer = await api.request(method, target, body=body)
    assert answer.ok or answer.body["code"] == answer.status
    assert answer.status != 500


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        (
            "core.v1.PersistentVolumeClaim",
            {"status": {"allocatedResourceStatuses": []}},
            "array into Go struct field PersistentVolumeClaimStatus.status."
            "allocatedResourceStatuses of type map[v1.ResourceName]v1.ClaimResourceStatus",
        ),
        (
            "resource.v1.CapacityRequirements",
            {"requests": 1},
            "number into Go struct field CapacityRequirements.requests of type "
            "map[v1.QualifiedName]resource.Quantity",
        ),
        (
            "scheduling.v1.PriorityClass",
            {"preemptionPolicy": 1},
            "number into Go struct field PriorityClass.preemptionPolicy of type "
            "v1.PreemptionPolicy",
        ),
    ],
)
def test_types_of_other_messages(name: str, body: dict[str, Any], words: str) -> None:
    assert decoding_error(body, message(name)) == f"json: cannot unmarshal {words}"


@pytest.mark.parametrize("body", [[], 0, "", False])
async def test_an_eviction_is_an_object_even_where_what_is_sent_is_empty(body: Any) -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    answer = await api.request("POST", f"{PODS}/a/eviction", body=body)
    words = refused(answer, 400, "BadRequest")
    assert words.startswith("the body cannot be handled as a Eviction: the body: wanted an object")
    assert (await api.request("GET", f"{PODS}/a")).status == 200


async def test_the_options_of_a_strict_deletion_are_not_held_to_the_kind() -> None:
    """As kube-apiserver 1.36.2 answers: they are options, not an object of the kind."""
    api = FakeApi()
    await create(api, PODS, pod())
    strict = {"fieldValidation": "Strict"}
    options = {"gracePeriodSeconds": 1}
    answer = await api.request("DELETE", f"{PODS}/a", params=strict, body=options)
    assert answer.status == 200
