"""CPU lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.model.cpuset import format_cpuset, parse_cpuset


@given(st.frozensets(st.integers(0, 200)))
def test_a_list_can_be_read_back(cpus: frozenset[int]) -> None:
    assert parse_cpuset(format_cpuset(cpus)) == cpus


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", 'strconv.Atoi: parsing "a": invalid syntax'),
        ("0,", 'strconv.Atoi: parsing "": invalid syntax'),
        ("1-", 'strconv.Atoi: parsing "": invalid syntax'),
        ("1-2-3", 'strconv.Atoi: parsing "2-3": invalid syntax'),
        ("3-1", 'invalid range "3-1" (3 > 1)'),
        ("99999999999999999999", 'parsing "99999999999999999999": value out of range'),
        ("9" * 5000, "value out of range"),
        ("0-999999999", '"0-999999999" names CPU 999999999: the last there can be is 65535'),
        ("65536", '"65536" names CPU 65536: the last there can be is 65535'),
    ],
)
def test_a_wrong_list_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        parse_cpuset(text)
    assert words in str(raised.value)


def test_a_cpu_that_is_named_often_is_one_CPU() -> None:
    assert parse_cpuset(",".join(["0-65535"] * 10_000)) == frozenset(range(1 << 16))
    assert parse_cpuset("4,0-2,1-1,2-3") == frozenset(range(5))
