"""Random operations on two cgroup file systems at once; errno and every file are compared.

On this machine's kernel with REFKUBELET_CGROUPS=1 (root, cgroup v1 and the unified hierarchy
mounted); without, the fake against a second one, to hold that the machine is right. REFKUBELET_
OPERATIONS is the number of operations, REFKUBELET_SEED the seed. What must never happen here: a
number that is not a process of ours reaches a file that moves processes.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from cgroup_differences import Row, row_for
from cgroup_kernel import RealSide, why_not_real
from cgroup_sides import NO_SUCH_PID, TREES, disks, fake_side
from cgroupfs_helpers import eventually, outcome, read, write
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

STEPS: Final = 50
MOVING: Final = ("cgroup.procs", "tasks", "cgroup.threads")
EDGES: Final = (
    *(0, 1, 2, 3, 16, 60, 100, 200, 512, 1000, 1024, 4095, 4096, 100_000, 262_144, 1_000_000),
    *(4_194_304, 2**31 - 1, 2**31, 2**44 - 1, 2**44, 2**63 - 1, 2**63, 2**64 - 1, 2**64),
)
_DEVICES: Final = (
    *("a", "c 1:3 rwm", "c 1:3 r", "c 1:* w", "c *:3 rm", "b *:* rwm", "c 1:4 w", "c *:* rwm"),
    *("c 1:3", "c 1:3 x", "a *:* rwm", "c 1:3 w"),
)
_LIMITS: Final = tuple(
    f"{disk} {n}" for disk in (*disks()[:3], "254:1000") for n in ("0", "5", "77", "x", "1K")
)
WORDS: Final = {
    "freezer.state": ("FROZEN", "THAWED", "FREEZING", " FROZEN\n"),
    "cgroup.subtree_control": ("+hugetlb", "-hugetlb", "+cpu -cpu", "+x", "-memory +memory"),
    "cgroup.type": ("threaded", "domain", "threaded\n"),
    "cgroup.event_control": ("x", "7", "99998 99999 1"),
    "cpuset.cpus": ("0", "0-1", "1", "0-N", "all", "\n", "0-1:1/2", "0,,1", "0 1", "1-0"),
    "cpuset.mems": ("0", "\n", "0-0", "1", "0,0"),
    "cpu.cfs_quota_us": ("-1", "1000", "50000", "100000", "200000"),
    "cpu.cfs_period_us": ("1000", "50000", "100000", "1000000"),
    "devices.deny": _DEVICES,
    "devices.allow": _DEVICES,
    "blkio.throttle.read_bps_device": _LIMITS,
    "blkio.throttle.write_iops_device": _LIMITS,
    "blkio.bfq.weight_device": ("default 7", "9", *_LIMITS),
    "memory.pressure": ("some 1 2000000", "full 1 2000000", "some 1 1000", "some 3 2"),
}
SETTLES: Final = ("cpu.shares", "cpu.idle", "pids.max", "memory.limit_in_bytes")

numbers = st.one_of(
    st.integers(-3, 70),
    st.builds(lambda edge, off: edge + off, st.sampled_from(EDGES), st.integers(-1, 1)),
)
texts = st.one_of(
    numbers.map(str),
    numbers.map(hex),
    numbers.map(lambda n: f"0{abs(n):o}"),
    st.builds(
        lambda before, n, after: f"{before}{n}{after}",
        st.sampled_from(["", " ", "+", "-", "\t"]),
        numbers,
        st.sampled_from(["", "\n", " ", "K", "m", "G", "T", "KB", "\n\n", "\0", "x", " 7"]),
    ),
    st.sampled_from(["max", "max\n", " max", "MAX", "", "\n", " ", "0\n", "1\n"]),
    st.text("0123456789-+,/:xNKMGEmax \n\t\0", max_size=8),
)
places = st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/a"])
seconds = st.booleans()
which = st.integers(0, 2)


class Pair:
    """Both sides, what happened, and which rows were needed."""

    def __init__(self, real: Any, fake: Any) -> None:
        self.real, self.fake = real, fake
        self.history: list[str] = []
        self.operations = 0
        self.used: dict[Row, int] = {}
        self.outcomes: Counter[str] = Counter()
        self.first = ""

    def same(self, what: str, real: Any, fake: Any) -> None:
        if real != fake:
            steps = "\n".join(f"  {line}" for line in self.history[-30:])
            raise AssertionError(f"{what}\n  real: {real!r}\n  fake: {fake!r}\nsteps:\n{steps}")

    def fails(self, text: str) -> None:
        """Keep the first failure: repeating it may go another way."""
        self.first = self.first or text


class TwoFileSystems(RuleBasedStateMachine):
    """Few names and many repeats, so that collisions, nesting and wrong states are common."""

    pair: Pair

    def __init__(self) -> None:
        super().__init__()
        self.pair.history.clear()
        self.children: list[tuple[Any, Any]] = []
        self.dead: set[int] = set()
        self.focus = ("", "")
        self.peopled: set[tuple[str, str]] = set()
        """Groups that had a process in them or below, or a group below them."""

    @initialize(one=st.sampled_from(TREES), two=st.sampled_from(TREES))
    def choose(self, one: str, two: str) -> None:
        """Two hierarchies at a time, so that steps meet; a process and a few groups to begin."""
        self.focus = (one, two)
        for second in (False, True):
            for place in ("a/a", "b"):
                self.mkdir_and_fill(second, place)
        self.start()

    def teardown(self) -> None:
        try:
            self.pair.real.reset()
        except Exception as error:
            self.pair.fails(f"cleaning up: {error!r}")
            raise
        finally:
            self.pair.fake = fake_side()

    # -- both sides ----------------------------------------------------------------------------

    def both(
        self, words: str, tree: str, action: Callable[[Any], Any], *, patient: bool = False
    ) -> str:
        """Do it on both; the errno has to be the same. Then compare the whole tree. `patient`: the
        kernel may refuse it for a while."""
        fake = outcome(lambda: action(self.pair.fake))
        real = outcome(lambda: action(self.pair.real))
        if patient and real != fake == "ok":
            real = eventually(lambda: _taken(lambda: action(self.pair.real)), patience_s=2)
        self.pair.operations += 1
        self.pair.outcomes[real] += 1
        self.pair.history.append(f"{tree}: {words} -> {real}")
        self.pair.same(f"{tree}: {words}", real, fake)
        self.compare(tree)
        return real

    def compare(self, tree: str) -> None:
        try:
            eventually(lambda: self._compare(tree), patience_s=2)
        except (AssertionError, OSError) as error:
            self.pair.fails(str(error))
            raise

    def _compare(self, tree: str) -> None:
        for name in ["", *self.groups(tree)]:
            real, fake = (s.tree(tree) / name if name else s.tree(tree) for s in self.sides)
            entries = {e.name for e in real.iterdir()}
            absent = {e for e in entries if any(r.absent for r in row_for(tree, e))}
            self.pair.same(f"{tree}/{name}", entries - absent, {e.name for e in fake.iterdir()})
            for file in sorted(entries - absent):
                if (fake / file).is_file():
                    self._compare_file(tree, name, file, read(real / file), read(fake / file))

    def _compare_file(self, tree: str, name: str, file: str, real: str, fake: str) -> None:
        if real == fake:
            return
        for row in row_for(tree, file):
            if row.once_populated and (tree, name) not in self.peopled:
                continue
            self.pair.used[row] = self.pair.used.get(row, 0) + 1
            if not row.lines:
                return
            real, fake = (
                "\n".join(line for line in text.splitlines() if not re.fullmatch(row.lines, line))
                for text in (real, fake)
            )
        self.pair.same(f"{tree}/{name}/{file}", real, fake)

    @property
    def sides(self) -> tuple[Any, Any]:
        return self.pair.real, self.pair.fake

    def groups(self, tree: str) -> Iterator[str]:
        """Those that the fake has below its own."""

        def below(path: Any, name: str) -> Iterator[str]:
            for entry in path.iterdir():
                if entry.is_dir():
                    yield f"{name}{entry.name}"
                    yield from below(entry, f"{name}{entry.name}/")

        return below(self.pair.fake.tree(tree), "")

    def people(self, tree: str, name: str) -> None:
        parts = name.split("/") if name else []
        self.peopled |= {(tree, "/".join(parts[:n])) for n in range(len(parts) + 1)}

    # -- operations ----------------------------------------------------------------------------

    @rule(second=seconds, place=places)
    def mkdir(self, second: bool, place: str) -> None:
        tree = self.focus[second]
        if tree == "memory":
            self._make_room_in(place.rpartition("/")[0])
        self.both(f"mkdir {place}", tree, lambda s: (s.tree(tree) / place).mkdir())

    def _make_room_in(self, parent: str) -> None:
        """The kernel charges what a new group needs to its parent: in a full one, mkdir is ENOMEM
        now and then (CG-131)."""
        self.people("memory", parent)
        path = self.pair.fake.tree("memory") / parent
        for file in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes"):
            if parent and (path / file).exists():
                self._write("memory", parent, file, "-1")

    @rule(second=seconds, place=places)
    def mkdir_and_fill(self, second: bool, place: str) -> None:
        """With its parents; cpusets get what they need to take processes."""
        tree = self.focus[second]
        parts = place.split("/")
        for n in range(1, len(parts) + 1):
            name = "/".join(parts[:n])
            self.mkdir(second, name)
            if tree == "cpuset":
                for file, text in (("cpuset.cpus", "0"), ("cpuset.mems", "0")):
                    self._write(tree, name, file, text)

    def one_of(self, tree: str, number: int, place: str) -> str:
        """Mostly a group that is there."""
        names = list(self.groups(tree))
        return names[number % len(names)] if names and number % 5 else place

    @rule(second=seconds, place=places, number=st.integers(0, 40))
    def rmdir(self, second: bool, place: str, number: int) -> None:
        tree = self.focus[second]
        place = self.one_of(tree, number, place)
        done = self.both(f"rmdir {place}", tree, lambda s: (s.tree(tree) / place).rmdir())
        if done == "ok":
            self.peopled.discard((tree, place))

    @rule(second=seconds, place=places, to=places, number=st.integers(0, 40))
    def rename(self, second: bool, place: str, to: str, number: int) -> None:
        tree = self.focus[second]
        place = self.one_of(tree, number, place)
        for was_in, name in sorted(self.peopled):
            if was_in == tree and (name == place or name.startswith(f"{place}/")):
                self.people(tree, to + name[len(place) :])
        self.both(
            f"rename {place} {to}",
            tree,
            lambda s: (s.tree(tree) / place).rename(s.tree(tree) / to),
        )

    @rule(second=seconds, place=places, number=st.integers(0, 200), text=texts, often=st.booleans())
    def write_something(
        self, second: bool, place: str, number: int, text: str, often: bool
    ) -> None:
        tree = self.focus[second]
        place = self.one_of(tree, number, place)
        path = self.pair.fake.tree(tree) / place
        files = sorted(e.name for e in path.iterdir() if e.is_file()) if path.is_dir() else ["x"]
        if often:
            files = [f for f in files if f in WORDS or f in SETTLES] or files
        file = files[number % len(files)]
        if file in WORDS and (often or file == "cgroup.event_control"):
            text = WORDS[file][number % len(WORDS[file])]
        self._write(tree, place, file, text)

    def _write(self, tree: str, place: str, file: str, text: str) -> None:
        if file in MOVING:
            text = "nobody"
        if tree == "memory" and (tree, place) in self.peopled and "limit" in file:
            text = "-1"  # a real process, or a group below, has memory of its own
        self.both(
            f"write {place}/{file} {text!r}",
            tree,
            lambda s: (s.tree(tree) / place / file).write_text(text),
            patient=tree == "devices",  # a group that was removed below counts until it is away
        )

    @rule(second=seconds, place=places, file=st.sampled_from(["cgroup.procs", "none", "tasks"]))
    def misuse_files(self, second: bool, place: str, file: str) -> None:
        tree = self.focus[second]

        def misuse(side: Any) -> None:
            path = side.tree(tree) / place / file
            results = [outcome(path.rmdir), outcome(path.mkdir), read(path / "x"), read(path)]
            if results[1] == "ok":
                path.rmdir()
            seen[side.name if side is self.pair.fake else "real"] = results

        seen: dict[str, list[str]] = {}
        if tree == "memory":
            self.people(tree, place)
        if self.pair.fake.tree(tree).joinpath(place, file).is_dir():
            return
        self.both(f"misuse {place}/{file}", tree, misuse)
        self.pair.same(f"{tree}: misuse {place}/{file}", seen["real"], seen["fake"])

    @rule()
    def start(self) -> None:
        if len(self.children) < 4:
            real = self.pair.real.child()
            self.children.append((real, self.pair.fake.child(real.pid)))

    @rule(
        second=seconds,
        place=st.just("") | places,
        number=st.integers(0, 40),
        form=st.sampled_from(["{}", "{}", "{}", " {}\n", "+{}", "{}x", "{0} {0}", "-{}"]),
        file=st.sampled_from(MOVING),
    )
    def move(self, second: bool, place: str, number: int, form: str, file: str) -> None:
        tree = self.focus[second]
        if file == ("tasks" if tree == "unified" else "cgroup.threads"):
            file = "cgroup.procs"
        place = self.one_of(tree, number, place)
        pids = [real.pid for real, _ in self.children] or [NO_SUCH_PID]
        text = form.format(pids[number % len(pids)])
        self.people(tree, place)
        self.both(
            f"move {place}/{file} {text!r}",
            tree,
            lambda s: (s.tree(tree).joinpath(*place.split("/")) / file).write_text(text),
        )

    @rule(number=which)
    def kill(self, number: int) -> None:
        if self.children:
            real, fake = self.children[number % len(self.children)]
            for side in (real, fake):
                side.kill(signal.SIGKILL)
            self.pair.operations += 1
            self.pair.history.append(f"kill {real.pid}")
            for tree in self.focus:
                self.compare(tree)

    @rule(number=which)
    def reap(self, number: int) -> None:
        if not self.children:
            return
        real, fake = self.children[number % len(self.children)]
        if fake.exit_status is None:
            return
        self.pair.operations += 1
        self.pair.history.append(f"reap {real.pid}")
        self.pair.same("exit status", real.reap(), fake.reap())
        self.children.remove((real, fake))
        for tree in self.focus:
            self.compare(tree)


def _taken(action: Callable[[], Any]) -> str:
    action()
    return "ok"


def _run(pair: Pair, operations: int, seed_value: int) -> None:
    class Machine(TwoFileSystems):
        pass

    Machine.pair = pair
    examples = max(1, operations // STEPS)
    while pair.operations < operations:
        run_state_machine_as_test(
            seed(seed_value)(Machine),
            settings=settings(
                max_examples=examples,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                verbosity=Verbosity.quiet,
                print_blob=False,
            ),
        )
        seed_value += 1


class _SecondFake:
    """A fake in the place of the kernel."""

    def __init__(self) -> None:
        self.side = fake_side()
        self.side.name = "real"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.side, name)

    def reset(self) -> None:
        self.side = fake_side()


def test_two_fakes_agree() -> None:
    pair = Pair(_SecondFake(), fake_side())
    _run(pair, 100, 1)
    assert pair.used == {}


@pytest.mark.real
@pytest.mark.timeout(900)
def test_the_fake_does_what_the_kernel_does() -> None:
    if reason := why_not_real():
        pytest.skip(reason)
    operations = int(os.environ.get("REFKUBELET_OPERATIONS", "2000"))
    seed_value = int(os.environ.get("REFKUBELET_SEED", "1"))
    real = RealSide()
    pair = Pair(real, fake_side())
    try:
        _run(pair, operations, seed_value)
    except Exception as error:
        raise AssertionError(pair.first or str(error)) from error
    finally:
        real.close()
    print(
        f"\n{pair.operations} operations, seed {seed_value}: {dict(pair.outcomes)}; equal but for:"
    )
    for row, times in sorted(pair.used.items(), key=lambda item: str(item[0])):
        print(f"  {row}: {times} times; {row.reason}")


def test_writing_is_imported() -> None:
    """`write` keeps the errno of the fake apart from its texts."""
    side = fake_side()
    assert write(side.tree("pids") / "pids.max", "-1") == "EINVAL"
