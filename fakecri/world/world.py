"""The fake world from outside: what there is in it, and what can happen to it without a call.

`FakeCRI` is this with rules and a record of calls. What must never happen here: something happens
to a container and the calls that wait for it are not told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import grpc

from fakecri.behaviors.matching import Match
from fakecri.calls.answers import Outage
from fakecri.calls.events import EventStreams
from fakecri.clockwork.clockwork import Clockwork
from fakecri.core import copies, running
from fakecri.core.containers import drop_container
from fakecri.core.objects import Container, Sandbox, State
from fakecri.core.runtime import LOST, SIGKILLED, Core
from fakecri.core.sandboxes import lose_sandbox, stop_sandbox
from fakecri.errors import CriError
from fakecri.machine.node import FakeNode
from fakecri.machine.values import Victim
from fakecri.rules.under_way import CallsUnderWay
from fakecri.streaming.host import Streaming
from fakecri.words.kinds import MAX_EXIT_CODE
from kubeobjects.arguments import arguments_told


@arguments_told
class World:
    """Sandboxes, containers, runtime and node, seen and touched from outside."""

    def __init__(
        self,
        core: Core,
        clockwork: Clockwork,
        outage: Outage,
        *,
        events: EventStreams,
        streaming: Streaming,
        under_way: CallsUnderWay,
    ) -> None:
        self.core = core
        self._clockwork = clockwork
        self._outage = outage
        self._events = events
        self._streams = streaming
        self._under_way = under_way

    def lives_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let what happens to the node in another thread take effect on that loop."""
        self._clockwork.home = loop

    @property
    def node(self) -> FakeNode:
        """The machine: its memory, its filesystems; change its fields while a test runs."""
        return self.core.node

    # -- what there is -------------------------------------------------------------------------

    def containers(self, name: str | None = None, *, pod: str | None = None) -> list[Container]:
        """The containers that exist, oldest first. `name` and `pod` may be patterns, `pod` a UID;
        None: any."""
        self._clockwork.pump()
        match = Match(pod=pod, container=name)
        return [c for c in self.core.containers.values() if match.fits(c.subject)]

    def container(self, name: str | None = None, *, pod: str | None = None) -> Container:
        """The newest container that fits. Raises LookupError, which lists those that there are."""
        matching = self.containers(name, pod=pod)
        if not matching:
            listing = ", ".join(f"{c.pod.name}/{c.name}/{c.attempt}" for c in self.containers())
            selector = Match(pod=pod, container=name)
            raise LookupError(f"no container ({selector}); there are: {listing or 'none'}")
        return matching[-1]

    def sandboxes(self, *, pod: str | None = None) -> list[Sandbox]:
        """The sandboxes that exist, oldest first."""
        match = Match(pod=pod)
        return [s for s in self.core.sandboxes.values() if match.fits(s.subject)]

    def changes(self) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever something in the core may have changed."""
        return self._clockwork.changes()

    # -- what happens to containers and sandboxes ----------------------------------------------

    def exit(self, name: str | None = None, *, pod: str | None = None, code: int = 0) -> Container:
        """Let the newest running container that fits end by itself with `code` (0 to 255). Raises
        LookupError."""
        return self.kill(name, pod=pod, exit_code=code)

    def kill(
        self,
        name: str | None = None,
        *,
        pod: str | None = None,
        exit_code: int = SIGKILLED,
        reason: str = "",
    ) -> Container:
        """Kill the newest running container that fits, from outside. `reason` "": the one that
        follows from the exit code. Raises LookupError, ValueError for an exit code that cannot
        be."""
        if exit_code not in range(MAX_EXIT_CODE + 1):
            raise ValueError(f"exit code: wanted 0 to {MAX_EXIT_CODE}, got {exit_code!r}")
        candidates = [c for c in self.containers(name, pod=pod) if c.state is State.RUNNING]
        if not candidates:
            raise LookupError(f"no running container ({Match(pod=pod, container=name)})")
        running.kill(self.core, candidates[-1], exit_code, reason)
        self._clockwork.pump()
        return candidates[-1]

    def drop(self, name: str | None = None, *, pod: str | None = None) -> Container:
        """Let the newest container that fits vanish from the runtime: no event, no call tells of
        it. Raises LookupError."""
        container = self.container(name, pod=pod)
        drop_container(self.core, container)
        self._clockwork.vanished(container)
        self._clockwork.pump()
        return container

    def kill_sandbox(self, *, pod: str | None = None) -> Sandbox:
        """Kill the sandbox process of the newest sandbox that fits (CRI-039). Raises
        LookupError."""
        sandbox = self._newest_sandbox(pod)
        lose_sandbox(self.core, sandbox)
        self._clockwork.pump()
        return sandbox

    def stop_sandbox(self, *, pod: str | None = None) -> Sandbox:
        """Stop the newest sandbox that fits, as another client of the runtime would. Raises
        LookupError."""
        sandbox = self._newest_sandbox(pod)
        stop_sandbox(self.core, sandbox)
        self._clockwork.pump()
        return sandbox

    def _newest_sandbox(self, pod: str | None) -> Sandbox:
        matching = self.sandboxes(pod=pod)
        if not matching:
            raise LookupError(f"no sandbox ({Match(pod=pod)})")
        return matching[-1]

    # -- what happens to the runtime and the node ----------------------------------------------

    def lose_network(self) -> None:
        """Let the node be without a pod network from now on: Status says so, and pods that want it
        can neither be set up nor torn down (CRI-037, CRI-130)."""
        self.core.network.ready = False

    def restore_network(self) -> None:
        """Give the node its pod network back."""
        self.core.network.ready = True

    @contextmanager
    def without_network(self) -> Iterator[None]:
        """There is no pod network inside the block."""
        self.lose_network()
        try:
            yield
        finally:
            self.restore_network()

    def crash(self, *, loses_state: bool = False) -> None:
        """Take the runtime down: calls fail with UNAVAILABLE, also those under way (a stop that
        waits, a pull, a call that a rule holds up); containers run on (CRI-160).

        `loses_state`: it forgets its sandboxes and containers, as after the loss of its database;
        images stay.
        """
        self._clockwork.pump()
        text = "connection error: the fake runtime is down"
        down = CriError(grpc.StatusCode.UNAVAILABLE, text)
        self._outage.error, self._outage.since_ns = down, self.core.now_ns()
        self._under_way.break_off(down)
        if loses_state:
            lost = list(self.core.containers.values())
            copies.forget(self.core)
            for container in lost:
                self._clockwork.vanished(container)
        self._events.end(down)
        self._streams.cut()

    @property
    def is_down(self) -> bool:
        """Whether the runtime is down: between `crash` and `restart`."""
        return self._outage.error is not None

    def restart(self, *, lost_exits: bool = False) -> None:
        """Bring the runtime up again, with everything it knew (CRI-160).

        `lost_exits`: containers that ended meanwhile show 255 `Unknown`, as with containerd 1.7 and
        later (CRI-161); else their own codes, as with 1.6.
        """
        self._clockwork.pump()
        if self.is_down and lost_exits:
            copies.lose_exits(self.core, self._outage.since_ns)
        self._outage.error = None

    @contextmanager
    def down(self, *, loses_state: bool = False, lost_exits: bool = False) -> Iterator[None]:
        """The runtime is down inside the block: `crash`, then `restart`."""
        self.crash(loses_state=loses_state)
        try:
            yield
        finally:
            self.restart(lost_exits=lost_exits)

    def oom(self, process: str = "", pid: int = 0) -> Victim:
        """Let the machine run out of memory, see `FakeNode.oom`."""
        try:
            return self.node.oom(process, pid)
        finally:
            self._clockwork.pump()

    def kernel_says(self, text: str) -> None:
        """Write a line into the log of the machine's kernel."""
        self.node.kernel_says(text)

    def reboot(self) -> None:
        """Reboot the node: calls under way break off as in a crash, every container has exited (255
        `Unknown`), no sandbox is ready, no cgroup is left, there is a new boot id; the runtime is
        up again."""
        self.crash()
        for container in list(self.core.containers.values()):
            running.kill(self.core, container, LOST, "Unknown")
        for sandbox in list(self.core.sandboxes.values()):
            lose_sandbox(self.core, sandbox)
            sandbox.ips = ()
        self.node.boot = self.core.ids.uuid()
        self.node.booted_ns = self.core.now_ns()
        self.node.forget_cgroups()
        self._outage.error = None
        self._clockwork.pump()
