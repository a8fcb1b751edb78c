"""Durations, hashes, JSON and names of codes as Go has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeobjects.golang.duration import (
    DurationError,
    format_duration,
    parse_duration_ns,
    parse_duration_s,
)
from kubeobjects.golang.fnv import fnv1a_32, fnv1a_128
from kubeobjects.golang.grpc_codes import go_code_name, rpc_error
from kubeobjects.golang.json import go_json

LONGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        *(("0", 0), ("+0", 0), ("-0", 0), ("0s", 0), ("1ns", 1), ("-1ns", -1), ("+1ns", 1)),
        *(("1us", 1000), ("1µs", 1000), ("1μs", 1000), ("1ms", 10**6), ("1s", 10**9)),
        *(("1m", 60 * 10**9), ("1h", 3600 * 10**9), ("1h2m3s4ms5us6ns", 3723004005006)),
        *(("1.5s", 15 * 10**8), (".5s", 5 * 10**8), ("5.s", 5 * 10**9), ("0.9ns", 0)),
        *(("1s1s", 2 * 10**9), ("0.000000001s", 1), ("0.9ns0.9ns", 0)),
        ("0.3333333333333333333h", 1200 * 10**9),
        ("0.100000000000000000000h", 360 * 10**9),
        ("0." + "9" * 30 + "s", 10**9),  # of a fraction 18 digits count
        ("9223372036854775807ns", LONGEST),
        ("-9223372036854775808ns", -LONGEST - 1),
        ("0" * 100 + "1s", 10**9),
    ],
)
def test_durations_are_read_as_in_go(text: str, nanoseconds: int) -> None:
    assert parse_duration_ns(text) == nanoseconds
    assert parse_duration_s(text) == nanoseconds / 10**9


@pytest.mark.parametrize(
    "text", ["", "1", "-", "s", ".s", "-.s", "1 s", "1d", "1S", "s1", "--1s", "1s ", "1.2.3s", "00"]
)
def test_what_go_takes_for_no_duration(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration_ns(text)
    assert str(caught.value) == (
        f"{text!r} is no duration: wanted numbers with units, such as 10s, 1m30s or 500ms"
    )


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775808ns",
        "-9223372036854775809ns",
        "2562047h47m17s",
        "1" * 19 + "s",
        "1" * 20 + "ns",
        "1" * 5000 + "h",
    ],
)
def test_a_duration_has_64_bits(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration_ns(text)
    assert str(caught.value) == (f"{text[:40]!r} is no duration: it is longer than 2562047h47m16s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0s"), (-0.0, "0s"), (1e-10, "0s"), (-1e-10, "0s"), (1e-9, "1ns"), (-1e-9, "-1ns")),
        *((999e-9, "999ns"), (1e-6, "1µs"), (1.5e-6, "1.5µs"), (999.999e-6, "999.999µs")),
        *((1e-3, "1ms"), (1.05e-3, "1.05ms"), (0.999, "999ms"), (-0.5, "-500ms"), (1, "1s")),
        *((1.5, "1.5s"), (10.01, "10.01s"), (59.9, "59.9s"), (60, "1m0s"), (61, "1m1s")),
        *((3599, "59m59s"), (3600, "1h0m0s"), (3661.25, "1h1m1.25s"), (-90, "-1m30s")),
        *((100, "1m40s"), (360000, "100h0m0s")),
    ],
)
def test_durations_are_written_as_in_go(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("data", "short", "long"),
    [
        (b"", 0x811C9DC5, 0x6C62272E07BB014262B821756295C58D),
        (b"a", 0xE40C292C, 0xD228CB696F1A8CAF78912B704E4A8964),
        (b"foobar", 0xBF9CF968, 0x343E1662793C64BF6F0D3597BA446F18),
    ],
)
def test_hashes_are_those_of_go(data: bytes, short: int, long: int) -> None:
    assert (fnv1a_32(data), fnv1a_128(data)) == (short, long)


@given(st.binary(max_size=70))
def test_a_hash_takes_one_byte_after_the_other(data: bytes) -> None:
    short, long = 0x811C9DC5, 0x6C62272E07BB014262B821756295C58D
    for byte in data:
        short = (short ^ byte) * (2**24 + 0x193) % 2**32
        long = (long ^ byte) * (2**88 + 0x13B) % 2**128
    assert (fnv1a_32(data), fnv1a_128(data)) == (short, long)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        *(("OK", "OK"), ("CANCELLED", "Canceled"), ("NOT_FOUND", "NotFound")),
        *(("DEADLINE_EXCEEDED", "DeadlineExceeded"), ("INTERNAL", "Internal")),
    ],
)
def test_errors_of_calls_are_worded_as_in_go(code: str, name: str) -> None:
    assert go_code_name(code) == name
    assert rpc_error(code, "it is so") == f"rpc error: code = {name} desc = it is so"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "é"]}, '{"b":1,"a":[true,null,"é"]}'),
        ("<a>&\u2028\u2029", r'"\u003ca\u003e\u0026\u2028\u2029"'),
        ('"\\', r'"\"\\"'),
    ],
)
def test_json_is_written_as_in_go(value: object, text: str) -> None:
    assert go_json(value) == text
