"""The reading of the source that says which functions change what they are given."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from changes_of_state import Changes

KEEPER = """
class Keeper:
    def __init__(self, first: int) -> None:
        self.kept = [first]
        self.last: dict[str, int] = {}

    def look(self) -> int:
        return len(self.kept)

    def keep(self, more: int) -> None:
        self.kept.append(more)


def put(target: dict, value: int) -> None:
    target["x"] = value
"""


def changes(text: str) -> list[str]:
    """What the public functions of a module change, beside a module `keeper`."""
    modules = {"keeper": ast.parse(KEEPER), "m": ast.parse(dedent(text))}
    return [line.rpartition(",")[0] for line in Changes(modules).of("m")]


@pytest.mark.parametrize(
    "body",
    [
        "pod.name = 'x'",
        "pod['name'] = 'x'",
        "pod.spec.containers[0].name = 'x'",
        "pod.count += 1",
        "pod.spec, other = other, pod",
        "del pod['name']",
        "pod.containers.append(other)",
        "pod.kill.completed.set()",
        "setattr(pod, 'name', 'x')",
        "object.__setattr__(pod, 'name', 'x')",
        "next(pod)",
        "spec = pod.get('spec') or {}\n    spec['x'] = 1",
        "inner = pod if other else None\n    inner.name = 'x'",
        "for one in pod.containers: one.name = 'x'",
        "for n, one in enumerate(pod.containers): one.name = 'x'",
        "first, *rest = pod\n    rest.clear()",
        "if (spec := pod.spec): spec.pop('x')",
        "put(pod, 1)",
        "put(value=1, target=pod.spec)",
        "_helper(pod)",
        "return [c.pop() for c in pod.containers]",
        "def inside() -> None:\n        pod.name = 'x'\n    inside()",
    ],
)
def test_an_argument_is_changed(body: str) -> None:
    text = f"""
from keeper import put

def _helper(one):
    one.name = "x"

def decide(pod, other):
    {body}
"""
    assert changes(text) == ["decide: pod"]


def test_state_of_its_own_is_changed() -> None:
    text = """
    class Bucket:
        def __init__(self, size):
            self.left = size

        def take(self):
            self._less()

        def _less(self):
            self.left -= 1
    """
    assert changes(text) == ["Bucket.take: self"]


def test_what_an_attribute_does_by_its_type_is_seen() -> None:
    text = """
    from keeper import Keeper

    class Holder:
        keeper: Keeper | None

        def look(self) -> int:
            return self.keeper.look()

        def more(self) -> None:
            self.keeper.keep(1)

    def by_type(keeper: Keeper, other: Holder) -> None:
        keeper.keep(1)
        other.keeper.keep(2)
    """
    assert changes(text) == ["Holder.more: self", "by_type: keeper", "by_type: other"]


def test_the_module_is_changed() -> None:
    text = """
    SEEN = []
    LAST: int = 0

    def note(one):
        SEEN.append(one)

    def count():
        global LAST
        LAST += 1
    """
    assert changes(text) == ["note: the module", "count: the module"]


@pytest.mark.parametrize(
    "body",
    [
        "made = dict(pod)\n    made['x'] = 1\n    return made",
        "made = [*pod.containers]\n    made.append(other)",
        "made = list(pod.containers)\n    made.sort()",
        "spec = {**pod.spec}\n    spec.update(other)",
        "pod = dict(pod)\n    return pod",
        "made = []\n    _fill(made, pod)",
        "first = next(iter(pod.ips), '')",
        "found = _Pass()\n    found.look(pod)\n    return found.seen",
        "SEEN = []\n    SEEN.append(pod)",
    ],
)
def test_what_is_made_here_may_be_changed(body: str) -> None:
    text = f"""
SEEN = ()

class _Pass:
    def __init__(self):
        self.seen = []

    def look(self, one):
        self.seen.append(one.name)

def _fill(made, pod):
    made.append(pod.name)

def decide(pod, other):
    {body}
"""
    assert changes(text) == []


def test_what_only_remembers_changes_nothing() -> None:
    text = "def table(of, name):\n    return of.setdefault(name, 1)\n"
    tree = {"m": ast.parse(text)}
    assert Changes(tree).of("m") == ["table: of, line 2"]
    assert Changes(tree, ["m.table"]).of("m") == []
