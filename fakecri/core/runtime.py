"""The fake runtime's core: sandboxes, containers, names and time, without I/O or timers.

How it works. `Core` is the state. The operations on it are functions of a core: `sandboxes.py`,
`containers.py`, `running.py` (what a started container does), `copies.py`. Every operation takes
effect at once, at the time of `now_ns`. What happens later (a container ends, writes a line, runs
out of memory) is on a heap: `next_due_ns` says when the next of it is due, `running.advance`
applies what is. The shell around the core (`clockwork`, `calls`) waits for that, and
for the few calls that take time. What the world outside must learn is in `outbox` (changes of
state, work on files), which the shell empties.

What must never happen: the core reads a clock; two objects share a name (CRI-024); a container
starts twice or leaves EXITED; a time stamp repeats or goes back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from kubecri.v1 import api_pb2 as pb
from msgspec import Struct
from msgspec import field as struct_field

from fakecri import cgroupfs
from fakecri.behaviors.plan import Plan
from fakecri.core import cgroups
from fakecri.core.addresses import Addresses
from fakecri.core.file_work import FileWork
from fakecri.core.image_store.images import ImageStore
from fakecri.core.lookups import lookup
from fakecri.core.lookups.listed import ListedTable
from fakecri.core.names import NameTable
from fakecri.core.objects import Container, Input, Sandbox, State
from fakecri.core.usage import UsageLedger
from fakecri.machine.node import FakeNode
from fakecri.machine.values import Usage
from simclock import Ids

SIGKILLED: Final = 137
START_FAILED: Final = 128
LOST: Final = 255
_SPARE_DUE: Final = 1000
INODES_OF_AN_IMAGE: Final = 100


class News(NamedTuple):
    """A change of state: what GetContainerEvents tells, and what waiting calls wait for."""

    kind: pb.ContainerEventType
    object_id: str
    sandbox: Sandbox
    time_ns: int


class Identity(NamedTuple):
    """What Version says the runtime is."""

    name: str = "fakecri"
    version_of: Callable[[], str] = lambda: "0.0.0"
    """Gives the version; called when it is asked for, since it may take a while to find out."""


class Setup(Struct, frozen=True, eq=False):
    """How the runtime was set up."""

    handlers: tuple[str, ...] = ()
    """Runtime handlers beside the default one, "" (CRI-030)."""
    host_mounts: bool = False
    """Mounts of host paths show the files of this machine."""
    cgroup_driver: pb.CgroupDriver = pb.CGROUPFS
    """What RuntimeConfig says; names follow the cgroup_parent that is given."""
    identity: Identity = struct_field(default_factory=Identity)
    """What Version says."""


@dataclass(slots=True, eq=False)
class Driver:
    """What the core asks and tells of the shell around it."""

    plan_of: Callable[[Container], Plan]
    """Says what the next run of a container will do."""
    stir: Callable[[], None] = lambda: None
    """Called when something happened outside of a call, so that what drives the core looks at
    it."""
    watch: Callable[[News], None] | None = None
    """Told of every change as it happens."""


@dataclass(slots=True, eq=False)
class Network:
    """The pod network."""

    addresses: Addresses = field(default_factory=Addresses)
    ready: bool = True
    """False: there is no network (CRI-037)."""


@dataclass(slots=True, eq=False)
class Outbox:
    """What the shell around the core has not looked at."""

    news: list[News] = field(default_factory=list)
    """Changes of state."""
    writes: list[FileWork] = field(default_factory=list)
    """Work on files."""


@dataclass(slots=True, eq=False)
class Plans:
    """When something is to happen to which container: a heap."""

    due: list[tuple[int, int, str]] = field(default_factory=list)
    most: int = _SPARE_DUE
    """The length at which what is obsolete is removed."""


@dataclass(slots=True, eq=False)
class Charges:
    """What containers use."""

    used: UsageLedger = field(default_factory=UsageLedger)
    """Summed up."""
    burning: dict[str, Container] = field(default_factory=dict)
    """Running containers that use CPU in a cgroup, by id."""
    settled: tuple[object, ...] = ()
    """When all that grows was last charged, and what was used then."""


@dataclass(slots=True, eq=False)
class Core:
    """The state. Every field but the first five has a default."""

    ids: Ids
    """Gives ids to objects."""
    node: FakeNode
    """The machine."""
    images: ImageStore
    """The image store."""
    now_ns: Callable[[], int]
    """Wall-clock time, nanoseconds since 1970."""
    driver: Driver
    setup: Setup = field(default_factory=Setup)
    network: Network = field(default_factory=Network)
    sandboxes: ListedTable[Sandbox] = field(default_factory=ListedTable)
    """By id."""
    containers: ListedTable[Container] = field(default_factory=ListedTable)
    """By id."""
    names: NameTable = field(default_factory=NameTable)
    """Names that are taken (CRI-024)."""
    outbox: Outbox = field(default_factory=Outbox)
    plans: Plans = field(default_factory=Plans)
    charges: Charges = field(default_factory=Charges)
    _counter: int = 0
    """How many ids and plans have been given out."""
    _last_stamp_ns: int = 0
    """The last time stamp, which is never given again."""

    # -- time ----------------------------------------------------------------------------------

    def stamp_ns(self) -> int:
        """A time stamp: now, but never one given before (CRI-050: created < started < finished)."""
        self._last_stamp_ns = max(self.now_ns(), self._last_stamp_ns + 1)
        return self._last_stamp_ns

    def next_due_ns(self) -> int | None:
        """When `running.advance` next has something to do; None: nothing is planned."""
        while self.plans.due and self.plans.due[0][2] not in self.containers:
            heapq.heappop(self.plans.due)
        return self.plans.due[0][0] if self.plans.due else None

    def due_now(self) -> Iterator[Container]:
        """The running containers to which something is to happen now, in order of its time."""
        now_ns = self.now_ns()
        while self.plans.due and self.plans.due[0][0] <= now_ns:
            container = self.containers.get(heapq.heappop(self.plans.due)[2])
            if container is not None and container.state is State.RUNNING:
                yield container

    def plan_wake_up(self, container: Container, due_ns: int) -> None:
        """Something is to happen to `container` then."""
        self._counter += 1
        heapq.heappush(self.plans.due, (due_ns, self._counter, container.id))
        if len(self.plans.due) > self.plans.most:  # plans of the removed must not pile up
            self.plans.due = [due for due in self.plans.due if due[2] in self.containers]
            heapq.heapify(self.plans.due)
            self.plans.most = 2 * len(self.plans.due) + _SPARE_DUE

    # -- look-up -------------------------------------------------------------------------------

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

    # -- states --------------------------------------------------------------------------------

    def change(self, container: Container, what: Input) -> None:
        """The container takes the transition of the table; lists tell of it from now on."""
        container.change(what)
        self.containers.changed()

    # -- what others learn ---------------------------------------------------------------------

    def tell(self, kind: pb.ContainerEventType, object_id: str, sandbox: Sandbox) -> None:
        """A state has changed."""
        news = News(kind, object_id, sandbox, self.now_ns())
        self.outbox.news.append(news)
        if self.driver.watch is not None:
            self.driver.watch(news)

    def usage(self) -> Usage:
        """What containers and images use of the node now."""
        memory, disk, inodes = self.charges.used.total(self.now_ns())
        return Usage(
            memory_bytes=memory,
            writable_bytes=disk,
            image_bytes=self.images.total_bytes(),
            writable_inodes=inodes + len(self.containers),
            image_inodes=INODES_OF_AN_IMAGE * len(self.images.images),
        )

    def tasks(self) -> int:
        """The processes of running containers, and one for each sandbox."""
        now_ns = self.now_ns()
        running = (c for c in self.containers.values() if c.state is State.RUNNING)
        in_containers = sum(c.pids_now(c.age_s(now_ns)) for c in running)
        return in_containers + sum(s.ready for s in self.sandboxes.values())

    def facts(self) -> dict[str, object]:
        """What a verbose Status tells of the runtime (CRI-132)."""
        return {
            "runtimeName": self.setup.identity.name,
            "runtimeVersion": self.setup.identity.version_of(),
            "handlers": ["", *self.setup.handlers],
            "sandboxes": len(self.sandboxes),
            "containers": len(self.containers),
            "images": len(self.images.images),
        }

    def next_pid(self, taken: Mapping[int, object] = MappingProxyType({})) -> int:
        """A process id that has not been given yet and is not in `taken`."""
        self._counter += 1
        while 1000 + self._counter in taken:
            self._counter += 1
        return 1000 + self._counter

    def enter_cgroup(
        self,
        parent: str,
        object_id: str,
        resources: pb.LinuxContainerResources,
        *,
        name: str,
        oom_score_adj: int,
        died: Callable[[cgroupfs.Process], None],
    ) -> cgroups.ContainerCgroup:
        """The process `name` runs in a cgroup of its own below `parent`; see
        `cgroups.enter`."""
        return cgroups.enter(
            self.node.cgroups,
            parent,
            object_id,
            resources,
            next_pid=self.next_pid,
            name=name,
            oom_score_adj=oom_score_adj,
            died=died,
        )

    def next_addresses(self) -> list[str]:
        """Addresses in the pod network that no sandbox has. Raises NoAddressLeft."""
        return self.network.addresses.next(
            lambda: {ip for sandbox in self.sandboxes.values() for ip in sandbox.ips}
        )
