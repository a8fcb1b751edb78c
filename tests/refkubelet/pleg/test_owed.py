"""Pods that must be read: none is forgotten (PLEG-302)."""

from __future__ import annotations

import math

from refkubelet.pleg.owed import Owed


def test_what_is_due_later_remains_PLEG_302() -> None:
    owed = Owed()
    owed.add("a", 5.0)
    owed.add("a", 1.0)
    assert (owed.next_s(), owed.take(0.5)) == (1.0, None)
    assert (owed.take(1.0), owed.take(1.0), owed.next_s()) == ("a", None, 5.0)
    assert (owed.take(9.0), owed.take(9.0), owed.next_s()) == ("a", None, math.inf)


def test_a_list_settles_what_was_due_before_it_PLEG_302() -> None:
    owed = Owed()
    owed.add("before", 1.0)
    owed.add("at once", 2.0)
    owed.add("later", 3.0)
    assert owed.settled(2.0) == ["before"]
    assert [owed.take(9.0), owed.take(9.0), owed.take(9.0)] == ["at once", "later", None]


def test_a_list_leaves_what_is_due_after_it_PLEG_302() -> None:
    """Of a pod that was due before it, too."""
    owed = Owed()
    owed.add("a", 1.0)
    owed.add("a", 3.0)
    owed.settled(2.0)
    assert owed.take(3.0) == "a"
