"""The fake runtime's core: sandboxes, containers, names and time, without I/O or timers.

How it works. Every operation takes effect at once, at the time of `now_ns`. What happens later (a
container ends, writes a line, runs out of memory) is on a heap: `next_due_ns` says when the next of
it is due, `advance` applies what is. The shell around the core (`calls.py`, `fake.py`) waits for
that, and for the few calls that take time. What the world outside must learn is in `news` (state
changes) and `writes` (files), which the shell empties.

What must never happen: the core reads a clock; two objects share a name (CRI-024); a container
starts twice or leaves EXITED; a time stamp repeats or goes back.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NewType

import grpc
from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri import lookup, stop_signals
from fakecri.errors import CriError, unknown
from fakecri.files import CloseLog, FileWork, OpenLog, WriteLog, WriteMessage
from fakecri.images import ImageStore
from fakecri.messages import OOM_KILLED, START_ERROR, exit_reason
from fakecri.node import FakeNode, Usage
from fakecri.objects import Container, Input, LogLine, Sandbox, State
from fakecri.plan import Plan
from fakecri.prefix_table import PrefixTable
from fakecri.requests import (
    complete,
    container_name,
    copied,
    log_path,
    log_text,
    require_short_labels,
    sandbox_name,
)
from fakecri.usage import UsageLedger
from simtime import Ids

SIGKILLED: Final = 137
START_FAILED: Final = 128
LOST: Final = 255
_LONGEST_ARGUMENT_BYTES: Final = 128 * 1024
_SPARE_DUE: Final = 1000


Name = NewType("Name", str)
"""A name in the table of reserved ones."""


@dataclass(frozen=True, slots=True)
class News:
    """A change of state: what GetContainerEvents tells, and what waiting calls wait for."""

    kind: pb.ContainerEventType
    object_id: str
    sandbox: Sandbox
    time_ns: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What Version says the runtime is."""

    name: str = "fakecri"
    version: str = "0.0.0"


