"""Requests that are hostile or broken: each gets an answer of its own, as from the API server."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fakekubeapi_helpers import (
    CONFIGMAPS,
    JSON_PATCH,
    MERGE_PATCH,
    PODS,
    STRATEGIC_PATCH,
    configmap,
    pod,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekubeapi import FakeApi
from fakekubeapi.http import serve

DEEP = b"[" * 200_000 + b"]" * 200_000
DEEP_OBJECT = b'{"data":' * 50_000 + b"1" + b"}" * 50_000


def body(name: str, data: bytes = b"b") -> bytes:
    return b'{"metadata":{"name":"%s"},"data":{"a":"%s"}}' % (name.encode(), data)


@asynccontextmanager
async def served() -> AsyncIterator[FakeApi]:
    api = FakeApi()
    async with await serve(api) as server:
        api.url = server.url  # type: ignore[attr-defined]
        yield api


async def answered(
    api: FakeApi, method: str, path: str, sent: bytes = b"", **headers: str
) -> tuple[int, Any]:
    """Code and body of a request that is written byte by byte."""
    given = {"Host": "x", "Connection": "close", "Content-Length": str(len(sent))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    host, port = api.url.removeprefix("http://").split(":")  # type: ignore[attr-defined]
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + sent)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    head, _, told = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(told)


BODIES = {
    "brackets": (b"[" * 200_000, 400),
    "closed": (DEEP, 400),
    "objects": (DEEP_OBJECT, 400),
    "not utf-8": (body("u", b"\xff\xfe"), 201),
    "only not utf-8": (b"\xff\xfe\x00", 400),
    "half a pair": (body("s", b"\\ud800"), 201),
    "a number too far": (b'{"metadata":{"name":"n","generation":' + b"9" * 400 + b"}}", 400),
    "a number without a field": (b'{"metadata":{"name":"n"},"x":' + b"9" * 30 + b"}", 201),
}


@pytest.mark.parametrize("name", BODIES)
async def test_bodies_get_an_answer_and_break_nothing(name: str) -> None:
    sent, wanted = BODIES[name]
    async with served() as api:
        code, told = await answered(api, "POST", CONFIGMAPS, sent)
        assert code == wanted, told
        if code == 400:
            assert (told["kind"], told["reason"]) == ("Status", "BadRequest")
        code, told = await answered(api, "GET", CONFIGMAPS)
        assert code == 200
        values = [value for item in told["items"] for value in item.get("data", {}).values()]
        assert all("\ufffd" in value for value in values)


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
@pytest.mark.parametrize("sent", [DEEP, DEEP_OBJECT, b"\xff", b"{"])
async def test_patches_get_an_answer(content_type: str, sent: bytes) -> None:
    async with served() as api:
        await api.request("POST", CONFIGMAPS, body=configmap("c"))
        code, told = await answered(
            api, "PATCH", f"{CONFIGMAPS}/c", sent, Content_Type=content_type
        )
        assert (code, told["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "identity", "nonsense"])
async def test_a_content_encoding_does_not_count(coding: str) -> None:
    async with served() as api:
        headers = {"Content_Encoding": coding}
        assert (await answered(api, "POST", CONFIGMAPS, body("a"), **headers))[0] == 201
        sent = gzip.compress(body("b"))
        assert (await answered(api, "POST", CONFIGMAPS, sent, **headers))[0] == 400
        assert (await answered(api, "GET", CONFIGMAPS, b"abc", **headers))[0] == 200


async def test_nobody_waits_for_the_body_of_a_get() -> None:
    async with served() as api:
        code, told = await answered(api, "GET", CONFIGMAPS, Content_Length="5")
        assert (code, told["kind"]) == (200, "ConfigMapList")


@pytest.mark.parametrize(
    ("accept", "code"),
    [("text/plain", 406), (";;,q=x", 406), ("application/json;as=Table;v=v9;g=meta.k8s.io", 406),
     ("application/cbor", 406), ("application/cbor,application/json", 200),
     ("*/*", 200), ("", 200)],
)  # fmt: skip
async def test_an_answer_in_a_form_that_there_is_none_of(accept: str, code: int) -> None:
    async with served() as api:
        assert (await answered(api, "GET", CONFIGMAPS, Accept=accept))[0] == code


NINES = "9" * 20


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("DELETE", {"gracePeriodSeconds": NINES}, 400),
        ("DELETE", {"gracePeriodSeconds": "x"}, 400),
        ("DELETE", {"gracePeriodSeconds": "١"}, 400),
        ("DELETE", {"gracePeriodSeconds": "-5"}, 404),
        ("GET", {"limit": NINES}, 400),
        ("GET", {"limit": "-1"}, 404),
        ("GET", {"resourceVersion": NINES * 2}, 400),
        ("GET", {"resourceVersion": "-1"}, 400),
        ("GET", {"resourceVersionMatch": "Exact"}, 422),
        ("GET", {"resourceVersion": "1", "resourceVersionMatch": "Foo"}, 422),
        ("GET", {"watch": "1", "timeoutSeconds": NINES}, 400),
        ("GET", {"watch": "1", "sendInitialEvents": "true"}, 422),
        ("GET", {"labelSelector": "a," * 3000}, 400),
        ("POST", {"dryRun": "x"}, 422),
        ("POST", {"fieldValidation": "x"}, 422),
    ],
)
@pytest.mark.virtual_time
async def test_parameters_are_read_as_by_the_api_server(
    method: str, params: dict[str, str], code: int
) -> None:
    path = f"{CONFIGMAPS}/nope" if method == "DELETE" else CONFIGMAPS
    answer = await FakeApi().request(method, path, params=params, body=configmap("c"))
    wanted = 200 if (method, code) == ("GET", 404) else code
    assert answer.status == wanted, answer.body
    if answer.status >= 400:
        assert answer.body["kind"] == "Status"


@pytest.mark.virtual_time
async def test_a_grace_beyond_64_bits_is_refused() -> None:
    options = {"gracePeriodSeconds": int(NINES)}
    answer = await FakeApi().request("DELETE", f"{CONFIGMAPS}/nope", body=options)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.virtual_time
async def test_a_grace_of_a_million_years_is_taken() -> None:
    """64 bits hold it in seconds; their nanoseconds begin anew, as the API server's."""
    api = FakeApi()
    created = await api.request("POST", PODS, body=pod(terminationGracePeriodSeconds=10**15))
    assert created.status == 201, created.body
    for options in ({}, {"gracePeriodSeconds": 10**14}, {"gracePeriodSeconds": 0}):
        answer = await api.request("DELETE", f"{PODS}/a", body=options)
        assert answer.status == 200, answer.body


