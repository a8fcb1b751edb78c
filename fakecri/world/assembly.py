"""How a fake runtime is put together: every part, and which part calls which.

`assemble` is the only place where parts are connected. The core tells what drives it by two
functions (`stir`, `watch`), asks for the plan of a run by a third, and the machine asks the runtime
through its `Tenancy`; these go against the order in which the parts are made, so they are given as
functions that look the part up when they are called.
"""

from __future__ import annotations

from msgspec import Struct

from fakecri.calls.answers import Answers, Outage
from fakecri.calls.containers import StartsAndStops
from fakecri.calls.events import EventStreams
from fakecri.calls.exec import ExecSync
from fakecri.calls.images import Pulls
from fakecri.clockwork.clockwork import Clockwork
from fakecri.clockwork.files import HostFiles
from fakecri.core import running
from fakecri.core.addresses import Addresses, reachable_here
from fakecri.core.image_store.images import ImageStore
from fakecri.core.runtime import Core, Driver, Identity, Network, Setup
from fakecri.machine.node import FakeNode
from fakecri.machine.values import Tenant, Usage, Victim
from fakecri.options import CGROUP_DRIVERS, Options
from fakecri.programs.known import ProgramTable
from fakecri.programs.listening import Listening
from fakecri.programs.main_programs import MainPrograms
from fakecri.programs.ports import Ports
from fakecri.rules.faults import FaultRules
from fakecri.rules.under_way import CallsUnderWay
from fakecri.streaming.host import Streaming
from fakecri.streaming.session import Runtime
from fakecri.world.programming import Programming
from simclock import Clock, Ids, RealClock


class Parts(Struct, frozen=True, eq=False):
    """The parts of a fake runtime that others than `assemble` use."""

    core: Core
    """Sandboxes, containers and images, without I/O."""
    clockwork: Clockwork
    """Lets the core go on when something is due, and tells what waits for changes."""
    events: EventStreams
    """Subscribers of GetContainerEvents."""
    outage: Outage
    """Whether the runtime is down."""
    under_way: CallsUnderWay
    """Calls that have not been answered."""
    faults: FaultRules
    """Rules on calls."""
    programming: Programming
    """Rules on what containers do."""
    programs: ProgramTable
    """Which programs containers have."""
    answers: Answers
    """Answers calls."""
    streaming: Streaming
    """Exec, Attach and PortForward."""
    ports: Ports
    """What containers serve."""
    listening: Listening | None
    """Real sockets for that; None: pods have no addresses of this machine."""


class Tenancy(Tenant):
    """The runtime, as its machine sees it."""

    def __init__(self, core: Core, clockwork: Clockwork) -> None:
        self._core = core
        self._clockwork = clockwork

    def usage(self) -> Usage:
        return self._core.usage()

    def tasks(self) -> int:
        return self._core.tasks()

    def candidates(self) -> list[Victim]:
        return running.candidates(self._core)

    def settle(self) -> None:
        self._clockwork.settle()

    def now_ns(self) -> int:
        return self._core.now_ns()


def assemble(clock: Clock, ids: Ids, node: FakeNode, options: Options) -> Parts:
    """A runtime on `node`, which from then on reads its time and knows what it uses."""
    driver = Driver(
        plan_of=lambda container: programming.plan_of(container),
        stir=lambda: clockwork.stir(),
    )
    core = _core(clock, ids, node, options, driver)
    own_time = None if isinstance(clock, RealClock) else clock.wall_ns
    files = HostFiles(write_logs=options.write_logs, wall_ns=own_time)
    clockwork = Clockwork(core, clock, files)
    node.tenant = Tenancy(core, clockwork)
    events = EventStreams(core, keep_s=options.keep_events_s)
    driver.watch = events.publish
    outage, faults = Outage(), FaultRules()

    ports = Ports(core, clockwork)
    programs = ProgramTable(options.programs, lambda subject: streaming.commands_of(subject), ports)
    main_programs = MainPrograms(core, clockwork, programs.programs_of)
    programming = Programming(core, clockwork, main_programs)
    runtime = Runtime(core, clockwork, main_programs, programs.programs_of, ports)
    streaming = Streaming(runtime, clock)
    listening = Listening(ports) if reachable_here(options.pod_network) else None

    clockwork.heard += [] if listening is None else [listening.refresh]
    clockwork.heard += [main_programs.hear]
    answers = Answers(
        core,
        clockwork,
        outage,
        events=events,
        starts_and_stops=StartsAndStops(core, clock, clockwork),
        pulls=Pulls(core, clock),
        exec_sync=ExecSync(core, clockwork, programs.programs_of),
        stream_url=streaming.answer,
    )
    return Parts(
        core=core,
        clockwork=clockwork,
        events=events,
        outage=outage,
        under_way=CallsUnderWay(),
        faults=faults,
        programming=programming,
        programs=programs,
        answers=answers,
        streaming=streaming,
        ports=ports,
        listening=listening,
    )


def _core(clock: Clock, ids: Ids, node: FakeNode, options: Options, driver: Driver) -> Core:
    """The state of a runtime on `node`, which lives in its time from now on."""
    node.clock = node.clock or clock
    if node.booted_ns is None:
        node.booted_ns = node.clock.wall_ns()
    setup = Setup(
        handlers=tuple(options.runtime_handlers),
        host_mounts=options.host_mounts,
        cgroup_driver=CGROUP_DRIVERS[options.cgroup_driver],
        identity=Identity(options.runtime_name, lambda: options.runtime_version or _own_version()),
    )
    network = Network(Addresses(options.pod_network))
    return Core(ids, node, _images(options), clock.wall_ns, driver, setup, network)


def _images(options: Options) -> ImageStore:
    store = ImageStore(options.registry)
    for reference in options.images:
        store.add(reference, pinned=reference == options.sandbox_image)
    return store


def _own_version() -> str:
    from simclock.distribution import own_version  # with argparse, which few fakes need

    return own_version()
