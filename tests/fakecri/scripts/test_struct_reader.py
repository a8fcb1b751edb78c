"""The reader of YAML into structs: every mistake with its place, all of them at once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from fakecri.errors import ScriptError
from fakecri.scripts.fields import Bytes, Seconds, Words
from fakecri.scripts.struct_reader import Placed, Strict, json_schema, read
from fakecri.scripts.units import bytes_of, seconds_of
from fakecri.scripts.values import parse_yaml


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
        "f:1:7: from: wanted a whole number from 1 to 9, got '10'",
        "f:2:1: unknown key 'wiat', wanted one of: from, wait, command, items, pair, table, one; "
        "did you mean wait?",
        "f:3:7: wait: wanted seconds: 2, 1.5s, 500ms, 5m or 1h; got 'soon'",
        "f:5:19: items[0].kind: wanted one of big, small, got 'bg'; did you mean big?",
        "f:5:3: items[0]: key 'name' is missing, wanted a string",
        "f:6:8: items[1].name: wanted a string, got nothing",
        "f:7:7: pair: wanted a list of 2, got 1 items",
        "f:8:12: table.a: wanted true or false, got 'yes'",
        "f:8:17: table: key 'a' is given twice",
        "f:9:6: one: wanted a mapping or a list, got '5'",
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
