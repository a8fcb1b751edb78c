"""`fakecri.serve()`: a fake on a socket for tests without an event loop, and for other processes.

The fake lives on a loop of its own in a background thread; every word of the facade is handed over
to that loop and waited for, so tests stay ordinary blocking code. This module is the one place
with a thread: whoever blocks here waits in real time anyway. What must never happen: the fake is
touched from another thread than its own, or the end of the block leaves a thread, a socket or a
directory behind.
"""

from __future__ import annotations

import asyncio
import copy
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar, cast

from fakecri.control.api import serve_control
from fakecri.control.client import ControlClient
from fakecri.endpoint import require_two_sockets, socket_path
from fakecri.fake import FakeCRI
from fakecri.faults import Rule
from fakecri.images import ImageStore
from fakecri.node import FakeNode
from fakecri.objects import Container, Sandbox
from fakecri.on import On
from fakecri.recorder import Call
from fakecri.script import apply_script, load_script
from fakecri.server import serve as serve_grpc
from fakecri.streaming.programs import Programs
from simtime import ManualLoop

P = ParamSpec("P")
R = TypeVar("R")
ClockMode: TypeAlias = Literal["real", "manual"]
_STOP_S: Final = 10.0


class LoopThread:
    """An event loop that runs in a daemon thread until `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._thread = threading.Thread(target=self._run, name="fakecri", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Callable[[], Any]) -> Any:
        """The result of `work()`, called on the loop; an awaitable is awaited there.

        From the loop itself (a predicate or handler of a test) it is called directly.
        Raises: RuntimeError when the loop has ended.
        """
        if threading.current_thread() is self._thread:
            return work()
        if self.loop.is_closed():
            raise RuntimeError("this fake has ended with its `with fakecri.serve()` block")

        async def body() -> Any:
            found = work()
            return await found if asyncio.iscoroutine(found) else found

        return asyncio.run_coroutine_threadsafe(body(), self.loop).result()

    def stop(self) -> None:
        """Cancel what still runs there, then end loop and thread."""

        async def cancel_all() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(cancel_all)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_S)
        self.loop.close()


class _Handed:
    """An object that lives on the loop; its attributes and methods are used there."""

    def __init__(self, thread: LoopThread, target: Any) -> None:
        self._thread = thread
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = self._thread.run(lambda: getattr(self._target, name))
        if not callable(found):
            return found

        @wraps(found)
        def on_loop(*args: Any, **kwargs: Any) -> Any:
            return hand_over(self._thread, lambda: found(*args, **kwargs))

        return on_loop

    def __enter__(self) -> Any:
        self._thread.run(self._target.__enter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._thread.run(lambda: self._target.__exit__(kind, error, tb))

    def __repr__(self) -> str:
        return str(self._thread.run(lambda: repr(self._target)))


def hand_over(thread: LoopThread, work: Callable[[], Any]) -> Any:
    """The result of `work()` on the loop: rules stay there behind a handle, objects are copied."""
    __tracebackhide__ = True
    return thread.run(lambda: _outside(thread, work()))


def _outside(thread: LoopThread, found: Any) -> Any:
    if isinstance(found, Rule | On | ImageStore | Programs):
        return _Handed(thread, found)
    if isinstance(found, Container | Sandbox | Call):
        return copy.copy(found)
    return [_outside(thread, one) for one in found] if isinstance(found, list) else found


def _on_loop(
    method: Callable[Concatenate[FakeCRI, P], R],
) -> Callable[Concatenate[ServedFake, P], R]:
    """A method of FakeCRI as a blocking method of the facade."""

    @wraps(method)
    def handed(self: ServedFake, /, *args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        return cast(R, hand_over(self._thread, lambda: method(self._cri, *args, **kwargs)))

    return handed


class ServedFake:
    """A fake runtime on a socket, programmed and questioned by blocking calls from any thread.

    The methods are those of `FakeCRI`. Containers, sandboxes and calls come as copies. The wall
    time of the fake passes by itself, or with `clock="manual"` by `advance`.
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

    assert_order = _on_loop(FakeCRI.assert_order)

    def calls(self, method: str | None = None, *, since_s: float = 0.0, **match: Any) -> list[Call]:
        """Calls of `method` (None: all) that fit pod=, container=, image=, attempt=."""
        return self._ask(lambda: self._cri.calls(method, since_s=since_s, **match))

    def count(self, method: str | None = None, **match: Any) -> int:
        """How many such calls there were."""
        return self._ask(lambda: self._cri.count(method, **match))

    def times_s(self, method: str | None = None, **match: Any) -> list[float]:
        """When they arrived, the clock's monotonic seconds."""
        return self._ask(lambda: self._cri.times_s(method, **match))

    def assert_called(self, method: str, *, times: int | None = None, **match: Any) -> None:
        """Fails, with the nearest miss and the last calls, unless there were such calls."""
        __tracebackhide__ = True
        self._ask(lambda: self._cri.assert_called(method, times=times, **match))

    def assert_not_called(self, method: str, **match: Any) -> None:
        """Fails if there was such a call."""
        __tracebackhide__ = True
        self._ask(lambda: self._cri.assert_not_called(method, **match))

    def assert_series(
        self, method: str, expected_s: Sequence[float], *, slack_s: float = 1.0, **match: Any
    ) -> None:
        """Fails unless those calls came at these seconds after the first one."""
        __tracebackhide__ = True
        self._ask(lambda: self._cri.assert_series(method, expected_s, slack_s=slack_s, **match))

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
    crash = _on_loop(FakeCRI.crash)
    restart = _on_loop(FakeCRI.restart)
    reboot = _on_loop(FakeCRI.reboot)

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
        """The node. Its fields are plain values that may be set from any thread."""
        return self._cri.node

    def advance(self, duration_s: float) -> float:
        """Let time pass; returns the seconds since the start.

        Raises: ValueError unless served with `clock="manual"`.
        """
        loop = self._thread.loop
        if not isinstance(loop, ManualLoop):
            raise ValueError('time passes by itself here; to advance it: serve(clock="manual")')
        return cast(float, self._thread.run(lambda: loop.advance(duration_s)))

    def wait_for_calls(
        self, method: str, *, times: int = 1, within_s: float = 10.0, **filters: Any
    ) -> list[Call]:
        """Wait in real time until there were `times` such calls, and return them.

        `filters` as of `calls`, but for predicates. Raises: AssertionError with the calls there
        were when `within_s` seconds have passed.
        """
        __tracebackhide__ = True
        pause = threading.Event()
        for _ in range(max(1, round(within_s / 0.01))):
            if self.count(method, **filters) >= times:
                break
            pause.wait(0.01)
        found = self.calls(method, **filters)
        if len(found) < times:
            self.assert_called(method, times=times, **filters)
        return found

    def ctl(self) -> ControlClient:
        """A client of the control socket: what another process would use."""
        return ControlClient(self.control)


