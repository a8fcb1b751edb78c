"""What one run of one container will do: the behaviours that apply to it, put on a time line.

Pure: `plan_for` merges behaviours (a later one replaces an earlier one of its kind), the methods
of `Plan` answer when something is due. Times are seconds after the start of the container.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fakecri.behaviors import stop_signals
from fakecri.behaviors.behavior import (
    Behavior,
    ExecContext,
    Exits,
    Ignores,
    OomAt,
    OomKillsChild,
    Prints,
    ReadyAfter,
    Replies,
    Reply,
    Runs,
    Serves,
    StartFails,
    StartHangs,
    Stops,
    Uses,
    WritesTerminationMessage,
)
from fakecri.behaviors.curves import at

_DEFAULT_STOP: Final = Stops()
_NO_USE: Final = Uses()


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. The default runs for ever and ends with 143 as soon as it gets SIGTERM."""

    exits: Exits | None = None
    """How it ends by itself; None: it does not."""
    stops: Stops = _DEFAULT_STOP
    """What a stop signal does; by default it ends with 143 at once."""
    ignores: Ignores | None = None
    """Which stop signal it ignores, and how long; None: none."""
    prints: tuple[Prints, ...] = ()
    """Lines for the log, in order of their times."""
    replies: tuple[Replies, ...] = ()
    """Answers to exec; the first that fits answers."""
    serves: tuple[Serves, ...] = ()
    """Ports; the first rule that fits answers."""
    uses: Uses = _NO_USE
    """Memory, CPU, disk and processes; by default next to nothing."""
    start_fails: StartFails | None = None
    """Why StartContainer fails; None: it does not."""
    start_hangs: StartHangs | None = None
    """How long StartContainer takes; None: no time."""
    runs: Runs | None = None
    """The program that it really runs; None: it only stands for one."""
    child_oom: OomKillsChild | None = None
    """When the kernel kills a child process for memory; None: never."""
    oom_at: OomAt | None = None
    """When it takes all memory that it may have; None: never."""
    termination_message: str = ""
    """What it writes into the file for that when it ends."""

    @property
    def says_no_use(self) -> bool:
        """Whether no behaviour says what it uses."""
        return self.uses is _NO_USE

    @property
    def says_no_end(self) -> bool:
        """Whether no behaviour says how it starts or ends."""
        return (self.exits, self.start_fails, self.start_hangs) == (None, None, None)

    @property
    def says_how_it_stops(self) -> bool:
        """Whether a behaviour says what its stop signal does."""
        return self.stops is not _DEFAULT_STOP

    def stop_delay_s(self, age_s: float, signal: str = stop_signals.DEFAULT) -> float | None:
        """Seconds from a stop signal at that age to the exit; None: the signal is ignored."""
        ignored = self.ignores
        if (
            ignored is not None
            and age_s < ignored.for_s
            and stop_signals.normal(ignored.signal) == signal
        ):
            return None
        return self.stops.after_s

    def reply_rule(self, command: Sequence[str], age_s: float) -> Replies | None:
        """The rule that answers `command` at that age."""
        for rule in self.replies:
            fits = rule.command is None or tuple(command) == rule.command
            if fits and rule.from_s <= age_s < rule.until_s:
                return rule
        return None

    def listening(self, age_s: float) -> tuple[Serves, ...]:
        """What it serves at that age; of a port the first that fits answers."""
        return tuple(s for s in self.serves if s.from_s <= age_s < s.until_s)

    def oom_after_s(self, memory_limit_bytes: int) -> float | None:
        """When it first wants more memory than the limit (0: no limit) allows; None: never."""
        planned = [self.oom_at.at_s] if self.oom_at is not None else []
        if memory_limit_bytes > 0:
            over = (at_s for at_s, amount in self.uses.memory if amount > memory_limit_bytes)
            planned.extend(over)
        return min(planned, default=None)

    def memory_bytes(self, age_s: float) -> int:
        return at(self.uses.memory, age_s)

    def disk_bytes(self, age_s: float) -> int:
        return at(self.uses.disk, age_s)

    def cache_bytes(self, age_s: float) -> int:
        return at(self.uses.cache, age_s)

    def inodes(self, age_s: float) -> int:
        """At least the one of the directory itself."""
        return max(1, at(self.uses.inodes, age_s))

    def pids(self, age_s: float) -> int:
        return at(self.uses.pids, age_s)

    def cpu_millicores(self, age_s: float) -> int:
        return at(self.uses.cpu, age_s)


def plan_for(layers: Iterable[Sequence[Behavior]]) -> Plan:
    """Merge the behaviours of several rules, oldest rule first.

    A rule replaces what earlier ones said of the same kind; its replies and ports come before
    theirs.
    """
    plan = Plan()
    for layer in layers:
        prints = sorted((b for b in layer if isinstance(b, Prints)), key=lambda line: line.at_s)
        replies = tuple(b for b in layer if isinstance(b, Replies))
        gates = tuple(_until_ready(b) for b in layer if isinstance(b, ReadyAfter))
        serves = tuple(b for b in layer if isinstance(b, Serves))
        plan = replace(
            plan,
            prints=tuple(prints) or plan.prints,
            replies=(*gates, *reversed(replies), *plan.replies),
            serves=(*reversed(serves), *plan.serves),
        )
        for behavior in layer:
            plan = _with(plan, behavior)
    return plan


def _with(plan: Plan, behavior: Behavior) -> Plan:
    match behavior:
        case Exits():
            return replace(plan, exits=behavior)
        case Stops():
            return replace(plan, stops=behavior)
        case Ignores():
            return replace(plan, ignores=behavior)
        case Uses():
            return replace(plan, uses=behavior)
        case OomKillsChild():
            return replace(plan, child_oom=behavior)
        case OomAt():
            return replace(plan, oom_at=behavior)
        case StartFails():
            return replace(plan, start_fails=behavior)
        case StartHangs():
            return replace(plan, start_hangs=behavior)
        case Runs():
            return replace(plan, runs=behavior)
        case WritesTerminationMessage():
            return replace(plan, termination_message=behavior.text)
    return plan


_NOT_READY: Final = Reply(1, stderr="not ready yet")


def _until_ready(behavior: ReadyAfter) -> Replies:
    return Replies(behavior.command, (_NOT_READY,), until_s=behavior.after_s)


async def next_reply(rule: Replies, context: ExecContext) -> Reply:
    """The answer of a rule; a handler's, or the next in turn, of which the last one repeats."""
    if rule.handler is None:
        return rule.answers[min(context.given_before, len(rule.answers) - 1)]
    made = rule.handler(context)
    if inspect.isawaitable(made):
        made = await made
    reply = Reply(made) if isinstance(made, int) else made
    if not isinstance(reply, Reply):
        raise TypeError(f"a handler of replies gave {made!r}; wanted a Reply or an exit code")
    return reply
