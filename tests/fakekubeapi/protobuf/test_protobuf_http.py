"""Clients that speak protobuf to the server: requests, answers, refusals, watches."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import yaml
from fakekubeapi_helpers import CONFIGMAPS, NODES, PODS, pod
from protobuf_objects import decode_events

from fakekubeapi import FakeApi
from fakekubeapi.bodies import PROTOBUF
from fakekubeapi.http import serve
from fakekubeapi.protobuf.envelope import (
    MAGIC,
    DecodeError,
    decode_object,
    encode_event,
    encode_object,
)
from fakekubeapi.protobuf.wire import fields, text

EVICTION = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}
METADATA = f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
TABLE = "as=Table;v=v1;g=meta.k8s.io"


class Client:
    """Sends and takes protobuf alone."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http

    async def ask(
        self, method: str, path: str, obj: Any = None, *, accept: str = PROTOBUF, **params: str
    ) -> tuple[int, dict[str, Any]]:
        """Status and object of an answer; `obj`: bytes go as they are."""
        body = encode_object(obj) if isinstance(obj, dict) else obj
        headers = {"Accept": accept, "Content-Type": PROTOBUF}
        async with self.http.request(
            method, path, data=body, headers=headers, params=params
        ) as answer:
            assert answer.headers["Content-Type"] == PROTOBUF
            return answer.status, decode_object(await answer.read())


@asynccontextmanager
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with await serve(api) as server, aiohttp.ClientSession(server.url) as http:
        yield Client(http)


