"""Odd texts made of good ones: bits, cuts, repetitions, splices, and words that readers trip over.

Without coverage, so it needs no library: what the plain tests use. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from simclock import Rng

WORDS: Final = (
    *(b"0", b"-1", b"1e999", b"1e-999", b"9" * 400, b"0x1F", b".5", b"NaN", b".inf", b"1_000"),
    *(
        b"null",
        b"~",
        b"true",
        b"{}",
        b"[]",
        b"[[",
        b"}}",
        b'"',
        b"'",
        b"\\",
        b"\\u0000",
        b"\\ud800",
    ),
    *(b": ", b"- ", b"\n", b"\t", b"---\n", b"&a ", b"*a", b"<<: ", b"!!binary ", b"!x ", b"#"),
    *(b"%", b"%00", b"%zz", b"&", b"=", b"/../", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n"),
    *("ä\u2028😀".encode(), b"2024-02-30", b"1Ki", b"1e3Ki", b"-0", b"+", b"[" * 200, b"{a: " * 99),
)


def mutations(seeds: Sequence[bytes], count: int, rng: Rng) -> Iterator[bytes]:
    """So many texts, each made of a seed by one to four changes."""
    random = rng.stream("mutations")
    for _ in range(count):
        data = bytearray(random.choice(seeds))
        for _ in range(random.randint(1, 4)):
            _change(data, seeds, random)
        yield bytes(data)


def _change(data: bytearray, seeds: Sequence[bytes], random: Any) -> None:
    start = random.randint(0, len(data))
    end = min(len(data), start + random.choice((1, 2, 8, 40)))
    match random.randrange(6):
        case 0 if start < len(data):
            data[start] ^= 1 << random.randrange(8)
        case 1:
            del data[start:end]
        case 2:
            data[start:start] = bytes(data[start:end]) * random.choice((1, 2, 50))
        case 3:
            other = random.choice(seeds)
            cut = random.randint(0, len(other))
            data[start:] = other[cut:]
        case _:
            data[start:end] = random.choice(WORDS)
