"""CPU lists, and Go's booleans and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.resources.cpuset import format_cpuset, parse_cpuset
from refkubelet.resources.golang import atoi, parse_bool


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
    ],
)
def test_a_wrong_list_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        parse_cpuset(text)
    assert words in str(raised.value)


def test_numbers_and_booleans_are_those_of_go() -> None:
    assert [parse_bool(t) for t in ("1", "t", "TRUE", "0", "F", "False")] == [True] * 3 + [
        False
    ] * 3
    with pytest.raises(ValueError, match='parsing "yes": invalid syntax'):
        parse_bool("yes")
    assert (atoi("+7"), atoi("-7")) == (7, -7)
    for text in ("٣", "0x1", " 1", "1_0"):
        with pytest.raises(ValueError, match="invalid syntax"):
            atoi(text)
