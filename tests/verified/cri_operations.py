"""What all random operations on two runtimes share: the objects made so far, and how one of them
is chosen and named in a request.

The operations themselves are in `cri_sandbox_operations.py` and `cri_container_operations.py`;
`test_cri_machine.py` puts them together and runs them.
"""

from __future__ import annotations

import asyncio
from typing import Any

from cri_played import PROGRAMS
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from kubecri.v1 import api_pb2 as cri
from pairs import UNKNOWN, Build, Outcome, Pair

pods = st.sampled_from(["one", "two", "three"])
names = st.sampled_from(sorted(PROGRAMS))
attempts = st.integers(0, 1)
which = st.integers(0, 19)


def request(method: str, **fields: Any) -> Build:
    """The same request of `method` for both sides."""
    made = getattr(cri, f"{method}Request")(**fields)
    return lambda side: made


def of_sandbox(method: str, symbol: str, **fields: Any) -> Build:
    """Requests of `method` about the sandbox that each side has under `symbol`."""
    kind = getattr(cri, f"{method}Request")
    return lambda side: kind(pod_sandbox_id=side.id(symbol), **fields)


def of_container(method: str, symbol: str, **fields: Any) -> Build:
    """Requests of `method` about the container that each side has under `symbol`."""
    kind = getattr(cri, f"{method}Request")
    return lambda side: kind(container_id=side.id(symbol), **fields)


class Operations(RuleBasedStateMachine):
    """The objects of one example, and calls about them on both runtimes."""

    pair: Pair
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.sandboxes: list[str] = []
        self.containers: list[str] = []
        self.pod_of: dict[str, tuple[str, int]] = {}
        self.programs: dict[str, str] = {}
        self.pair.history.clear()

    def teardown(self) -> None:
        self.runner.run(self._clean())

    async def _clean(self) -> None:
        for side in (self.pair.real, self.pair.fake):
            listed: Any = await side.target.call("ListPodSandbox", cri.ListPodSandboxRequest())
            for item in listed.items:
                await side.call(
                    "RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=item.id)
                )
            side.ids.clear()

    def do(self, method: str, build: Build) -> Outcome:
        """The call on both sides; raises Mismatch."""
        return self.runner.run(self.pair.do(method, build))

    def about_sandbox(self, method: str, number: int, **fields: Any) -> Outcome:
        """A call about the sandbox that `number` chooses."""
        return self.do(method, of_sandbox(method, self.sandbox(number), **fields))

    def about_container(self, method: str, number: int, **fields: Any) -> Outcome:
        """A call about the container that `number` chooses."""
        return self.do(method, of_container(method, self.container(number), **fields))

    def race_and_again(self, method: str, build: Build) -> None:
        """Two at once; then one alone, which must find all done (or do it)."""
        self.runner.run(self.pair.race(method, build))
        self.do(method, build)

    def sandbox(self, number: int) -> str:
        return self._choose(self.sandboxes[-6:], number)

    def container(self, number: int) -> str:
        return self._choose(self.containers[-8:], number)

    def _choose(self, known: list[str], number: int) -> str:
        """Mostly an object, also a removed one; sometimes its prefix, nothing, or nonsense."""
        if number == 19:
            return ""
        if not known or number == 18:
            return UNKNOWN
        chosen: str = known[-1 - number % len(known)]
        return f"{chosen}~" if number in (16, 17) else chosen

    def make(self, symbol: str, method: str, build: Build, *, race: bool) -> bool:
        """A call that makes what `symbol` means from then on, once or by two clients at once.

        Returns whether it was made.
        """
        if race:
            return self.runner.run(self.pair.race(method, build, symbol))
        return self.runner.run(self.pair.make(symbol, method, build))
