"""What a started container does: its end, its signals, its log lines, running out of memory.

Functions of a core. The plan of the run (`plan.Plan`) says what happens when; here it happens.
What must never happen here: a run ends twice, or a line is written after the end.
"""

from __future__ import annotations

from functools import partial

from kubecri.v1 import api_pb2 as pb

from fakecri import cgroupfs
from fakecri.core import cgroups
from fakecri.core.file_work import CloseLog, LogLine, OpenLog, WriteLog, WriteMessage, log_text
from fakecri.core.messages import OOM_KILLED, exit_reason
from fakecri.core.objects import NOT_PLANNED, Container, Input, Outcome, PlannedEnd, State
from fakecri.core.runtime import LOST, SIGKILLED, Core
from fakecri.machine.values import NEVER_A_VICTIM, Victim
from fakecri.words import stop_signals
from fakecri.words.curves import whole_ns
from kubeobjects.structs import replace


def advance(core: Core) -> None:
    """Apply everything that is due now, in order of its time."""
    for container in core.due_now():
        now_ns = core.now_ns()
        if container.run.cgroup is not None:
            age_s = container.age_s(now_ns)
            container.run.cgroup.use(container.run.plan, age_s, core.node.kill_for_memory)
        if container.state is not State.RUNNING:  # for its memory
            continue
        _write_due_lines(core, container, now_ns)
        _note_child_oom(core, container)
        if container.end.due_ns is not None and container.end.due_ns <= now_ns:
            _end(core, container)


def begin(core: Core, container: Container) -> None:
    """The container runs from now on, as its plan says. Raises CgroupRefused, and then it does
    not."""
    plan, parent = container.run.plan, container.sandbox.config.linux.cgroup_parent
    if parent:
        container.run.cgroup = _enter(core, container, parent)
    core.change(container, Input.START)
    container.run.started_at_ns = core.stamp_ns()
    container.run.pid = container.run.cgroup.main.pid if container.run.cgroup else core.next_pid()
    core.charges.used.started(
        container.id, container.run.started_at_ns, plan.uses, has_cgroup=bool(parent)
    )
    open_log(core, container)
    _plan_end(core, container)
    moments_s = [line.at_s for line in plan.prints]
    moments_s += [plan.oom_kills_child.at_s] if plan.oom_kills_child is not None else []
    if parent:
        moments_s += plan.uses.moments_s
        moments_s += [plan.oom_at.at_s] if plan.oom_at is not None else []
        if plan.uses.cpu_millicores:
            core.charges.burning[container.id] = container
    for at_s in moments_s:
        due_ns = container.run.started_at_ns + round(at_s * 1e9)
        core.plan_wake_up(container, due_ns if at_s > 0 else core.now_ns())
    core.tell(pb.CONTAINER_STARTED_EVENT, container.id, container.sandbox)


def _enter(core: Core, container: Container, parent: str) -> cgroups.ContainerCgroup:
    def died(process: cgroupfs.Process) -> None:
        if container.state is State.RUNNING:
            kill(core, container, reason=OOM_KILLED if process.oom_killed else "")
            core.driver.stir()

    return core.enter_cgroup(
        parent,
        container.id,
        container.resources,
        name=container.program,
        oom_score_adj=container.resources.oom_score_adj,
        died=died,
    )


def _plan_end(core: Core, container: Container) -> None:
    """When it ends by itself, or for memory, whichever comes first."""
    plan = container.run.plan
    if plan.exits is not None:
        due_ns = container.run.started_at_ns + round(plan.exits.after_s * 1e9)
        code, reason, message = plan.exits.code % 256, plan.exits.reason, plan.exits.message
        _end_at(core, container, PlannedEnd(due_ns, code, reason, message))
    _plan_oom(core, container)


def limits_changed(core: Core, container: Container) -> None:
    """A running container has got other limits: its memory may now be too much, or not any more."""
    if container.run.cgroup is not None:
        return  # the kernel has them
    if container.state is State.RUNNING and not container.stop.sent:
        container.end = NOT_PLANNED
        _plan_end(core, container)


def _plan_oom(core: Core, container: Container) -> None:
    """The kernel kills the container when its memory exceeds its limit. One in a cgroup is killed
    there, when it is charged (`ContainerCgroup.use`)."""
    if container.run.cgroup is not None:
        return
    oom_s = container.run.plan.oom_after_s(container.resources.memory_limit_in_bytes)
    if oom_s is None:
        return
    due_ns = max(core.now_ns(), container.run.started_at_ns + round(oom_s * 1e9))
    if container.end.due_ns is None or due_ns <= container.end.due_ns:
        _end_at(core, container, PlannedEnd(due_ns, SIGKILLED, OOM_KILLED))


def _end_at(core: Core, container: Container, end: PlannedEnd) -> None:
    container.end = end
    if end.due_ns is not None:
        core.plan_wake_up(container, end.due_ns)


def signal(core: Core, container: Container) -> None:
    """Deliver the stop signal, once per container (CRI-063): it may bring the end nearer."""
    if container.state is not State.RUNNING or container.stop.sent:
        return
    container.stop.sent = True
    if container.stop.heard is not None:
        container.stop.heard()
    if container.stop.signal == "SIGKILL":
        kill(core, container)
        return
    now_ns = core.now_ns()
    delay_s = container.run.plan.stop_delay_s(container.age_s(now_ns), container.stop.signal)
    by_itself = container.stop.trapped and not container.run.plan.says_how_it_stops
    if delay_s is None or by_itself:
        return
    due_ns = now_ns + round(delay_s * 1e9)
    if container.end.due_ns is None or due_ns < container.end.due_ns:
        stops = container.run.plan.stops
        code = stop_signals.exit_code(container.stop.signal)
        if stops.code is not None:
            code = stops.code % 256
        _end_at(core, container, PlannedEnd(due_ns, code, stops.reason, stops.message))


