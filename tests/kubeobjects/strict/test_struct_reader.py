"""The reader of YAML into structs: every mistake with its place, all of them at once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from fakecri.scripts.fields import Bytes, Seconds, Words
from fakecri.scripts.units import bytes_of, seconds_of
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.json_schema import json_schema
from kubeobjects.strict.reader import Placed, Strict, read
from kubeobjects.strict.values import parse_yaml, typed_value
from kubeobjects.yaml.document import read_yaml


class Item(Placed):
    """A thing."""

    name: str
    size: Bytes = 0
    kind: Literal["big", "small"] = "small"


class Sheet(Strict, rename={"from_": "from"}):
    """Things."""

    from_: Annotated[int, Meta(ge=1, le=9)] | None = None
    wait: Seconds | UnsetType = UNSET
    command: Words | UnsetType = UNSET
    items: Annotated[tuple[Item, ...], Meta(min_length=1)] | UnsetType = UNSET
    pair: tuple[int, str] | UnsetType = UNSET
    table: dict[str, bool] | UnsetType = UNSET
    one: Item | list[Item] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.from_ == 7:
            raise ValueError("from: seven is taken")


def sheet(text: str) -> Sheet:
    return read(parse_yaml(text, "f"), Sheet)


def test_values_are_what_is_written() -> None:
    found = sheet(
        "{from: null, wait: 1m30s, command: [sleep, 1.50, true], pair: [-3, 4], table: {no: true}, "
        'items: [{name: no, size: 2Ki}], one: {name: "\\ud83d\\ude00"}}'
    )
    assert found == Sheet(
        from_=None,
        wait=90.0,
        command=("sleep", "1.50", "true"),
        items=(Item(name="no", size=2048),),
        pair=(-3, "4"),
        table={"no": True},
        one=Item(name="😀"),
    )


def test_all_mistakes_are_told_each_at_its_place() -> None:
    with pytest.raises(ScriptError) as failure:
        sheet(
            "from: 10\n"
            "wiat: 1\n"
            "wait: soon\n"
            "items:\n"
            "- {size: 1, kind: bg}\n"
            "- name:\n"
            "pair: [1]\n"
            "table: {a: yes, a: true}\n"
            "one: 5\n"
        )
    assert failure.value.errors == (
        "f:1:7: from: wanted a whole number from 1 to 9, got the number 10",
        "f:2:1: unknown key 'wiat', wanted one of: from, wait, command, items, pair, table, one; "
        "did you mean wait?",
        "f:3:7: wait: wanted seconds: 2, 1.5s, 500ms, 5m or 1h; got 'soon'",
        "f:5:19: items[0].kind: wanted one of big, small, got the text 'bg'; did you mean big?",
        "f:5:3: items[0]: key 'name' is missing, wanted a text",
        "f:6:8: items[1].name: wanted a text, got nothing",
        "f:7:7: pair: wanted a list of 2, got 1 items",
        "f:8:12: table.a: wanted true or false, got the text 'yes'",
        "f:8:17: table: key 'a' is given twice",
        "f:9:6: one: wanted a mapping or a list of mappings, got the number 5",
    )


def test_what_a_struct_refuses_is_told_at_its_field() -> None:
    with pytest.raises(ScriptError, match=r"^f:1:7: from: seven is taken$"):
        sheet("from: 7")
    with pytest.raises(ScriptError, match=r"^f:1:8: items: wanted a list that is not empty$"):
        sheet("items: []")


def test_a_placed_struct_knows_where_it_was_written() -> None:
    found = sheet("items:\n- {name: a}")
    assert isinstance(found.items, tuple)
    assert str(found.items[0].error("no such thing")) == "f:2:3: items[0]: no such thing"
    assert str(Item(name="a").error("no such thing")) == "no such thing"


def test_the_schema_says_the_same() -> None:
    schema = json_schema(Sheet, "A sheet")
    assert schema["title"] == "A sheet"
    item, whole = schema["$defs"]["Item"], schema["$defs"]["Sheet"]
    assert item["required"] == ["name"]
    assert item["additionalProperties"] is False
    assert item["properties"]["kind"] == {"enum": ["big", "small"], "default": "small"}
    assert next(iter(whole["properties"])) == "from"


@pytest.mark.parametrize("text", ["", "s", "1 s", "-1s", "1d", "1s1", "1.s", "٣s", "1e3s", "1m 1s"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="wanted seconds"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["", "Mi", "1.5Gi", "-1Ki", "1M", "1 Mi", "٣Ki"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="wanted bytes"):
        bytes_of(text)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*Sheet.__struct_fields__, "name", "size"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_any_document_is_read_or_refused_with_places(document: Any) -> None:
    text = msgspec.json.encode(document).decode()
    errors: tuple[str, ...] = ()
    try:
        sheet(text)
    except ScriptError as error:
        errors = error.errors
    assert all(line.startswith("f:") for line in errors)


class Setting(Struct, frozen=True, rename="camel"):
    """A file of the kubelet."""

    max_pods: Annotated[int, Meta(extra={"zero_unset": True})] = 7
    node_name: str = "n"
    grace: Annotated[str, Meta(extra={"parse": int, "wanted": "a number in quotes"})] | None = None
    taints: tuple[Item, ...] = ()
    labels: dict[str, str] = {}


def setting(text: str, overlooked: list[str] | None = None) -> Setting:
    return read(typed_value(read_yaml(text), "k"), Setting, overlooked)


def test_a_typed_value_is_what_it_is_to_kubernetes() -> None:
    assert setting("{maxPods: 0x10, nodeName: 'yes', grace: '30', labels: {yes: on-1}}") == Setting(
        max_pods=16, node_name="yes", grace=30, labels={"true": "on-1"}
    )
    assert setting("{maxPods: null, nodeName: ~, grace: null}") == setting("{maxPods: 0}")
    assert setting("{maxPods: 0}").max_pods == 7


def test_mistakes_in_typed_values_name_lines_and_types() -> None:
    with pytest.raises(ScriptError) as failure:
        setting(
            "maxPods: '5'\nnodeName: 5\ngrace: 30\ntaints:\n- {name: yes}\nlabels: {a: null}\n"
            "nodename: x\n"
        )
    assert failure.value.errors == (
        "k:1: maxPods: wanted a whole number, got the text '5'",
        'k:2: nodeName: wanted a text, got the number 5; put it in quotes: "5"',
        "k:3: grace: wanted a number in quotes, got the number 30",
        'k:5: taints[0].name: wanted a text, got true; put it in quotes: "true"',
        "k:6: labels.a: wanted a text, got nothing",
        "k:7: unknown key 'nodename', wanted one of: maxPods, nodeName, grace, taints, labels; "
        "did you mean nodeName?",
    )


def test_unknown_keys_can_be_overlooked() -> None:
    told: list[str] = []
    assert setting("maxPods: 5\nlabel: {}\n", told).max_pods == 5
    assert told == ["k:2: label: unknown field, without effect; did you mean labels?"]
    with pytest.raises(ScriptError, match=r"^k:1: labels: wanted a mapping of texts to texts, got"):
        setting("labels: []", told)
