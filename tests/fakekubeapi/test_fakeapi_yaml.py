"""YAML bodies: what plain values mean, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from fakeapi_helpers import CONFIGMAPS, ok, refused

from fakekubeapi import FakeApi, StatusError
from fakekubeapi.yaml_bodies import decode_yaml

BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (here, here, b",".join([b"*%c" % (here - 1)] * 10))
    for here in range(ord("b"), ord("i"))
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0644", 420),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("0", 0),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("'5'", "5"),
        ("2001-01-01", "2001-01-01"),
        ("1:30", "1:30"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("[1, x]", [1, "x"]),
        ('{"b": [true, null]}', {"b": [True, None]}),
    ],
)
def test_plain_values_mean_what_they_mean_to_the_api_server(text: str, value: Any) -> None:
    found = decode_yaml(f"a: {text}".encode(), 200)
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


def test_keys_are_texts_and_defaults_can_be_merged() -> None:
    text = b"1: a\ntrue: b\nbase: &x {a: 1, b: 1}\nnew: {<<: *x, b: 2}\nmore: {<<: [{c: 3}, *x]}\n"
    assert decode_yaml(text, 200) == {
        "1": "a",
        "true": "b",
        "base": {"a": 1, "b": 1},
        "new": {"a": 1, "b": 2},
        "more": {"a": 1, "b": 1, "c": 3},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: b: c", "line 1, column 5"),
        (b"a: [", "error decoding YAML"),
        (b"[" * 1000 + b"]" * 1000, "nested too deeply"),
        (b"a: &a [*a]", "nested too deeply, or an alias stands for itself"),
        (BOMB, "more than 1000000 values"),
        (b"a: 1\n---\nb: 2\n", "expected a single document"),
        (b"[x]: 1", "line 1: a key is a text"),
        (b"a: {<<: 1}", "map merge requires"),
        (b"a: \x00", "error decoding YAML"),
    ],
)
def test_what_is_no_yaml_body(text: bytes, words: str) -> None:
    with pytest.raises(StatusError) as refusal:
        decode_yaml(text, 200)
    assert refusal.value.code == 400
    assert words in refusal.value.message


@pytest.mark.virtual_time
async def test_yaml_is_taken_where_it_says_that_it_is() -> None:
    api, text = FakeApi(), b"metadata: {name: c}\ndata: {k: v}\n"
    answer = await api.request("POST", CONFIGMAPS, body=text, content_type="application/yaml")
    assert ok(answer)["data"] == {"k": "v"}
    answer = await api.request("POST", CONFIGMAPS, body=text)
    assert "is not JSON" in refused(answer, 400, "BadRequest")