def named(kind: str, api_version: str = "v1", **rest: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": api_version, "metadata": {"name": "a"}, **rest}


async def test_an_object_is_written_and_read() -> None:
    api = FakeApi()
    async with client(api) as it:
        sent = named("Pod", **{k: v for k, v in pod().items() if k == "spec"})
        status, made = await it.ask("POST", PODS, sent)
        assert (status, made["kind"], made["metadata"]["uid"][8]) == (201, "Pod", "-")
        assert made["spec"]["containers"][0]["name"] == sent["spec"]["containers"][0]["name"]
        stored = await api.request("GET", f"{PODS}/a")
        assert made["spec"] | stored.body["spec"] == made["spec"]
        (record,) = api.requests("POST")
        assert record.body["spec"]["containers"][0]["resources"] == {}  # as Go writes it
        status, listed = await it.ask("GET", PODS)
        assert (status, listed["kind"], len(listed["items"])) == (200, "PodList", 1)
        relabelled = made | {"metadata": {"name": "a", "labels": {"x": "y"}}}
        status, changed = await it.ask("PUT", f"{PODS}/a", relabelled)
        assert (status, changed["metadata"]["labels"]) == (200, {"x": "y"})


async def test_an_eviction_and_a_deletion_with_options() -> None:
    api = FakeApi()
    async with client(api) as it:
        for options in ({"deleteOptions": {"gracePeriodSeconds": 0}}, {}):
            await api.request("POST", PODS, body=pod())
            status, told = await it.ask("POST", f"{PODS}/a/eviction", EVICTION | options)
            assert (status, told["kind"], told["status"]) == (201, "Status", "Success")
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        status, gone = await it.ask("DELETE", f"{PODS}/a", options)
        assert (status, gone["metadata"]["name"]) == (200, "a")
        assert api.requests("DELETE")[0].body["gracePeriodSeconds"] == 0
        status, told = await it.ask("GET", f"{PODS}/a")
        assert (status, told["reason"]) == (404, "NotFound")


async def test_the_path_says_what_the_bytes_do_not() -> None:
    async with client(FakeApi()) as it:
        data = encode_object(named("ConfigMap"))[len(MAGIC) :]
        raw = next(value for number, _, value in fields(data) if number == 2)
        assert isinstance(raw, bytes)
        status, made = await it.ask("POST", CONFIGMAPS, MAGIC + text(2, raw))
        assert (status, made["kind"], made["metadata"]["name"]) == (201, "ConfigMap", "a")


async def test_a_watch_is_a_row_of_frames() -> None:
    api = FakeApi()
    async with client(api) as it:
        await api.request("POST", PODS, body=pod())
        params = {"watch": "true", "timeoutSeconds": "1", "allowWatchBookmarks": "true"}
        headers = {"Accept": f"{PROTOBUF};stream=watch"}
        async with it.http.get(PODS, params=params, headers=headers) as stream:
            assert stream.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
            data = await stream.read()
        events, rest = decode_events(data)
        assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
        assert rest == b""
        assert events[0]["object"]["metadata"]["name"] == "a"
        assert events[1]["object"]["spec"] == {"containers": None}
        assert b"".join(map(encode_event, events)) == data
        assert int.from_bytes(data[:4], "big") < len(data) - 4
        some, rest = decode_events(data[:-1])
        assert (len(some), rest[-5:]) == (1, data[-6:-1])


async def test_the_error_of_a_watch_is_an_event() -> None:
    api = FakeApi()
    async with client(api) as it:
        await api.request("POST", PODS, body=pod())
        api.compact()
        params = {"watch": "true", "resourceVersion": "1"}
        async with it.http.get(PODS, params=params, headers={"Accept": PROTOBUF}) as stream:
            (event,), _ = decode_events(await stream.read())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_metadata_alone_but_no_table() -> None:
    api = FakeApi()
    async with client(api) as it:
        await api.request("POST", PODS, body=pod())
        _, found = await it.ask("GET", f"{PODS}/a", accept=METADATA)
        assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert found["metadata"]["name"] == "a"
        listed = METADATA.replace("Metadata;", "MetadataList;")
        _, found = await it.ask("GET", PODS, accept=listed)
        assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
        both = f"{PROTOBUF};{TABLE},application/json;{TABLE}"
        async with it.http.get(PODS, headers={"Accept": both}) as answer:
            assert (await answer.json())["kind"] == "Table"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            b"abc",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does "
            "not appear to be a protobuf message, expected prefix [107 56 115 0] (616263)",
        ),
        (
            MAGIC,
            "the object provided is unrecognized (must be of type ConfigMap): empty body "
            "(6b387300)",
        ),
        (
            encode_object(named("ConfigMap"))[:-7],
            "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF "
            "(6b3873000a0f0a0276311209436f6e6669674d617012130a110a01611200 ...)",
        ),
        (
            MAGIC + text(1, text(1, "v1") + text(2, "Nope")),
            'Nope in version "v1" cannot be handled as a ConfigMap: '
            'no kind "Nope" is registered for version "v1"',
        ),
        (
            MAGIC + text(1, text(1, "v1") + text(2, "ConfigMap")) + text(2, b"\x0a\x7f"),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
        ),
    ],
)
async def test_bytes_that_are_no_object_get_upstream_s_words(data: bytes, words: str) -> None:
    async with client(FakeApi()) as it:
        status, told = await it.ask("POST", CONFIGMAPS, data)
        assert (status, told["reason"]) == (400, "BadRequest")
        assert told["message"] == words


