"""How files that outlive the kubelet are read, printed as Go does, and complained about."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.checkpoints.content import (
    CheckpointError,
    checksum,
    drain_and_delete,
    go_bytes,
    go_map,
    go_slice,
    go_struct,
    json_value,
)


def test_json_is_read() -> None:
    assert json_value(b'{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ('{"a"', "Expecting ':' delimiter: line 1 column 5 (char 4)"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_is_not_json_says_why(text: str, why: str) -> None:
    with pytest.raises(CheckpointError) as refused:
        json_value(text)
    assert str(refused.value) == why


def test_a_start_failure_says_what_to_do_CG_081() -> None:
    assert drain_and_delete("it is torn", "the CPU manager", '/r/"a') == (
        "it is torn, please drain this node and delete the CPU manager checkpoint file "
        '"/r/\\"a" before restarting Kubelet'
    )


def test_checksums_are_of_type_and_value() -> None:
    assert checksum("string", "abc") == 2241406447
    assert checksum("string", "abd") != checksum("string", "abc") != checksum("text", "abc")


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (go_struct({}), "{}"),
        (
            go_struct({"B": ("string", "a"), "A": ("[]int", "[1 2]")}),
            "{B:(string)a A:([]int)[1 2]}",
        ),
        (go_slice(None), "<nil>"),
        (go_slice([]), "[]"),
        (go_slice(["b", "a"]), "[b a]"),
        (go_bytes(b"A\x00"), "[65 0]"),
        (go_map(None), "<nil>"),
        (go_map({}), "map[]"),
        (go_map({10: "b", 9: "c", -1: "a"}), "map[-1:a 9:c 10:b]"),
        (go_map({"ä": "1", "b": "2", "a": "3", "B": "4"}), "map[B:4 a:3 b:2 ä:1]"),
    ],
)
def test_values_print_as_in_go(shown: Any, wanted: str) -> None:
    assert shown == wanted
