"""The table of limits and tolerances."""

from kubelet_conformance.harness.limits import counted_from, restart_after


def test_restart_tolerances_BACK_011() -> None:
    """From d to 1.5 d (steps of at most 60 s), plus reading the queue and the relists."""
    assert 10.0 in restart_after(10)
    assert 9.9 not in restart_after(10)
    assert 17.9 in restart_after(10)
    assert 300 + 30 in restart_after(300)
    assert 300 + 40 not in restart_after(300)
    assert 1.0 in restart_after(0)


def test_a_limit_that_counts_from_later_says_so() -> None:
    text = ", counted from 8 s: the kubelet has just started"
    assert (counted_from(8.0, 0.5), counted_from(8.0, 8.0)) == (text, "")