async def patched(api: FakeApi, operations: list[Any]) -> int:
    """The status code of a JSON patch of `c`."""
    path = f"{CONFIGMAPS}/c"
    return (await api.request("PATCH", path, body=operations, content_type=JSON_PATCH)).status


@pytest.mark.virtual_time
async def test_json_patches_are_bounded() -> None:
    api = FakeApi()
    await api.request("POST", CONFIGMAPS, body=configmap("c"))
    doubling = [{"op": "copy", "from": "", "path": f"/x{i}"} for i in range(40)]
    assert await patched(api, doubling) == 422
    test = {"op": "test", "path": "/kind", "value": "ConfigMap"}
    assert await patched(api, [test] * 10_001) == 413
    deeper = [{"op": "copy", "from": "/data", "path": "/data/x"}] * 12
    assert await patched(api, deeper) in (400, 422)


@pytest.mark.parametrize("op", [None, "", "erase", 1, [], {}, ["add"]])
@pytest.mark.virtual_time
async def test_json_patches_know_their_operations(op: Any) -> None:
    api = FakeApi()
    await api.request("POST", CONFIGMAPS, body=configmap("c"))
    assert await patched(api, [{"op": op, "path": "/data/x", "value": "1"}]) == 422


@pytest.mark.parametrize("name", [".", "..", "%zz", "a%2Fb"])
@pytest.mark.virtual_time
async def test_names_that_no_path_may_have(name: str) -> None:
    answer = await FakeApi().request("GET", f"{CONFIGMAPS}/{name}")
    assert answer.status == 400
    assert answer.body["message"].startswith("Name parameter invalid: ")


TEXTS = st.text(max_size=8) | st.sampled_from(["1", "-1", "true", "All", NINES, "a=b", "a,,b"])
NAMES = st.sampled_from(
    ["limit", "continue", "watch", "timeoutSeconds", "resourceVersion", "resourceVersionMatch",
     "fieldSelector", "labelSelector", "dryRun", "fieldValidation", "gracePeriodSeconds",
     "propagationPolicy", "sendInitialEvents", "allowWatchBookmarks", "pretty"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(["", "/c", "/c/status", "/" + "x" * 300]),
    st.dictionaries(NAMES, TEXTS, max_size=3),
    st.binary(max_size=30) | st.sampled_from([DEEP, b'{"metadata":{"name":"c"}}', b"null"]),
    st.sampled_from(["application/json", JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, "", ";;", "x"]),
)
@pytest.mark.virtual_time
async def test_no_request_breaks_the_server(
    method: str, path: str, params: dict[str, str], sent: bytes, content_type: str
) -> None:
    api = FakeApi()
    await api.request("POST", CONFIGMAPS, body=configmap("c"))
    answer = await api.request(
        method, CONFIGMAPS + path, params=params, body=sent, content_type=content_type
    )
    assert answer.ok or answer.body["code"] == answer.status
    assert answer.status != 500
