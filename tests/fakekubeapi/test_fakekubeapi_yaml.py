"""YAML bodies: what plain values mean, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from fakekubeapi_helpers import CONFIGMAPS, ok, refused

from fakekubeapi import FakeApi, StatusError
from fakekubeapi.bodies import decode_yaml

JSON = "error converting YAML to JSON: "
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
        ("1e3", 1000),
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
    found = decode_yaml(f"a: {text}".encode())
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


def test_keys_are_texts_and_defaults_can_be_merged() -> None:
    text = b"1: a\ntrue: b\nbase: &x {a: 1, b: 1}\nnew: {<<: *x, b: 2}\nmore: {<<: [{c: 3}, *x]}\n"
    assert decode_yaml(text) == {
        "1": "a",
        "true": "b",
        "base": {"a": 1, "b": 1},
        "new": {"a": 1, "b": 2},
        "more": {"a": 1, "b": 1, "c": 3},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: b: c", f"{JSON}yaml: mapping values are not allowed in this context"),
        (b"x: 1\na: [1\n", f"{JSON}yaml: line 2: did not find expected ',' or ']'"),
        (b"[" * 1000 + b"]" * 1000, "line 1: nested more than 200 deep"),
        (b"a: &a [*a]", f"{JSON}yaml: anchor 'a' value contains itself"),
        (BOMB, "line 6: more than 1000000 values, aliases resolved"),
        (
            b"a: &a [" + b"x," * 300 + b"]\nb: [" + b"*a," * 300 + b"]",
            f"{JSON}yaml: document contains excessive aliasing",
        ),
        (b"[x]: 1", f"{JSON}yaml: invalid map key"),
        (b"a: {<<: 1}", f"{JSON}yaml: map merge requires map or sequence of maps as the value"),
        (b"a: \x00", f"{JSON}yaml: control characters are not allowed"),
        (b"a: \xff", f"{JSON}yaml: invalid leading UTF-8 octet"),
        (b"a: \xc3\x28", f"{JSON}yaml: invalid trailing UTF-8 octet"),
        (b"a: \xc3", f"{JSON}yaml: incomplete UTF-8 octet sequence"),
        (b"a: .inf", f"{JSON}json: unsupported value: +Inf"),
    ],
)
def test_what_is_no_yaml_body(text: bytes, words: str) -> None:
    with pytest.raises(StatusError) as refusal:
        decode_yaml(text)
    assert refusal.value.code == 400
    assert refusal.value.message == f"error decoding YAML: {words}"


def test_a_broken_object_is_refused_in_other_words_than_a_broken_patch() -> None:
    """As kube-apiserver 1.36.2 answered."""
    with pytest.raises(StatusError) as refusal:
        decode_yaml(b"a: b: c", "ConfigMap")
    assert refusal.value.message == (
        "the object provided is unrecognized (must be of type ConfigMap): yaml: mapping values are "
        "not allowed in this context (613a20623a2063)"
    )


def test_only_the_first_document_counts() -> None:
    assert decode_yaml(b"a: 1\n---\nb: 2\n") == {"a": 1}


def test_of_a_key_given_twice_the_last_one_counts() -> None:
    assert decode_yaml(b"{a: 1, b: 2, a: 3}") == {"a": 3, "b": 2}


def test_utf_16_is_known_by_its_mark() -> None:
    assert decode_yaml("\ufeffa: \u00e9".encode("utf-16")) == {"a": "\u00e9"}


def test_aliases_are_as_deep_as_what_they_stand_for() -> None:
    lines = ["a0: &a0 x", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 250))]
    with pytest.raises(StatusError, match="line 201: nested more than 200 deep"):
        decode_yaml("\n".join(lines).encode())


@pytest.mark.virtual_time
async def test_yaml_is_taken_where_it_says_that_it_is() -> None:
    api, text = FakeApi(), b"metadata: {name: c}\ndata: {k: v}\n"
    answer = await api.request("POST", CONFIGMAPS, body=text, content_type="application/yaml")
    assert ok(answer)["data"] == {"k": "v"}
    answer = await api.request("POST", CONFIGMAPS, body=text)
    assert "is not JSON" in refused(answer, 400, "BadRequest")


@pytest.mark.virtual_time
async def test_objects_and_patches_that_are_broken_have_the_servers_words() -> None:
    """As kube-apiserver 1.36.2 answered."""
    api = FakeApi()
    why = "yaml: line 1: did not find expected ',' or ']'"
    answer = await api.request("POST", CONFIGMAPS, body=b"[a", content_type="application/yaml")
    message = refused(answer, 400, "BadRequest")
    assert (
        message == f"the object provided is unrecognized (must be of type ConfigMap): {why} (5b61)"
    )
    answer = await api.request(
        "PATCH", f"{CONFIGMAPS}/c", body=b"[a", content_type="application/apply-patch+yaml"
    )
    assert refused(answer, 400, "BadRequest") == f"error decoding YAML: {JSON}{why}"
