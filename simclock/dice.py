"""Random numbers and ids from one seed: the same seed gives the same ones again.

Each purpose has a stream of numbers of its own. Drawing more numbers for one purpose does not
change those of another, so a new feature does not change recorded runs.
"""

from __future__ import annotations

import hashlib
import random
import secrets


def unguessable(count: int) -> bytes:
    """`count` random bytes from the operating system, for secrets such as keys: no seed repeats
    them, while the numbers of an `Rng` can be computed by anyone who has seen enough of them."""
    return secrets.token_bytes(count)


class Rng:
    """Random numbers: one `random.Random` per purpose, all derived from `seed`, any whole
    number."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, random.Random] = {}

    @classmethod
    def from_system(cls) -> Rng:
        """An `Rng` with a new seed from the operating system. Its `seed` can be read and used to
        repeat the run."""
        return cls(secrets.randbits(63))

    def stream(self, purpose: str) -> random.Random:
        """The stream of that purpose, always the same object; its numbers depend on the seed and
        the purpose alone."""
        if purpose not in self._streams:
            digest = hashlib.sha256(f"{self.seed}:{purpose}".encode()).digest()
            self._streams[purpose] = random.Random(int.from_bytes(digest, "big"))
        return self._streams[purpose]


class Ids:
    """Makes identifiers from the `ids` stream of an `Rng`."""

    def __init__(self, rng: Rng) -> None:
        self._random = rng.stream("ids")

    def hex(self, digits: int = 64) -> str:
        """`digits` lowercase hex digits, as runtimes name sandboxes and containers (CRI-020).
        Raises: ValueError for less than one."""
        if digits < 1:
            raise ValueError(f"an id needs at least one digit, got digits={digits}")
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """A version 4 UUID in its text form, as an API server names objects."""
        bits = self._random.getrandbits(128)
        bits = bits & ~(0xF << 76) | (0x4 << 76)
        bits = bits & ~(0x3 << 62) | (0x2 << 62)
        text = f"{bits:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
