"""How what is done grows with its input: pods, containers, bytes of a log, events, objects.

Each dimension of `DIMENSIONS` is a small scenario that is run with 1, 10 and 100 times its input.
From 10 to 100 times the processor time may grow as the input does, and a little more: the exponent
of its growth, 1.0 for what is proportional and 2.0 for what looks at all for each, is less than
`MOST`. The memory of what works in pieces, such as the reading of a log, may not grow at all.

Each size is run in a process of its own, forked from this one, so that none finds the garbage or
the caches of another; the best of several counts.

python benchmarks/growth.py [NAME ...] [--runs N]    prints the table, of all dimensions or of these
"""

from __future__ import annotations

import argparse
import gc
import logging
import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from measure import Row

MOST: Final = 1.15
"""The exponent of the growth; a logarithm, and the caches of the processor, explain so much."""
STEPS: Final = (1, 10, 100)
LEAST_MIB: Final = 8.0
"""So much memory comes and goes with the interpreter."""


class Meter:
    """Counts the processor seconds of the blocks that it is entered for; what a scenario prepares
    and looks at lies outside of them."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._began_s = 0.0

    def __enter__(self) -> None:
        gc.collect()
        gc.disable()  # a collection's time depends on garbage from before
        self._began_s = time.process_time()

    def __exit__(self, *error: object) -> None:
        self.cpu_s += time.process_time() - self._began_s
        gc.enable()


@dataclass(frozen=True, slots=True)
class Dimension:
    """One input that can grow."""

    what: str
    """The input, with its place: "containers of a pod"."""
    base: int
    """How many in the smallest run."""
    run: Callable[[int, Meter], object]
    """The scenario, for so many. Raises AssertionError if it did not do what it should."""
    memory_grows: bool = True
    """Whether memory may grow as the input does; else it may not grow."""
    power: int = 1
    """Of the input by the size: 2 where each of so many makes a version of an object with all of
    them, as containers do that start one after another: a status of 100 containers is written, told
    and read 100 times. 0 where there is more of what others have: it may not grow."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took."""

    cpu_s: float
    memory_mib: float
    """The most that was in use at a time, above what the process had at its start."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The costs of a dimension, one for each of `STEPS`."""

    dimension: Dimension
    costs: tuple[Cost, ...]

    @property
    def exponent(self) -> float:
        """Of the processor time, between the last two sizes."""
        return _exponent([cost.cpu_s for cost in self.costs])

    @property
    def is_held(self) -> bool:
        """Whether memory stays as it is, where it should."""
        *_, fewer, most = self.costs
        return self.dimension.memory_grows or most.memory_mib < fewer.memory_mib + LEAST_MIB


def _exponent(values: Sequence[float]) -> float:
    """>>> round(_exponent([1.0, 2.0, 200.0]), 3)
    2.0
    """
    *_, smaller, larger = values
    return math.log(larger / smaller, STEPS[-1] / STEPS[-2])


def cost_of(dimension: Dimension, size: int) -> Cost:
    """The cost of one run, in a process of its own. Raises RuntimeError if it fails."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(dimension, size, theirs))
    process.start()
    theirs.close()
    try:
        cost: Cost = ours.recv()
    except EOFError:
        raise RuntimeError(f"{dimension.what}, {size:,}: the run has failed") from None
    finally:
        process.join()
        ours.close()
    return cost


def _measure(dimension: Dimension, size: int, answer: Connection) -> None:
    logging.disable(logging.CRITICAL)  # what a scenario does to a kubelet is told in its log
    meter = Meter()
    before = _memory_mib("VmRSS")
    dimension.run(size, meter)
    answer.send(Cost(meter.cpu_s, max(0.0, _memory_mib("VmHWM") - before)))


def _memory_mib(field: str) -> float:
    """A field of /proc/self/status in MiB. VmHWM of a forked process begins at what it has."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def growth_of(dimension: Dimension, runs: int, steps: Iterable[int] = STEPS) -> Growth:
    """The best of `runs` runs of each size; of the largest, whose time is long, of fewer."""
    costs = []
    for step in steps:
        number = runs if step < STEPS[-1] else max(1, runs // 2)
        tries = [cost_of(dimension, dimension.base * step) for _ in range(number)]
        costs.append(Cost(min(t.cpu_s for t in tries), min(t.memory_mib for t in tries)))
    return Growth(dimension, tuple(costs))


def dimensions() -> dict[str, Dimension]:
    """All of them, by name."""
    import growth_api
    import growth_kubelet
    import growth_runtime
    import growth_suite
    import growth_watches

    modules = (growth_kubelet, growth_runtime, growth_api, growth_watches, growth_suite)
    return {name: dimension for module in modules for name, dimension in module.DIMENSIONS.items()}


def rows(runs: int = 4, names: Iterable[str] = ()) -> list[Row]:
    """A row for each dimension: the exponent of its growth."""
    every = dimensions()
    return [row_of(growth_of(every[name], runs)) for name in names or every]


def row_of(growth: Growth) -> Row:
    """The row of a dimension. Memory that should be held and is not makes it a missed one."""
    dimension = growth.dimension
    sizes = ", ".join(f"{dimension.base * step:,}" for step in STEPS)
    times = ", ".join(f"{cost.cpu_s * 1000:,.1f}" for cost in growth.costs)
    versions = "; as many versions of an object with all of them" if dimension.power > 1 else ""
    held = "" if growth.is_held else ", more than with fewer"
    return Row(
        what=f"{dimension.what}: {sizes}",
        value=growth.exponent if growth.is_held else math.inf,
        unit="exponent",
        limit=MOST + dimension.power - 1,
        remark=f"{times} ms; {growth.costs[-1].memory_mib:,.0f} MiB{held}{versions}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What grows faster than its input?")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *dimensions()])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--once", type=int, metavar="STEP", help="run it here, for a profiler")
    arguments = parser.parse_args()
    every = dimensions()
    for name in arguments.names or every:
        dimension = every[name]
        if arguments.once:
            meter = Meter()
            dimension.run(dimension.base * arguments.once, meter)
            print(f"{name}: {meter.cpu_s * 1000:.1f} ms")
        else:
            print(f"{name:24}", row_of(growth_of(dimension, arguments.runs)), flush=True)


if __name__ == "__main__":
    main()
