"""What one run of one container will do: the behaviours that apply to it, put on a time line.

Pure: `plan_for` merges behaviours (a later one replaces an earlier one of its kind), the methods
of `Plan` answer when something is due. Times are seconds after the start of the container.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from fakecri.words import behaviors as words
from fakecri.words import stop_signals
from fakecri.words.behaviors import Behavior, ExecContext, Reply
from fakecri.words.curves import at
from kubeobjects.structs import replace

B = TypeVar("B", bound=Behavior)
_DEFAULT_STOP: Final = words.stops()
_NO_USE: Final = words.uses()


class Plan(Struct, frozen=True):
    """One run. The default runs for ever and ends with 143 as soon as it gets SIGTERM."""

    exits: words.exits | None = None
    """How it ends by itself; None: it does not."""
    stops: words.stops = _DEFAULT_STOP
    """What a stop signal does; by default it ends with 143 at once."""
    ignores: words.ignores | None = None
    """Which stop signal it ignores, and how long; None: none."""
    prints: tuple[words.prints, ...] = ()
    """Lines for the log, in order of their times."""
    replies: tuple[words.replies, ...] = ()
    """Answers to exec; the first that fits answers."""
    serves: tuple[words.serves, ...] = ()
    """Ports; the first rule that fits answers."""
    uses: words.uses = _NO_USE
    """Memory, CPU, disk and processes; by default next to nothing."""
    start_fails: words.start_fails | None = None
    """Why StartContainer fails; None: it does not."""
    start_hangs: words.start_hangs | None = None
    """How long StartContainer takes; None: no time."""
    runs: words.runs | None = None
    """The program that it really runs; None: it only stands for one."""
    oom_kills_child: words.oom_kills_child | None = None
    """When the kernel kills a child process for memory; None: never."""
    oom_at: words.oom_at | None = None
    """When it takes all memory that it may have; None: never."""
    writes_termination_message: words.writes_termination_message | None = None
    """What it writes into the file for that when it ends; None: nothing."""

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
        if ignored is not None and age_s < ignored.for_s and ignored.signal == signal:
            return None
        return self.stops.after_s

    def reply_rule(self, command: Sequence[str], age_s: float) -> words.replies | None:
        """The rule that answers `command` at that age."""
        for rule in self.replies:
            fits = rule.command is None or tuple(command) == rule.command
            if fits and rule.from_s <= age_s < rule.until_s:
                return rule
        return None

    def listening(self, age_s: float) -> tuple[words.serves, ...]:
        """What it serves at that age; of a port the first that fits answers."""
        return tuple(s for s in self.serves if s.from_s <= age_s < s.until_s)

    def oom_after_s(self, memory_limit_bytes: int) -> float | None:
        """When it first wants more memory than the limit (0: no limit) allows; None: never."""
        planned = [self.oom_at.at_s] if self.oom_at is not None else []
        if memory_limit_bytes > 0:
            over = (at_s for at_s, amount in self.uses.memory_bytes if amount > memory_limit_bytes)
            planned.extend(over)
        return min(planned, default=None)

    def memory_bytes(self, age_s: float) -> int:
        return at(self.uses.memory_bytes, age_s)

    def disk_bytes(self, age_s: float) -> int:
        return at(self.uses.disk_bytes, age_s)

    def cache_bytes(self, age_s: float) -> int:
        return at(self.uses.cache_bytes, age_s)

    def inodes(self, age_s: float) -> int:
        """At least the one of the directory itself."""
        return max(1, at(self.uses.inodes, age_s))

    def pids(self, age_s: float) -> int:
        return at(self.uses.pids, age_s)

    def cpu_millicores(self, age_s: float) -> int:
        return at(self.uses.cpu_millicores, age_s)


NO_PLAN: Final = Plan()
"""That of a container of which nobody says anything."""


def plan_for(layers: Iterable[Sequence[Behavior]]) -> Plan:
    """Merge the behaviours of several rules, oldest rule first.

    A rule replaces what earlier ones said of the same kind; its replies and ports come before
    theirs.
    """
    plan = NO_PLAN
    for layer in layers:
        if not layer:
            continue
        prints = sorted(_of(words.prints, layer), key=lambda line: line.at_s)
        plan = replace(
            plan,
            prints=tuple(prints) or plan.prints,
            replies=(*reversed(_of(words.replies, layer)), *plan.replies),
            serves=(*reversed(_of(words.serves, layer)), *plan.serves),
            **_once(layer),
        )
    return plan


def _of(kind: type[B], layer: Sequence[Behavior]) -> list[B]:
    """The behaviours of that kind: those that are said, then those that others are short for."""
    meant = [one for said in layer for one in said.means() if one is not said]
    return [one for one in (*layer, *meant) if isinstance(one, kind)]


_ONCE: Final = frozenset(Plan.__struct_fields__) - {"prints", "replies", "serves"}


def _once(layer: Sequence[Behavior]) -> dict[str, Any]:
    """What is so once: the last behaviour of each kind, by its word."""
    by_word = {type(one).__name__: one for one in _of(Behavior, layer)}
    return {word: one for word, one in by_word.items() if word in _ONCE}


async def next_reply(rule: words.replies, context: ExecContext) -> Reply:
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
