"""`fakecri.serve()`: a fake on a socket for tests without an event loop, and for other processes.

The fake lives on a loop of its own in a background thread; every call of the facade runs on that
loop and is waited for, so tests stay ordinary blocking code. What must never happen: the fake is
touched from another thread than its own, or the end of the block leaves a thread, a socket or a
directory behind.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import (
    Any,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Unpack,
    cast,
    get_args,
)

from fakecri.control.api import serve_control
from fakecri.control.client import ControlClient
from fakecri.core.image_store.images import ImageStore
from fakecri.cri.endpoint import require_two_sockets, socket_path
from fakecri.fake import FakeCRI
from fakecri.machine.node import FakeNode
from fakecri.options import OptionFields
from fakecri.recording.call import Call
from fakecri.recording.questions import ASKED
from fakecri.server import serve as serve_grpc
from fakecri.serving.handed_over import hand_over, pause
from fakecri.streaming.stream_rules import Programs
from kubeobjects.arguments import arguments_told, tells_arguments
from simclock import ManualLoop, RealClock
from simclock.loop_thread import LoopThread

P = ParamSpec("P")
R = TypeVar("R")
ClockMode: TypeAlias = Literal["real", "manual"]


_ENDED: Final = "this fake has ended with its `with fakecri.serve()` block"


def _on_loop(
    method: Callable[Concatenate[FakeCRI, P], R], *also: str
) -> Callable[Concatenate[ServedFake, P], R]:
    """A method of FakeCRI as a blocking method of the facade. `also`: what its `**` takes."""

    @wraps(method)
    def handed(self: ServedFake, /, *args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        return cast(R, hand_over(self._thread, lambda: method(self._cri, *args, **kwargs)))

    return tells_arguments(*also)(handed) if also else handed


@arguments_told
class ServedFake:
    """A fake runtime on a socket, with the methods of `FakeCRI` as blocking calls for any thread.

    Containers, sandboxes and calls are copies. The wall time of the fake passes by itself, or with
    `clock="manual"` by `advance`.
    """

    def __init__(self, thread: LoopThread, cri: FakeCRI, endpoint: str, control: str) -> None:
        self._thread = thread
        self._cri = cri
        self.endpoint = endpoint
        """Where the CRI is served, `unix:///...`."""
        self.control = control
        """The control socket, `unix:///...`, for `fakecri ctl` and other processes."""

    behaves = _on_loop(FakeCRI.behaves)
    on = _on_loop(FakeCRI.on)
    rules = _on_loop(FakeCRI.rules)
    unused_rules = _on_loop(FakeCRI.unused_rules)

    calls = _on_loop(FakeCRI.calls, *ASKED)
    count = _on_loop(FakeCRI.count, *ASKED)
    times_s = _on_loop(FakeCRI.times_s, *ASKED)
    assert_called = _on_loop(FakeCRI.assert_called, *ASKED)
    assert_not_called = _on_loop(FakeCRI.assert_not_called, *ASKED)
    assert_order = _on_loop(FakeCRI.assert_order)
    assert_series = _on_loop(FakeCRI.assert_series, *ASKED)

    def _ask(self, work: Callable[[], R]) -> R:
        __tracebackhide__ = True
        return cast(R, hand_over(self._thread, work))

    containers = _on_loop(FakeCRI.containers)
    container = _on_loop(FakeCRI.container)
    sandboxes = _on_loop(FakeCRI.sandboxes)

    exit = _on_loop(FakeCRI.exit)
    kill = _on_loop(FakeCRI.kill)
    drop = _on_loop(FakeCRI.drop)
    kill_sandbox = _on_loop(FakeCRI.kill_sandbox)
    stop_sandbox = _on_loop(FakeCRI.stop_sandbox)
    lose_network = _on_loop(FakeCRI.lose_network)
    restore_network = _on_loop(FakeCRI.restore_network)
    crash = _on_loop(FakeCRI.crash)
    restart = _on_loop(FakeCRI.restart)
    reboot = _on_loop(FakeCRI.reboot)
    oom = _on_loop(FakeCRI.oom)
    kernel_says = _on_loop(FakeCRI.kernel_says)

    @contextmanager
    def down(self, *, loses_state: bool = False, lost_exits: bool = False) -> Iterator[None]:
        """The runtime is down inside the block: `crash`, then `restart`."""
        self.crash(loses_state=loses_state)
        try:
            yield
        finally:
            self.restart(lost_exits=lost_exits)

    @contextmanager
    def without_network(self) -> Iterator[None]:
        """There is no pod network inside the block."""
        self.lose_network()
        try:
            yield
        finally:
            self.restore_network()

    def reset(self) -> None:
        """The fake as it was served first, for the next test; see `FakeCRI.reset`."""
        self._thread.run(self._cri.reset)

    def __repr__(self) -> str:
        return f"<served at {self.endpoint}: {self._ask(lambda: repr(self._cri))}>"

    @property
    def images(self) -> ImageStore:
        """The image store, as `FakeCRI.images`."""
        return cast(ImageStore, hand_over(self._thread, lambda: self._cri.images))

    @property
    def streaming(self) -> Programs:
        """The programs and ports behind Exec, Attach and PortForward, as `FakeCRI.streaming`.

        What is programmed runs on the loop of the fake, not in the thread that programmed it.
        """
        return cast(Programs, hand_over(self._thread, lambda: self._cri.streaming))

    @property
    def node(self) -> FakeNode:
        """The node, as `FakeCRI.node`. Its fields may be set; what is done to it is done on the
        fake's loop."""
        return cast(FakeNode, hand_over(self._thread, lambda: self._cri.node))

    def advance(self, duration_s: float) -> float:
        """Let time pass; returns the seconds since the start.

        Raises ValueError unless served with `clock="manual"`.
        """
        loop = self._thread.loop
        if not isinstance(loop, ManualLoop):
            raise ValueError('time passes by itself here; to advance it: serve(clock="manual")')
        return cast(float, self._thread.run(lambda: loop.advance(duration_s)))

    @tells_arguments(*ASKED)
    def wait_for_calls(
        self, method: str, *, times: int = 1, within_s: float = 10.0, **filters: Any
    ) -> list[Call]:
        """Wait in real time until there were `times` such calls, and return them.

        `filters`: as of `calls`, without predicates. Raises AssertionError with the calls that
        there were, when `within_s` seconds have passed.
        """
        __tracebackhide__ = True
        for _ in range(max(1, round(within_s / 0.01))):
            if self.count(method, **filters) >= times:
                break
            pause(0.01)
        calls = self.calls(method, **filters)
        if len(calls) < times:
            self.assert_called(method, times=times, **filters)
        return calls

    def ctl(self) -> ControlClient:
        """A client of the control socket: what another process would use."""
        return ControlClient(self.control)


