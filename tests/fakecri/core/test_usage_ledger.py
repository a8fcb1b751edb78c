"""What containers use together: the running sum is what a look at all of them would give."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from fakecri.core.lookups.prefix_table import PrefixTable
from fakecri.core.usage import UsageLedger
from fakecri.words import behaviors as words
from fakecri.words.behaviors import uses
from fakecri.words.curves import at

SECOND_NS = 1_000_000_000
CURVES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=3, unique_by=lambda p: p[0]
)
Points = list[tuple[int, int]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "end", "remove", "wait"]),
        st.integers(0, 5),
        CURVES,
        CURVES,
        CURVES,
    ),
    max_size=25,
)


@dataclass
class Known:
    """A container as the model sees it."""

    uses: words.uses
    started_s: int
    ended_s: int | None = None

    def disk(self, now_s: int) -> int:
        return at(
            self.uses.disk_bytes, (now_s if self.ended_s is None else self.ended_s) - self.started_s
        )

    def inodes(self, now_s: int) -> int:
        """Beside the first one."""
        end_s = now_s if self.ended_s is None else self.ended_s
        return max(0, at(self.uses.inodes, end_s - self.started_s) - 1)

    def memory(self, now_s: int) -> int:
        return at(self.uses.memory_bytes, now_s - self.started_s) if self.ended_s is None else 0


@settings(max_examples=60)
@given(STEPS)
def test_the_sum_is_that_of_all_containers_at_every_moment(
    steps: list[tuple[str, int, Points, Points, Points]],
) -> None:
    ledger, model, now_s = UsageLedger(), dict[str, Known](), 0
    started = set[str]()
    for what, number, memory, disk, inodes in steps:
        name = str(number)
        if what == "wait":
            now_s += number
        elif what == "start" and name not in started:  # no id is used twice
            started.add(name)
            model[name] = Known(uses(memory_bytes=memory, disk_bytes=disk, inodes=inodes), now_s)
            ledger.started(name, now_s * SECOND_NS, model[name].uses)
        elif what == "end" and name in model and model[name].ended_s is None:
            model[name].ended_s = now_s
            ledger.ended(name, now_s * SECOND_NS)
        elif what == "remove" and model.pop(name, None):
            ledger.gone(name)
        expected = (
            sum(known.memory(now_s) for known in model.values()),
            sum(known.disk(now_s) for known in model.values()),
            sum(known.inodes(now_s) for known in model.values()),
        )
        assert ledger.total(now_s * SECOND_NS) == expected
        assert ledger.as_of(now_s * SECOND_NS).total(10**18) == expected


def test_the_plans_of_removed_containers_do_not_pile_up() -> None:
    ledger = UsageLedger()
    for number in range(5000):
        ledger.started(str(number), 0, uses(memory_bytes=[(0, 1), (3600, 2)]))
        ledger.gone(str(number))
    assert len(ledger._steps) < 2000


@given(
    st.lists(st.tuples(st.booleans(), st.text("ab", min_size=1, max_size=4))),
    st.text("ab", max_size=4),
)
def test_a_prefix_finds_what_a_look_at_all_keys_finds(
    changes: list[tuple[bool, str]], prefix: str
) -> None:
    table = PrefixTable[int]()
    for add, key in changes:
        if add:
            table[key] = 1
        elif key in table:
            del table[key]
    assert table.at_most_two(prefix) == sorted(key for key in table if key.startswith(prefix))[:2]
