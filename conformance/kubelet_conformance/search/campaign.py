"""A campaign: the worlds of many seeds are played in processes, each once, and what breaks a law is
made small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future  # noqa: TID251  # whole worlds run elsewhere
from contextlib import suppress

from msgspec import Struct, field

from kubelet_conformance.cluster.flow import as_they_end
from kubelet_conformance.cluster.worker import TaskLost
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.search.drawing.kinds import KINDS
from kubelet_conformance.search.records import Met
from kubelet_conformance.search.tasks import ALL, Asks, Small, make_small, meet
from simclock import Clock, RealClock


class Plan(Struct, frozen=True, kw_only=True):
    """What a campaign does."""

    seeds: Iterable[int]
    choice: Choice = Choice()
    """On which kubelet."""
    size: str = "small"
    """Of the worlds; `whole NAME` for those of a small world (`sources`)."""
    asks: Asks = ALL
    minutes: float | None = None
    """After so long no further world is begun; None: all seeds are played."""
    tries: int = 200
    """So many worlds are played at most to make one small; 0: none is made small."""
    repeats: int = 10
    """How often a small one is tried."""


class Summary(Struct):
    """What came of a campaign so far."""

    worlds: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    laws: Counter[str] = field(default_factory=Counter)
    """Broken ones, by the number of worlds."""
    excuses: Counter[str] = field(default_factory=Counter)
    """How many breaches each swallowed."""
    unasked: Counter[str] = field(default_factory=Counter)
    """Laws that were broken and not asked for, by the number of worlds."""
    kinds: Counter[str] = field(default_factory=Counter)
    """In how many worlds each was."""
    struck: Counter[str] = field(default_factory=Counter)
    """What calls have met, by the number of worlds."""
    transitions: Counter[str] = field(default_factory=Counter)
    """Which of pod workers were met, by the number of worlds."""
    failing: Counter[str] = field(default_factory=Counter)
    """And in how many of those that were broken, or could not be played."""
    world_s: float = 0.0
    cpu_s: float = 0.0
    """Seconds of processor time."""

    def add(self, met: Met) -> None:
        """Count a world."""
        self.worlds += 1
        self.verdicts[met.verdict] += 1
        self.laws.update({breach.law for breach in met.breaches})
        self.excuses.update(each.excuse for each in met.excused)
        self.unasked.update(met.unasked)
        self.kinds.update(met.kinds)
        self.struck.update(met.struck)
        self.transitions.update(met.transitions)
        if met.verdict in ("broken", "error"):
            self.failing.update(met.kinds)
        self.world_s += met.world_s
        self.cpu_s += met.cpu_s

    @property
    def never(self) -> list[str]:
        """Kinds that no world had, if they were drawn."""
        drawn = bool(self.kinds.keys() & KINDS.keys())
        return [kind for kind in KINDS if not self.kinds[kind]] if drawn else []

    @property
    def failed(self) -> bool:
        """Whether a law was broken that nothing excuses, or a world could not be played."""
        return bool(self.verdicts["broken"] or self.verdicts["error"])


def search(
    plan: Plan,
    executor: Executor,
    count: int,
    *,
    met: Callable[[Met], None] = lambda met: None,
    small: Callable[[Small], None] = lambda small: None,
    look: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
) -> Summary:
    """Play the worlds of a plan in `count` processes of an executor; `met` is called with each line
    as it comes, `small` with each world that broke a law, made small: the first one of each law;
    `look` where no result comes for long: it raises what makes waiting useless.

    Raises BrokenExecutor when a process has ended, or ClusterProblem: what was under way has no
    line then.
    """
    clock = clock or RealClock()
    end_s = None if plan.minutes is None else clock.monotonic_s() + plan.minutes * 60
    summary = Summary()
    first: dict[str, int] = {}

    def further() -> Iterator[int]:
        for seed in plan.seeds:
            if end_s is not None and clock.monotonic_s() >= end_s:
                return
            yield seed

    def submit(seed: int) -> Future[Met]:
        return executor.submit(meet, seed, plan.size, plan.choice, plan.asks)

    for seed, future in as_they_end(submit, further(), count, look):
        line = _line(seed, future)
        summary.add(line)
        met(line)
        for breach in line.breaches:
            first.setdefault(breach.law, line.seed)
    if plan.tries:
        for law, seed in first.items():
            work = (seed, plan.size, law, plan.choice, plan.tries, plan.repeats, plan.asks.beside)
            with suppress(TaskLost):
                small(executor.submit(make_small, *work).result())
    return summary


def _line(seed: int, future: Future[Met]) -> Met:
    try:
        return future.result()
    except TaskLost as lost:
        return Met(seed=seed, kinds=(), verdict="error", error=str(lost))