@dataclass(slots=True)
class Core:
    """State and operations. `plan_of(container)` says what a run of a container will do."""

    ids: Ids
    node: FakeNode
    images: ImageStore
    plan_of: Callable[[Container], Plan]
    now_ns: Callable[[], int]
    sandboxes: PrefixTable[Sandbox] = field(default_factory=PrefixTable)
    containers: PrefixTable[Container] = field(default_factory=PrefixTable)
    news: list[News] = field(default_factory=list)
    writes: list[FileWork] = field(default_factory=list)
    network_ready: bool = True
    handlers: tuple[str, ...] = ()
    """Runtime handlers beside the default one, "" (CRI-030)."""
    identity: Identity = field(default_factory=Identity)
    watch: Callable[[News], None] | None = None
    """Told of every change as it happens."""
    _names: dict[str, str] = field(default_factory=dict)
    _due: list[tuple[int, int, str]] = field(default_factory=list)
    _counter: int = 0
    _last_stamp_ns: int = 0
    _next_ip: int = 2
    _used: UsageLedger = field(default_factory=UsageLedger)
    _most_due: int = _SPARE_DUE

    def __post_init__(self) -> None:
        self.node.usage = self.usage
        self.node.now_ns = self.now_ns

    # -- time ----------------------------------------------------------------------------------

    def stamp_ns(self) -> int:
        """A time stamp: now, but never one given before (CRI-050: created < started < finished)."""
        self._last_stamp_ns = max(self.now_ns(), self._last_stamp_ns + 1)
        return self._last_stamp_ns

    @property
    def quiet(self) -> bool:
        """Nothing is planned, and nothing is to be told or written."""
        return not (self._due or self.news or self.writes)

    def next_due_ns(self) -> int | None:
        """When `advance` next has something to do; None: nothing is planned."""
        while self._due and self._due[0][2] not in self.containers:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def advance(self) -> None:
        """Apply everything that is due now, in order of its time."""
        if not self._due:
            return
        now = self.now_ns()
        while self._due and self._due[0][0] <= now:
            _, _, container_id = heapq.heappop(self._due)
            container = self.containers.get(container_id)
            if container is not None and container.state is State.RUNNING:
                self._write_lines(container, now)
                self._note_child_oom(container, now)
                if container.end_due_ns is not None and container.end_due_ns <= now:
                    self._end(container)

    def _plan_wake_up(self, container: Container, due_ns: int) -> None:
        self._counter += 1
        heapq.heappush(self._due, (due_ns, self._counter, container.id))
        if len(self._due) > self._most_due:  # plans of the removed must not pile up
            self._due = [due for due in self._due if due[2] in self.containers]
            heapq.heapify(self._due)
            self._most_due = 2 * len(self._due) + _SPARE_DUE

    # -- names and look-up ---------------------------------------------------------------------

    def _require_free(self, kind: str, name: str) -> None:
        holder = self._names.get(f"{kind} {name}")
        if holder is not None:
            name = lookup.shown(name)
            raise unknown(
                f'failed to reserve {kind} name "{name}": name "{name}" is reserved for "{holder}"'
            )

    def hold_name(self, request: Message) -> Name:
        """Reserve the name that this create request would take, for a create that does not end.
        Raises CriError if it is taken."""
        if isinstance(request, pb.RunPodSandboxRequest):
            kind, name = "sandbox", sandbox_name(request.config.metadata)
        else:
            assert isinstance(request, pb.CreateContainerRequest)
            kind = "container"
            name = container_name(request.config.metadata, request.sandbox_config.metadata)
        self._require_free(kind, name)
        self._names[f"{kind} {name}"] = self.ids.hex()
        return Name(f"{kind} {name}")

    def free_name(self, name: Name) -> None:
        """The create that held it has failed at last."""
        self._names.pop(name, None)

    def find_sandbox(self, object_id: str, method: str = "") -> Sandbox:
        """By id or unique prefix. Raises CriError in the words of `method`: NOT_FOUND, or UNKNOWN
        for an empty or ambiguous id (CRI-021..023)."""
        text = lookup.TEXTS.get(method, lookup.SANDBOX)
        return lookup.find(self.sandboxes, object_id, text)

    def find_container(self, object_id: str, method: str = "") -> Container:
        """By id or unique prefix; errors as `find_sandbox`."""
        text = lookup.TEXTS.get(method, lookup.CONTAINER)
        return lookup.find(self.containers, object_id, text)

    def containers_of(self, sandbox: Sandbox) -> list[Container]:
        """Oldest first; the cost does not depend on other pods."""
        return list(sandbox.containers.values())

    # -- sandboxes -----------------------------------------------------------------------------

    def run_sandbox(self, config: pb.PodSandboxConfig, handler: str) -> Sandbox:
        """RunPodSandbox (CRI-030): READY at once, with an address unless on the host's network."""
        if not config.HasField("metadata"):
            raise unknown("sandbox config must include metadata")
        name = sandbox_name(config.metadata)
        self._require_free("sandbox", name)
        if handler and handler not in self.handlers:
            raise unknown(
                "failed to get sandbox runtime: "
                f'no runtime for "{lookup.shown(handler)}" is configured'
            )
        sandbox = Sandbox(self.ids.hex(), copied(config), handler, self.stamp_ns())
        if not sandbox.on_host_network:
            self._set_up_network(sandbox, name)
        require_short_labels(config.labels)
        self._names[f"sandbox {name}"] = sandbox.id
        self.sandboxes[sandbox.id] = sandbox
        self._tell(pb.CONTAINER_CREATED_EVENT, sandbox.id, sandbox)
        self._tell(pb.CONTAINER_STARTED_EVENT, sandbox.id, sandbox)
        return sandbox

    def _set_up_network(self, sandbox: Sandbox, name: str) -> None:
        why = "" if self.network_ready else "cni plugin not initialized"
        if len(name) > _LONGEST_ARGUMENT_BYTES:  # network plugins get it as one variable
            why = (
                'plugin type="bridge" failed (add): netplugin failed with no error message: '
                "argument list too long"
            )
        if why:
            raise unknown(f'failed to setup network for sandbox "{sandbox.id}": {why}')
        number = self._next_ip
        self._next_ip += 1
        sandbox.ip = f"10.88.{number // 256 % 256}.{number % 256}"

    def stop_sandbox(self, sandbox: Sandbox) -> None:
        """StopPodSandbox (CRI-036): kills what runs, then NOTREADY without address. Repeatable."""
        for container in self.containers_of(sandbox):
            if container.state in (State.RUNNING, State.UNKNOWN):
                self.kill(container)
        if sandbox.ready:
            sandbox.ready = False
            self._tell(pb.CONTAINER_STOPPED_EVENT, sandbox.id, sandbox)
        sandbox.ip = ""

    def lose_sandbox(self, sandbox: Sandbox) -> None:
        """The sandbox process dies: NOTREADY, address kept, containers run on (CRI-039)."""
        if sandbox.ready:
            sandbox.ready = False
            self._tell(pb.CONTAINER_STOPPED_EVENT, sandbox.id, sandbox)

    def remove_sandbox(self, sandbox: Sandbox) -> None:
        """RemovePodSandbox (CRI-038): stops it, removes its containers, then itself."""
        self.stop_sandbox(sandbox)
        for container in self.containers_of(sandbox):
            self.remove_container(container)
        del self.sandboxes[sandbox.id]
        self._names.pop(f"sandbox {sandbox_name(sandbox.config.metadata)}", None)
        self._tell(pb.CONTAINER_DELETED_EVENT, sandbox.id, sandbox)

    # -- containers ----------------------------------------------------------------------------

    def create_container(self, request: pb.CreateContainerRequest) -> Container:
        """CreateContainer (CRI-051, CRI-052, CRI-024, CRI-040, CRI-100); checks in the order of
        containerd."""
        sandbox = self.find_sandbox(request.pod_sandbox_id, "CreateContainer")
        if not sandbox.ready:
            raise CriError(
                grpc.StatusCode.NOT_FOUND,
                "failed to get sandbox container task: no running task found: "
                f"task {sandbox.id} not found: not found",
            )
        if not request.config.HasField("metadata"):
            raise unknown("container config must include metadata")
        if not request.sandbox_config.HasField("metadata"):
            raise unknown("pod sandbox config must include metadata")
        name = container_name(request.config.metadata, request.sandbox_config.metadata)
        self._require_free("container", name)
        wanted = request.config.image.image
        image = self.images.resolve(wanted)
        require_short_labels(request.config.labels)
        container = Container(
            self.ids.hex(),
            sandbox,
            copied(request.config),
            copied(request.sandbox_config.metadata),
            image.id,
            image.digests[0] if image.digests else image.id,
            self.stamp_ns(),
            log_path(request),
        )
        container.resources.CopyFrom(request.config.linux.resources)
        complete(container.resources)
        container.stop_signal = stop_signals.effective(
            request.config.stop_signal, image.stop_signal
        )
        self._names[f"container {name}"] = container.id
        self.containers[container.id] = sandbox.containers[container.id] = container
        self._tell(pb.CONTAINER_CREATED_EVENT, container.id, sandbox)
        return container

    def start_container(self, container: Container) -> None:
        """StartContainer (CRI-055..057); raises CriError, and a failed start leaves it EXITED."""
        if container.state is not State.CREATED:
            raise unknown(
                f'failed to set starting state for container "{container.id}": '
                f"container is in CONTAINER_{container.state.name} state"
            )
        plan = container.plan = self.plan_of(container)
        failure = plan.start_fails.message if plan.start_fails else ""
        if not container.sandbox.ready:
            failure = f'sandbox container "{container.sandbox.id}" is not running'
        if failure:
            container.change(Input.FAIL_TO_START)
            container.finished_at_ns = self.stamp_ns()
            container.exit_code, container.reason = START_FAILED, START_ERROR
            container.message = failure
            raise unknown(failure)
        container.change(Input.START)
        container.started_at_ns = self.stamp_ns()
        self._counter += 1
        container.pid = 1000 + self._counter
        self._used.started(container.id, self.now_ns(), plan.uses)
        self.open_log(container)
        self._plan_run(container)
        self._tell(pb.CONTAINER_STARTED_EVENT, container.id, container.sandbox)

    def _plan_run(self, container: Container) -> None:
        plan = container.plan
        if plan.exits is not None:
            container.end_code, container.end_message = plan.exits.code % 256, plan.exits.message
            container.end_reason = plan.exits.reason
            self._end_at(container, container.started_at_ns + round(plan.exits.after_s * 1e9))
        oom_s = plan.oom_after_s(container.resources.memory_limit_in_bytes)
        if oom_s is not None and (plan.exits is None or oom_s <= plan.exits.after_s):
            container.end_code, container.end_reason = SIGKILLED, OOM_KILLED
            container.end_message = ""
            self._end_at(container, container.started_at_ns + round(oom_s * 1e9))
        if plan.child_oom is not None:
            due_ns = container.started_at_ns + round(plan.child_oom.at_s * 1e9)
            self._plan_wake_up(container, due_ns)
        for line in plan.prints:
            self._plan_wake_up(container, container.started_at_ns + round(line.at_s * 1e9))

    def _end_at(self, container: Container, due_ns: int) -> None:
        container.end_due_ns = due_ns
        self._plan_wake_up(container, due_ns)

    def signal(self, container: Container) -> None:
        """Deliver the stop signal, once per container (CRI-063): it may bring the end nearer."""
        if container.state is not State.RUNNING or container.stop_signalled:
            return
        container.stop_signalled = True
        if container.stop_signal == "SIGKILL":
            self.kill(container)
            return
        now = self.now_ns()
        delay_s = container.plan.stop_delay_s(container.age_s(now), container.stop_signal)
        if delay_s is None:
            return
        due = now + round(delay_s * 1e9)
        if container.end_due_ns is None or due < container.end_due_ns:
            code = container.plan.stops.code
            container.end_code = stop_signals.exit_code(container.stop_signal)
            if code is not None:
                container.end_code = code % 256
            container.end_reason = container.end_message = ""
            self._end_at(container, due)

    def kill(self, container: Container, code: int = SIGKILLED, reason: str = "") -> None:
        """End a running (or lost) container now, as SIGKILL does."""
        if container.state is State.UNKNOWN:
            code = LOST
        elif container.state is not State.RUNNING:
            return
        container.end_code, container.end_reason, container.end_message = code, reason, ""
        self._end(container)

    def _end(self, container: Container) -> None:
        self._write_lines(container, self.now_ns())
        self._note_child_oom(container, self.now_ns())
        container.change(Input.EXIT)
        container.finished_at_ns = self.stamp_ns()
        self._used.ended(container.id, self.now_ns())
        container.exit_code = container.end_code
        container.reason = container.end_reason or exit_reason(container.end_code)
        if container.oom_killed:
            container.reason = OOM_KILLED
        container.message = container.end_message
        container.end_due_ns = None
        if container.log_path:
            self.writes.append(CloseLog(container.log_path))
        if container.plan.termination_message:
            self._leave_message(container)
        self._tell(pb.CONTAINER_STOPPED_EVENT, container.id, container.sandbox)

    def _note_child_oom(self, container: Container, now_ns: int) -> None:
        child_oom = container.plan.child_oom
        if child_oom is not None and child_oom.at_s <= container.age_s(now_ns):
            container.oom_killed = True

    def open_log(self, container: Container) -> None:
        """The log file is made, or made again after a rotation (CRI-104)."""
        if container.log_path:
            self.writes.append(OpenLog(container.log_path))

    def _leave_message(self, container: Container) -> None:
        annotations = container.config.annotations
        path = annotations.get("io.kubernetes.container.terminationMessagePath")
        for mount in container.config.mounts:
            if mount.container_path == (path or "/dev/termination-log"):
                text = container.plan.termination_message
                self.writes.append(WriteMessage(mount.host_path, text))

    def remove_container(self, container: Container) -> None:
        """RemoveContainer (CRI-066): kills a running one; the log file stays."""
        if container.state in (State.RUNNING, State.UNKNOWN):
            self.kill(container)
        self.drop_container(container)
        self._tell(pb.CONTAINER_DELETED_EVENT, container.id, container.sandbox)

    def drop_container(self, container: Container) -> None:
        """The container vanishes without a word, as after a lost disk."""
        if container.id in self.containers:
            del self.containers[container.id]
        self._used.gone(container.id)
        container.sandbox.containers.pop(container.id, None)
        name = container_name(container.config.metadata, container.pod)
        self._names.pop(f"container {name}", None)

    def _write_lines(self, container: Container, now_ns: int) -> None:
        age_s = container.age_s(now_ns)
        lines = sorted(container.plan.prints, key=lambda line: line.at_s)
        while container.lines_written < len(lines):
            line = lines[container.lines_written]
            if line.at_s > age_s:
                return
            container.lines_written += 1
            due_ns = container.started_at_ns + round(line.at_s * 1e9)
            entry = LogLine(due_ns, line.stream, line.text)
            container.log.append(entry)
            if container.log_path:
                self.writes.append(WriteLog(container.log_path, log_text(entry)))

    def facts(self) -> dict[str, object]:
        """What a verbose Status tells of the runtime (CRI-132)."""
        return {
            "runtimeName": self.identity.name,
            "runtimeVersion": self.identity.version,
            "handlers": ["", *self.handlers],
            "sandboxes": len(self.sandboxes),
            "containers": len(self.containers),
            "images": len(self.images.images),
        }

    # -- the node ------------------------------------------------------------------------------

    def usage(self) -> Usage:
        """What containers and images use of the node now."""
        return self._used.total(self.now_ns(), self.images.total_bytes())

    def _tell(self, kind: pb.ContainerEventType, object_id: str, sandbox: Sandbox) -> None:
        news = News(kind, object_id, sandbox, self.now_ns())
        self.news.append(news)
        if self.watch is not None:
            self.watch(news)

    # -- memory --------------------------------------------------------------------------------

    def snapshot(self) -> Core:
        """A core that knows what this one knows now, and in which no time passes."""
        frozen = copy.copy(self)
        now_ns = self.now_ns()
        frozen.now_ns = lambda: now_ns
        frozen.watch, frozen.news, frozen.writes, frozen._due = None, [], [], []
        frozen._used = self._used.as_of(now_ns)
        frozen.images = copy.copy(self.images)
        frozen.images.images = dict(self.images.images)
        frozen.sandboxes = PrefixTable((key, copy.copy(s)) for key, s in self.sandboxes.items())
        frozen.containers = PrefixTable((key, copy.copy(c)) for key, c in self.containers.items())
        for sandbox in frozen.sandboxes.values():
            sandbox.containers = {key: frozen.containers[key] for key in sandbox.containers}
        for container in frozen.containers.values():
            container.sandbox = frozen.sandboxes[container.sandbox.id]
            container.resources = copied(container.resources)
        return frozen

    def forget(self) -> None:
        """Lose all sandboxes and containers, and their names; images stay."""
        self.writes += [CloseLog(c.log_path) for c in self.containers.values() if c.log_path]
        for table in (self.sandboxes, self.containers, self._names):
            table.clear()
        self._due.clear()
        self._used.clear()

    def lose_exits(self, since_ns: int) -> None:
        """What ended from then on ended unseen: 255 `Unknown`, as of now (CRI-161)."""
        for container in self.containers.values():
            if container.state is State.EXITED and container.finished_at_ns >= since_ns:
                container.finished_at_ns = self.stamp_ns()
                container.exit_code, container.reason, container.message = LOST, "Unknown", ""