def kill(core: Core, container: Container, code: int = SIGKILLED, reason: str = "") -> None:
    """End a running (or lost) container now, as SIGKILL does."""
    if container.state is State.UNKNOWN:
        code = LOST
    elif container.state is not State.RUNNING:
        return
    container.end = PlannedEnd(code=code, reason=reason)
    _end(core, container)


def candidates(core: Core) -> list[Victim]:
    """Containers without a cgroup, as the kernel sees them when the machine is out of memory."""
    now_ns = core.now_ns()
    return [
        Victim(
            c.program[:15],
            c.run.pid,
            c.run.plan.memory_bytes(c.age_s(now_ns)),
            c.resources.oom_score_adj,
            kill=partial(_killed_for_memory, core, c),
        )
        for c in core.containers.values()
        if c.state is State.RUNNING
        and c.run.cgroup is None
        and c.resources.oom_score_adj > NEVER_A_VICTIM
    ]


def _killed_for_memory(core: Core, container: Container) -> None:
    kill(core, container, reason=OOM_KILLED)
    core.driver.stir()


def _end(core: Core, container: Container) -> None:
    _write_due_lines(core, container, core.now_ns())
    _note_child_oom(core, container)
    if container.run.cgroup is not None:
        container.run.cgroup.charge_cpu(container.run.plan, container.age_s(core.now_ns()))
    core.charges.burning.pop(container.id, None)
    core.change(container, Input.EXIT)
    end, finished_at_ns = container.end, core.stamp_ns()
    core.charges.used.ended(container.id, core.now_ns())
    reason = OOM_KILLED if container.run.oom_killed else end.reason or exit_reason(end.code)
    container.outcome = Outcome(finished_at_ns, end.code, reason, end.message)
    container.end = NOT_PLANNED
    if container.run.cgroup is not None:
        cgroup, container.run.cgroup = container.run.cgroup, None
        cgroup.leave()
    if container.output.path:
        core.outbox.writes.append(CloseLog(container.output.path))
    left = container.run.plan.writes_termination_message
    if left is not None:
        _leave_message(core, container, left.text)
    core.tell(pb.CONTAINER_STOPPED_EVENT, container.id, container.sandbox)


def _note_child_oom(core: Core, container: Container) -> None:
    child_oom = container.run.plan.oom_kills_child
    if child_oom is None or container.run.oom_killed:
        return
    if whole_ns(child_oom.at_s) <= container.age_s(core.now_ns()):
        container.run.oom_killed = True
        if container.run.cgroup is not None:
            container.run.cgroup.kill_child()


def has_memory(container: Container, size_bytes: int) -> bool:
    """Whether a process of a container gets that much memory. If not, the kernel has killed it, and
    the container goes on (CRI-071)."""
    limit = container.resources.memory_limit_in_bytes
    if not 0 < limit < size_bytes:
        return True
    container.run.oom_killed = True
    if container.run.cgroup is not None:
        container.run.cgroup.kill_child()
    return False


def _leave_message(core: Core, container: Container, text: str) -> None:
    annotations = container.config.annotations
    path = annotations.get("io.kubernetes.container.terminationMessagePath")
    for mount in container.config.mounts:
        if mount.container_path == (path or "/dev/termination-log"):
            core.outbox.writes.append(WriteMessage(mount.host_path, text))


def open_log(core: Core, container: Container) -> None:
    """The log file is made, or made again after a rotation (CRI-104)."""
    if container.output.path:
        core.outbox.writes.append(OpenLog(container.output.path))


def write_line(core: Core, container: Container, line: LogLine) -> None:
    """The container has written a line; CR LF ends one as LF does, but for a terminal, which adds
    its own (CRI-102)."""
    if line.text.endswith("\r") and line.whole and not container.config.tty:
        line = replace(line, text=line.text[:-1])
    container.output.lines.append(line)
    if container.output.path:
        core.outbox.writes.append(WriteLog(container.output.path, log_text(line)))


def _write_due_lines(core: Core, container: Container, now_ns: int) -> None:
    age_s = container.age_s(now_ns)
    lines = container.run.plan.prints  # in order of their times
    while container.output.written < len(lines):
        line = lines[container.output.written]
        if whole_ns(line.at_s) > age_s:
            return
        container.output.written += 1
        due_ns = container.run.started_at_ns + round(line.at_s * 1e9)
        for text in line.text.removesuffix("\n").split("\n"):
            write_line(core, container, LogLine(due_ns, line.stream, text))


def settle(core: Core) -> None:
    """Charge to the cgroups what grows with time, and what others than containers use."""
    node, now_ns = core.node, core.now_ns()
    used = core.charges.used.total(now_ns)
    usage_key = (now_ns, node.base_memory_used_bytes, used)
    if usage_key == core.charges.settled:
        return
    core.charges.settled = usage_key
    memory_bytes = max(0, node.base_memory_used_bytes + used.memory)
    init = node.cgroups.init
    if init.alive and init.memory_bytes != memory_bytes:
        init.set_usage(memory_bytes=memory_bytes)
    for container in core.charges.burning.values():
        if container.run.cgroup is not None:
            container.run.cgroup.charge_cpu(container.run.plan, container.age_s(now_ns))
