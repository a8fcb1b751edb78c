"""Recorder and fault rules in front of a real runtime.

A proxy is asked and programmed in the same words as the fake (`on`, `calls`, `assert_order`, ...);
behaviours are the one thing it does not have, because its containers are real. What must never
happen here: a message that no rule changes arrives changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Final

from google.protobuf.message import Message

from fakecri.cri.services import CriTarget
from fakecri.rules.faults import FaultRules
from fakecri.rules.instrument import Instrumented
from simclock import Clock, Latency, RealClock

_NOTHING: Final[Mapping[str, type[Message]]] = MappingProxyType({})


class RecordingProxy(Instrumented):
    """A `CriTarget` that passes calls on to `upstream`, records them and applies fault rules.

    `clock`: default the machine's own. `call_limit`: so many calls are kept on record.
    `latency`: how long calls take beside what `upstream` takes; None: no time. Serve it with
    `fakecri.server.serve`.
    """

    def __init__(
        self,
        upstream: CriTarget,
        *,
        clock: Clock | None = None,
        call_limit: int = 100_000,
        latency: Latency | None = None,
    ) -> None:
        self.upstream = upstream
        super().__init__(
            clock or RealClock(),
            _Upstream(upstream),
            faults=FaultRules(of_proxy=True),
            call_limit=call_limit,
            latency=latency,
        )


class _Upstream:
    """Answers calls with the answers of another target. It knows none of them at once, and only of
    a fake whether an answer has changed."""

    def __init__(self, target: CriTarget) -> None:
        self._target = target
        self.in_bytes = target.in_bytes if isinstance(target, Instrumented) else _NOTHING

    def call_now(self, method: str, request: Message) -> Message | None:
        return None

    async def call_bytes(self, method: str, request: Message, timeout_s: float | None) -> bytes:
        if not isinstance(self._target, Instrumented):
            raise LookupError(f"{method}: a runtime has its answers as messages only")
        return await self._target.call_bytes(method, request, timeout_s=timeout_s)

    async def call(self, method: str, request: Message, timeout_s: float | None) -> Message:
        return await self._target.call(method, request, timeout_s=timeout_s)

    def stream(
        self, method: str, request: Message, timeout_s: float | None
    ) -> AsyncIterator[Message]:
        return self._target.stream(method, request, timeout_s=timeout_s)
