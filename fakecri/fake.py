"""FakeCRI: the fake runtime as tests hold it. The core, its clockwork, recorder and rules together.

Works on any asyncio loop. On a `simtime.VirtualLoop` it needs no real time; on a real one it is
what `fakecri serve` puts on a socket. This module programs and answers; `world.FakeWorld` is what
can be seen and touched from outside.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri.behaviors.behavior import Behavior, StartFails
from fakecri.behaviors.matching import Match
from fakecri.behaviors.plan import Plan, plan_for
from fakecri.calls import (
    image_calls,
    list_streams,
    metrics,
    often_asked,
    runtime_calls,
    stats_calls,
)
from fakecri.calls.checkpoint import checkpoint
from fakecri.calls.events import EventStreams
from fakecri.calls.exec_sync import ExecSync
from fakecri.calls.halfway import HALVES
from fakecri.calls.slow_calls import SlowCalls
from fakecri.clockwork.clockwork import Clockwork
from fakecri.clockwork.files import HostFiles
from fakecri.clockwork.loop_clock import LoopClock
from fakecri.core import copies, running
from fakecri.core.addresses import Addresses, reachable_here
from fakecri.core.images import ImageStore
from fakecri.core.names import name_of_create
from fakecri.core.objects import Container
from fakecri.core.runtime import Core, Identity
from fakecri.cri.list_streams import STREAMS
from fakecri.cri.services import METHODS, require_method
from fakecri.machine.node import FakeNode, Tenant, Victim
from fakecri.options import CGROUP_DRIVERS, OptionFields, Options
from fakecri.programs.known import (
    PROGRAMS,
    Known,
    known_programs,
)
from fakecri.programs.listening import Listening
from fakecri.programs.main_programs import MainPrograms, Tap
from fakecri.programs.ports import Ports
from fakecri.rules.behavior_rule import BehaviorRule
from fakecri.rules.faults import Rule, RuleBook
from fakecri.rules.on_base import Programmable
from fakecri.scripts.annotations import annotated
from fakecri.world.world import FakeWorld
from simtime import Clock, Ids, Rng

if TYPE_CHECKING:
    from fakecri.streaming.host import Streaming

HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    **runtime_calls.HANDLERS,
    **stats_calls.HANDLERS,
    **metrics.HANDLERS,
    **image_calls.HANDLERS,
    "CheckpointContainer": checkpoint,
}
"""The calls that take no time."""


class FakeCRI(FakeWorld):
    """A programmable CRI runtime and image service.

    `clock` None: the running loop's (a VirtualLoop's own clock, else the machine's). `ids` makes
    ids. Everything else is a field of `Options`, given as such or by name.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        ids: Ids | None = None,
        node: FakeNode | None = None,
        *,
        options: Options | None = None,
        **fields: Unpack[OptionFields],
    ) -> None:
        unknown = sorted(fields.keys() - Options.__dataclass_fields__.keys())
        if unknown:
            known = ", ".join(Options.__dataclass_fields__)
            raise TypeError(f"FakeCRI has no option {unknown[0]!r}, wanted one of: {known}")
        chosen = replace(options or Options(), **fields)
        clock = clock or LoopClock()
        files = HostFiles(write_logs=chosen.write_logs)
        weakref.finalize(self, files.closer())
        store = ImageStore(chosen.registry)
        for reference in chosen.images:
            store.add(reference, pinned=reference == chosen.sandbox_image)
        node = node or FakeNode()
        node.clock = node.clock or clock
        core = Core(ids or Ids(Rng(0)), node, store, self._plan_of, clock.wall_ns)
        core.identity = Identity(chosen.runtime_name, chosen.runtime_version or _own_version())
        core.handlers = tuple(chosen.runtime_handlers)
        core.addresses = Addresses(chosen.pod_network)
        core.cgroup_driver = CGROUP_DRIVERS[chosen.cgroup_driver]
        clockwork = Clockwork(core, clock, files)
        core.stir = clockwork.stir
        node.tenant = Tenancy(core, clockwork)
        events = EventStreams(core, keep_s=chosen.keep_events_s)
        super().__init__(clock, core, clockwork, events, chosen.call_limit)
        self.ports = Ports(core, clockwork)
        self.listening: Listening | None = None
        if reachable_here(chosen.pod_network):
            self.listening = Listening(self.ports)
            clockwork.heard.append(self.listening.refresh)
        self.behaviors = RuleBook()
        self.list_batch_items = list_streams.BATCH_ITEMS
        self._slow_calls = SlowCalls(core, clock, clockwork)
        self.image_programs = tuple(chosen.programs)
        """What images have beside the fake's own programs."""
        self._exec_sync = ExecSync(core, clockwork, self.programs_of)
        self._main_programs = MainPrograms(core, clockwork, self.programs_of)
        self._slow: dict[str, Callable[[Any], Awaitable[Message]]] = {
            "StopContainer": self._slow_calls.stop_container,
            "StartContainer": self._slow_calls.start_container,
            "ExecSync": self._exec_sync.answer,
            "PullImage": self._slow_calls.pull_image,
            "Exec": self._stream_url,
            "Attach": self._stream_url,
            "PortForward": self._stream_url,
        }

    # -- programming ---------------------------------------------------------------------------

    def behaves(
        self,
        *behaviors: Behavior,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        attempt: int | None = None,
        first_attempts: int | None = None,
        times: int | None = None,
    ) -> Rule:
        """Containers that fit do this, from their next start on; later rules win, kind by kind.

        `first_attempts`: only in so many first attempts of each container (attempt numbers from
        0), so that what crashes at first runs in the end. `times`: how many starts the rule decides
        in all, None for no limit. Names may be patterns (`web*`).
        """
        match = Match(pod, container, image, attempt)
        return BehaviorRule(self.behaviors, match, behaviors, times, first_attempts)

    def _programmable(self) -> Programmable:
        return self

    def hold_name(self, request: Message) -> Callable[[], None]:
        """Reserve the name that a create request takes; the function returned frees it.
        Raises CriError if it is taken (CRI-025)."""
        name = name_of_create(request)
        self.core.names.take(name, self.core.ids.hex())
        return partial(self.core.names.free, name)

    def as_of_now(self, method: str) -> Callable[[Message], Message]:
        """Answers of `method` from what the runtime knows now, whatever happens later."""
        self._clockwork.pump()
        return partial(HANDLERS[method], copies.snapshot(self.core))

    def do_half(self, method: str, request: Message) -> str:
        """What has happened of a call that breaks off in the middle; what is said of it."""
        try:
            return HALVES[method](self.core, request)
        finally:
            self._clockwork.pump()

    def _rule_books(self) -> tuple[RuleBook, ...]:
        streams = (self.streaming.rules,) if "streaming" in self.__dict__ else ()
        return (self.behaviors, self.faults.rules, *streams)

    def _plan_of(self, container: Container) -> Plan:
        rules = [r for r in self.behaviors if isinstance(r, BehaviorRule) and r.fits(container)]
        for rule in rules:
            rule.take()
        layers = [rule.behaviors for rule in rules]
        try:
            layers.append(annotated(container.sandbox.config.annotations, container.name))
        except ValueError as error:  # whoever wrote it sees it where failed starts are seen
            layers.append((StartFails(str(error)),))
        return self._main_programs.check(container, plan_for(layers))

    @property
    def images(self) -> ImageStore:
        """The image store: `cri.images.add("name:tag")`, `.remove(...)`, `.registry = ...`."""
        return self.core.images

    # -- streams -------------------------------------------------------------------------------

    @cached_property
    def streaming(self) -> Streaming:
        """What Exec, Attach and PortForward reach: `cri.streaming.command("ls", ...)`, ..."""
        from fakecri.streaming.host import Streaming

        return Streaming(self, self.clock)

    async def stop_streaming(self) -> None:
        """End the streams and their server, and the sockets of pods, if there are any."""
        if "streaming" in self.__dict__:
            await self.streaming.stop()
        if self.listening is not None:
            await self.listening.stop()

    def _cut_streams(self) -> None:
        if "streaming" in self.__dict__:
            self.streaming.cut()

    def programs_of(self, container: Container, plan: Plan | None = None) -> Known:
        """The programs that a container has in a run with `plan` (None: this one)."""
        made = PROGRAMS
        if "streaming" in self.__dict__:
            made = self.streaming.commands_of(container.subject)
        return known_programs(container, plan or container.plan, made, self.image_programs)

    def changes(self) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever something in the core may have changed."""
        return self._clockwork.changes()

    def stdin_of(self, container: Container) -> asyncio.StreamReader | None:
        """What the main process of a container reads, None if nothing does."""
        return self._main_programs.stdin_of(container)

    def tap(self, container: Container) -> AbstractContextManager[Tap | None]:
        """What the main process of a container writes from now on, if the fake runs it."""
        return self._main_programs.tap(container)

    # -- answering -----------------------------------------------------------------------------

    def _at_once(self, method: str, request: Message) -> Message | None:
        handler = HANDLERS.get(method)
        if handler is None and method != "StartContainer":
            return None
        if self._down is not None:
            raise self._down
        self._clockwork.pump()
        if handler is not None and method in runtime_calls.READINGS:
            return handler(self.core, request)
        try:
            if handler is not None:
                return handler(self.core, request)
            return self._slow_calls.start_at_once(request)  # type: ignore[arg-type]
        finally:
            self._clockwork.pump()

    _in_bytes = often_asked.KINDS

    def _bytes_at_once(self, method: str, request: Message) -> bytes:
        if self._down is not None:
            raise self._down
        self._clockwork.pump()
        return often_asked.IN_BYTES[method](self.core, request)

    async def _answer(self, method: str, request: Message, timeout_s: float | None) -> Message:
        answer = self._at_once(method, request)
        if answer is not None:
            return answer
        if self._down is not None:
            raise self._down
        if method not in self._slow:
            raise _not_here(method)
        self._clockwork.pump()
        try:
            return await self._slow[method](request)
        finally:
            self._clockwork.pump()

    async def _answers(
        self, method: str, request: Message, timeout_s: float | None
    ) -> AsyncIterator[Message]:
        if self._down is not None:
            raise self._down
        if method == "GetContainerEvents":
            async for event in self._events.subscribe():
                yield event
            return
        if method not in STREAMS:
            raise _not_here(method)
        self._clockwork.pump()
        stream = STREAMS[method]
        for batch in list_streams.batches(stream, request, self._listed, self.list_batch_items):
            yield batch

    def _listed(self, method: str, request: Message) -> Message:
        return HANDLERS[method](self.core, request)

    async def _stream_url(
        self, request: pb.ExecRequest | pb.AttachRequest | pb.PortForwardRequest
    ) -> Message:
        """CRI-115, CRI-116: where the caller gets its streams."""
        runtime_calls.check_streams(self.core, request)
        response: Message = await self.streaming.answer(request)
        return response


class Tenancy(Tenant):
    """The runtime, as its machine sees it."""

    def __init__(self, core: Core, clockwork: Clockwork) -> None:
        self._core = core
        self.usage = core.usage  # type: ignore[method-assign]
        self.tasks = core.tasks  # type: ignore[method-assign]
        self.now_ns = core.now_ns  # type: ignore[method-assign]
        self.settle = clockwork.settle  # type: ignore[method-assign]

    def candidates(self) -> list[Victim]:
        return running.candidates(self._core)


@cache
def _not_here(method: str) -> ValueError:
    """For a method that CRI does not have, or that answers in the other way."""
    require_method(method)
    way = "a stream: use `stream`" if METHODS[method].streams else "one message: use `call`"
    return ValueError(f"{method} answers with {way}")


def _own_version() -> str:
    """The version of this distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("refkubelet")
    except PackageNotFoundError:
        return "0.0.0"