@contextmanager
def serve(
    listen: str | None = None,
    *,
    control: str | None = None,
    clock: ClockMode = "real",
    script: str | Path | None = None,
    **options: Any,
) -> Iterator[ServedFake]:
    """Serve a new fake runtime in a background thread until the block ends.

    `listen` and `control` are endpoints (`unix:///...`), by default in a new directory under the
    system's temporary one. `clock` "manual": time stands still until `advance`. `script`: a script
    file to begin with. `options` go to `FakeCRI` (images, node, registry, write_logs, ...).
    Raises: EndpointError, ScriptError.
    """
    own_directory = None if listen and control else Path(tempfile.mkdtemp(prefix="fakecri-"))
    listen = listen or f"unix://{own_directory}/cri.sock"
    control = control or f"unix://{own_directory}/ctl.sock"
    require_two_sockets(listen, control)
    try:
        loop: asyncio.AbstractEventLoop = (
            ManualLoop() if clock == "manual" else asyncio.new_event_loop()
        )
        thread = LoopThread(loop)
        stack = AsyncExitStack()
        try:
            yield thread.run(lambda: _start(thread, stack, (listen, control), script, options))
        finally:
            thread.run(stack.aclose)
            thread.stop()
    finally:
        if own_directory is not None:
            shutil.rmtree(own_directory, ignore_errors=True)


async def _start(
    thread: LoopThread,
    stack: AsyncExitStack,
    endpoints: tuple[str, str],
    script: str | Path | None,
    options: dict[str, Any],
) -> ServedFake:
    """Start fake and servers on the loop; `stack` ends them."""
    listen, control = endpoints
    loaded = None if script is None else load_script(Path(script))
    if loaded is not None and loaded.images is not None:
        options = {"images": loaded.images, **options}
    options.setdefault("node", FakeNode(image_root="/"))  # clients stat that directory
    cri = FakeCRI(**options)
    if loaded is not None:
        apply_script(loaded, cri)
    manual = thread.loop if isinstance(thread.loop, ManualLoop) else None
    endpoint = await stack.enter_async_context(serve_control(cri, control, manual))
    await stack.enter_async_context(serve_grpc(cri, listen))
    return ServedFake(thread, cri, f"unix://{socket_path(listen)}", endpoint)
