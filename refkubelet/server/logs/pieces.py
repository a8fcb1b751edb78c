"""Cuts a log into lines, and a line that is too long to be held into pieces. No I/O.

Runtimes cut what containers write at 16 KiB or so; how long a line may be is their configuration,
and one without an end is what a container makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

LONGEST_BYTES: Final = 256 * 1024
"""Of a line that is handed out as a whole."""


class Piece(Struct, frozen=True):
    """A line, with its end, if it `begins` and `ends` here; else a part of a longer one."""

    data: bytes
    begins: bool = True
    ends: bool = True


class LineCutter:
    """Takes the blocks of a log in order."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_inside = False  # a long line, of which pieces were handed out

    def feed(self, block: bytes) -> Iterator[Piece]:
        """The lines that end in this block, and the pieces of one that has become too long.

        >>> [piece.data for piece in LineCutter().feed(b"one\\ntwo\\nthr")]
        [b'one\\n', b'two\\n']
        """
        *lines, rest = block.split(b"\n")
        for line in lines:
            yield self._cut(line + b"\n", ends=True)
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)
            if self._held_bytes > LONGEST_BYTES:
                yield self._cut(b"", ends=False)

    def rest(self) -> Piece | None:
        """The last line, which has no end; None: there is none. Afterwards another log begins."""
        last = self._cut(b"", ends=True) if self._held or self._is_inside else None
        return last if last is not None and (last.data or not last.begins) else None

    def _cut(self, end: bytes, *, ends: bool) -> Piece:
        piece = Piece(b"".join((*self._held, end)), begins=not self._is_inside, ends=ends)
        self._held, self._held_bytes, self._is_inside = [], 0, not ends
        return piece
