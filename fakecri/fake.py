"""FakeCRI: the fake runtime as tests hold it. The core, its timers, recorder and rules together.

Works on any asyncio loop. On a `simtime.VirtualLoop` it needs no real time; on a real one it is
what `fakecri serve` puts on a socket. What must never happen: the core's clock and the loop
disagree, or a call waits for something that nothing will wake.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import grpc
from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri import image_calls, list_streams, runtime_calls, stats_calls
from fakecri.behavior import Behavior
from fakecri.checkpoint import checkpoint
from fakecri.errors import CriError, deadline_exceeded, not_played, status_code, unknown
from fakecri.events import EventStreams
from fakecri.faults import Rule, RuleBook
from fakecri.files import HostFiles
from fakecri.images import ImageStore, Registry, any_image, credentials_of
from fakecri.instrument import Instrumented
from fakecri.loop_clock import LoopClock
from fakecri.matching import Match, Subject
from fakecri.node import FakeNode
from fakecri.objects import Container, Sandbox, State
from fakecri.on import Programmable
from fakecri.plan import Plan, plan_for
from fakecri.runtime import LOST, SIGKILLED, Core, Identity
from simtime import Clock, Ids, Rng

if TYPE_CHECKING:
    from fakecri.streaming.host import Streaming

HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    **runtime_calls.HANDLERS,
    **stats_calls.HANDLERS,
    **image_calls.HANDLERS,
    "CheckpointContainer": checkpoint,
}
"""The calls that take no time."""
DEFAULT_IMAGES = ("localhost/busybox:1", "localhost/busybox:2", "localhost/pause:1")


class BehaviorRule(Rule):
    """A rule on what containers do; it is used up by the starts it decides."""

    def __init__(
        self, rules: list[Rule], match: Match, behaviors: tuple[Behavior, ...], times: int | None
    ) -> None:
        super().__init__(rules, f"containers ({match}) behave", times)
        self.match = match
        self.behaviors = behaviors


class FakeCRI(Instrumented):
    """A programmable CRI runtime and image service.

    `clock` None: the running loop's (a VirtualLoop's own clock, else the machine's). `images` are
    present from the start; every other reference is pulled from `registry` (default: it has all).
    `write_logs` True: log files are written where the create request says. `ids` makes ids.
    `runtime_name` and `runtime_version` (default: of this package) are what Version says;
    `runtime_handlers` are the names RunPodSandbox takes beside "" (CRI-030). `keep_events_s`: how
    long events wait for a subscriber when there is none, 300 in containerd 2 (CRI-143).
    """

    def __init__(
        self,
        clock: Clock | None = None,
        ids: Ids | None = None,
        node: FakeNode | None = None,
        *,
        images: Iterable[str] = DEFAULT_IMAGES,
        registry: Registry = any_image,
        write_logs: bool = False,
        runtime_name: str = "fakecri",
        runtime_version: str = "",
        runtime_handlers: Iterable[str] = (),
        keep_events_s: float = 0.0,
        call_limit: int = 100_000,
    ) -> None:
        super().__init__(clock or LoopClock(), call_limit=call_limit)
        self.node = node or FakeNode()
        self._files = HostFiles(write_logs=write_logs)
        weakref.finalize(self, self._files.closer())
        self.behaviors = RuleBook()
        store = ImageStore(registry)
        for reference in images:
            store.add(reference)
        self.core = Core(ids or Ids(Rng(0)), self.node, store, self._plan_of, self.clock.wall_ns)
        self.core.identity = Identity(runtime_name, runtime_version or _own_version())
        self.core.handlers = tuple(runtime_handlers)
        self._down: CriError | None = None
        self._down_since_ns = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for: tuple[int, asyncio.AbstractEventLoop] | None = None
        self.list_batch_items = list_streams.BATCH_ITEMS
        self._exits: dict[str, list[asyncio.Future[None]]] = {}
        self._streams = EventStreams(self.core, keep_s=keep_events_s)
        self._watchers: list[asyncio.Event] = []

    # -- programming ---------------------------------------------------------------------------

    def behaves(
        self,
        *behaviors: Behavior,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        attempt: int | None = None,
        times: int | None = None,
    ) -> Rule:
        """Containers that fit do this, from their next start on; later rules win, kind by kind.

        `times`: how many starts the rule decides, None for all. Names may be patterns (`web*`).
        """
        match = Match(pod, container, image, attempt)
        return BehaviorRule(self.behaviors, match, behaviors, times)

    def _programmable(self) -> Programmable:
        return self

    def hold_name(self, request: Message) -> Callable[[], None]:
        """Reserve the name that a create request takes; the function returned frees it.
        Raises CriError if it is taken (CRI-025)."""
        name = self.core.hold_name(request)
        return partial(self.core.free_name, name)

    def as_of_now(self, method: str) -> Callable[[Message], Message]:
        """Answers of `method` from what the runtime knows now, whatever happens later."""
        self._pump()
        return partial(HANDLERS[method], self.core.snapshot())

    def _rule_books(self) -> tuple[RuleBook, ...]:
        streams = (self.streaming.rules,) if "streaming" in self.__dict__ else ()
        return (self.behaviors, self.faults.rules, *streams)

    def _plan_of(self, container: Container) -> Plan:
        subject = _subject(container)
        rules = [r for r in self.behaviors if isinstance(r, BehaviorRule) and r.match.fits(subject)]
        for rule in rules:
            rule.take()
        return plan_for(rule.behaviors for rule in rules)

    @property
    def images(self) -> ImageStore:
        """The image store: `cri.images.add("name:tag")`, `.remove(...)`, `.registry = ...`."""
        return self.core.images

    @cached_property
    def streaming(self) -> Streaming:
        """What Exec, Attach and PortForward reach: `cri.streaming.command("ls", ...)`, ..."""
        from fakecri.streaming.host import Streaming

        return Streaming(self, self.clock)

    async def stop_streaming(self) -> None:
        """End the streams and their server, if there is one."""
        if "streaming" in self.__dict__:
            await self.streaming.stop()

    # -- inspection ----------------------------------------------------------------------------

    def containers(self, name: str | None = None, *, pod: str | None = None) -> list[Container]:
        """The containers that exist, oldest first."""
        self._pump()
        match = Match(pod=pod, container=name)
        return [c for c in self.core.containers.values() if match.fits(_subject(c))]

    def container(self, name: str | None = None, *, pod: str | None = None) -> Container:
        """The newest such container. Raises LookupError, listing those there are."""
        found = self.containers(name, pod=pod)
        if not found:
            there = ", ".join(f"{c.pod.name}/{c.name}/{c.attempt}" for c in self.containers())
            wanted = Match(pod=pod, container=name)
            raise LookupError(f"no container ({wanted}); there are: {there or 'none'}")
        return found[-1]

    def sandboxes(self, *, pod: str | None = None) -> list[Sandbox]:
        """The sandboxes that exist, oldest first."""
        match = Match(pod=pod)
        return [s for s in self.core.sandboxes.values() if match.fits(_sandbox_subject(s))]

    # -- things that happen from outside -------------------------------------------------------

    def exit(self, name: str | None = None, *, pod: str | None = None, code: int = 0) -> Container:
        """The newest running container that fits ends by itself with `code`."""
        return self.kill(name, pod=pod, exit_code=code)

    def kill(
        self,
        name: str | None = None,
        *,
        pod: str | None = None,
        exit_code: int = SIGKILLED,
        reason: str = "",
    ) -> Container:
        """Somebody kills the newest running container that fits. Raises LookupError."""
        running = [c for c in self.containers(name, pod=pod) if c.state is State.RUNNING]
        if not running:
            raise LookupError(f"no running container ({Match(pod=pod, container=name)})")
        self.core.kill(running[-1], exit_code, reason)
        self._pump()
        return running[-1]

    def drop(self, name: str | None = None, *, pod: str | None = None) -> Container:
        """The newest container that fits vanishes from the runtime without a trace."""
        container = self.container(name, pod=pod)
        self.core.drop_container(container)
        self._wake(container.id)
        self._pump()
        return container

    def kill_sandbox(self, *, pod: str | None = None) -> Sandbox:
        """The sandbox process of the newest sandbox that fits dies (CRI-039)."""
        found = self.sandboxes(pod=pod)
        if not found:
            raise LookupError(f"no sandbox ({Match(pod=pod)})")
        self.core.lose_sandbox(found[-1])
        self._pump()
        return found[-1]

    def crash(self, *, loses_state: bool = False) -> None:
        """The runtime goes down: calls fail with UNAVAILABLE, also those that wait for a container;
        containers run on (CRI-160).

        `loses_state`: it forgets its sandboxes and containers, as after the loss of its database;
        images stay.
        """
        self._pump()
        self._down_since_ns = self.clock.wall_ns()
        if loses_state:
            self.core.forget()
        text = "connection error: the fake runtime is down"
        self._down = CriError(grpc.StatusCode.UNAVAILABLE, text)
        for future in (f for waiting in self._exits.values() for f in waiting if not f.done()):
            future.set_exception(self._down)
        self._exits.clear()
        self._streams.end(self._down)
        if "streaming" in self.__dict__:
            self.streaming.cut()

    @property
    def is_down(self) -> bool:
        """Between `crash` and `restart`."""
        return self._down is not None

    def restart(self, *, lost_exits: bool = False) -> None:
        """The runtime is up again, with everything it knew (CRI-160).

        `lost_exits`: containers that ended meanwhile show 255 `Unknown`, as containerd 1.7 and
        later have it (CRI-161); else their own codes, as 1.6.
        """
        self._pump()
        if self._down is not None and lost_exits:
            self.core.lose_exits(self._down_since_ns)
        self._down = None

    @contextmanager
    def down(self, *, loses_state: bool = False, lost_exits: bool = False) -> Iterator[None]:
        """The runtime is down inside the block: `crash`, then `restart`."""
        self.crash(loses_state=loses_state)
        try:
            yield
        finally:
            self.restart(lost_exits=lost_exits)

    def reboot(self) -> None:
        """The node reboots: every container has exited, no sandbox is ready, a new boot id."""
        for container in list(self.core.containers.values()):
            self.core.kill(container, LOST, "Unknown")
        for sandbox in list(self.core.sandboxes.values()):
            self.core.lose_sandbox(sandbox)
            sandbox.ip = ""
        self.node.boot = self.core.ids.uuid()
        self._down = None
        self._pump()

    # -- answering -----------------------------------------------------------------------------

    def _at_once(self, method: str, request: Message) -> Message | None:
        handler = HANDLERS.get(method)
        if handler is None:
            return None
        if self._down is not None:
            raise self._down
        self._pump()
        try:
            return handler(self.core, request)
        finally:
            self._pump()

    async def _answer(self, method: str, request: Message, timeout_s: float | None) -> Message:
        answer = self._at_once(method, request)
        if answer is not None:
            return answer
        if self._down is not None:
            raise self._down
        slow: dict[str, Callable[[Any], Awaitable[Message]]] = {
            "StopContainer": self._stop_container,
            "ExecSync": self._exec_sync,
            "PullImage": self._pull_image,
            "Exec": self._stream_url,
            "Attach": self._stream_url,
            "PortForward": self._stream_url,
        }
        if method not in slow:
            raise not_played(method)
        self._pump()
        try:
            return await slow[method](request)
        finally:
            self._pump()

    async def _answers(
        self, method: str, request: Message, timeout_s: float | None
    ) -> AsyncIterator[Message]:
        if self._down is not None:
            raise self._down
        if method == "GetContainerEvents":
            async for event in self._streams.subscribe():
                yield event
            return
        if method not in list_streams.STREAMS:
            raise not_played(method)
        self._pump()
        stream = list_streams.STREAMS[method]
        for batch in list_streams.batches(stream, request, self._listed, self.list_batch_items):
            yield batch

    def _listed(self, method: str, request: Message) -> Message:
        return HANDLERS[method](self.core, request)

    async def _stop_container(self, request: pb.StopContainerRequest) -> Message:
        """CRI-060..064: signal, wait, kill. A deadline before the time-out kills nothing."""
        try:
            container = self.core.find_container(request.container_id)
        except CriError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return pb.StopContainerResponse()
            raise
        if container.state is State.RUNNING and request.timeout > 0:
            self.core.signal(container)
            await self._exit_of(container, within_s=float(request.timeout))
        if container.id in self.core.containers:  # it may have been removed meanwhile
            self.core.kill(container)
        return pb.StopContainerResponse()

    async def _exec_sync(self, request: pb.ExecSyncRequest) -> Message:
        """CRI-111, CRI-112; the answer is what the container's behaviour says, else exit 0."""
        container = self.core.find_container(request.container_id, "ExecSync")
        if container.state is not State.RUNNING:
            state = f"container is in CONTAINER_{container.state.name} state"
            raise unknown(f"failed to exec in container: {state}")
        command = list(request.cmd)
        if not command:
            raise unknown(
                f'failed to exec in container: failed to start exec "{self.core.ids.hex()}": '
                "OCI runtime exec failed: exec failed: args must not be empty: unknown"
            )
        reply = container.reply_to(command, container.age_s(self.clock.wall_ns()))
        if reply is None:
            return pb.ExecSyncResponse()
        limit_s = float(request.timeout) if request.timeout > 0 else None
        takes_s = reply.delay_s if limit_s is None else min(reply.delay_s, limit_s)
        if takes_s > 0 and await self._exit_of(container, within_s=takes_s):
            return pb.ExecSyncResponse(exit_code=SIGKILLED)
        if limit_s is not None and reply.delay_s > limit_s:
            raise deadline_exceeded(
                f"failed to exec in container: timeout {limit_s:g}s exceeded: "
                "context deadline exceeded"
            )
        return pb.ExecSyncResponse(
            exit_code=reply.exit_code, stdout=reply.stdout.encode(), stderr=reply.stderr.encode()
        )

    async def _stream_url(
        self, request: pb.ExecRequest | pb.AttachRequest | pb.PortForwardRequest
    ) -> Message:
        """CRI-115, CRI-116: where the caller gets its streams."""
        runtime_calls.check_streams(self.core, request)
        response: Message = await self.streaming.answer(request)
        return response

    async def _pull_image(self, request: pb.PullImageRequest) -> Message:
        """CRI-092, CRI-096: takes the registry's time, then the image is there."""
        source = self.images.look_up_in_registry(request.image.image, credentials_of(request.auth))
        if source.pull_s > 0:
            await self.clock.sleep(source.pull_s)
        if source.error:
            raise CriError(status_code(source.error_code), source.error)
        return pb.PullImageResponse(image_ref=self.images.add(request.image.image, source).id)

    async def _exit_of(self, container: Container, *, within_s: float) -> bool:
        """Wait until the container is not running any more; False when `within_s` passed first."""
        if self._pump() and container.state is not State.RUNNING:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exits.setdefault(container.id, []).append(future)
        try:
            async with asyncio.timeout(within_s):
                await future
        except TimeoutError:
            return False
        return True

    # -- for the streams -----------------------------------------------------------------------

    @contextmanager
    def changes(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever something in the core may have changed."""
        changed = asyncio.Event()
        self._watchers.append(changed)
        try:
            yield changed
        finally:
            self._watchers.remove(changed)

    def subject_of(self, container: Container) -> Subject:
        """What rules match a container by."""
        return _subject(container)

    # -- time and news -------------------------------------------------------------------------

    def _pump(self) -> bool:
        """Bring the core up to now, hand out its news, and set the timer for what comes next."""
        if self.core.quiet and self._timer_for is None and not self._watchers:
            return True  # as it is around nearly every call
        self.core.advance()
        if self.core.news:
            for news in self.core.news:
                if _ends(news.kind):
                    self._wake(news.object_id)
            self.core.news.clear()
        for work in self.core.writes:
            self._files.do(work)
        self.core.writes.clear()
        for changed in self._watchers:
            changed.set()
        self._set_timer()
        return True

    def _wake(self, container_id: str) -> None:
        """The calls that wait for the end of this container go on."""
        for future in self._exits.pop(container_id, ()):
            if not future.done():
                future.set_result(None)

    def _set_timer(self) -> None:
        """Pump again when the core next has something to do, in the loop that runs now."""
        due_ns = self.core.next_due_ns()
        if due_ns is None and self._timer_for is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # programmed between two loops; the next call sets it
        wanted = None if due_ns is None else (due_ns, loop)
        if wanted == self._timer_for:
            return  # nearly every call leaves the plan as it was
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_for = wanted
        if due_ns is not None:
            # Never a wait that rounds to none: virtual time would stand still for ever.
            delay_s = max((due_ns - self.clock.wall_ns()) / 1e9, 2 * math.ulp(loop.time()))
            self._timer = loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_for = None
        self._pump()


def _own_version() -> str:
    """The version of this distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("refkubelet")
    except PackageNotFoundError:
        return "0.0.0"


def _ends(kind: int) -> bool:
    return kind in (pb.CONTAINER_STOPPED_EVENT, pb.CONTAINER_DELETED_EVENT)


def _subject(container: Container) -> Subject:
    pod = container.pod
    spec = container.config.image
    image = spec.user_specified_image or spec.image
    return Subject(pod.name, pod.namespace, pod.uid, container.name, image, container.attempt)


def _sandbox_subject(sandbox: Sandbox) -> Subject:
    meta = sandbox.config.metadata
    return Subject(meta.name, meta.namespace, meta.uid, attempt=meta.attempt)
