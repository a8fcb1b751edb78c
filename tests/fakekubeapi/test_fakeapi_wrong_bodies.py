"""Bodies of the wrong shape: a clear refusal, never a crash, never a change."""

from typing import Any

import pytest
from fakeapi_helpers import (
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

pytestmark = pytest.mark.virtual_time

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "containers is an object": (
        {"spec": {"containers": {"name": "m"}}},
        "spec.containers: wanted a list, got an object",
    ),
    "a container is a string": (
        {"spec": {"containers": ["m"]}},
        'spec.containers[0]: wanted an object, got "m"',
    ),
    "command is a string": (
        {"spec": {"containers": [{"name": "m", "command": "sleep 1"}]}},
        'spec.containers[0].command: wanted a list, got "sleep 1"',
    ),
    "grace is a string": (
        {"spec": {"terminationGracePeriodSeconds": "30"}},
        'spec.terminationGracePeriodSeconds: wanted a whole number, got "30"',
    ),
    "a number for a switch": (
        {"spec": {"hostNetwork": 1}},
        "spec.hostNetwork: wanted true or false, got 1",
    ),
    "a switch for a number": (
        {"spec": {"priority": True}},
        "spec.priority: wanted a whole number, got true",
    ),
    "a port that is a list": (
        {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": []}}}]}},
        "httpGet.port: wanted a whole number or a string, got a list",
    ),
    "a null container": (
        {"spec": {"containers": [None]}},
        "spec.containers[0]: wanted an element, got null",
    ),
    "labels is a list": (
        {"metadata": {"name": "a", "labels": ["x"]}},
        "metadata.labels: wanted an object, got a list",
    ),
    "a wrong time": (
        {"metadata": {"name": "a", "creationTimestamp": "yesterday"}},
        'metadata.creationTimestamp: wanted an RFC 3339 time, got "yesterday"',
    ),
    "metadata is a list": ({"metadata": []}, "metadata: wanted an object, got a list"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_field_of_a_wrong_type_is_named(name: str) -> None:
    body, words = WRONG[name]

    answer = await FakeApi().request("POST", PODS, body=body)
    message = refused(answer, 400, "BadRequest")
    assert message.startswith("the body cannot be handled as a Pod: ")
    assert words in message


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
        ({"gracePeriodSeconds": "5"}, "gracePeriodSeconds: wanted a whole number"),
        ({"preconditions": "uid"}, 'preconditions: wanted an object, got "uid"'),
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