@tells_arguments(*OptionFields.__annotations__)
@contextmanager
def serve(
    listen: str | None = None,
    *,
    control: str | None = None,
    clock: ClockMode = "real",
    node: FakeNode | None = None,
    **options: Unpack[OptionFields],
) -> Iterator[ServedFake]:
    """Serve a new fake runtime in a background thread until the block ends.

    `listen` and `control` are endpoints (`unix:///...`), by default in a new directory under the
    system's temporary one. `clock` "manual": time stands still until `advance`. `node` and
    `options` go to `FakeCRI` (images, registry, write_logs, script, ...).
    Raises EndpointError, ScriptError; ValueError for another clock.
    """
    if clock not in get_args(ClockMode):
        raise ValueError(f"clock: wanted {' or '.join(get_args(ClockMode))}, got {clock!r}")
    with _endpoints(listen, control) as endpoints:
        loop = ManualLoop() if clock == "manual" else asyncio.new_event_loop()
        thread = LoopThread(loop, ended=_ENDED)
        stack = AsyncExitStack()
        try:
            start = partial(
                _start,
                thread,
                stack,
                endpoints=endpoints,
                node=node or _node(options),
                options=options,
            )
            yield thread.run(start)
        finally:
            thread.run(stack.aclose)
            thread.stop()


def _node(options: OptionFields) -> FakeNode:
    """The node of the script, if there is one. Clients stat the directory of the images."""
    script = options.get("script")
    if script is None:
        return FakeNode(image_root="/")
    from fakecri.scripts.script import load_script, node_of

    return node_of(load_script(script), image_root="/")


@contextmanager
def _endpoints(listen: str | None, control: str | None) -> Iterator[tuple[str, str]]:
    """Both endpoints; one that is not given is in a directory that goes with the block."""
    for endpoint in (listen, control):
        if endpoint is not None:
            socket_path(endpoint)
    own_directory = None if listen and control else Path(tempfile.mkdtemp(prefix="fakecri-"))
    try:
        listen = listen or f"unix://{own_directory}/cri.sock"
        control = control or f"unix://{own_directory}/ctl.sock"
        require_two_sockets(listen, control)
        yield listen, control
    finally:
        if own_directory is not None:
            shutil.rmtree(own_directory, ignore_errors=True)


async def _start(
    thread: LoopThread,
    stack: AsyncExitStack,
    *,
    endpoints: tuple[str, str],
    node: FakeNode,
    options: OptionFields,
) -> ServedFake:
    """Start fake and servers on the loop; `stack` ends them."""
    listen, control = endpoints
    loop = thread.loop  # the fake's own, whichever loop of a test reads the node
    clock = loop.clock if isinstance(loop, ManualLoop) else RealClock()
    cri = FakeCRI(clock, node=node, **options)
    cri.lives_on(loop)
    manual = loop if isinstance(loop, ManualLoop) else None
    endpoint = await stack.enter_async_context(serve_control(cri, control, manual))
    await stack.enter_async_context(serve_grpc(cri, listen))
    return ServedFake(thread, cri, f"unix://{socket_path(listen)}", endpoint)
