"""YAML for manifests and configurations: lines, duplicates, no surprises."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from resource import RUSAGE_SELF, getrusage
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubeobjects.yaml.document import (
    OF_FILES,
    TooLargeError,
    YamlError,
    read_json_or_yaml,
    read_yaml,
)
from kubeobjects.yaml.nodes import Limits, compose


def test_a_duplicate_key_names_both_lines() -> None:
    with pytest.raises(YamlError, match=r"line 4: duplicate key 'image', first on line 2"):
        read_yaml("a:\n  image: x\n  name: n\n  image: y\n")


def test_values_have_lines() -> None:
    document = read_yaml("a: 1\nspec:\n  containers:\n  - name: x\n    image: y\n")
    assert document.line_of(("spec", "containers", 0, "image")) == 5
    assert document.line_of(("spec", "containers", 0, "missing")) == 4


def test_no_timestamps_no_base_60_but_octal_modes() -> None:
    value = read_yaml("d: 2024-01-01\nt: 12:30:00\nm: 0644\nv: '0644'\no: 0o17\nx: 08\n").value
    assert value == {"d": "2024-01-01", "t": "12:30:00", "m": 420, "v": "0644", "o": 15, "x": 8}


def test_only_the_first_document_counts_SRC_004() -> None:
    document = read_yaml("---\na: 1\n---\n{ not: even, [yaml\n")
    assert (document.value, document.more) == ({"a": 1}, True)


def test_json_is_read_too() -> None:
    assert read_yaml('{"a": [1, true, null, "x"]}').value == {"a": [1, True, None, "x"]}


def test_merge_keys_are_merged_and_own_keys_win() -> None:
    text = "base: &b {x: 1, z: 2}\nmine:\n  <<: *b\n  z: 3\n"
    assert read_yaml(text).value["mine"] == {"x": 1, "z": 3}


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 8)]
    with pytest.raises(YamlError, match="more than 20000 values"):
        read_yaml("\n".join(lines))


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "a: [1\n", "\ta: 1", "a: \x00", "[" * 3000, "? [a]\n: 1"]
)
def test_unreadable_texts_are_yaml_errors(text: str) -> None:
    with pytest.raises(YamlError):
        read_yaml(text)


def test_bytes_that_are_no_text_are_a_yaml_error() -> None:
    with pytest.raises(YamlError, match="not UTF-8 text: byte 3 is 0xff"):
        read_yaml(b"a: \xff")


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_yaml_error(data: bytes) -> None:
    with suppress(YamlError):
        read_yaml(data)


@pytest.mark.parametrize("text", ["0x_", "0b_", "-0x", "0x"])
def test_a_base_without_digits_is_a_text(text: str) -> None:
    assert read_yaml(f"a: {text}").value == {"a": text}


def test_a_number_of_too_many_digits_is_no_integer() -> None:
    digits = "1" * 5000
    assert read_yaml(f"a: {digits}").value == {"a": digits}
    assert read_json_or_yaml(f'{{"a": {digits}}}'.encode()).value == {"a": float("inf")}


@pytest.mark.parametrize(
    "data",
    [b"a: " + b"[" * 100_000, b'{"a":' * 100_000, b"- " * 100_000, b"[" * 60_000 + b"]" * 60_000],
)
def test_what_is_nested_a_hundred_thousand_deep_is_refused_not_a_crash(data: bytes) -> None:
    with pytest.raises(YamlError):
        read_json_or_yaml(data)


def test_many_values_beside_each_other_are_not_nested() -> None:
    assert read_yaml("- x\n" * 3000).value == ["x"] * 3000


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d", "\ufffd"),
        (r"a\/b\u007f", "a/b\x7f"),
        ("a\u2028 b\u0085 c\x7f", "a\u2028 b\u0085 c\x7f"),
    ],
)
def test_texts_of_json_mean_what_json_says_SRC_004(text: str, meant: str) -> None:
    document = read_json_or_yaml(f'{{\n"a": "{text}"}}'.encode())
    assert document.value == {"a": meant}


def test_json_with_a_duplicate_key_names_its_lines() -> None:
    with pytest.raises(YamlError, match="line 3: duplicate key 'a', first on line 2"):
        read_json_or_yaml(b'{\n"a": 1,\n"a": 2}')
    with pytest.raises(YamlError, match="duplicate key 'a'"):
        read_json_or_yaml(b'{"a": "\\ud83d\\ude00", "a": 2}')


@given(st.binary(max_size=60))
def test_any_bytes_that_begin_with_a_brace_give_a_value_or_a_yaml_error(data: bytes) -> None:
    with suppress(YamlError):
        read_json_or_yaml(b"{" + data)


def test_keys_that_are_yes_are_true_as_in_kubernetes() -> None:
    assert read_yaml("{yes: 1, 'yes': 2, n: 3, 1: 4}").value == {
        "true": 1,
        "yes": 2,
        "false": 3,
        "1": 4,
    }


def test_the_first_value_too_many_ends_the_reading_SRC_004(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = 0

    class Counting(yaml.CSafeLoader):
        def get_event(self) -> Any:
            nonlocal events
            events += 1
            return super().get_event()

    monkeypatch.setattr(yaml, "CSafeLoader", Counting)
    with pytest.raises(YamlError, match="more than 20000 values"):
        read_yaml("- x\n" * 200_000)
    assert events < OF_FILES.values + 10


@pytest.mark.parametrize(
    "data",
    [
        b"# " + b"x" * (1024 * 1024),
        b'{"a": [' + b"1," * 20_000 + b"1]}",
        b"[" * 101 + b"]" * 101,
        b'{"a":' * 101 + b"1" + b"}" * 101,
    ],
)
def test_texts_have_bounds_SRC_004(data: bytes) -> None:
    with pytest.raises(YamlError, match=r"larger than|more than"):
        read_json_or_yaml(data)


def test_a_key_that_is_there_twice_is_found_in_one_pass() -> None:
    """The last one: every key before it is looked at."""
    text = "{" + "".join(f'"{i}":1,' for i in range(19_000)) + '"18999":2}'
    began = getrusage(RUSAGE_SELF).ru_utime
    with pytest.raises(YamlError, match="duplicate key '18999'"):
        read_json_or_yaml(text.encode())
    assert getrusage(RUSAGE_SELF).ru_utime - began < 1  # the square of their number: 3 s


def test_what_is_deep_and_wide_is_one_tree_of_lines() -> None:
    """A path of its own for each value would take as much again for each level."""
    kept_bytes = []
    for depth in (1, 90):
        text = "[" * depth + "a\n," * 9000 + "b" + "]" * depth
        tracemalloc.start()
        try:
            document = read_yaml(text)
            kept_bytes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert document.line_of((0,) * (depth - 1) + (9000,)) == 9001
    shallow, deep = kept_bytes
    assert deep < 1.5 * shallow


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!float 5", 5),
        ("!!binary aGVsbG8=", "hello"),
        ("!local 5", "5"),
        ("+0x10", 16),
        ("-9223372036854775808", -(1 << 63)),
        ("1e400", "1e400"),
        ("1_000", 1000),
        ("007", 7),
        ("09.5", 9.5),
    ],
)
def test_scalars_mean_what_kubernetes_reads_SRC_004(text: str, value: Any) -> None:
    assert read_yaml(f"a: {text}").value == {"a": value}


@pytest.mark.parametrize("text", ["!!int x", "!!binary '*'", ".inf", "? ~\n: 1", "a\n  b: 1"])
def test_scalars_that_are_no_json_are_refused_SRC_004(text: str) -> None:
    with pytest.raises(YamlError):
        read_yaml(f"a: {text}" if text[0] != "?" else text)


def test_a_merge_wins_over_what_came_before_it() -> None:
    text = "base: &b {x: 1, z: 2}\nmine:\n  z: 3\n  <<: [{x: 5}, *b]\n"
    assert read_yaml(text).value["mine"] == {"x": 5, "z": 2}


def test_an_anchor_may_be_a_key() -> None:
    assert read_yaml("{&k a: 1, b: *k}").value == {"a": 1, "b": "a"}


def test_a_merge_is_of_mappings_not_of_an_alias_of_a_list_SRC_004() -> None:
    for text in ("l: &l [{b: 1}]\nm: {<<: *l}", "m: {<<: 1}", "m: {<<: [[{b: 1}]]}"):
        with pytest.raises(YamlError, match="map merge requires map or sequence of maps"):
            read_yaml(text)


def test_an_alias_of_two_arrows_merges_nothing() -> None:
    text = "a: &k <<\nm: {*k : {b: 1}}"
    assert read_yaml(text).value == {"a": "<<", "m": {"<<": {"b": 1}}}


def test_what_an_alias_gives_is_a_value_of_its_own() -> None:
    value = read_yaml("a: &x [1]\nb: *x").value
    value["a"].append(2)
    assert value == {"a": [1, 2], "b": [1]}


def test_lines_of_aliases_are_those_of_what_they_stand_for() -> None:
    document = read_yaml("a: &x\n  k:\n  - 1\nb:\n- *x\nm:\n  <<: *x\n  z: 1\n")
    assert document.line_of(("b",)) == 4
    assert document.line_of(("b", 0, "k", 0)) == 3
    assert document.line_of(("m", "k")) == 6
    assert document.line_of(("m", "z")) == 8


def test_limits_are_the_readers_own() -> None:
    limits = Limits(values=3, depth=2, size_bytes=20)
    assert read_yaml("[[a]]", limits).value == [["a"]]
    for text in ("[a, b, c]", "[[[]]]", "# " + "x" * 20, "a: &a [x]\nb: *a", '{"a": [1, 2]}'):
        with pytest.raises(TooLargeError):
            read_json_or_yaml(text.encode(), limits)


def test_an_alias_is_as_deep_as_what_it_stands_for() -> None:
    limits = Limits(values=100, depth=3)
    assert compose("a: &a [x]\nb: [*a]", limits).root is not None
    with pytest.raises(TooLargeError, match="line 2: nested more than 3 deep"):
        compose("a: &a [x]\nb: [[*a]]", limits)


def test_errors_have_their_place() -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml("a: 1\nb: [1, *y]\n")
    assert (caught.value.line, caught.value.column) == (2, 8)
    with pytest.raises(YamlError) as caught:
        read_yaml("a: 1\nb: x\x07\n")
    assert (caught.value.line, caught.value.column) == (2, 5)


def test_a_version_of_yaml_that_go_does_not_know_SRC_004() -> None:
    with pytest.raises(YamlError, match="line 1: found incompatible YAML document"):
        read_yaml("%YAML 1.2\n---\na: 1\n")
    limits = Limits(values=10, depth=10)
    assert compose("%YAML 1.2\n---\na: 1\n", limits, like_go=False).root is not None


def test_a_file_in_utf_16_is_known_by_its_mark_SRC_004() -> None:
    assert read_json_or_yaml("a: \u00e9".encode("utf-16")).value == {"a": "\u00e9"}
    with pytest.raises(YamlError, match="not UTF-16 text: byte 2 is 0x00"):
        read_yaml(b"\xff\xfe\x00")
