"""`kubelet-conformance search`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor  # noqa: TID251  # whole worlds run elsewhere
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from kubelet_conformance.cluster.worker import ClusterProblem
from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem
from kubelet_conformance.harness.runs.offered import FAKE, IN_PROCESS
from kubelet_conformance.harness.runs.processes import processors
from kubelet_conformance.harness.runs.seeds import seeds_of
from kubelet_conformance.search import steering
from kubelet_conformance.search import whole_options as whole
from kubelet_conformance.search.beside import AS_BESIDE
from kubelet_conformance.search.campaign import Plan, Summary, search
from kubelet_conformance.search.drawing.kinds import BOUNDS
from kubelet_conformance.search.law_names import laws_named
from kubelet_conformance.search.records import Head, Met, SearchError, line_of, read_lines
from kubelet_conformance.search.sources import world_of
from kubelet_conformance.search.tasks import Asks, Small
from kubelet_conformance.search.workers import Workers, workers_for
from simclock import Clock, RealClock
from simclock.distribution import own_version

EXIT_BROKEN: Final = 1
EXIT_OPTIONS: Final = 2
TOLD_EACH_S: Final = 10.0


def add_words(parser: argparse.ArgumentParser) -> None:
    """Add the words of `search`."""
    parser.add_argument("--seeds", help="of the worlds: 1:20000 (default 1:100)")
    parser.add_argument("--size", choices=sorted(BOUNDS), default="small", help="of the worlds")
    parser.add_argument("--kubelet", default=IN_PROCESS, help="refkubelet (default), or a path")
    parser.add_argument("--time", default="jump", help="of a kubelet binary: jump")
    parser.add_argument(
        "--beside",
        metavar="KUBELET",
        help="another kubelet, refkubelet or a path: each world must end alike on both",
    )
    parser.add_argument(
        "--law",
        action="append",
        default=[],
        metavar="NAME",
        help="only this law fails a world (may be repeated; default: all do)",
    )
    parser.add_argument("--jobs", type=int, default=processors(), help="processes (one each CPU)")
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="play on the workers of this Dask cluster (tcp://10.0.0.1:8786), and not here",
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no world after so long")
    parser.add_argument("--shard", metavar="K/N", help="the K-th of N parts of the seeds")
    parser.add_argument("--results", type=Path, metavar="FILE", help="a JSON line for each world")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="go on with those results: add what is missing"
    )
    parser.add_argument(
        "--found",
        type=Path,
        default=Path("found"),
        metavar="DIR",
        help="for scenarios of what breaks a law (default ./found)",
    )
    parser.add_argument(
        "--tries",
        type=int,
        default=200,
        metavar="N",
        help="to make one small (default 200; 0: none)",
    )
    parser.add_argument("--show", type=int, metavar="SEED", help="print that world, run nothing")
    whole.add_words(parser)
    steering.add_words(parser)


def main(options: argparse.Namespace) -> int:
    """Play worlds, and write what breaks a law into scenario files. Exit codes: 0 all laws hold, 1
    one was broken or a world could not be played, 2 it cannot be done like this."""
    try:
        if options.whole == whole.LIST:
            print("\n".join(whole.words_of_worlds()))
            return 0
        whole.take(options)
        steering.take(options)
        if options.show is not None:
            print(world_of(options.show, options.size).text(), end="")
            return 0
        return _searched(options)
    except (SearchError, EnvironmentProblem, ClusterProblem) as problem:
        print(f"kubelet-conformance search: {problem}", file=sys.stderr)
        return EXIT_OPTIONS


def _searched(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time-out of CI
    choice, asks = _choice(options, options.kubelet), _asks(options)
    seeds = _part(options.shard, _seeds(options.seeds))
    with ExitStack() as stack:
        workers = stack.enter_context(workers_for(choice, asks, options.dask))
        file, done = _results(options, _head(options))
        if file is not None:
            stack.enter_context(file)
        told = _Told(len(seeds), RealClock(), file)
        done = [line for line in done if line.verdict != "error"]
        for line in done:
            told.summary.add(line)
        told.before = len(done)
        known = {line.seed for line in done}
        plan = Plan(
            seeds=[seed for seed in seeds if seed not in known],
            choice=choice,
            size=options.size,
            asks=asks,
            minutes=options.minutes,
            tries=options.tries,
        )
        code = _played(plan, workers, told, options.found)
    print("\n".join(words_of(told.summary, RealClock().monotonic_s() - told.began_s)))
    if options.whole is not None:
        print("\n".join(whole.words_of(told.summary, options.whole)))
    else:
        print("\n".join(steering.words_of(told.summary)))
    return code or (EXIT_BROKEN if told.summary.failed else 0)


def _played(plan: Plan, workers: Workers, told: _Told, found: Path) -> int:
    """Play the worlds. Returns the exit code that cutting it short means; 0: it was not."""
    executor = workers.executor
    try:
        keep = partial(_keep, found)
        search(plan, executor, workers.count, met=told.met, small=keep, look=workers.look)
    except BrokenExecutor:
        print("a process has ended: go on with --resume", file=sys.stderr)
        return EXIT_BROKEN
    except KeyboardInterrupt:
        print("stopped: go on with --resume", file=sys.stderr)
        executor.shutdown(wait=False, cancel_futures=True)
        return EXIT_BROKEN
    except ClusterProblem as problem:
        print(f"kubelet-conformance search: {problem}; go on with --resume", file=sys.stderr)
        return EXIT_OPTIONS
    return 0


def _choice(options: argparse.Namespace, kubelet: str) -> Choice:
    if options.jobs < 1:
        raise SearchError(f"--jobs {options.jobs}: wanted 1 or more")
    time = "real" if kubelet == IN_PROCESS else options.time
    return Choice(kubelet=kubelet, runtime=FAKE, time=time, jobs=options.jobs)


def _asks(options: argparse.Namespace) -> Asks:
    laws = laws_named(options.law)
    if AS_BESIDE in laws and options.beside is None:
        raise SearchError(f"--law {AS_BESIDE}: it needs --beside, the other kubelet")
    beside = None if options.beside is None else _choice(options, options.beside)
    return Asks(laws, beside)


def _seeds(text: str) -> Sequence[int]:
    """The seeds; a search has more of them than a run."""
    first, colon, last = text.partition(":")
    try:
        if colon and "," not in text:
            low, high = int(first), int(last)
            if low <= high:
                return range(low, high + 1)
        return seeds_of(text)
    except (ValueError, argparse.ArgumentTypeError):
        raise SearchError(f"--seeds {text}: wanted seeds such as 7, 3,7 or 1:20000") from None


def _part(shard: str | None, seeds: Sequence[int]) -> Sequence[int]:
    if shard is None:
        return seeds
    part, slash, count = shard.partition("/")
    if not (slash and part.isdigit() and count.isdigit() and 1 <= int(part) <= int(count)):
        raise SearchError(f"--shard {shard}: wanted one such as 2/8")
    return seeds[int(part) - 1 :: int(count)]


def _head(options: argparse.Namespace) -> Head:
    began = f"{RealClock().now():%Y-%m-%dT%H:%M:%SZ}"
    return Head(
        suite=own_version(),
        kubelet=str(options.kubelet),
        size=options.size,
        laws=laws_named(options.law),
        beside=options.beside or "",
        began=began,
    )


def _results(options: argparse.Namespace, head: Head) -> tuple[BinaryIO | None, list[Met]]:
    """The file for the lines, and those that are in it already. Raises SearchError."""
    if options.resume is not None:
        before, done = read_lines(options.resume)
        if before.asked != head.asked:
            raise SearchError(f"--resume {options.resume}: it has {before.asked}")
        _cut_last_line(options.resume)
        return options.resume.open("ab"), done
    if options.results is None:
        return None, []
    try:
        file = options.results.open("wb")
    except OSError as error:
        raise SearchError(f"--results {options.results}: {error.strerror}") from None
    file.write(line_of(head))
    return file, []


def _cut_last_line(path: Path) -> None:
    """Remove what is after the last end of a line: a line that was cut off."""
    text = path.read_bytes()
    if not text.endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])


class _Told:
    """Writes lines down, and says on the terminal how far it is."""

    def __init__(self, count: int, clock: Clock, file: BinaryIO | None) -> None:
        self.summary = Summary()
        self.began_s = clock.monotonic_s()
        self.before = 0
        """How many worlds an earlier search has played."""
        self._count = count
        self._clock = clock
        self._file = file
        self._told_s = self.began_s

    def met(self, line: Met) -> None:
        """Take the line of a world."""
        self.summary.add(line)
        if self._file is not None:
            self._file.write(line_of(line))
            self._file.flush()
        for breach in line.breaches[:1]:
            print(f"world {line.seed}: law {breach.law}: {breach.what}", flush=True)
        if line.error:
            print(f"world {line.seed}: error: {line.error.strip().splitlines()[-1]}", flush=True)
        now_s = self._clock.monotonic_s()
        if now_s - self._told_s >= TOLD_EACH_S:
            self._told_s = now_s
            rate = (self.summary.worlds - self.before) / (now_s - self.began_s)
            left_s = (self._count - self.summary.worlds) / rate
            print(
                f"{self.summary.worlds} of {self._count} worlds, {rate * 3600:.0f} an hour, "
                f"{left_s / 60:.1f} min left",
                file=sys.stderr,
                flush=True,
            )


def _keep(directory: Path, small: Small) -> None:
    """Write the scenario of a law that was broken."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{small.law}-{small.world.name.removeprefix('world-')}.yaml"
    path.write_text(small.world.text())
    print(f"{path}: law {small.law}, broken in {small.breaks} of {small.tried} plays", flush=True)
    print(f"  repeat: kubelet-conformance run {path} --seed {small.world.seed}", flush=True)


def words_of(summary: Summary, real_s: float) -> Iterable[str]:
    """What came of a campaign, in lines."""
    verdicts = ", ".join(f"{count} {word}" for word, count in sorted(summary.verdicts.items()))
    theirs, cpu = (
        f"{summary.world_s / 3600:.1f} h of theirs",
        f"{summary.cpu_s / 3600:.2f} CPU hours",
    )
    yield f"{summary.worlds} worlds in {real_s:.0f} s ({theirs}, {cpu})"
    yield f"verdicts: {verdicts}"
    yield from (f"law {law}: broken in {count} worlds" for law, count in summary.laws.most_common())
    for name, count in summary.excuses.most_common():
        yield f"excuse {name}: swallowed {count} breaches"
    for law, count in summary.unasked.most_common():
        yield f"law {law}, not asked for: broken in {count} worlds"
    if summary.never:
        yield f"never met: {', '.join(summary.never)}"