async def test_patches_stay_json_and_are_answered_in_protobuf() -> None:
    api = FakeApi()
    async with client(api) as it:
        await api.request("POST", NODES, body=named("Node"))
        headers = {"Accept": PROTOBUF, "Content-Type": "application/merge-patch+json"}
        change = b'{"metadata":{"labels":{"a":"b"}}}'
        async with it.http.patch(f"{NODES}/a", data=change, headers=headers) as answer:
            found = decode_object(await answer.read())
        assert found["metadata"]["labels"]["a"] == "b"
        status, told = await it.ask("PATCH", f"{NODES}/a", named("Node"))
        assert (status, told["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (f"{PROTOBUF},application/json", PROTOBUF),
        (f"application/json;q=0.5,{PROTOBUF};q=0.9", PROTOBUF),
        (f"application/json,{PROTOBUF}", "application/json"),
        (f"application/json;q=0.5,{PROTOBUF};q=0.1", "application/json"),
        ("application/json;q=0", "application/json"),
        ("*/*", "application/json"),
        ("application/yaml;q=0.5,*/*", "application/json"),
        (f"{PROTOBUF};stream=other,application/yaml", "application/yaml"),
        ("application/yaml", "application/yaml"),
    ],
)
async def test_the_best_format_that_a_client_takes(accept: str, wanted: str) -> None:
    api = FakeApi()
    await api.request("POST", CONFIGMAPS, body=named("ConfigMap", data={"k": "yes"}))
    async with client(api) as it:
        async with it.http.get(f"{CONFIGMAPS}/a", headers={"Accept": accept}) as answer:
            assert answer.headers["Content-Type"] == wanted
            data = await answer.read()
    found = decode_object(data) if wanted == PROTOBUF else yaml.safe_load(data)
    assert found["data"] == {"k": "yes"}


FORMATS = f"application/json, application/yaml, {PROTOBUF}"
STREAMS = f"application/json;stream=watch, {PROTOBUF};stream=watch"


@pytest.mark.parametrize(
    ("accept", "path", "words"),
    [
        ("text/plain", f"{PODS}/a", f"406: Not Acceptable\n\nAvailable representations: {FORMATS}"),
        (
            "application/*",
            PODS,
            f"406: Not Acceptable\n\nAvailable representations: {FORMATS}, {STREAMS}",
        ),
        (f"{PROTOBUF};{TABLE}", PODS, f"only the following media types are accepted: {FORMATS}"),
        (
            "application/yaml",
            f"{PODS}?watch=1",
            f"only the following media types are accepted: {STREAMS}",
        ),
        (
            PROTOBUF,
            "/version",
            "406: Not Acceptable\n\nAvailable representations: application/json",
        ),
    ],
)
async def test_what_a_client_takes_and_there_is_not(accept: str, path: str, words: str) -> None:
    async with client(FakeApi()) as it:
        async with it.http.get(path, headers={"Accept": accept}) as answer:
            assert answer.status == 406
            data = await answer.read()
            wanted = answer.headers["Content-Type"]
    found = decode_object(data) if wanted == PROTOBUF else yaml.safe_load(data)
    assert (found["reason"], found["message"]) == ("NotAcceptable", words)


async def test_what_cannot_be_written_is_a_refusal() -> None:
    api = FakeApi()
    path = "/api/v1/namespaces/default/secrets"
    kept = (await api.request("POST", path, body=named("Secret", data={"x": "YWJj"}))).body
    (key,) = api.store.keys("secrets", "default")
    api.store.put(key, {**kept, "data": {"x": "abcde"}})  # no request could write this
    async with client(api) as it:
        status, told = await it.ask("GET", path)
        assert (status, told["reason"]) == (500, "InternalError")
        assert "SecretList cannot be encoded" in told["message"]
        params = {"watch": "true", "timeoutSeconds": "1"}
        async with it.http.get(path, params=params, headers={"Accept": PROTOBUF}) as stream:
            (event,), _ = decode_events(await stream.read())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)


async def test_discovery_is_protobuf_too() -> None:
    async with client(FakeApi()) as it:
        for path, kind in (("/apis", "APIGroupList"), ("/api/v1", "APIResourceList")):
            status, found = await it.ask("GET", path)
            assert (status, found["kind"]) == (200, kind)
        assert found["resources"][0]["verbs"][0] == "create"


def test_what_has_no_message_is_told() -> None:
    with pytest.raises(ValueError, match="no message for Table"):
        encode_object({"kind": "Table", "apiVersion": "meta.k8s.io/v1"})
    with pytest.raises(ValueError, match="Pod cannot be encoded"):
        encode_object(named("Pod", spec=["no object"]))
    with pytest.raises(DecodeError, match='no kind "Pod" is registered for version "v9"'):
        decode_object(MAGIC + text(1, text(1, "v9") + text(2, "Pod")))
