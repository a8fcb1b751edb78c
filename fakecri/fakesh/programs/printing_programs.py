"""Programs that print what their arguments say: `printf`, `seq`, `yes`, `basename`, `dirname`.

They answer as busybox does. One that prints without end lets others run in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Final

from fakecri.fakesh.invocations.escapes import WIDEST, formatted
from fakecri.fakesh.invocations.invocation import USAGE, Invocation, Program

_AT_ONCE: Final = 1000
_PAUSE_S: Final = 0.001
"""A program that prints much takes this time now and then, also in virtual time, so that it can be
ended."""


async def _seq(run: Invocation) -> int:
    try:
        numbers = [int(word) for word in run.command[1:]]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        await run.err("seq: invalid number\n")
        return 1
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    told = range(first, numbers[-1] + (1 if step > 0 else -1), step or 1)
    for begin in count(0, _AT_ONCE):
        await run.out("".join(f"{number}\n" for number in told[begin : begin + _AT_ONCE]))
        if not told[begin + _AT_ONCE : begin + _AT_ONCE + 1]:
            break
        await asyncio.sleep(_PAUSE_S)
    return 0


async def _yes(run: Invocation) -> int:
    text = " ".join(run.command[1:]) or "y"
    while True:
        await run.out(f"{text}\n")
        await asyncio.sleep(_PAUSE_S)


async def _basename(run: Invocation) -> int:
    words = run.command[1:]
    name = (words[0].rstrip("/") or "/").rsplit("/", 1)[-1] if words else ""
    await run.out((name.removesuffix(words[1]) if len(words) > 1 else name) + "\n")
    return 0


async def _dirname(run: Invocation) -> int:
    head, sign, _ = "".join(run.command[1:2]).rstrip("/").rpartition("/")
    await run.out((head or ("/" if sign else ".")) + "\n")
    return 0


async def _printf(run: Invocation) -> int:
    """`printf` with strings, whole numbers and escapes; the format is used again while words are
    left."""
    if len(run.command) < 2:
        await run.err("printf: a format is missing\n")
        return USAGE
    shape, words = run.command[1], list(run.command[2:])
    for _ in range(len(words) + 1):
        before = len(words)
        try:
            text = formatted(shape, words)
        except ValueError as error:
            await run.err(f"printf: {error}\n")
            return 1
        await run.out(text)
        await asyncio.sleep(_PAUSE_S if len(text) >= WIDEST else 0)
        if not words or len(words) == before:
            break
    return 0


PRINTING_PROGRAMS: Final[Mapping[str, Program]] = {
    "basename": _basename,
    "dirname": _dirname,
    "printf": _printf,
    "seq": _seq,
    "yes": _yes,
}
